"""Plots of the contributions of source words and target prefix words to a log-probability, in nats."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import token_axis, token_text
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Bars, Figure, Heat, Panel, SeriesStyle, Side, rule
from workbench.plotting.scale_end import rounded_up

_WORDS = ("system", "side", "place", "token", "nats")
_CELLS = (*_WORDS, "row", "word")
SIDES = {"source": "source", "prefix": "target prefix"}
_AXIS_SIDES: dict[str, Side] = {"source": "source", "prefix": "target"}


def attribution(table: pd.DataFrame, caption: str = "", styles: dict[str, SeriesStyle] | None = None) -> Figure:
    """Bars over the source and the target prefix, one row of panels for each system, all on one scale.

    `side` is source or prefix, `place` counts from 0, `nats` is signed.
    """
    require_columns(table, _WORDS, "table")
    systems = list(dict.fromkeys(table["system"]))
    series_styles = theme.styles(systems, styles)
    low, high = min(0.0, float(table["nats"].min())), max(0.0, float(table["nats"].max()))
    margin = 0.05 * (high - low or 1.0)
    panels = []
    for system in systems:
        for side, name in SIDES.items():
            rows = table[(table["system"] == system) & (table["side"] == side)].sort_values("place")
            bars = Bars(rows, "place", "nats", system, series_styles[system], ("token",), legend=False)
            panels.append(
                Panel(
                    (rule(0.0, style=SeriesStyle(theme.BLACK, "solid", "none", width=0.5)), bars),
                    token_axis(rows["token"].tolist(), side=_AXIS_SIDES[side]),
                    Axis("nats", range=(low - margin, high + margin)),
                    height=0.8,
                    title=f"{system}: {name}",
                )
            )
    return Figure(
        "attribution",
        "Attribution of a word or a sentence",
        tuple(panels),
        caption,
        _summary(table, systems),
        width="page",
        columns=2,
    )


def attribution_matrix(table: pd.DataFrame, caption: str = "") -> Figure:
    """Heat maps of output words (rows) by source and prefix words (columns), one row of panels for each system.

    All panels share a symmetric color scale, named in the caption. Words not yet written have no cell.
    """
    require_columns(table, _CELLS, "table")
    limit = rounded_up(float(table["nats"].abs().max()))
    systems = list(dict.fromkeys(table["system"]))
    panels = []
    for system in systems:
        system_rows = table[table["system"] == system]
        words = system_rows.drop_duplicates("row").sort_values("row")["word"].tolist()
        for side, name in SIDES.items():
            rows = system_rows[system_rows["side"] == side]
            tokens = rows.drop_duplicates("place").sort_values("place")["token"].tolist()
            heat = Heat(
                rows,
                "place",
                "row",
                system,
                hover=("word", "token"),
                value="nats",
                role="signed",
                limits=(-limit, limit),
                label="nats",
            )
            panels.append(
                Panel(
                    (heat,),
                    token_axis(tokens, side=_AXIS_SIDES[side]),
                    token_axis(words, "output word", reversed=True, side="target"),
                    height=max(1.2, 0.13 * len(words)),
                    title=f"{system}: {name}",
                )
            )
    return Figure(
        "attribution-matrix",
        "Attribution of every output word",
        tuple(panels),
        f"{caption} Colors reach from −{limit:g} to {limit:g} nats.".strip(),
        _summary(table, systems),
        width="page",
        columns=2,
    )


def _summary(table: pd.DataFrame, systems: Sequence[str]) -> str:
    descriptions = []
    for system in systems:
        rows = table[table["system"] == system]
        largest = rows.iloc[int(rows["nats"].abs().to_numpy().argmax())]
        sides = rows.groupby("side")["nats"].sum()
        more, less = ("source", "prefix") if sides["source"] >= sides["prefix"] else ("prefix", "source")
        descriptions.append(
            f"{system}: the {more} adds more ({sides[more]:+.1f} nats) than the {less} ({sides[less]:+.1f}), most "
            f"{token_text(str(largest['token']))!r} of the {SIDES[largest['side']]} ({largest['nats']:+.1f})"
        )
    return f"{'; '.join(descriptions)}."
