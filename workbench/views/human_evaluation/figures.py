"""Figure of a study of human ratings: quality, over- and under-translation with intervals, by system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, PositiveInt

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, named, styles
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


class HumanRatingOptions(FigureOptions):
    """Options of the figure `human-rating`."""

    study: str = Field("", description="The name of the study")
    samples: PositiveInt = Field(1000, description="Of the bootstrap")


def _ratings(request: Request, options: HumanRatingOptions) -> Iterable[Path]:
    """Files with the ratings of a study."""
    from workbench.store.rating_studies import find_study

    if not (request.runs and options.study):
        return []
    return sorted(find_study(request.runs, options.study)[1].folder.glob("*.csv"))


@figure("human-rating", scope="test_set", options=HumanRatingOptions, depends_on=_ratings)
def _human_rating(request: Request, options: HumanRatingOptions) -> Figure:
    """Quality, over- and under-translation of each run as people rate them."""
    from analyses.ratings import MEASURES
    from workbench.store.rating_studies import find_study, system_name
    from workbench.views.human_evaluation.tables import results
    from workbench.views.scores.plots import score_dots

    if not options.study:
        raise RunError("human-rating draws a study; name it: --option study=NAME")
    root, study = find_study(request.runs, options.study)
    runs = {system_name(root, run): run.name for run in request.runs}
    study_results = results(study, samples=options.samples)
    table = study_results.intervals.assign(system=study_results.intervals["system"].map(runs)).dropna(subset=["system"])
    if table.empty:
        raise RunError(f"none of the runs is in the study {study.name}, only: {', '.join(study.systems)}")
    figure = score_dots(
        named(table.rename(columns={"measure": "metric"}), request),
        baseline=short_names(request.runs).get(request.base),
        styles=styles(request),
    )
    description = (
        "Human ratings, systems unknown to the raters: quality from 1 to 5, and the percentage of source words that "
        f"are over- and under-translated; 95% bootstrap over sentences. {study_results.counted}."
    )
    scores = named(table, request).pivot(index="system", columns="measure", values="score")[list(MEASURES)]
    summary = "; ".join(
        f"{system}: quality {quality:.2f}, {over:.1f} % of the source words over- and {under:.1f} % under-translated"
        for system, quality, over, under in scores.itertuples()
    )
    caption = f"{description} {figure.caption}"
    return replace(figure, name="human-rating", title="Human rating", caption=caption, summary=f"{summary}.")
