"""Selection among competing words, decided by counting, and shares with their intervals.

A hypothesis need not have its words at the positions of the reference, so positions are not compared. The words of a
set of forms (er, sie, es) are counted on both sides; what counting cannot decide is undecidable. Words are compared
exactly, case included.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analyses.wilson import wilson


@dataclass(frozen=True)
class Selection:
    """The word used, or None with the reason why it is unknown: "missing", "extra" or "ambiguous"."""

    word: str | None
    reason: str = ""


def selection(
    reference: Sequence[str], hypothesis: Sequence[str], right: str, alternatives: Sequence[str]
) -> Selection:
    """The word of {right} ∪ alternatives that the hypothesis uses for the reference's `right`.

    Let R and H be the counts of the words of the set in reference and hypothesis. Fewer words in H: "missing", more:
    "extra". Equally many, and no `right` lost: the right word (two errors that cancel out go unseen). Equally many,
    only one word replaced, and R has `right` once: the replacement. Otherwise "ambiguous": several words of the set
    changed, or it is unknown which of them did.
    """
    forms = {right, *alternatives}
    expected = Counter(word for word in reference if word in forms)
    written = Counter(word for word in hypothesis if word in forms)
    if written.total() != expected.total():
        return Selection(None, "missing" if written.total() < expected.total() else "extra")
    lost, gained = expected - written, written - expected
    if right not in lost:
        return Selection(right)
    if lost.total() == 1 and expected[right] == 1:
        return Selection(next(iter(gained)))
    return Selection(None, "ambiguous")


def share_table(
    outcomes: pd.DataFrame, by: str | None, success: str, failure: str, level: float = 0.95
) -> pd.DataFrame:
    """The share of `success` among the decided rows of each group of column `by`, with a Wilson interval.

    outcomes has a column `outcome`: success, failure or "undecidable". Columns: by, n, the two counts under their
    names, undecidable, share, low, high (NaN if nothing was decided). by None: one row, without the first column. Rows
    without a value of `by` are the last group, "(none)".
    """
    groups = outcomes.groupby(by, sort=True, dropna=False) if by else [("", outcomes)]
    rows = []
    for name, group in groups:
        counts = group.outcome.value_counts()
        won, lost = int(counts.get(success, 0)), int(counts.get(failure, 0))
        share = won / (won + lost) if won + lost else math.nan
        interval = wilson(won, won + lost, level)
        label = "(none)" if pd.isna(name) else name
        rows.append((label, len(group), won, lost, len(group) - won - lost, share, *interval))
    table = pd.DataFrame(rows, columns=[by or "", "n", success, failure, "undecidable", "share", "low", "high"])
    return table if by else table.drop(columns="")


def check_lines(hypotheses: Sequence[object], references: Sequence[object], truths: Sequence[object]) -> None:
    """Raise ValueError unless there is one hypothesis, one reference and one truth record for each sentence."""
    if not len(hypotheses) == len(references) == len(truths):
        raise ValueError(
            f"There are {len(hypotheses)} hypotheses, {len(references)} references and {len(truths)} truth records: "
            "give one of each for every sentence of the test set."
        )
