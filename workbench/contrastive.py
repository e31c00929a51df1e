"""Contrastive test sets: read from files or made of the controlled corpus, scored by runs, kept beside them.

    RESULTS/contrast/NAME.json  every item with the log P of its translations; NAME is the file's, or controlled-TEST,
                                and +CONTEXTS where other sentences stood before the items

A TSV file has a header with the columns source, right and wrong (wrong2, …: further ones); JSON lines have the same as
fields, `wrong` a text or a list. The sentences before an item may stand in `context`, their translations in
`context_outputs`, the sentences after it in `context_after`; all else is tags. ContraPro's and LingEval's JSON is a
list of objects. Never imports torch by itself.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyses.contrastive import CONTEXTS, Item, Scored
from analyses.lines import digest
from core_models.text.parallel import read_lines
from workbench.contexts import own_outputs, readers, reads_after
from workbench.runs import Run, RunError
from workbench.whole_files import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from core_models.reading import Texts
    from core_models.text.documents import ContextUse
    from core_models.translator import Translator
    from workbench.evaluation import Step

FOLDER = "contrast"
AT_ONCE = 256  # items between two reports of progress
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


@dataclass(frozen=True)
class Contrast:
    """What one run says of a contrastive test set; `digest` tells versions apart, `origin` says where it is from.

    read: how many sentences before an item the run read at most.
    """

    name: str
    origin: str
    digest: str
    items: list[Item]
    scored: list[Scored]
    read: int = 0

    @property
    def context(self) -> int:
        """How many items have a context, which systems that read single sentences do not see."""
        return sum(bool(item.context) for item in self.items)


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
        yield _item({**record, "wrong": wrong}, f"{path}:{number}")


def _of_json_lines(lines: list[str], path: Path) -> Iterator[Item]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _item(_json(line, f"{path}:{number}"), f"{path}:{number}")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{where}: not JSON ({error}); mend it, or write a tab-separated file") from None


def _item(record: Any, where: str) -> Item:
    """An item of our own form; raises RunError for what is missing."""
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
            yield _item(record, where)
            continue
        said = {tag: value for tag, names in _TAGS.items() if (value := _first(record, names)) is not None}
        kinds = {str(kind) for error in errors if (kind := _first(error, ("type", "replacement type"))) is not None}
        said |= {"type": ", ".join(sorted(kinds))} if kinds else {}
        wrong = [error.get("contrastive", "") for error in errors]
        ours = {"source": _first(record, _SOURCES) or "", "right": _first(record, _RIGHT) or "", "wrong": wrong}
        yield _item({**ours, "tags": said}, where)


def _first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def controlled_items(run: Run, test: str = "test") -> list[Item]:
    """An item for each pronoun of a controlled test set that the run's prepared data has, with its truth."""
    from analyses.contrastive import from_truth
    from workbench.evaluation import test_set
    from workbench.translations import read_records

    text, truth = test_set(run, test)
    if truth is None or text.references is None:
        raise RunError(
            f"{run.name}: the test set {test!r} has no truth, which only the controlled corpus knows; give a file of "
            "items"
        )
    return from_truth(text.sources, text.references, list(read_records(truth)), text.documents, REACH)


def measure(
    run: Run,
    items: Sequence[Item],
    name: str,
    origin: str,
    device: str = "cpu",
    translator: Translator | None = None,
    step: Step | None = None,
) -> Path:
    """Score every translation of every item with a run and write the result, whole or not at all; returns its file."""
    if not items:
        raise RunError(f"{origin}: there is no item in it; nothing was scored")
    run.require_model()
    weights = run.digest  # before they are read: training may go on meanwhile
    if translator is None:
        import core_models

        translator = core_models.load(run.reference, device)
    scored: list[Scored] = []
    for start in range(0, len(items), AT_ONCE):
        scored += _score(translator, items[start : start + AT_ONCE])
        if step is not None:
            step(len(scored), len(items))
    path = run.results / FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"item": asdict(item), "scored": asdict(one)} for item, one in zip(items, scored, strict=True)]
    found = {"name": name, "origin": origin, "digest": digest_of(items), "weights": weights,
             "read": translator.context.sentences, "after": translator.context.after, "rows": rows}  # fmt: skip
    return write_whole(path, json.dumps(found, ensure_ascii=False))


def _score(translator: Translator, items: Sequence[Item]) -> list[Scored]:
    each = [(item, text) for item in items for text in (item.right, *item.wrong)]
    beside: dict[str, Any] = {
        name: [lines for item, lines in zip(items, found, strict=True) for _ in (item.right, *item.wrong)]
        for name, found in _contexts(translator, items).items()
    }
    sources, targets = [item.source for item, _ in each], [text for _, text in each]
    found = iter(translator.score(sources, targets, **beside))
    scored = []
    for item in items:
        right, wrong = next(found), [next(found) for _ in item.wrong]
        scored.append(
            Scored(
                right.log_prob,
                tuple(one.log_prob for one in wrong),
                len(right.tokens),
                tuple(len(one.tokens) for one in wrong),
            )
        )
    return scored


def _contexts(translator: Translator, items: Sequence[Item]) -> dict[str, Texts]:
    """What a system reads beside the items: sources and, where it reads these, the translations of those before, which
    are those of the items, or where an item has none the system's own."""
    use = translator.context
    if not use.sentences:
        return {}
    sources = [_around(item, use) for item in items]
    if not use.outputs:
        return {"contexts": sources}
    given: list[Sequence[str | None]] = [item.context_outputs[::-1][: use.sentences] for item in items]
    lacking = [number for number, item in enumerate(items) if item.context and not item.context_outputs]
    for number, lines in zip(lacking, own_outputs(translator, [sources[number] for number in lacking]), strict=True):
        given[number] = lines
    return {"contexts": sources, "context_outputs": given}


def _around(item: Item, use: ContextUse) -> list[str | None]:
    """The sentences that are read before an item, the nearest first, then those that are read after it."""
    before, after = item.context[::-1][: use.sentences], item.context_after[: use.after]
    return [*before, *([None] * (use.sentences - len(before)) if after else []), *after]


def digest_of(items: Sequence[Item]) -> str:
    """Twelve signs that tell versions of a contrastive test set apart."""
    return digest([item.source for item in items], [item.right for item in items],
                  [wrong for item in items for wrong in item.wrong])  # fmt: skip


def words_of(name: str) -> list[str]:
    """The words of the command that scores the contrastive test set of a name; which file it is of, nobody knows."""
    own, _, contexts = name.rpartition("+")
    own, contexts = (own, contexts) if contexts in CONTEXTS else (name, "")
    controlled = own.removeprefix("controlled-")
    given = ["FILE"] if controlled == own else ["--controlled", controlled]
    return [*given, "--contexts", contexts] if contexts else given


def names(run: Run) -> list[str]:
    """The contrastive test sets that a run has scored."""
    return sorted(path.stem for path in (run.results / FOLDER).glob("*.json"))


def read(run: Run, name: str) -> Contrast:
    """What a run says of a contrastive test set; RunError with the command where it was not scored or is damaged."""
    path = run.results / FOLDER / f"{name}.json"
    command = f"workbench contrast {' '.join(map(shlex.quote, words_of(name)))} --run {run.typed}"
    if not path.is_file():
        raise RunError(f"{run.name} has not scored the contrastive test set {name!r}; do it: {command}")
    try:
        found = json.loads(path.read_bytes())
        items = [_item(row["item"], "an item") for row in found["rows"]]
        scored = [_scored(row["scored"], item) for row, item in zip(found["rows"], items, strict=True)]
        if not items:
            raise ValueError("no items")
        read, after = int(found.get("read", 0)), int(found.get("after", 0))
        contrast = Contrast(str(found["name"]), str(found["origin"]), str(found["digest"]), items, scored, read)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RunError(f"{path}: not readable ({str(error)[:200]}); score it again: {command}") from None
    if not run.is_of(found.get("weights")):
        raise RunError(f"{run.name} scored {name!r} with other weights than it has now; score it again: {command}")
    unread = "before" if readers(run) and not contrast.read else "after" if reads_after(run) and not after else ""
    if unread:
        raise RunError(
            f"{run.name} scored {name!r} without the sentences {unread}, which it reads; do it again: {command}"
        )
    return contrast


def _scored(said: Mapping[str, Any], item: Item) -> Scored:
    """What a file says of an item; raises ValueError where it does not fit."""
    wrong, tokens = tuple(map(float, said["wrong"])), tuple(map(int, said["wrong_tokens"]))
    right_tokens = int(said["right_tokens"])
    if not len(wrong) == len(tokens) == len(item.wrong) or min(right_tokens, *tokens) < 1:
        raise ValueError("an item and its scores do not fit")
    return Scored(float(said["right"]), wrong, right_tokens, tokens)


def read_all(runs: Sequence[Run], name: str) -> dict[str, Contrast]:
    """`read` of every run, by its name; RunError where they scored different versions."""
    found = {run.name: read(run, name) for run in runs}
    versions = {contrast.digest for contrast in found.values()}
    if len(versions) > 1:
        raise RunError(
            f"{', '.join(found)} scored different versions of {name!r}; score the same file with all of them"
        )
    return found


def judged(contrast: Contrast) -> pd.DataFrame:
    """`analyses.contrastive.judged` of a run's scores."""
    from analyses import contrastive

    return contrastive.judged(contrast.scored, [item.tags for item in contrast.items])


def accuracy_table(found: Mapping[str, Contrast], by: str | None = None) -> pd.DataFrame:
    """`analyses.contrastive.accuracy` of every run, its name first as `system`."""
    import pandas as pd

    from analyses import contrastive

    tables = [contrastive.accuracy(judged(one), by).assign(system=name) for name, one in found.items()]
    table = pd.concat(tables, ignore_index=True)
    return table[["system", *(column for column in table if column != "system")]]


def tag_names(contrast: Contrast) -> list[str]:
    """The tags of the items, in the order in which they come."""
    return list(dict.fromkeys(tag for item in contrast.items for tag in item.tags))


def items_table(found: Mapping[str, Contrast]) -> pd.DataFrame:
    """A row an item: item (from 0), source, right, wrong, each system's margin (nats) under its name, then tags."""
    import pandas as pd

    first = next(iter(found.values()))
    table = pd.DataFrame(
        {
            "item": range(len(first.items)),
            "source": [item.source for item in first.items],
            "right": [item.right for item in first.items],
            "wrong": [" · ".join(item.wrong) for item in first.items],
        }
    )
    margins = {name: judged(one)["margin"].to_numpy() for name, one in found.items()}
    tags = pd.DataFrame([item.tags for item in first.items], index=table.index)
    return pd.concat([table.assign(**margins), tags], axis="columns")
