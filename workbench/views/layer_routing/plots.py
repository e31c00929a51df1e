"""Plots of layer routing in one sentence: assignments, entropy and diversity by iteration.

Input are ordered tidy tables, one row per cell. Plots over a test set and over training are in `corpus_plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, label_every, token_axis, token_text
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Heat, Line, Mark, Panel, Points, SeriesStyle, Side, rule

_CELLS = ("system", "iteration", "layer", "place", "capsule", "value")
_CURVES = ("series", "iteration", "entropy", "diversity", "effective", "capsules")
_ALONG = ("system", "position", "token", "entropy", "effective", "capsules")
EntropyUnit = Literal["share", "nats"]
ENTROPY_LABELS: dict[EntropyUnit, str] = {"share": "entropy / log N", "nats": "entropy (nats)"}
_ROW_INCHES = 0.11
REPORTED = SeriesStyle(theme.BLACK, "none", "diamond", hollow=True, size=5.0)
_MARKED = 8.0  # diameter in points of the marker at the chosen position or iteration


def entropy_in(unit: EntropyUnit, table: pd.DataFrame, *columns: str) -> tuple[pd.DataFrame, list[str]]:
    """The table, and the names of its columns of entropies in a unit: those of nats, or added ones of shares of log N.

    columns: of entropies in nats; `capsules` is the N of each row.
    """
    if unit == "nats":
        return table, list(columns)
    largest = np.log(table["capsules"].to_numpy(dtype=float))
    shares = {f"{column}_share": table[column] / largest for column in columns}
    return table.assign(**shares), list(shares)


def routing_maps(
    cells: pd.DataFrame, layers: Sequence[str], limit: float = 8.0, difference: bool = False, caption: str = ""
) -> Figure:
    """Maps of layers (the first below) by capsules for each iteration and system, shaded by the ratio to an even share.

    value: share times the number of capsules, from 1 / limit to limit; with `difference` its growth in this iteration,
    from -limit to limit. `place`: column of a capsule, the same in all maps; `capsule`: its number.
    """
    require_columns(cells, _CELLS, "cells")
    systems, iterations = list(dict.fromkeys(cells["system"])), sorted(set(cells["iteration"]))
    count = int(cells["place"].max()) + 1
    axes = {system: _capsule_axis(cells[cells["system"] == system], count) for system in systems}
    y = category_axis(layers, "layer")
    least = 0.5 if len(iterations) > 1 else 0.8
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
            panels.append(Panel((heat,), axes[system], y, max(least, _ROW_INCHES * len(layers)), title))
    last = cells[cells["iteration"] == iterations[-1]]
    most = last.loc[last["value"].idxmax()]
    what = "grew most" if difference else "gets most"
    return Figure(
        "routing-maps",
        "Assignments of every iteration",
        tuple(panels),
        caption,
        f"Of {count} capsules, capsule {most['capsule']} {what} in iteration {iterations[-1]}: from layer "
        f"{layers[int(most['layer'])]}, {most['value']:.2f} times an even share.",
        "page",
        shared_x=True,
        shared_y=True,
        columns=len(systems),
    )


def _capsule_axis(cells: pd.DataFrame, count: int) -> Axis:
    """Axis with the numbers of a system's capsules at their columns."""
    capsules = cells.drop_duplicates("place").sort_values("place")
    texts = tuple(str(int(capsule)) for capsule in capsules["capsule"])
    positions = tuple(float(position) for position in capsules["place"])
    return Axis("output capsule", "category", positions, texts, label_every(len(texts)), (-0.5, count - 0.5))


def routing_curves(
    table: pd.DataFrame,
    styles: dict[str, SeriesStyle] | None = None,
    printed: pd.DataFrame | None = None,
    ceilings: Sequence[float] = (),
    caption: str = "",
    marked: int | None = None,
    unit: EntropyUnit = "nats",
) -> Figure:
    """Entropy and diversity of the assignments by iteration; printed: reported values, hollow.

    ceilings: entropies of even shares in the unit, drawn as rules. marked: the chosen iteration. unit: of the entropy,
    which the tables have in nats beside `capsules`. Diversity is NaN for single layers and then not drawn.
    """
    require_columns(table, _CURVES, "table")
    table, (entropy,) = entropy_in(unit, table, "entropy")
    if printed is not None:
        printed, _ = entropy_in(unit, printed, "entropy")
    names = list(dict.fromkeys(table["series"]))
    series_styles = theme.styles(names, styles)
    panels = []
    for measure, label in ((entropy, ENTROPY_LABELS[unit]), ("diversity", "diversity")):
        marks: list[Mark] = []
        first = measure == entropy
        nats = ("entropy",) if first else ()
        hover = (*nats, "effective")
        for name in names:
            rows = table[table["series"] == name].dropna(subset=[measure])
            if rows.empty:
                continue
            marks.append(Line(rows, "iteration", measure, name, series_styles[name], hover, first))
            marked_rows = rows[rows["iteration"] == marked]
            if len(marked_rows):
                large = replace(series_styles[name], dash="none", size=_MARKED)
                marks.append(Points(marked_rows, "iteration", measure, name, large, hover, False))
        if printed is not None and len(printed):
            marks.append(Points(printed, "iteration", measure, "reported", REPORTED, nats, first))
        if first:
            marks += [rule(ceiling) for ceiling in ceilings]
        panels.append(Panel(tuple(marks), iteration_axis(table["iteration"]), Axis(label), 1.2))
    changes = "; ".join(
        f"{name}: from the first iteration to the last, entropy goes from {rows['entropy'].iloc[0]:.2f} to "
        f"{rows['entropy'].iloc[-1]:.2f} nats, as if votes went evenly to {rows['effective'].iloc[-1]:.0f} capsules"
        + _diversity(rows)
        for name, rows in ((name, table[table["series"] == name].sort_values("iteration")) for name in names)
    )
    return Figure(
        "routing-curves", "Entropy and diversity of routing", tuple(panels), caption, f"{changes}.", "page", columns=2
    )


def _diversity(rows: pd.DataFrame) -> str:
    last = rows["diversity"].iloc[-1]
    return "" if pd.isna(last) else f", diversity {last:.2f}"


def iteration_axis(iterations: pd.Series) -> Axis:
    """Axis of iterations with a label at each whole number."""
    steps = sorted(set(iterations))
    return Axis("iteration", positions=tuple(map(float, steps)), texts=tuple(map(str, steps)))


def routing_along(
    table: pd.DataFrame,
    iteration: int,
    at: int | None = None,
    caption: str = "",
    side: Side = "source",
    unit: EntropyUnit = "nats",
    styles: dict[str, SeriesStyle] | None = None,
) -> Figure:
    """Entropy of the assignments at each token, one panel for each system, in the styles of the runs.

    at: chosen position. side: of the tokens. unit: of the entropy, which the table has in nats.
    """
    require_columns(table, _ALONG, "table")
    table, (entropy,) = entropy_in(unit, table, "entropy")
    hover = ("token", "entropy", "effective")
    low, high = table[entropy].min(), table[entropy].max()
    margin = 0.06 * (high - low) or 0.01
    axis = Axis(ENTROPY_LABELS[unit], range=(low - margin, high + margin))  # one for all systems
    panels, descriptions = [], []
    for system, style in theme.styles(list(dict.fromkeys(table["system"])), styles).items():
        rows = table[table["system"] == system].sort_values("position")
        marks: list[Mark] = [Line(rows, "position", entropy, system, style, hover, False)]
        marked = rows[rows["position"] == at]
        if len(marked):
            marks.append(rule(float(at or 0), horizontal=False))
            large = replace(style, dash="none", size=_MARKED)
            marks.append(Points(marked, "position", entropy, system, large, hover, False))
        tokens = token_axis([str(token) for token in rows["token"]], side=side)
        panels.append(Panel(tuple(marks), tokens, axis, 0.9, system))
        least, most = (rows.iloc[int(end)] for end in (rows["entropy"].argmin(), rows["entropy"].argmax()))
        ends = [
            f"{name} even at {token_text(str(row['token']))!r} ({row['entropy']:.2f} nats)"
            for name, row in (("least", least), ("most", most))
        ]
        descriptions.append(f"{system}'s votes are {' and '.join(ends)}")
    return Figure(
        "routing-along",
        "Entropy of routing along a sentence",
        tuple(panels),
        caption,
        f"In iteration {iteration}, {'; '.join(descriptions)}.",
        "page",
    )
