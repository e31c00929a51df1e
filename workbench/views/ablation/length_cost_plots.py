"""What systems cost by the length of sentences: time of a sentence, and speed relative to the first system.

Times are a tidy table, measured before; nothing is fitted or averaged here.
"""

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
    """Above, milliseconds of a sentence by its length in words, a panel a work (training, decoding); below, speed over
    that of the baseline at the same length, hollow what multiply-adds alone would allow."""
    require_columns(table, _COLUMNS, "table")
    systems, works = list(dict.fromkeys(table["system"])), list(dict.fromkeys(table["work"]))
    chosen = theme.styles(systems, styles)
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
            own, look = rows[rows["system"] == name], chosen[name]
            times.append(Line(own, "length", "milliseconds", name, look, (), work == works[0]))
            if name == baseline:
                continue
            ratios.append(Line(own, "length", "ratio", name, look, ("ceiling",), False))
            hollow = replace(look, dash="none", hollow=True)
            ratios.append(Points(own, "length", "ceiling", f"{name}, {CEILING}", hollow, ("ratio",), False))
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
    found = {(row.system, row.work, row.length): row for row in table.itertuples()}
    said = []
    for name in systems:
        told = []
        for work in dict.fromkeys(table["work"]):
            first, last = (found[name, work, length] for length in (lengths[0], lengths[-1]))
            relative = "" if name == baseline else f" ({first.ratio:.2f} and {last.ratio:.2f} times its speed)"
            told.append(f"{work} {first.milliseconds:.1f} and {last.milliseconds:.1f} ms{relative}")
        said.append(f"{name} takes for {', for '.join(told)}")
    whole = "; ".join(said)
    return f"Of a sentence of {lengths[0]} words and of one of {lengths[-1]}, beside {baseline}: {whole}."
