"""workbench evaluate and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.numbers import Resamples
from workbench.cli.shared import (
    Device,
    Metrics,
    RunPaths,
    TestNames,
    app,
    print_table,
    refuse,
)
from workbench.cli.terminal import say
from workbench.cli.translate import Search, search_changes, translate_test_set
from workbench.evaluation.distributed import rank

if TYPE_CHECKING:
    import pandas as pd

    from workbench.evaluation.scoring import Counting
    from workbench.store.runs import Run

TEST = "test"  # the default test set


def known_preset(name: str) -> str:
    from analyses.scores import PRESETS
    from core_models.settings import nearest

    if name == "list":
        say("\n".join(f"{known:12} {PRESETS[known].description}" for known in PRESETS))
        raise typer.Exit
    if name not in PRESETS:
        refuse(f"--preset {name!r}: there is none of this name; {nearest(name, list(PRESETS))}")
    return name


Preset = Annotated[
    str,
    typer.Option(
        help="Metric settings (case, tokenizer, a paper's own); `list` names all",
        callback=known_preset,
        is_eager=True,  # so that `list` needs no runs
    ),
]
Reference = Annotated[
    int, typer.Option(help="Number of the reference to score against, from 1; 0 for all together", min=0)
]


@app.command()
def evaluate(
    runs: RunPaths,
    test: TestNames = None,
    metrics: Metrics = "bleu,chrf,ter",
    n_resamples: Resamples = 1000,
    processes: Annotated[
        int, typer.Option(help="Number of processes that share the scoring of a large test set", min=1, max=1024)
    ] = 1,
    preset: Preset = "default",
    reference: Reference = 0,
    search: Search = None,
    device: Device = "cpu",
) -> None:
    """Score translations of test sets, translating first where needed; intervals are 95% bootstrap.

    A test set is translated if it has no translation yet, or one with other settings than those of --search.
    """
    from workbench.evaluation.scoring import Counting
    from workbench.store.runs import open_runs
    from workbench.views.scores.test_sets import score_table

    metric_names, changes = known_metrics(metrics), search_changes(search)
    opened, tests = open_runs(runs), list(dict.fromkeys(test or [TEST]))
    for name in tests:
        missing = [Path(run.reference) for run in opened if not _searched_so(run, name, changes)]
        if missing:
            translate_test_set(missing, name, False, device, **changes)
    if rank() == 0:
        print_table(
            _of(tests, score_table(opened, tests, metric_names, n_resamples, processes, Counting(preset, reference)))
        )


def _searched_so(run: Run, test: str, changes: dict[str, Any]) -> bool:
    """Return True if a run has translated a test set by a search with these settings."""
    from core_models.config import SearchConfig

    if test not in run.tests():
        return False
    searched = SearchConfig.by_current_names(run.translations(test).meta.get("search", {}))
    settings = {**SearchConfig().model_dump(), **searched}
    return all(settings[key] == value for key, value in changes.items())


def _of(tests: list[str], table: pd.DataFrame) -> pd.DataFrame:
    """The table, without the column of test sets if there is only one."""
    return table if len(tests) > 1 else table.drop(columns="test")


def known_metrics(text: str) -> list[str]:
    from analyses.scores import METRICS, OPTIONAL
    from core_models.settings import nearest

    names, known = text.split(","), (*METRICS, *OPTIONAL)
    unknown = [name for name in names if name not in known]
    if unknown:
        refuse(f"there is no metric {unknown[0]!r}; {nearest(unknown[0], known)}")
    return names


@app.command()
def compare(
    runs: RunPaths,
    test: TestNames = None,
    baseline: Annotated[str | None, typer.Option(help="Name of the baseline run; the first by default")] = None,
    method: Annotated[
        str,
        typer.Option(help="Significance test: bootstrap, randomization, sign or bootstrap-sacrebleu (its rule for p)"),
    ] = "bootstrap",
    metrics: Metrics = "bleu",
    preset: Preset = "default",
    reference: Reference = 0,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the scores as a LaTeX table (booktabs) instead")
    ] = False,
) -> None:
    """Test runs against a baseline on the same test sets; p-values also after Holm's correction, over all of them."""
    from workbench.evaluation.scoring import TESTS, Counting
    from workbench.store.runs import open_runs
    from workbench.views.scores.test_sets import comparison_table

    if rank() != 0:
        return  # one process does it all
    if method not in TESTS:
        refuse(f"--method {method!r}: choose {', '.join(TESTS)}")
    if len(runs) < 2:
        refuse(f"{runs[0]} alone cannot be compared; name the baseline and at least one other run")
    opened, tests = open_runs(runs), list(dict.fromkeys(test or [TEST]))
    for name in tests:
        for run in opened:
            run.translations(name)  # raises with the command that translates it, if missing
    counting, metric_names = Counting(preset, reference), known_metrics(metrics)
    comparisons = _of(
        tests, comparison_table(opened, tests, baseline or opened[0].name, method, metric_names, counting)
    )
    if latex:
        say(_latex(opened, tests, metric_names, counting, comparisons, baseline or opened[0].name))
    else:
        print_table(comparisons)


def _latex(
    runs: list[Run], tests: list[str], metrics: list[str], counting: Counting, compared: pd.DataFrame, baseline: str
) -> str:
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.export.latex import score_table_latex
    from workbench.views.scores.test_sets import score_table, with_means

    scores = _of(tests, with_means(score_table(runs, tests, metrics, counting=counting)))
    shown, tested = (table.assign(metric=table["metric"].replace(METRIC_NAMES)) for table in (scores, compared))
    return score_table_latex(shown, tested, baseline)
