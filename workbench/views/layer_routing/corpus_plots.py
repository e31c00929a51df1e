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
from workbench.views.layer_routing.plots import ENTROPY_LABELS, REPORTED, EntropyUnit, entropy_in, iteration_axis

_CORPUS = ("series", "measure", "iteration", "value", "low", "high")
_HEALTH = ("series", "measure", "step", "value", "low", "high")
LABELS = {
    "entropy": ENTROPY_LABELS["nats"],
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
    unit: EntropyUnit = "nats",
) -> Figure:
    """Entropy, diversity, effective and dead capsules by iteration, one line with its 95% band for each series.

    formula: "printed" shows entropy and diversity by the published equations. printed: reported values (columns
    iteration, entropy, diversity, capsules), hollow. ceilings: entropies of even shares in the unit, drawn as rules.
    unit: of the entropy by the corrected equation; shares need the column capsules.
    """
    require_columns(table, _CORPUS, "table")
    measures = CORRECTED if formula == "corrected" else AS_PUBLISHED
    panels = []
    for measure in measures:
        marks = _lines(table, measure, "iteration", styles, measure == measures[0], unit)
        of_paper = measure.removesuffix("_as_printed")
        if printed is not None and of_paper in printed:
            reported_rows, (y, *_) = _drawn(printed.rename(columns={of_paper: "value"}), measure, unit, ["value"])
            legend = measure == measures[0]
            marks.append(Points(reported_rows, "iteration", y, "reported", REPORTED, ("value",), legend))
        if measure == "entropy":
            marks += [rule(ceiling) for ceiling in ceilings]
        panels.append(Panel(tuple(marks), iteration_axis(table["iteration"]), _axis(table, measure, unit), 1.1))
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
        marks = _lines(table, measure, "step", styles, measure == CORRECTED[0])
        marks += [rule(ceiling) for ceiling in ceilings] if measure == "entropy" else []
        panels.append(Panel(tuple(marks), Axis("update"), _axis(table, measure), 1.1))
    return Figure(
        "routing-health", "Routing over training", tuple(panels), caption, _summary(table, "step"), "page", columns=2
    )


def _drawn(table: pd.DataFrame, measure: str, unit: EntropyUnit, columns: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The table with what is drawn of a measure, and the names of those columns."""
    return entropy_in(unit, table, *columns) if measure == "entropy" else (table, columns)


def _lines(
    table: pd.DataFrame,
    measure: str,
    x: str,
    styles: dict[str, SeriesStyle] | None,
    legend: bool,
    unit: EntropyUnit = "nats",
) -> list[Mark]:
    names = list(dict.fromkeys(table["series"]))
    series_styles = theme.styles(names, styles)
    rows = table[table["measure"] == measure].sort_values(x).dropna(subset=["value"])
    rows, (y, low, high) = _drawn(rows, measure, unit, ["value", "low", "high"])
    return [
        Line(rows[rows["series"] == name], x, y, name, series_styles[name], ("value",), legend, low, high)
        for name in names
        if (rows["series"] == name).any()
    ]


def _axis(table: pd.DataFrame, measure: str, unit: EntropyUnit = "nats") -> Axis:
    """Axis of a measure; shares start at zero so that noise near zero is not magnified."""
    if measure != "dead":
        return Axis(ENTROPY_LABELS[unit] if measure == "entropy" else LABELS[measure])
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
