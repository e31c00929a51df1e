"""Plot of costs by sentence length: time of a sentence, and speed relative to the first system."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Line, Mark, Panel, Points, SeriesStyle, rule

_COLUMNS = ("system", "length", "work", "milliseconds", "ratio", "ceiling")
CEILING = "ceiling of multiply-adds"


def length_cost(
    table: pd.DataFrame, baseline: str, caption: str = "", styles: dict[str, SeriesStyle] | None = None
) -> Figure:
    """Milliseconds of a sentence by its length in words, for training and decoding; below, relative speed.

    Speed is relative to the baseline at the same length; hollow: the ceiling by multiply-adds alone.
    """
    require_columns(table, _COLUMNS, "table")
    systems, works = list(dict.fromkeys(table["system"])), list(dict.fromkeys(table["work"]))
    series_styles = theme.styles(systems, styles)
    lengths = sorted(set(table["length"]))
    margin = 0.06 * (lengths[-1] - lengths[0]) or 1.0
    x = Axis(
        "words of a sentence",
        positions=tuple(map(float, lengths)),
        texts=tuple(map(str, lengths)),
        range=(lengths[0] - margin, lengths[-1] + margin),
    )
    fastest = 1.06 * max(1.0, *table["ratio"], *table["ceiling"])
    above, below = [], []
    for work in works:
        rows = table[table["work"] == work].sort_values("length")
        times: list[Mark] = []
        ratios: list[Mark] = [rule(1.0)]
        for name in systems:
            system_rows, style = rows[rows["system"] == name], series_styles[name]
            times.append(Line(system_rows, "length", "milliseconds", name, style, (), work == works[0]))
            if name == baseline:
                continue
            ratios.append(Line(system_rows, "length", "ratio", name, style, ("ceiling",), False))
            hollow = replace(style, dash="none", hollow=True)
            ratios.append(Points(system_rows, "length", "ceiling", f"{name}, {CEILING}", hollow, ("ratio",), False))
        top = 1.05 * float(rows["milliseconds"].max())
        above.append(Panel(tuple(times), x, Axis("ms a sentence", range=(0.0, top)), 1.2, work))
        below.append(Panel(tuple(ratios), x, Axis("relative speed", range=(0.0, fastest)), 1.1))
    return Figure(
        "length-cost",
        "Cost by sentence length",
        (*above, *below),
        caption,
        _summary(table, systems, lengths, baseline),
        "page",
        shared_x=True,
        columns=len(works),
    )


def _summary(table: pd.DataFrame, systems: list[str], lengths: list[int], baseline: str) -> str:
    by_key = {(row.system, row.work, row.length): row for row in table.itertuples()}
    descriptions = []
    for name in systems:
        times = []
        for work in dict.fromkeys(table["work"]):
            first, last = (by_key[name, work, length] for length in (lengths[0], lengths[-1]))
            relative = "" if name == baseline else f" ({first.ratio:.2f} and {last.ratio:.2f} times its speed)"
            times.append(f"{work} {first.milliseconds:.1f} and {last.milliseconds:.1f} ms{relative}")
        descriptions.append(f"{name} takes for {', for '.join(times)}")
    summary = "; ".join(descriptions)
    return f"Of a sentence of {lengths[0]} words and of one of {lengths[-1]}, beside {baseline}: {summary}."
