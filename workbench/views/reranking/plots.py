"""Rescored n-best lists: BLEU over one weight, with the search's own as a rule, and BLEU of choices of weights."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.axes import category_axis, side_by_side
from workbench.plotting.columns import require_columns, said_of_each
from workbench.plotting.grammar import Axis, Figure, Line, Mark, Panel, Points, SeriesStyle, rule

_CURVES = ("system", "weight", "score", "low", "high", "changed")
_CHOICES = ("system", "choice", "weights", "score", "low", "high", "delta", "changed")
_ROW_INCHES = 0.3
MOST_BANDS = 2  # systems; the bands of more would cover each other


def rescored(
    curves: pd.DataFrame,
    choices: pd.DataFrame,
    part: str,
    styles: dict[str, SeriesStyle] | None = None,
    caption: str = "",
) -> Figure:
    """BLEU over the weight of a part (left), and for each choice of weights (right), with intervals.

    On the left, intervals are drawn of MOST_BANDS systems at most.

    Dotted, in the color of the system: BLEU of the search's choice. changed: share of sentences with another
    hypothesis than the search's.
    """
    require_columns(curves, _CURVES, "curves")
    require_columns(choices, _CHOICES, "choices")
    systems = list(dict.fromkeys(choices["system"]))
    series_styles = theme.styles(systems, styles)
    searched = choices.drop_duplicates("system").set_index("system")["score"]
    lines: list[Mark] = []
    band = ("low", "high") if len(systems) <= MOST_BANDS else (None, None)
    for system in dict.fromkeys(curves["system"]):
        rows = curves[curves["system"] == system].sort_values("weight")
        style = series_styles[system]
        lines.append(rule(float(searched[system]), style=replace(style, dash="dot", marker="none", width=0.75)))
        lines.append(Line(rows, "weight", "score", system, replace(style, marker="none"), ("changed",), True, *band))
    names = list(dict.fromkeys(choices["choice"]))
    dots: list[Mark] = []
    for system, aside in side_by_side(systems).items():
        rows = choices[choices["system"] == system]
        placed = rows.assign(place=[names.index(name) + aside for name in rows["choice"]])
        style = replace(series_styles[system], dash="none", size=5.0)
        dots.append(
            Points(
                placed,
                "score",
                "place",
                system,
                style,
                ("weights", "delta", "changed"),
                False,
                "low",
                "high",
                None,
                "x",
            )
        )
    height = max(1.5, _ROW_INCHES * len(names))
    return Figure(
        "rescoring",
        "Rescored n-best lists",
        (
            Panel(tuple(lines), Axis(f"weight of {part}"), Axis("BLEU"), height, f"weight of {part}"),
            Panel(tuple(dots), Axis("BLEU"), category_axis(names, reversed=True), height, "choices of weights"),
        ),
        caption,
        said_of_each(choices, _summary_of_system),
        "page",
        columns=2,
    )


def _summary_of_system(system: str, rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    others = ", ".join(
        f"{row['choice']} {row['score']:.2f} ({row['delta']:+.2f})".replace("-", "−")
        for _, row in rows.iloc[1:].iterrows()
    )
    return f"{system}: {first['choice']} has BLEU {first['score']:.2f}; {others}."
