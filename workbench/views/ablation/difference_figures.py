"""Differences to the baselines of several experiments, over an option that tells the experiments apart: width, text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from workbench.experiments import ablation
from workbench.figures.options import Names
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import RunError
from workbench.views.ablation.figures import VariedOptions, interval_text, result_files

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure


WIDTHS = ("scale-width-64", "claims-past-future", "claims-future-cost", "scale-width-256-rate-0.001")


class DifferenceOptions(VariedOptions):
    """Options of the figure `ablation-differences`."""

    option: str = Field("d_model", description="The option that differs between the experiments, or sentences")
    experiments: Names = Field(
        WIDTHS, description="Experiments with results; each system beside the baseline of its own"
    )
    metric: str = Field("bleu", description="bleu, chrf, ter, …")


@figure(
    "ablation-differences",
    scope="runs",
    options=DifferenceOptions,
    needs_runs=False,
    depends_on=result_files,
)
def _ablation_differences(request: Request, options: DifferenceOptions) -> Figure:
    """Differences to the baseline over the values of one option, a point for each system of several experiments."""
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.views.ablation.plots import differences

    option, metric = options.varied, METRIC_NAMES.get(options.metric)
    if metric is None:
        raise RunError(f"metric {options.metric!r}: choose {', '.join(METRIC_NAMES)}")
    table, others = differences_by_value(options.experiments, option, options.metric)
    words = option.replace("_", " ")
    besides = f" What differs too: {', '.join(name.replace('_', ' ') for name in others)}." if others else ""
    caption = (
        f"{metric}, system minus the baseline of its own experiment, by {words}: {', '.join(options.experiments)}."
        f"{besides} Means over seeds with 95% intervals{interval_text(table['seeds'].tolist(), dots=False)}, without "
        "correction."
    )
    return differences(table, option, metric, caption)


def differences_by_value(names: tuple[str, ...], option: str, metric: str) -> tuple[pd.DataFrame, list[str]]:
    """The stored differences of systems that have the option with two values or more, and what else differs.

    Columns: series (the system), value, test, delta, low, high, seeds, baseline, experiment. The second: settings of
    these systems, besides the option, that are not the same in all experiments. Raises RunError.
    """
    import pandas as pd

    from workbench.papers.experiment_differences import COMPARISONS, results_folder, stored_differences

    if not names:
        raise RunError("name experiments with results, such as --option experiments=scale-width-64,claims-past-future")
    settings = {name: ablation.settings_of_experiment(name) for name in names}
    rows = [
        {**row, "series": row["system"], "value": settings[name][row["system"]][option], "experiment": name}
        for name in names
        for row in stored_differences(results_folder() / f"{name}{COMPARISONS}")
        if row["metric"] == metric and option in settings[name].get(row["system"], ())
    ]
    table = pd.DataFrame(rows, columns=["series", "value", "test", "delta", "low", "high", "seeds", "baseline",
                                        "experiment"])  # fmt: skip
    table = table[table.groupby("series")["value"].transform("nunique") > 1]
    if table.empty:
        raise RunError(
            f"no system of {', '.join(names)} has differences by {metric} at two values of {option}; name experiments "
            "that differ in it, such as scale-width-64,claims-past-future"
        )
    return table, [name for name in _varied(settings.values(), set(table["series"])) if name != option]


def varied_between(names: Sequence[str]) -> list[str]:
    """The settings in which a system of several experiments differs between them; raises RunError."""
    settings = [ablation.settings_of_experiment(name) for name in names]
    return _varied(settings, set().union(*settings))


def _varied(experiments: Iterable[Mapping[str, ablation.Settings]], systems: set[str]) -> list[str]:
    experiments = list(experiments)
    varied = (
        ablation.differing([settings[system] for settings in experiments if system in settings])
        for system in sorted(systems)
    )
    return list(dict.fromkeys(name for names in varied for name in names))
