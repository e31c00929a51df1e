"""The items of contrastive test sets: read from files, or made of the controlled corpus.

A TSV file has a header with the columns source, right and wrong (wrong2, …: further ones); JSON lines have the same as
fields, `wrong` a text or a list. The sentences before an item may stand in `context`, their translations in
`context_outputs`, the sentences after it in `context_after`; all else is tags. ContraPro's and LingEval's JSON is a
list of objects. Knows no scores.
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

REACH = 10  # sentences before and after an item of the controlled corpus: no system of the catalogue reads more
_SOURCES, _RIGHT = ("src segment", "source"), ("ref segment", "reference")
# What ContraPro says of an item, under the names that our own items have.
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
    """The items of a file, plain or .gz: TSV, JSON lines, or a JSON list in ContraPro's form.

    Raises TextError where it cannot be read and RunError, with the line or the item, where it is none of these.
    """
    path = Path(path)
    lines = read_lines(path)
    first = next((line.lstrip() for line in lines if line.strip()), "")
    if first.startswith("["):
        return list(_of_list("\n".join(lines), path))
    return list(_of_json_lines(lines, path) if first.startswith("{") else _of_table(lines, path))


def _of_table(lines: list[str], path: Path) -> Iterator[Item]:
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


def _of_json_lines(lines: list[str], path: Path) -> Iterator[Item]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield item_of(_json(line, f"{path}:{number}"), f"{path}:{number}")


def _json(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise RunError(f"{where}: not JSON ({error}); mend it, or write a tab-separated file") from None


def item_of(record: Any, where: str) -> Item:
    """An item of our own form, its fields by name; raises RunError, which begins with `where`, for what is missing."""
    if not isinstance(record, dict):
        raise RunError(f"{where}: a {type(record).__name__}, not an item with source, right and wrong")
    named = dict(record)
    source, right, wrong = (named.pop(name, "") for name in ("source", "right", "wrong"))
    tags, around = named.pop("tags", {}), [named.pop(f"context{part}", ()) for part in ("", "_outputs", "_after")]
    wrong, *around = ([lines] if isinstance(lines, str) else lines for lines in (wrong, *around))
    lists = all(isinstance(lines, list | tuple) for lines in (wrong, *around))
    texts = (source, right, *itertools.chain(wrong, *around)) if lists else (0,)
    if not (all(isinstance(text, str) for text in texts) and source and right and any(wrong)):
        raise RunError(f"{where}: an item needs the texts source and right and at least one wrong translation")
    if not isinstance(tags, Mapping):
        raise RunError(f"{where}: tags are names with values, such as {{'distance': 1}}, not {tags!r}")
    found = {name: str(value) for name, value in {**named, **tags}.items() if isinstance(value, str | int | float)}
    context, outputs, after = (tuple(filter(None, lines)) for lines in around)
    if outputs and len(outputs) != len(context):
        raise RunError(f"{where}: {len(context)} context sentences but {len(outputs)} context_outputs; give one each")
    return Item(source, right, tuple(filter(None, wrong)), found, context, outputs, after)


def _of_list(text: str, path: Path) -> Iterator[Item]:
    """Objects with "src segment", "ref segment" and "errors", a list of objects with "contrastive"."""
    for number, record in enumerate(_json(text, str(path))):
        where = f"{path}: item {number}"
        errors = record.get("errors") if isinstance(record, dict) else None
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            yield item_of(record, where)
            continue
        said = {tag: value for tag, names in _TAGS.items() if (value := _first(record, names)) is not None}
        kinds = {str(kind) for error in errors if (kind := _first(error, ("type", "replacement type"))) is not None}
        said |= {"type": ", ".join(sorted(kinds))} if kinds else {}
        wrong = [error.get("contrastive", "") for error in errors]
        ours = {"source": _first(record, _SOURCES) or "", "right": _first(record, _RIGHT) or "", "wrong": wrong}
        yield item_of({**ours, "tags": said}, where)


def _first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def controlled_items(run: Run, test: str = "test") -> list[Item]:
    """An item for each pronoun of a controlled test set that the run's prepared data has, with its truth."""
    from analyses.contrastive import from_truth
    from workbench.evaluation.translate import test_set
    from workbench.store.translations import read_truth

    text, truth = test_set(run, test)
    if truth is None or text.references is None:
        raise RunError(
            f"{run.name}: the test set {test!r} has no truth, which only the controlled corpus knows; give a file of "
            "items"
        )
    known = [{"pronouns": [], **record} for record in read_truth(truth, text.sources, text.references)]
    try:
        return from_truth(text.sources, text.references, known, text.documents, REACH)
    except ValueError as error:  # texts that were edited since
        raise RunError(f"{truth}: {error}") from None
