"""Plots of routing measures over a test set: by iteration, and of the last iteration over training.

Input are tidy tables with intervals, with the columns of `analyses.routing.measures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Line, Mark, Panel, Points, SeriesStyle, rule
from workbench.views.layer_routing.plots import REPORTED, iteration_axis

_CORPUS = ("series", "measure", "iteration", "value", "low", "high")
_HEALTH = ("series", "measure", "step", "value", "low", "high")
LABELS = {
    "entropy": "entropy (nats)",
    "diversity": "diversity",
    "effective": "effective capsules",
    "dead": "dead capsules (share)",
    "entropy_as_printed": "Eq. 17 as published",
    "diversity_as_printed": "Eq. 18 as published",
}
CORRECTED = ("entropy", "diversity", "effective", "dead")
AS_PUBLISHED = ("entropy_as_printed", "diversity_as_printed")


def routing_corpus(
    table: pd.DataFrame,
    styles: dict[str, SeriesStyle] | None = None,
    printed: pd.DataFrame | None = None,
    ceilings: Sequence[float] = (),
    caption: str = "",
    formula: Literal["corrected", "printed"] = "corrected",
) -> Figure:
    """Entropy, diversity, effective and dead capsules by iteration, one line with its 95% band for each series.

    formula: "printed" shows entropy and diversity by the published equations. printed: reported values (columns
    iteration, entropy, diversity), hollow. ceilings: entropies of even shares, drawn as rules.
    """
    require_columns(table, _CORPUS, "table")
    measures = CORRECTED if formula == "corrected" else AS_PUBLISHED
    panels = []
    for measure in measures:
        marks = _lines(table, measure, "iteration", styles, legend=measure == measures[0])
        of_paper = measure.removesuffix("_as_printed")
        if printed is not None and of_paper in printed:
            reported_rows = printed.rename(columns={of_paper: "value"})
            marks.append(
                Points(reported_rows, "iteration", "value", "reported", REPORTED, legend=measure == measures[0])
            )
        if measure == "entropy":
            marks += [rule(ceiling) for ceiling in ceilings]
        panels.append(Panel(tuple(marks), iteration_axis(table["iteration"]), _axis(table, measure), 1.1))
    return Figure(
        "routing-corpus",
        "Routing over a test set",
        tuple(panels),
        caption,
        _summary(table, "iteration"),
        "page",
        columns=2,
    )


def routing_health(
    table: pd.DataFrame, styles: dict[str, SeriesStyle] | None = None, ceilings: Sequence[float] = (), caption: str = ""
) -> Figure:
    """Measures of the last iteration over the updates of training; step 0: the initial weights."""
    require_columns(table, _HEALTH, "table")
    panels = []
    for measure in CORRECTED:
        marks = _lines(table, measure, "step", styles, legend=measure == CORRECTED[0])
        marks += [rule(ceiling) for ceiling in ceilings] if measure == "entropy" else []
        panels.append(Panel(tuple(marks), Axis("update"), _axis(table, measure), 1.1))
    return Figure(
        "routing-health", "Routing over training", tuple(panels), caption, _summary(table, "step"), "page", columns=2
    )


def _lines(
    table: pd.DataFrame, measure: str, x: str, styles: dict[str, SeriesStyle] | None, legend: bool
) -> list[Mark]:
    names = list(dict.fromkeys(table["series"]))
    series_styles = theme.styles(names, styles)
    rows = table[table["measure"] == measure].sort_values(x).dropna(subset=["value"])
    return [
        Line(rows[rows["series"] == name], x, "value", name, series_styles[name], (), legend, "low", "high")
        for name in names
        if (rows["series"] == name).any()
    ]


def _axis(table: pd.DataFrame, measure: str) -> Axis:
    """Axis of a measure; shares start at zero so that noise near zero is not magnified."""
    if measure != "dead":
        return Axis(LABELS[measure])
    top = max(0.1, 1.1 * float(table.loc[table["measure"] == measure, "high"].max()))
    return Axis(LABELS[measure], range=(-0.04 * top, top))


def _summary(table: pd.DataFrame, x: str) -> str:
    descriptions = []
    for name in dict.fromkeys(table["series"]):
        rows = table[table["series"] == name]
        values = {measure: rows[rows["measure"] == measure].sort_values(x)["value"].tolist() for measure in CORRECTED}
        if not values["diversity"]:  # one layer by itself
            continue
        entropies = values["entropy"]
        descriptions.append(
            f"{name}: entropy {entropies[0]:.2f} to {entropies[-1]:.2f} nats, as if evenly over "
            f"{values['effective'][-1]:.1f} "
            f"capsules, diversity {values['diversity'][-1]:.2f}, {100 * values['dead'][-1]:.0f} % of the capsules dead"
        )
    return f"From the first {'update' if x == 'step' else 'iteration'} to the last, {'; '.join(descriptions)}."
