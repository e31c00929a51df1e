"""Plot of contrastive accuracy by tag: the share of items whose right translation is the most probable one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from analyses.wilson import wilson
from workbench.plotting import theme
from workbench.plotting.axes import category_axis, side_by_side
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Mark, Panel, Points, Segments, SeriesStyle, rule
from workbench.plotting.texts import by_system, enumeration

_COLUMNS = ("system", "tag", "n", "right", "ties", "share", "low", "high", "chance", "margin", "margin_per_token")
MAJORITY = "majority form"


def contrastive_accuracy(
    table: pd.DataFrame,
    tag: str = "",
    caption: str = "",
    styles: dict[str, SeriesStyle] | None = None,
    majority: Mapping[str, float] | None = None,
) -> Figure:
    """Accuracy in percent over the values of a tag, systems side by side with intervals, chance as a rule.

    Tags are in order of appearance, labeled with their n; `share`, `low`, `high` and `chance` are fractions. majority:
    accuracy of the most frequent right form, by tag, in gray.
    """
    require_columns(table, _COLUMNS, "table")
    systems, tags = (list(dict.fromkeys(table[name])) for name in ("system", "tag"))
    series_styles, offsets = theme.styles(systems, styles), side_by_side(systems)
    counts = table.drop_duplicates("tag").set_index("tag")["n"]
    percent = table.assign(
        **{f"{name}_percent": 100 * table[name].astype(float) for name in ("share", "low", "high")},
        place=[tags.index(tag) + offsets[system] for system, tag in zip(table["system"], table["tag"], strict=True)],
    )
    marks = [_chance(table.drop_duplicates("tag"))]
    marks += [_majority(tags, majority)] if majority else []
    for system in systems:
        rows = percent[percent["system"] == system]
        style = replace(series_styles[system], dash="none", size=5.0)
        hover = ("tag", "n", "right", "ties", "margin", "margin_per_token")
        marks.append(
            Points(rows, "place", "share_percent", system, style, hover, low="low_percent", high="high_percent")
        )
    names = [f"{tag} (n = {counts[tag]})" for tag in tags]
    panel = Panel(tuple(marks), category_axis(names, tag), Axis("right (%)", range=(0.0, 102.0)), 1.4)
    width = "page" if sum(map(len, names)) > 48 else "column"
    return Figure("contrastive", "Contrastive accuracy", (panel,), caption, _summary(table, systems), width=width)  # type: ignore[arg-type]


def _chance(tags: pd.DataFrame) -> Mark:
    """Accuracy of guessing: one rule, or a segment for each tag if tags differ."""
    percent = 100 * tags["chance"].astype(float)
    line = rule(float(percent.iloc[0]), series="chance")
    if np.allclose(percent, percent.iloc[0]):
        return line
    positions = np.arange(len(tags), dtype=float)
    columns = {"x": positions - 0.5, "x_end": positions + 0.5, "chance_percent": percent, "end": percent}
    pieces = pd.DataFrame({**columns, "tag": tags["tag"]}).reset_index(drop=True)
    return Segments(pieces, "x", "chance_percent", "chance", line.style, ("tag",), y_end="end")


def _majority(tags: list[str], shares: Mapping[str, float]) -> Mark:
    points = [(float(position), 100 * shares[tag], tag) for position, tag in enumerate(tags) if tag in shares]
    table = pd.DataFrame(points, columns=["place", "majority_percent", "tag"])
    return Points(table, "place", "majority_percent", MAJORITY, theme.BOUND, ("tag",))


def _summary(table: pd.DataFrame, systems: list[str]) -> str:
    counts = table.groupby("system", sort=False)[["right", "n"]].sum()
    chance = float((table["chance"] * table["n"]).sum() / table["n"].sum())
    above = [name for name in systems if wilson(int(counts.right[name]), int(counts.n[name]))[0] > chance]
    said = "No system" if not above else "Every system" if len(above) == len(systems) else enumeration(above)
    verdict = f"{said} {'is' if len(above) < 2 or said == 'Every system' else 'are'} above chance"
    shares = {name: f"{counts.right[name]} of {counts.n[name]} ({100 * counts.right[name] / counts.n[name]:.1f} %)"
              for name in systems}  # fmt: skip
    return (
        f"{verdict} ({100 * chance:.1f} %, against the lower end of a 95% interval). Right translations found more "
        f"probable: {by_system(shares)}."
    )
