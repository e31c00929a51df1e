"""Plot of the alignment error rate by threshold on attention, and of argmax links."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from workbench.plotting import theme
from workbench.plotting.columns import require_columns
from workbench.plotting.grammar import Axis, Figure, Line, Mark, Panel, SeriesStyle

_COLUMNS = ("system", "threshold", "links", "precision", "recall", "aer")
_RATES = {"aer": "AER (%)", "precision": "precision (%)", "recall": "recall (%)"}


def alignment_error(
    table: pd.DataFrame, caption: str = "", styles: dict[str, SeriesStyle] | None = None, width: str = "page"
) -> Figure:
    """AER, precision and recall over thresholds, one line for each system; dotted lines: argmax links.

    Rates are fractions; rows with the threshold NaN are argmax links. Rates without links (NaN) are left out.
    """
    require_columns(table, _COLUMNS, "table")
    systems = list(dict.fromkeys(table["system"]))
    series_styles = theme.styles(systems, styles)
    percent = table.assign(**{name: 100 * table[name].astype(float) for name in _RATES})
    curves = percent.dropna(subset=["threshold"])
    ends = float(curves["threshold"].min()), float(curves["threshold"].max())
    panels = []
    for rate, label in _RATES.items():
        marks: list[Mark] = []
        for system in systems:
            rows = curves[curves["system"] == system].dropna(subset=[rate])
            argmax = percent[(percent["system"] == system) & percent["threshold"].isna()]
            across = pd.concat([argmax.assign(threshold=end) for end in ends]).dropna(subset=[rate])
            if len(across):
                style = replace(series_styles[system], dash="dot", marker="none", width=0.8)
                marks.append(Line(across, "threshold", rate, f"{system}, argmax", style, ("links",), legend=False))
            if len(rows):
                marks.append(Line(rows, "threshold", rate, system, series_styles[system], ("links",)))
        panels.append(Panel(tuple(marks), Axis("threshold", range=(0.0, 1.0)), Axis(label, range=(-2.0, 102.0)), 1.5))
    return Figure("alignment-error", "Alignment error rate", tuple(panels), caption, _summary(percent, systems),
                  width=width, columns=3)  # type: ignore[arg-type]  # fmt: skip


def _summary(percent: pd.DataFrame, systems: list[str]) -> str:
    descriptions = []
    for system in systems:
        rows = percent[percent["system"] == system]
        best = rows.dropna(subset=["threshold"]).sort_values("aer", kind="stable").iloc[0]
        argmax = rows.loc[rows["threshold"].isna(), "aer"].iloc[0]
        descriptions.append(
            f"{system}: {argmax:.1f} % with argmax, at best {best['aer']:.1f} % at {best['threshold']:.2f}"
        )
    return f"Alignment error rate. {'; '.join(descriptions)}."
