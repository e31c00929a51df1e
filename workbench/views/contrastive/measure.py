"""Scores of contrastive test sets by runs, stored in the runs' folders, and their comparison.

    RESULTS/contrast/NAME.json  every item with the log P of its translations; NAME is the file's, or controlled-TEST,
                                with +CONTEXTS for items with control contexts

Items are read by `contrastive.items`. Does not import torch itself.
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
from workbench.views.contrastive.items import controlled_items, item_of

if TYPE_CHECKING:
    import pandas as pd

    from core_models.text.documents import ContextUse
    from core_models.translator import Translator
    from workbench.evaluation.translate import Step

FOLDER = "contrast"
# Control contexts: values of the option --contexts, and suffixes of result names.
CONTROLS = {"none": "none", "other-item": "another", "reversed": "words-backwards"}
ITEMS_PER_REPORT = 256  # items scored between two reports of progress


@dataclass(frozen=True)
class Contrast:
    """Scores of a contrastive test set by one run; `origin` describes its source.

    before, after: number of sentences that the run could read before and after an item.
    """

    name: str
    origin: str
    items: list[Item]
    scored: list[Scored]
    before: int = 0
    after: int = 0

    @property
    def digest(self) -> str:
        """`digest_of` the items at the time of scoring."""
        return digest_of(self.items)

    @property
    def items_with_context(self) -> int:
        """Number of items with context, which systems of single sentences do not see."""
        return sum(bool(item.context or item.context_after) for item in self.items)


def score_items(
    run: Run,
    items: Sequence[Item],
    name: str,
    origin: str,
    device: str = "cpu",
    translator: Translator | None = None,
    step: Step | None = None,
) -> Path:
    """Score every translation of every item with a run and write the result atomically; returns its path."""
    if not items:
        raise RunError(f"{origin}: no items, so nothing was scored")
    run.require_model()
    weights = run.digest  # taken before they are loaded, since training may continue meanwhile
    if translator is None:
        import core_models

        translator = core_models.load(run.reference, device)
    model = Opened(translator, Lock())
    scored: list[Scored] = []
    for start in range(0, len(items), ITEMS_PER_REPORT):
        scored += _score(model, items[start : start + ITEMS_PER_REPORT])
        if step is not None:
            step(len(scored), len(items))
    path = run.results / FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"item": asdict(item), "scored": asdict(scores)} for item, scores in zip(items, scored, strict=True)]
    record = {"name": name, "origin": origin, "weights": weights,
             "read": translator.context.sentences, "after": translator.context.after, "rows": rows}  # fmt: skip
    return write_atomic(path, json.dumps(record, ensure_ascii=False))


def controlled(run: Run, test: str) -> tuple[list[Item], str, str]:
    """The pronouns of a controlled test set as items, with the name and the origin of the contrastive test set."""
    return controlled_items(run, test), f"controlled-{test}", f"the truth of {test}"


def store_controlled(runs: Sequence[Run], test: str) -> None:
    """Score the pronouns of a controlled test set with runs, if the test set has a truth and any pronouns."""
    if runs[0].translations(test).truth is None:
        return
    items, name, origin = controlled(runs[0], test)
    for run in runs if items else ():
        score_items(run, items, name, origin)


def _score(model: Opened, items: Sequence[Item]) -> list[Scored]:
    targets = [
        Target(row, item.source, text, (), before)
        for row, (item, before) in enumerate(zip(items, _contexts(model.translator, items), strict=True))
        for text in (item.right, *item.wrong)
    ]
    forced = force(model, targets, at_once=len(targets))
    scored = []
    for item in items:
        right, wrong = next(forced), [next(forced) for _ in item.wrong]
        scored.append(
            Scored(
                right.log_prob,
                tuple(sentence.log_prob for sentence in wrong),
                len(right.tokens),
                tuple(len(sentence.tokens) for sentence in wrong),
            )
        )
    return scored


def _contexts(translator: Translator, items: Sequence[Item]) -> list[ContextSentences | None]:
    """Contexts that a system reads with the items: sources and, if it reads them, translations of previous sentences.

    Translations come from the item or, if it has none, from the system itself.
    """
    context_options = translator.context
    if not context_options.sentences:
        return [None] * len(items)
    contexts = [_surrounding_sentences(item, context_options) for item in items]
    if not context_options.outputs:
        return list(contexts)
    outputs: list[Sequence[str | None]] = [item.context_outputs[::-1][: context_options.sentences] for item in items]
    rows_without_outputs = [row for row, item in enumerate(items) if item.context and not item.context_outputs]
    for row, lines in zip(
        rows_without_outputs,
        own_outputs(translator, [contexts[row].sources for row in rows_without_outputs]),
        strict=True,
    ):
        outputs[row] = lines
    return [replace(context, outputs=tuple(lines)) for context, lines in zip(contexts, outputs, strict=True)]


def _surrounding_sentences(item: Item, context_options: ContextUse) -> ContextSentences:
    """Sentences that are read before an item, followed by those after it."""
    before, after = item.context[::-1][: context_options.sentences], item.context_after[: context_options.after]
    padding = [None] * (context_options.sentences - len(before)) if after else []
    return ContextSentences((*before, *padding, *after), after=len(after))


def digest_of(items: Sequence[Item]) -> str:
    """Digest (12 characters) of all texts and contexts of a contrastive test set, which identifies its version."""
    return digest(
        [
            json.dumps([item.source, item.right, item.wrong, item.context, item.context_outputs, item.context_after])
            for item in items
        ]
    )


def command_arguments(name: str) -> list[str]:
    """Arguments of the command that scores a contrastive test set, by name; FILE for an unknown file."""
    base_name, _, contexts = name.rpartition("+")
    base_name, contexts = (base_name, contexts) if contexts in CONTEXTS else (name, "")
    controlled = base_name.removeprefix("controlled-")
    arguments = ["FILE"] if controlled == base_name else ["--controlled", controlled]
    control = [option for option, stored in CONTROLS.items() if stored == contexts]
    return [*arguments, "--contexts", *control] if control else arguments


def scored_names(run: Run) -> list[str]:
    """Names of the contrastive test sets that a run has scored."""
    return sorted(path.stem for path in (run.results / FOLDER).glob("*.json"))


def read(run: Run, name: str) -> Contrast:
    """Read a run's scores of a contrastive test set; raises RunError with the command that makes them."""
    path = run.results / FOLDER / f"{name}.json"
    command = f"workbench contrastive-eval {' '.join(map(shlex.quote, command_arguments(name)))} --run {run.typed}"
    if not path.is_file():
        raise RunError(f"{run.name} has not scored the contrastive test set {name!r}; run: {command}")
    try:
        record = read_json(path, RESULT)
        items = [item_of(row["item"], "an item") for row in record["rows"]]
        scored = [_parse_scores(row["scored"], item) for row, item in zip(record["rows"], items, strict=True)]
        if not items:
            raise ValueError("no items")
        before, after = int(record.get("read", 0)), int(record.get("after", 0))
        contrast = Contrast(str(record["name"]), str(record["origin"]), items, scored, before, after)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise RunError(f"{path}: not readable ({str(error)[:200]}); score it again: {command}") from None
    if not run.is_of(record.get("weights")):
        raise RunError(f"{run.name} scored {name!r} with other weights than it has now; score it again: {command}")
    missing_side = (
        "before" if context_mechanisms(run) and not before else "after" if reads_after(run) and not after else ""
    )
    if missing_side:
        raise RunError(
            f"{run.name} scored {name!r} without the sentences {missing_side} an item, which it reads; "
            f"score it again: {command}"
        )
    return contrast


def _parse_scores(record: Mapping[str, Any], item: Item) -> Scored:
    """Parse the scores of an item; raises ValueError if their number does not match it."""
    wrong, wrong_tokens = tuple(map(float, record["wrong"])), tuple(map(int, record["wrong_tokens"]))
    right_tokens = int(record["right_tokens"])
    if not len(wrong) == len(wrong_tokens) == len(item.wrong) or min(right_tokens, *wrong_tokens) < 1:
        raise ValueError("the number of scores does not match the item")
    return Scored(float(record["right"]), wrong, right_tokens, wrong_tokens)


def read_all(runs: Sequence[Run], name: str) -> dict[str, Contrast]:
    """`read` of every run by name; raises RunError if the runs scored different versions."""
    contrasts = {run.name: read(run, name) for run in runs}
    versions = {contrast.digest for contrast in contrasts.values()}
    if len(versions) > 1:
        raise RunError(
            f"{', '.join(contrasts)} scored different versions of {name!r}; score the same file with all of them"
        )
    return contrasts


def judged(contrast: Contrast) -> pd.DataFrame:
    """`analyses.contrastive.judged` of a run's scores."""
    from analyses import contrastive

    return contrastive.judged(contrast.scored, [item.tags for item in contrast.items])


def accuracy_table(contrasts: Mapping[str, Contrast], by: str | None = None) -> pd.DataFrame:
    """`analyses.contrastive.accuracy` of every run, with a first column `system`."""
    import pandas as pd

    from analyses import contrastive

    tables = [contrastive.accuracy(judged(contrast), by).assign(system=name) for name, contrast in contrasts.items()]
    table = pd.concat(tables, ignore_index=True)
    return table[["system", *(column for column in table if column != "system")]]


def tag_names(contrast: Contrast) -> list[str]:
    """Tag names of the items in order of appearance."""
    return list(dict.fromkeys(tag for item in contrast.items for tag in item.tags))


def items_table(contrasts: Mapping[str, Contrast]) -> pd.DataFrame:
    """Items, one per row: item (from 0), source, right, wrong, the margin (nats) of each system, then tags."""
    import pandas as pd

    first = next(iter(contrasts.values()))
    table = pd.DataFrame(
        {
            "item": range(len(first.items)),
            "source": [item.source for item in first.items],
            "right": [item.right for item in first.items],
            "wrong": [" · ".join(item.wrong) for item in first.items],
        }
    )
    margins = {name: judged(contrast)["margin"].to_numpy() for name, contrast in contrasts.items()}
    table = table.assign(**margins)
    tags = pd.DataFrame([item.tags for item in first.items], index=table.index)
    tags = tags.rename(columns={name: f"tag {name}" for name in tags if name in table})  # "item", or a system's name
    return pd.concat([table, tags], axis="columns")
