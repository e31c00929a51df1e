"""Runs over several test sets, the N x M table of a paper: scores, and differences to a baseline tested as one family.

Each test set is scored by `evaluation`; a run stands where it has translated one. Knows no page and no LaTeX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.evaluation import scoring
from workbench.evaluation.scoring import METRICS, Counting
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

SYSTEM, MEAN = "(system)", "(mean)"  # columns of `wide`; no test set has a bracket in its name
DELTA, P = "Δ", "p"
DEFAULT = Counting()


def shared_tests(runs: Sequence[Run]) -> list[str]:
    """The test sets that all of the runs have translated, if they have references."""
    known = [set(run.tests()) for run in runs]
    return [test for test in runs[0].tests() if all(test in own for own in known) and _referenced(runs[0], test)]


def _referenced(run: Run, test: str) -> bool:
    return (run.translations_folder(test) / "references.txt").is_file()


def score_table(
    runs: Sequence[Run],
    tests: Sequence[str],
    metrics: Sequence[str] = METRICS,
    samples: int = 1000,
    processes: int = 1,
    counting: Counting = DEFAULT,
) -> pd.DataFrame:
    """test, then the columns of `evaluation.score_table`: a row a test set, metric and run that has translated it."""
    return _each(runs, tests, lambda able, test: scoring.score_table(able, test, metrics, samples, processes, counting))


def comparison_table(
    runs: Sequence[Run],
    tests: Sequence[str],
    baseline: str,
    method: str = "bootstrap",
    metrics: Sequence[str] = ("bleu",),
    counting: Counting = DEFAULT,
) -> pd.DataFrame:
    """test, then the columns of `evaluation.comparison_table`; p_holm: corrected over all differences of a metric,
    those of every test set together. Raises RunError where no run can be compared with the baseline."""
    from analyses.significance import holm

    compared = [test for test in tests if _comparable(runs, test, baseline)]
    if not compared and baseline in [run.name for run in runs]:
        raise RunError(f"no other run has translated a test set that {baseline} has; choose a second run")
    found = _each(
        runs,
        compared or tests[:1],  # a baseline that is not there is refused with its name
        lambda able, test: scoring.comparison_table(able, test, baseline, method, metrics, counting),
    )
    found["p_holm"] = found.groupby("metric", sort=False)["p_value"].transform(lambda values: holm(values.tolist()))
    return found


def with_means(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores, then under the test set MEAN the mean of each system that has all of them, by metric; no interval."""
    import pandas as pd

    tests = scores["test"].nunique()
    rows = [
        {"test": MEAN, "system": system, "metric": metric, "score": own["score"].mean(), "n": int(own["n"].sum())}
        for (metric, system), own in scores.groupby(["metric", "system"], sort=False)
        if len(own) == tests
    ]
    return pd.concat([scores, pd.DataFrame(rows)], ignore_index=True) if tests > 1 else scores


def wide(scores: pd.DataFrame, compared: pd.DataFrame | None) -> pd.DataFrame:
    """Of one metric: a row a system (SYSTEM); its score in a column for each test set, then those of `beside`."""
    found = scores.pivot(index="system", columns="test", values="score")
    found = found.loc[list(dict.fromkeys(scores["system"])), list(dict.fromkeys(scores["test"]))]
    if compared is not None:
        for sign, column in ((DELTA, "delta"), (P, "p_holm")):
            values = compared.pivot(index="system", columns="test", values=column)
            found = found.join(values[list(dict.fromkeys(compared["test"]))].rename(columns=partial(beside, sign)))
    return found.rename_axis(index=SYSTEM, columns=None).reset_index()


def beside(sign: str, test: str) -> str:
    """The column of `wide` with a test set's differences (DELTA) or their p_holm (P); no test set has such a name."""
    return f"{sign} ({test})"


def _comparable(runs: Sequence[Run], test: str, baseline: str) -> bool:
    able = [run.name for run in runs if test in run.tests()]
    return baseline in able and len(able) > 1


def _each(runs: Sequence[Run], tests: Sequence[str], made: Callable[[list[Run], str], pd.DataFrame]) -> pd.DataFrame:
    """A table of each test set, one below the other; one that no run has translated is asked for by `made`."""
    import pandas as pd

    parts = []
    for test in tests:
        able = [run for run in runs if test in run.tests()] or list(runs)
        part = made(able, test)
        part.insert(0, "test", test)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
