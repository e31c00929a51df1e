"""PAST and FUTURE of one forced sentence against its gold links: misjudged words, and the AUC of the sentence.

The measure is that of `gold_figures`, on the cells of a single sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.evaluation.gold_alignments import Truth, has_truth, truths
from workbench.figures.options import ForcedOptions
from workbench.store.runs import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure

_OUTLINED = (
    "Outlined: the system misjudges the word by the gold links, i.e. PAST is above FUTURE although all its "
    "counterparts are to come, or FUTURE above PAST although all are written; words that are just being written are "
    "not judged."
)
_AUC = "AUC of PAST / (PAST + FUTURE) in this sentence, for words with all counterparts written against all to come"


@dataclass(frozen=True, eq=False)
class Judgement:
    """The cells of a system that gold links decide: step, word, past, share (of PAST), misjudged.

    Without gold links None, and the `reason` if it is worth saying.
    """

    system: str
    cells: pd.DataFrame | None = None
    reason: str = ""


def gold_links(
    run: Run, test: str, sentence: int, options: ForcedOptions, words: tuple[int, int] | None
) -> tuple[Truth | None, str]:
    """The gold links of the forced text; without them None and the reason, "" if the test set has no links at all.

    Links belong to references; an own translation or a typed text has them if it is the reference, word for word.
    words: numbers of source and target words that the pieces join to; None where pieces are shown.
    """
    if not has_truth(run, test):
        return None, ""
    if words is None:
        return None, "gold links are of words, not of pieces"
    translations = run.translations(test)
    reference = (translations.test_set.references or [])[sentence]
    forced = {"own": translations.hypotheses[sentence], "typed": options.text}.get(options.target, reference)
    if forced.split() != reference.split():
        return None, "gold links are known for the reference, and the forced text is another"
    truth = truths(run, test)[sentence]
    if not truth.fits(*words):
        return None, "its pieces join to other words than the gold links count"
    return truth, ""


def judge(system: str, truth: Truth | None, mass: np.ndarray, reason: str = "") -> Judgement:
    """The judgement of a system by the gold links; mass [T, I, G] of the groups, reason: why there are no links."""
    from analyses.past_future import past_share
    from analyses.past_future_gold import cells, misjudged

    if truth is None:
        return Judgement(system, None, reason)
    table = cells(truth.links, truth.source_words, truth.target_words)
    share = past_share(mass)[table["step"], table["word"]]
    return Judgement(system, table.assign(share=share, misjudged=misjudged(share, table["past"].to_numpy())))


def misjudged_cells(judgements: Sequence[Judgement]) -> pd.DataFrame | None:
    """The misjudged cells of all systems (system, step, word); None if no system is judged."""
    import pandas as pd

    tables = [
        judgement.cells.loc[judgement.cells["misjudged"], ["step", "word"]].assign(system=judgement.system)
        for judgement in judgements
        if judgement.cells is not None
    ]
    return pd.concat(tables, ignore_index=True) if tables else None


def with_truth(figure: Figure, judgements: Sequence[Judgement], outlined: bool = True) -> Figure:
    """The figure with each system's AUC in caption and summary, and the rule of the outlines in the caption."""
    judged = [judgement for judgement in judgements if judgement.cells is not None]
    found = f"{_AUC}: {', '.join(map(_area_text, judged))}." if judged else ""
    reasons = [f"{judgement.system}: {judgement.reason}." for judgement in judgements if judgement.reason]
    lacking = f"Not compared with gold links: {' '.join(reasons)}" if reasons else ""
    rule = _OUTLINED if judged and outlined else ""
    return replace(
        figure,
        caption=" ".join(filter(None, [figure.caption, rule, found])),
        summary=" ".join(filter(None, [figure.summary, found, lacking])),
    )


def _area_text(judgement: Judgement) -> str:
    from analyses.past_future_gold import area_under_curve

    table = judgement.cells
    assert table is not None
    area = area_under_curve(table["share"].to_numpy(), table["past"].to_numpy())
    value = f"{area:.3f}" if area == area else "none (all written or all to come)"
    return f"{judgement.system} {value}, {table['misjudged'].sum()} of {len(table)} cells misjudged"
