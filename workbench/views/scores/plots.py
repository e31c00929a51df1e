"""Dot plot of scores with intervals, sorted, with the baseline as a rule; dots need no axis from zero."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from analyses.scores import LOWER_IS_BETTER
from workbench.plotting import theme
from workbench.plotting.axes import category_axis
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Heat, Labels, Mark, Panel, Points, SeriesStyle, rule
from workbench.plotting.scale_end import rounded_up

MOST_BESIDE = 4  # panels in a row
_COLUMNS = ("system", "metric", "score", "low", "high")
_PAIRS = ("system", "other", "metric", "score", "other_score", "delta", "p_holm")
_STARS = {0.001: "∗∗∗", 0.01: "∗∗", 0.05: "∗"}


def score_dots(
    table: pd.DataFrame,
    printed: pd.DataFrame | None = None,
    baseline: str | None = None,
    styles: dict[str, SeriesStyle] | None = None,
    lower_is_better: Collection[str] = LOWER_IS_BETTER,
) -> Figure:
    """Dots with intervals, one panel for each metric, systems sorted by the first metric, the best first.

    `low` and `high` bound an interval (NaN: none). printed: reported numbers, hollow. baseline: system whose score is
    drawn as a rule; default: the first system with a baseline's name. lower_is_better: metrics of which this is true.
    """
    require_columns(table, _COLUMNS, "table")
    metrics = list(dict.fromkeys(table["metric"]))
    first = table[table["metric"] == metrics[0]].sort_values("score", ascending=metrics[0] in lower_is_better)
    systems = list(dict.fromkeys([*first["system"], *table["system"], *(() if printed is None else printed["system"])]))
    baseline = baseline or next((name for name in systems if name in theme.BASELINES), None)
    series_styles = theme.styles(systems, styles)
    row_places = {system: float(index) for index, system in enumerate(systems)}
    panels = []
    for metric in metrics:
        rows = table[table["metric"] == metric].assign(place=lambda t: t["system"].map(row_places))
        marks: list[Mark] = []
        if baseline in set(rows["system"]):
            marks.append(rule(float(rows.loc[rows["system"] == baseline, "score"].iloc[0]), horizontal=False))
        for system in systems:
            system_rows = rows[rows["system"] == system]
            if len(system_rows):
                style = series_styles[system]
                marks.append(
                    Points(system_rows, "score", "place", system, style, ("system",), False, "low", "high", None, "x")
                )
        if printed is not None and (printed["metric"] == metric).any():
            reported = printed[printed["metric"] == metric].assign(place=lambda t: t["system"].map(row_places))
            marks.append(Points(reported, "score", "place", "reported", theme.REPORTED, ("system",)))
        panels.append(Panel(tuple(marks), Axis(metric), category_axis(systems, reversed=True), _height(len(systems))))
    return Figure(
        "scores",
        "Scores",
        tuple(panels),
        caption=_caption(baseline, printed is not None),
        summary=_summary(table, metrics, lower_is_better),
        width="column" if len(metrics) == 1 else "page",
        shared_y=True,
        columns=min(len(metrics), MOST_BESIDE),
    )


def _height(systems: int) -> float:
    return max(0.6, 0.16 * systems)


def _caption(baseline: str | None, printed: bool) -> str:
    parts = ["Scores with intervals, sorted by the first metric; the axes do not start at zero."]
    if baseline:
        parts.append(f"The dotted rule is {baseline}.")
    if printed:
        parts.append("Hollow dots are the numbers reported in the paper.")
    return " ".join(parts)


def _summary(table: pd.DataFrame, metrics: list[str], lower_is_better: Collection[str]) -> str:
    """Summary: the best system of each metric, all metrics of a system joined."""
    rank = "is best" if table["system"].nunique() > 1 else "stands alone"
    best_in: dict[str, list[str]] = {}
    for metric in metrics:
        lower = metric in lower_is_better
        best = table[table["metric"] == metric].sort_values("score").iloc[0 if lower else -1]
        digits = 2 if abs(best["score"]) > 1 else 3
        text = f"{metric} ({best['score']:.{digits}f}{', lower is better' if lower else ''})"
        best_in.setdefault(str(best["system"]), []).append(text)
    claims = [f"{system} {rank} in {_listed(found)}" for system, found in best_in.items()]
    return f"{'; '.join(claims)}."


def _listed(texts: list[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else texts[0]


def score_pairs(table: pd.DataFrame, caption: str = "") -> Figure:
    """Matrix of the differences of every pair, row minus column, with stars for p after Holm's correction.

    table: one row a pair under one metric, as of `scoring.pair_table`. The best system is at the top and at the left;
    blue: the row's system is better.
    """
    require_columns(table, _PAIRS, "table")
    metric = str(table["metric"].iloc[0])
    lower = metric in LOWER_IS_BETTER
    swapped = table.rename(
        columns={"system": "other", "other": "system", "score": "other_score", "other_score": "score"}
    ).assign(delta=-table["delta"])
    both = pd.concat([table, swapped], ignore_index=True)
    scores = both.drop_duplicates("system").set_index("system")["score"]
    systems = [str(name) for name in scores.sort_values(ascending=lower, kind="stable").index]
    places = {system: index for index, system in enumerate(systems)}
    cells = both.assign(
        row=both["system"].map(places),
        column=both["other"].map(places),
        better=both["delta"] * (-1 if lower else 1),
        text=(both["delta"].map("{:+.2f}".format) + both["p_holm"].map(stars)).str.replace("-", "−"),
    )
    end = rounded_up(float(cells["delta"].abs().max()))
    limits, hover = (-end, end), ("system", "other", "delta", "p_holm")
    heat = Heat(
        cells, "column", "row", hover=hover, value="better", role="signed", limits=limits,
        label=f"{'−' * lower}Δ {metric}", signs=False,
    )  # fmt: skip
    labels = Labels(
        cells, "column", "row", text="text", ground="better", ground_role="signed", ground_limits=limits,
        offset_points=0.0,
    )  # fmt: skip
    names = category_axis(systems)
    panel = Panel((heat, labels), names, category_axis(systems, reversed=True), max(0.7, 0.26 * len(systems)))
    return Figure("score-pairs", f"Every pair in {metric}", (panel,), caption, _pairs_summary(cells, metric), "page")


def stars(p_value: float) -> str:
    """One star below 0.05, two below 0.01, three below 0.001."""
    return next((text for level, text in _STARS.items() if p_value < level), "")


def _pairs_summary(cells: pd.DataFrame, metric: str) -> str:
    """Summary: the significant differences in words, by the better system of each pair."""
    found = cells[(cells["better"] > 0) & (cells["p_holm"] < max(_STARS))].sort_values(["row", "column"])
    if found.empty:
        return f"No pair differs significantly in {metric}."
    better = [f"{system} than {', '.join(rows['other'])}" for system, rows in found.groupby("system", sort=False)]
    return f"Significantly better in {metric}: {'; '.join(better)}."
