"""Items of contrastive test sets, read from files or made from the controlled corpus.

A TSV file has a header with the columns source, right and wrong (wrong2, …: further ones). JSON lines have the same
fields, with `wrong` a text or a list. Optional fields: `context` (sentences before the item), `context_outputs` (their
translations), `context_after` (sentences after the item); all other fields are tags. ContraPro's and LingEval's JSON is
a list of objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from analyses.contrastive import Item
from core_models.files.run_files import parse_json
from core_models.text.parallel import read_lines
from workbench.store.runs import Run, RunError

REACH = 10  # context sentences before and after an item of the controlled corpus, as many as any system reads
_SOURCES, _RIGHT = ("src segment", "source"), ("ref segment", "reference")
# Our tag names, with ContraPro's fields.
_TAGS = {
    "distance": ("ante distance", "ref ante distance"),
    "pronoun": ("ref pronoun",),
    "source pronoun": ("src pronoun",),
    "gender": ("ref ante head gender",),
    "intrasegmental": ("intrasegmental",),
    "corpus": ("corpus", "origin"),
    "word": ("ambig word",),
    "sense": ("sense",),
}


def read_items(path: str | Path) -> list[Item]:
    """Read items from a file, plain or .gz: TSV, JSON lines, or a JSON list in ContraPro's format.

    Raises TextError if the file is unreadable, and RunError with the line or the item for invalid content.
    """
    path = Path(path)
    lines = read_lines(path)
    first = next((line.lstrip() for line in lines if line.strip()), "")
    if first.startswith("["):
        return list(_items_of_list("\n".join(lines), path))
    return list(_items_of_json_lines(lines, path) if first.startswith("{") else _items_of_table(lines, path))


def _items_of_table(lines: list[str], path: Path) -> Iterator[Item]:
    header = lines[0].split("\t")
    if missing := [name for name in ("source", "right", "wrong") if name not in header]:
        raise RunError(
            f"{path}:1: the header has no column {missing[0]!r}; begin the file with a line such as: "
            "source<TAB>right<TAB>wrong<TAB>tag, one tab between the fields"
        )
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise RunError(f"{path}:{number}: {len(fields)} fields, but the header has {len(header)}: one tab each")
        record: dict[str, Any] = dict(zip(header, fields, strict=True))
        names = [name for name in header if name == "wrong" or (name.startswith("wrong") and name[5:].isdecimal())]
        wrong = [text for text in map(record.pop, names) if text]
        yield item_of({**record, "wrong": wrong}, f"{path}:{number}")


def _items_of_json_lines(lines: list[str], path: Path) -> Iterator[Item]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield item_of(_json(line, f"{path}:{number}"), f"{path}:{number}")


def _json(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise RunError(f"{where}: not JSON ({error}); mend it, or write a tab-separated file") from None


def item_of(record: Any, where: str) -> Item:
    """Parse an item in our format; raises RunError, beginning with `where`, for missing or invalid fields."""
    if not isinstance(record, dict):
        raise RunError(f"{where}: a {type(record).__name__}, not an item with source, right and wrong")
    fields = dict(record)
    source, right, wrong = (fields.pop(name, "") for name in ("source", "right", "wrong"))
    tags, contexts = fields.pop("tags", {}), [fields.pop(f"context{part}", ()) for part in ("", "_outputs", "_after")]
    wrong, *contexts = ([lines] if isinstance(lines, str) else lines for lines in (wrong, *contexts))
    lists = all(isinstance(lines, list | tuple) for lines in (wrong, *contexts))
    texts = (source, right, *itertools.chain(wrong, *contexts)) if lists else (0,)
    if not (all(isinstance(text, str) for text in texts) and source and right and any(wrong)):
        raise RunError(f"{where}: an item needs the texts source and right and at least one wrong translation")
    if not isinstance(tags, Mapping):
        raise RunError(f"{where}: tags are names with values, such as {{'distance': 1}}, not {tags!r}")
    tag_values = {
        name: str(value) for name, value in {**fields, **tags}.items() if isinstance(value, str | int | float)
    }
    context, outputs, after = (tuple(filter(None, lines)) for lines in contexts)
    if outputs and len(outputs) != len(context):
        raise RunError(f"{where}: {len(context)} context sentences but {len(outputs)} context_outputs; give one each")
    return Item(source, right, tuple(filter(None, wrong)), tag_values, context, outputs, after)


def _items_of_list(text: str, path: Path) -> Iterator[Item]:
    """Parse objects with "src segment", "ref segment" and "errors" (a list of objects with "contrastive")."""
    for number, record in enumerate(_json(text, str(path))):
        where = f"{path}: item {number}"
        errors = record.get("errors") if isinstance(record, dict) else None
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            yield item_of(record, where)
            continue
        tags = {tag: value for tag, names in _TAGS.items() if (value := _first_value(record, names)) is not None}
        kinds = {
            str(kind) for error in errors if (kind := _first_value(error, ("type", "replacement type"))) is not None
        }
        tags |= {"type": ", ".join(sorted(kinds))} if kinds else {}
        wrong = [error.get("contrastive", "") for error in errors]
        fields = {
            "source": _first_value(record, _SOURCES) or "",
            "right": _first_value(record, _RIGHT) or "",
            "wrong": wrong,
        }
        yield item_of({**fields, "tags": tags}, where)


def _first_value(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def controlled_items(run: Run, test: str = "test") -> list[Item]:
    """Items for the pronouns of a controlled test set in the run's prepared data."""
    from analyses.contrastive import from_truth
    from workbench.evaluation.translate import test_set
    from workbench.store.translations import read_truth

    text, truth = test_set(run, test)
    if truth is None or text.references is None:
        raise RunError(
            f"{run.name}: the test set {test!r} has no truth, which only the controlled corpus knows; give a file of "
            "items"
        )
    records = [{"pronouns": [], **record} for record in read_truth(truth, text.sources, text.references)]
    try:
        return from_truth(text.sources, text.references, records, text.documents, REACH)
    except ValueError as error:  # texts that were edited since
        raise RunError(f"{truth}: {error}") from None
