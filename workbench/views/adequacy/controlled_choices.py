"""Choices with known answers on the controlled corpus: translations of the pronoun "it", and lexical commitments.

A commitment is a first word that forces a later one. Choices are counted in translations; no probabilities are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

_FAR = ((4, "4 to 6"), (7, "7 and more"))  # buckets of long distances between a first word and the forced one
BY = ("distance", "reach")  # columns of both choices that split them
MAJORITY = "majority form"  # row of a system that always writes the most frequent pronoun


def choices_table(runs: Sequence[Run], test: str, by: str | None = None) -> pd.DataFrame:
    """Counts of right choices, one row for each choice, value of `by` and system.

    Columns: choice ("pronoun", "commitment"), by, system, n, right, wrong, undecidable, share (right among the
    decided), low, high (95%, Wilson). by: a column of both judgments, such as distance (sentences back for pronouns,
    words ahead for commitments), or reach (distance as text, long ones in buckets). The row of `MAJORITY` bounds
    systems without context. Raises RunError without truth.
    """
    import pandas as pd

    from analyses.proportion_correct import share_table

    tables = []
    for choice, outcomes in _outcomes(runs, test).items():
        for system, judgments in outcomes.items():
            if by is not None and by not in judgments:
                raise RunError(f"--by {by}: {choice}s have no such column; choose {' or '.join(BY)}")
            if not judgments.empty:
                table = share_table(judgments, by, "right", "wrong")
                tables.append(table.assign(choice=choice, system=system))
    if not tables:
        raise RunError(f"the test set {test!r} has no pronoun and no commitment")
    combined = pd.concat(tables, ignore_index=True)
    first = ["choice", *([by] if by else []), "system"]
    return combined[[*first, *(name for name in combined.columns if name not in first)]]


def _outcomes(runs: Sequence[Run], test: str) -> dict[str, dict[str, pd.DataFrame]]:
    """Outcomes ("right", "wrong", "undecidable") by choice and system, and of the majority form."""
    from analyses import lexical_commitment, pronouns
    from workbench.evaluation.scoring import references

    outcomes: dict[str, dict[str, Any]] = {"pronoun": {}, "commitment": {}}
    translations = {run.name: run.translations(test) for run in runs}
    for run in runs:
        texts = translations[run.name]
        if not texts.truth or texts.test_set.references is None:
            raise RunError(f"{run.name}: the test set {test!r} has no truth, which only the controlled corpus knows")
        hypotheses, references_of_words = (
            [line.split() for line in lines] for lines in (texts.hypotheses, texts.test_set.references)
        )
        records = [{"pronouns": [], "commitments": [], **record} for record in texts.truth]
        try:
            judged = pronouns.outcomes(hypotheses, references_of_words, records)
            commitments = lexical_commitment.outcomes(hypotheses, references_of_words, records)
        except ValueError as error:  # references that were edited since
            raise RunError(f"{run.name}, {test}: {error}") from None
        judged["reach"] = judged["distance"].map(str)
        outcomes["pronoun"][run.name] = judged
        commitments["reach"] = commitments["distance"].map(_reach_bucket)
        commitments["outcome"] = commitments["outcome"].map(
            {"kept": "right", "broken": "wrong", "undecidable": "undecidable"}
        )
        outcomes["commitment"][run.name] = commitments
    references(translations)  # refuses runs that were tested on different sentences
    if not judged.empty:
        commonest = judged["right"].mode()[0]
        outcome = judged["right"].eq(commonest).map({True: "right", False: "wrong"})
        outcomes["pronoun"][MAJORITY] = judged.assign(outcome=outcome, taken=commonest, reason="")
    return outcomes


def _reach_bucket(words: int) -> str:
    return next((name for first, name in reversed(_FAR) if words >= first), str(words))
