"""Contrastive test sets: scored by runs, kept beside them, and set side by side.

    RESULTS/contrast/NAME.json  every item with the log P of its translations; NAME is the file's, or controlled-TEST,
                                and +CONTEXTS where other sentences stood around the items

Where items come from, `contrastive_items` knows. Never imports torch by itself.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from analyses.contrastive import CONTEXTS, Item, Scored
from analyses.text_checks import digest
from core_models.files.atomic_files import write_atomic
from core_models.files.run_files import RESULT, read_json
from workbench.evaluation.document_context import ContextSentences, context_mechanisms, own_outputs, reads_after
from workbench.evaluation.forced_decoding import Opened, Target, force
from workbench.store.runs import Run, RunError
from workbench.views.contrastive.items import item_of

if TYPE_CHECKING:
    import pandas as pd

    from core_models.text.documents import ContextUse
    from core_models.translator import Translator
    from workbench.evaluation.translate import Step

FOLDER = "contrast"
# Control contexts as --contexts names them, and as names of results do.
CONTROLS = {"none": "none", "other-item": "another", "reversed": "words-backwards"}
AT_ONCE = 256  # items between two reports of progress


@dataclass(frozen=True)
class Contrast:
    """What one run says of a contrastive test set; `origin` says where it is from.

    read, after: how many sentences before an item and after it the run read at most.
    """

    name: str
    origin: str
    items: list[Item]
    scored: list[Scored]
    read: int = 0
    after: int = 0

    @property
    def digest(self) -> str:
        """`digest_of` its items, as they were when they were scored."""
        return digest_of(self.items)

    @property
    def context(self) -> int:
        """How many items have a context, which systems that read single sentences do not see."""
        return sum(bool(item.context or item.context_after) for item in self.items)


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
    model = Opened(translator, Lock())
    scored: list[Scored] = []
    for start in range(0, len(items), AT_ONCE):
        scored += _score(model, items[start : start + AT_ONCE])
        if step is not None:
            step(len(scored), len(items))
    path = run.results / FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"item": asdict(item), "scored": asdict(one)} for item, one in zip(items, scored, strict=True)]
    found = {"name": name, "origin": origin, "weights": weights,
             "read": translator.context.sentences, "after": translator.context.after, "rows": rows}  # fmt: skip
    return write_atomic(path, json.dumps(found, ensure_ascii=False))


def _score(model: Opened, items: Sequence[Item]) -> list[Scored]:
    targets = [
        Target(row, item.source, text, (), before)
        for row, (item, before) in enumerate(zip(items, _contexts(model.translator, items), strict=True))
        for text in (item.right, *item.wrong)
    ]
    found = force(model, targets, at_once=len(targets))
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


def _contexts(translator: Translator, items: Sequence[Item]) -> list[ContextSentences | None]:
    """What a system reads beside the items: sources and, where it reads these, the translations of those before, which
    are those of the items, or where an item has none the system's own."""
    use = translator.context
    if not use.sentences:
        return [None] * len(items)
    around = [_around(item, use) for item in items]
    if not use.outputs:
        return list(around)
    outputs: list[Sequence[str | None]] = [item.context_outputs[::-1][: use.sentences] for item in items]
    lacking = [row for row, item in enumerate(items) if item.context and not item.context_outputs]
    for row, lines in zip(lacking, own_outputs(translator, [around[row].sources for row in lacking]), strict=True):
        outputs[row] = lines
    return [replace(one, outputs=tuple(lines)) for one, lines in zip(around, outputs, strict=True)]


def _around(item: Item, use: ContextUse) -> ContextSentences:
    """The sentences that are read before an item, then those that are read after it."""
    before, after = item.context[::-1][: use.sentences], item.context_after[: use.after]
    nothing = [None] * (use.sentences - len(before)) if after else []
    return ContextSentences((*before, *nothing, *after), after=len(after))


def digest_of(items: Sequence[Item]) -> str:
    """Twelve signs that tell versions of a contrastive test set apart: of all that is scored and all around it."""
    return digest(
        [
            json.dumps([one.source, one.right, one.wrong, one.context, one.context_outputs, one.context_after])
            for one in items
        ]
    )


def words_of(name: str) -> list[str]:
    """The words of the command that scores the contrastive test set of a name; which file it is of, nobody knows."""
    own, _, contexts = name.rpartition("+")
    own, contexts = (own, contexts) if contexts in CONTEXTS else (name, "")
    controlled = own.removeprefix("controlled-")
    given = ["FILE"] if controlled == own else ["--controlled", controlled]
    control = [option for option, stored in CONTROLS.items() if stored == contexts]
    return [*given, "--contexts", *control] if control else given


def names(run: Run) -> list[str]:
    """The contrastive test sets that a run has scored."""
    return sorted(path.stem for path in (run.results / FOLDER).glob("*.json"))


def read(run: Run, name: str) -> Contrast:
    """What a run says of a contrastive test set; RunError with the command where it was not scored or is damaged."""
    path = run.results / FOLDER / f"{name}.json"
    command = f"workbench contrastive-eval {' '.join(map(shlex.quote, words_of(name)))} --run {run.typed}"
    if not path.is_file():
        raise RunError(f"{run.name} has not scored the contrastive test set {name!r}; do it: {command}")
    try:
        found = read_json(path, RESULT)
        items = [item_of(row["item"], "an item") for row in found["rows"]]
        scored = [_scored(row["scored"], item) for row, item in zip(found["rows"], items, strict=True)]
        if not items:
            raise ValueError("no items")
        read, after = int(found.get("read", 0)), int(found.get("after", 0))
        contrast = Contrast(str(found["name"]), str(found["origin"]), items, scored, read, after)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise RunError(f"{path}: not readable ({str(error)[:200]}); score it again: {command}") from None
    if not run.is_of(found.get("weights")):
        raise RunError(f"{run.name} scored {name!r} with other weights than it has now; score it again: {command}")
    unread = "before" if context_mechanisms(run) and not read else "after" if reads_after(run) and not after else ""
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
    table = table.assign(**margins)
    tags = pd.DataFrame([item.tags for item in first.items], index=table.index)
    tags = tags.rename(columns={name: f"tag {name}" for name in tags if name in table})  # "item", or a system's name
    return pd.concat([table, tags], axis="columns")
