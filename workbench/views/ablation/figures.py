"""Figures of ablations: scores or costs over the values of one option, with reported values, and costs by length.

Scores are those of the given runs or, without runs, of an experiment with results; speeds are those of a benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from workbench.experiments import ablation
from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure

BENCH, BY_LENGTH = "speed-cpu", "length-cost-cpu"


class VariedOptions(FigureOptions):
    """Option that varies between the systems."""

    option: str = Field("", description="The option that is varied: of a mechanism, of the model or of training")

    @property
    def varied(self) -> str:
        """Name of the option; raises RunError if it is empty."""
        if not self.option:
            raise RunError("name the option that is varied, such as --option option=capsules")
        return self.option


class SweepOptions(VariedOptions):
    """Option that varies, and the experiment whose systems are drawn without runs."""

    experiment: str = Field("", description="Where no run is given: the experiment whose results are drawn")


class AblationOptions(SweepOptions):
    """Options of the figure `ablation`."""

    metric: str = Field("bleu", description="bleu, chrf, ter, …")


class AblationCostOptions(VariedOptions):
    """Options of the figure `ablation-cost`."""

    bench: str = Field(BENCH, description="A table of `workbench benchmark speed` by name")


class LengthCostOptions(FigureOptions):
    """Options of the figure `length-cost`."""

    bench: str = Field(BY_LENGTH, description="A table of `workbench benchmark speed --lengths 10,25,50` by name")


def result_files(request: Request, options: FigureOptions) -> list[Path]:
    """Tables of experiments and benchmarks, drawn if no run is given."""
    return ablation.result_tables()


def _systems_with_scores(request: Request, experiment: str, metric: str) -> ablation.Scored:
    """Systems of a request with their scores."""
    if request.runs:
        return ablation.of_runs(request.runs, request.test, metric)
    return ablation.of_experiment(experiment, request.test, metric)


@figure("ablation", scope="test_set", options=AblationOptions, needs_runs=False, depends_on=result_files)
def ablation_figure(request: Request, options: AblationOptions) -> Figure:
    """Score over the values of one option, with the values reported in papers."""
    from workbench.evaluation.scoring import METRIC_NAMES
    from workbench.papers.reported_ablations import reported_notes, reported_scores
    from workbench.views.ablation.plots import ablation as drawn

    option, metric = options.varied, options.metric
    if metric not in METRIC_NAMES:
        raise RunError(f"metric {metric!r}: choose {', '.join(METRIC_NAMES)}")
    scored = _systems_with_scores(request, options.experiment, metric)
    points, seeds = ablation.score_points(scored, option)
    base = ablation.base_of(scored.settings, option, short_names(request.runs).get(request.baseline or ""))
    scores = dict(zip(scored.scores["system"], scored.scores["score"], strict=True))
    varied = _drawn_settings(scored.settings, option)
    number = f"{scored.by_seed['system'].isin([*varied, base]).sum()} runs, " if request.runs else ""
    printed, notes = reported_scores(option, metric, varied), reported_notes(option, metric, varied)
    sentences = [
        f"{METRIC_NAMES[metric]} by {option.replace('_', ' ')}, {number}{scored.description}: "
        "means over seeds with 95% intervals"
        f"{interval_text(points['seeds'].tolist())}.",
        f"Dashed: {base}, which has no such option." if base in scores else "",
        f"Hollow: reported in {printed.where}." if printed else "",
        f"No scores are reported for it; {'; '.join(notes)}." if notes and not printed else "",
    ]
    return drawn(
        points,
        option,
        METRIC_NAMES[metric],
        seeds if len(seeds) > len(points) else None,
        (base, scores[base]) if base is not None and base in scores else None,
        printed.points if printed else None,
        printed.baseline if printed else None,
        " ".join(filter(None, sentences)),
    )


def _drawn_settings(settings: Mapping[str, ablation.Settings], option: str) -> dict[str, ablation.Settings]:
    """Settings of the systems that are drawn."""
    return {name: settings[name] for name in ablation.option_grid(settings, option)}


def interval_text(counts: list[int], dots: bool = True) -> str:
    """Caption of the intervals, which depend on the number of seeds. dots: each seed is drawn too."""
    if max(counts) == 1:
        return " over sentences (one seed each, so none over seeds: nothing is known of other trainings)"
    alone = "; of one seed over sentences alone" if min(counts) == 1 else ""
    number = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(max(counts))
    few = f"{number} seeds{', dots' if dots else ''}{alone}"
    return f" over seeds (Student's t) and sentences (bootstrap), added in quadrature ({few})"


@figure("ablation-cost", scope="runs", options=AblationCostOptions, needs_runs=False, depends_on=result_files)
def _ablation_cost(request: Request, options: AblationCostOptions) -> Figure:
    """Speed and memory over the values of one option, relative to the baseline of a bench."""
    from workbench.papers.reported_ablations import reported_costs
    from workbench.views.ablation.length_cost import without_preset
    from workbench.views.ablation.plots import ablation_cost

    option, bench = options.varied, options.bench
    points, base, settings = ablation.cost_points(bench, option)
    baseline = without_preset(base)
    printed = reported_costs(option, _drawn_settings(settings, option))
    where = "; ".join(dict.fromkeys(printed["where"]))
    caption = (
        "Speed in training (target tokens a second) and in decoding (sentences a second) and peak memory in training, "
        f"relative to {baseline}, by {option.replace('_', ' ')}; measured on the machine of {bench}."
    )
    reported_text = f" Hollow: reported in {where}, relative to its own baseline, on other machines." if where else ""
    return ablation_cost(points, option, baseline, printed, caption + reported_text)


@figure("length-cost", scope="runs", options=LengthCostOptions, needs_runs=False, depends_on=result_files)
def _length_cost(request: Request, options: LengthCostOptions) -> Figure:
    """Time of a sentence by its length, in training and in beam search, of the systems of a bench."""
    from workbench.views.ablation.length_cost import length_costs
    from workbench.views.ablation.length_cost_plots import length_cost

    bench = options.bench
    table, baseline = length_costs(bench)
    caption = (
        "Time of a sentence in training (forward, backward and update) and in beam search with outputs as long as the "
        f"source, by its length; below, speed relative to {baseline} at the same length, hollow what multiply-adds "
        f"alone would allow; measured on the machine of {bench}."
    )
    return length_cost(table, baseline, caption)
