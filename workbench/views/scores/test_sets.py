"""Scores of runs over several test sets, and differences to a baseline tested as one family.

Each test set is scored by `workbench.evaluation.scoring`, for the runs that have translated it.
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
    """Test sets with references that all runs have translated."""
    tests_of_runs = [set(run.tests()) for run in runs]
    return [
        test for test in runs[0].tests() if all(test in tests for tests in tests_of_runs) and _referenced(runs[0], test)
    ]


def _referenced(run: Run, test: str) -> bool:
    return (run.translations_folder(test) / "references.txt").is_file()


def score_table(
    runs: Sequence[Run],
    tests: Sequence[str],
    metrics: str | Sequence[str] = METRICS,
    samples: int = 1000,
    processes: int = 1,
    counting: Counting = DEFAULT,
) -> pd.DataFrame:
    """`scoring.score_table` of each test set, with a first column `test`, for the runs that have translated it."""
    return _concatenated(
        runs, tests, lambda with_test, test: scoring.score_table(with_test, test, metrics, samples, processes, counting)
    )


def comparison_table(
    runs: Sequence[Run],
    tests: Sequence[str],
    baseline: str,
    method: str = "bootstrap",
    metrics: str | Sequence[str] = ("bleu",),
    counting: Counting = DEFAULT,
) -> pd.DataFrame:
    """`scoring.comparison_table` with a first column `test`.

    p_holm: corrected over all differences of a metric, all test sets together. Raises RunError if no run can be
    compared with the baseline.
    """
    from analyses.significance import holm_within

    compared = [test for test in tests if _comparable(runs, test, baseline)]
    if not compared and baseline in [run.name for run in runs]:
        raise RunError(f"no other run has translated a test set that {baseline} has; choose a second run")
    table = _concatenated(
        runs,
        compared or tests[:1],  # for the error message about an unknown baseline
        lambda with_test, test: scoring.comparison_table(with_test, test, baseline, method, metrics, counting),
    )
    table["p_holm"] = holm_within(table["p_value"], table["metric"])
    return table


def with_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Append the mean over test sets (test MEAN) of each system that has all of them, by metric, without interval."""
    import pandas as pd

    tests = scores["test"].nunique()
    rows = [
        {"test": MEAN, "system": system, "metric": metric, "score": group["score"].mean(), "n": int(group["n"].sum())}
        for (metric, system), group in scores.groupby(["metric", "system"], sort=False)
        if len(group) == tests
    ]
    return pd.concat([scores, pd.DataFrame(rows)], ignore_index=True) if tests > 1 else scores


def wide(scores: pd.DataFrame, compared: pd.DataFrame | None) -> pd.DataFrame:
    """Table of one metric, one row for each system: a score column for each test set, then `difference_column`s."""
    table = scores.pivot(index="system", columns="test", values="score")
    table = table.loc[list(dict.fromkeys(scores["system"])), list(dict.fromkeys(scores["test"]))]
    if compared is not None:
        for sign, column in ((DELTA, "delta"), (P, "p_holm")):
            values = compared.pivot(index="system", columns="test", values=column)
            table = table.join(
                values[list(dict.fromkeys(compared["test"]))].rename(columns=partial(difference_column, sign))
            )
    return table.rename_axis(index=SYSTEM, columns=None).reset_index()


def difference_column(sign: str, test: str) -> str:
    """Column name of `wide` for a test set's differences (DELTA) or their p_holm (P); no test set has such a name."""
    return f"{sign} ({test})"


def _comparable(runs: Sequence[Run], test: str, baseline: str) -> bool:
    with_test = [run.name for run in runs if test in run.tests()]
    return baseline in with_test and len(with_test) > 1


def _concatenated(
    runs: Sequence[Run], tests: Sequence[str], make_table: Callable[[list[Run], str], pd.DataFrame]
) -> pd.DataFrame:
    """Concatenate the tables of all test sets; `make_table` raises the error for a set that no run has translated."""
    import pandas as pd

    parts = []
    for test in tests:
        with_test = [run for run in runs if test in run.tests()] or list(runs)
        part = make_table(with_test, test)
        part.insert(0, "test", test)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
