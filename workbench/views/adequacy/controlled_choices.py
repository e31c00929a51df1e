"""Choices that the controlled corpus knows the right answer to: which pronoun "it" becomes, and whether a first word is
followed by what it forces. Counts them in translations as they were written; scores no probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

_FAR = ((4, "4 to 6"), (7, "7 and more"))  # words between a first word and what it forces: few choices reach so far
MAJORITY = "majority form"  # what a system reaches that always writes the commonest pronoun


def choices_table(runs: Sequence[Run], test: str, by: str | None = None) -> pd.DataFrame:
    """A row a choice, value of `by` and system: choice ("pronoun", "commitment"), by, system, n, right, wrong,
    undecidable, share (right among the decided), low, high (95%, Wilson).

    by: a column that both judgements have, such as distance (sentences back for pronouns, words ahead for commitments),
    or reach: the distance in words, far ones together.
    The row of `MAJORITY` bounds a system that reads no sentence but its own. Raises RunError where there is no truth.
    """
    import pandas as pd

    from analyses.proportion_correct import share_table

    tables = []
    for choice, outcomes in _judged(runs, test).items():
        for system, found in outcomes.items():
            if by is not None and by not in found:
                known = ", ".join(sorted(map(str, found.columns)))
                raise RunError(f"--by {by}: {choice}s have no such column; there are {known}")
            if not found.empty:
                table = share_table(found, by, "right", "wrong")
                tables.append(table.assign(choice=choice, system=system))
    if not tables:
        raise RunError(f"the test set {test!r} has no pronoun and no commitment")
    whole = pd.concat(tables, ignore_index=True)
    first = ["choice", *([by] if by else []), "system"]
    return whole[[*first, *(name for name in whole.columns if name not in first)]]


def _judged(runs: Sequence[Run], test: str) -> dict[str, dict[str, pd.DataFrame]]:
    """Of each choice, the outcomes ("right", "wrong", "undecidable") of each system, and of the majority form."""
    from analyses import lexical_commitment, pronouns
    from workbench.evaluation.scoring import references

    found: dict[str, dict[str, Any]] = {"pronoun": {}, "commitment": {}}
    opened = {run.name: run.translations(test) for run in runs}
    for run in runs:
        texts = opened[run.name]
        if not texts.truth or texts.test_set.references is None:
            raise RunError(f"{run.name}: the test set {test!r} has no truth, which only the controlled corpus knows")
        hypotheses, wanted = (
            [line.split() for line in lines] for lines in (texts.hypotheses, texts.test_set.references)
        )
        known = [{"pronouns": [], "commitments": [], **record} for record in texts.truth]
        try:
            judged = pronouns.outcomes(hypotheses, wanted, known)
            kept = lexical_commitment.outcomes(hypotheses, wanted, known)
        except ValueError as error:  # references that were edited since
            raise RunError(f"{run.name}, {test}: {error}") from None
        judged["reach"] = judged["distance"].map(str)
        found["pronoun"][run.name] = judged
        kept["reach"] = kept["distance"].map(_reach)
        kept["outcome"] = kept["outcome"].map({"kept": "right", "broken": "wrong", "undecidable": "undecidable"})
        found["commitment"][run.name] = kept
    references(opened)  # refuses runs that were tested on different sentences
    if not judged.empty:
        commonest = judged["right"].mode()[0]
        outcome = judged["right"].eq(commonest).map({True: "right", False: "wrong"})
        found["pronoun"][MAJORITY] = judged.assign(outcome=outcome, taken=commonest, reason="")
    return found


def _reach(words: int) -> str:
    return next((name for first, name in reversed(_FAR) if words >= first), str(words))
