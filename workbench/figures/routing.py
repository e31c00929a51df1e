"""Routing of layers: who sends how much where in each iteration, and how evenly it is spread.

Assignments come as tidy tables, a row a cell, already ordered; nothing is averaged here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from workbench.figures import theme
from workbench.figures.axes import category_axis
from workbench.figures.grammar import Axis, Figure, Heat, Line, Mark, Panel, Points, SeriesStyle, rule
from workbench.figures.registry import register, require_columns

_CELLS = ("system", "iteration", "layer", "place", "capsule", "value")
_CURVES = ("series", "iteration", "entropy", "diversity", "effective")
_ROW_INCHES = 0.11
_PRINTED = SeriesStyle(theme.BLACK, "none", "diamond", hollow=True, size=5.0)


@register("routing-maps", "Assignments of every iteration", {"cells": _CELLS})
def routing_maps(
    cells: pd.DataFrame, layers: Sequence[str], limit: float = 8.0, difference: bool = False, caption: str = ""
) -> Figure:
    """Layers (the first below) by capsules, a map for each iteration and system; shaded by the ratio to an even share.

    value: share times the number of capsules, from 1 / limit to limit; with `difference` what it grew by in this
    iteration, from -limit to limit. `place` is where a capsule stands, the same in all maps; `capsule` its number.
    """
    require_columns(cells, _CELLS, "cells")
    systems, iterations = list(dict.fromkeys(cells["system"])), sorted(set(cells["iteration"]))
    count = int(cells["place"].max()) + 1
    x = Axis("output capsule, the same order in all maps", range=(-0.5, count - 0.5))
    y = category_axis(layers, "layer")
    panels = []
    for iteration in iterations:
        for system in systems:
            rows = cells[(cells["system"] == system) & (cells["iteration"] == iteration)]
            heat = Heat(
                rows, "place", "layer", hover=("capsule",), value="value", role="signed" if difference else "relative",
                limits=(-limit, limit) if difference else (1 / limit, limit),
                label="growth x N" if difference else "share x N",
            )  # fmt: skip
            title = f"iteration {iteration}" + (f": {system}" if len(systems) > 1 else "")
            panels.append(Panel((heat,), x, y, max(0.5, _ROW_INCHES * len(layers)), title))
    last = cells[cells["iteration"] == iterations[-1]]
    most = last.loc[last["value"].idxmax()]
    what = "grew most in the last iteration" if difference else "gets most in the last iteration"
    return Figure(
        "routing-maps",
        "Assignments of every iteration",
        tuple(panels),
        caption,
        f"Of {count} capsules, capsule {most['capsule']} {what}: from layer {layers[int(most['layer'])]}, "
        f"{most['value']:.2f} times an even share.",
        "page",
        shared_x=True,
        shared_y=True,
        columns=len(systems),
    )


@register("routing-curves", "Entropy and diversity of routing", {"table": _CURVES})
def routing_curves(
    table: pd.DataFrame,
    styles: dict[str, SeriesStyle] | None = None,
    printed: pd.DataFrame | None = None,
    ceilings: Sequence[float] = (),
    caption: str = "",
) -> Figure:
    """Entropy (nats) and diversity of the assignments by iteration; printed: the same columns from a paper, hollow.

    ceilings: entropies of even shares, drawn as rules.
    """
    require_columns(table, _CURVES, "table")
    names = list(dict.fromkeys(table["series"]))
    chosen = theme.styles(names, styles)
    panels = []
    for measure, label in (("entropy", "entropy (nats)"), ("diversity", "diversity")):
        marks: list[Mark] = [
            Line(
                table[table["series"] == name],
                "iteration",
                measure,
                name,
                chosen[name],
                ("effective",),
                measure == "entropy",
            )
            for name in names
        ]
        if printed is not None and len(printed):
            marks.append(Points(printed, "iteration", measure, "printed", _PRINTED, legend=measure == "entropy"))
        if measure == "entropy":
            marks += [rule(ceiling) for ceiling in ceilings]
        steps = sorted(set(table["iteration"]))
        x = Axis("iteration", positions=tuple(map(float, steps)), texts=tuple(map(str, steps)))
        panels.append(Panel(tuple(marks), x, Axis(label), 1.2))
    ends = "; ".join(
        f"{name}: {rows['entropy'].iloc[0]:.2f} to {rows['entropy'].iloc[-1]:.2f} nats, as if evenly over "
        f"{rows['effective'].iloc[-1]:.0f} capsules, diversity {rows['diversity'].iloc[-1]:.2f}"
        for name, rows in ((name, table[table["series"] == name].sort_values("iteration")) for name in names)
    )
    return Figure(
        "routing-curves", "Entropy and diversity of routing", tuple(panels), caption, f"{ends}.", "page", columns=2
    )
