"""The workbench in a notebook: runs by a pattern, any figure of the pages, scores and tests as tables.

    from workbench.notebook import figure, runs
    figure("length-scores", runs("runs/demo/*"))

Thin: `drawing.draw` makes the figure, `evaluation` the tables. Knows nothing of Jupyter but what it asks an object for.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import CONFIG
from workbench import evaluation, view
from workbench.drawing import Request, draw
from workbench.runs import Run, RunError, open_runs

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.figures.grammar import Figure


@dataclass(frozen=True)
class Shown:
    """A figure that a notebook displays: interactive, with its numbers in `table`, and `save` for a paper."""

    figure: Figure

    @property
    def table(self) -> pd.DataFrame:
        """The numbers exactly as drawn."""
        return self.figure.table

    @property
    def caption(self) -> str:
        return self.figure.caption

    @cached_property
    def plotly(self) -> go.Figure:
        """The figure on the screen, to be changed at will."""
        from workbench.figures.plotly_renderer import to_plotly

        return to_plotly(self.figure)

    def save(self, path: str | Path, width: str | float | None = None) -> Path:
        """Write .pdf, .svg, .png, .csv or .json; `width`: column, page, aaai-column, …, or inches."""
        from workbench.export.files import save

        return save(self.figure, path, width)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What Plotly shows in this front end, else a chart that needs no network and no extension."""
        bundle = self.plotly._repr_mimebundle_(include, exclude) or {"text/html": self._repr_html_()}
        return {**bundle, "text/plain": self.figure.summary}

    def _repr_html_(self) -> str:
        """The chart with plotly.js in it."""
        return self.plotly.to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})


def runs(*patterns: str | Path) -> tuple[Run, ...]:
    """The runs of folders, patterns (`runs/demo/*`: a baseline by its name comes first) or RUN@step; the first is the
    baseline. Raises RunError."""
    return tuple(open_runs([path for pattern in patterns for path in _matching(str(pattern))]))


def figure(
    name: str, runs: Sequence[Run], test: str = "test", sentence: int = 0, baseline: str | None = None, **options: Any
) -> Shown:
    """Any figure that `workbench figure list` names, with the options that its `--set` takes. Raises RunError."""
    return Shown(draw(name, Request(tuple(runs), test, sentence, baseline, options)))


def scores(
    runs: Sequence[Run], test: str = "test", metrics: Sequence[str] = ("bleu", "chrf"), **counting: Any
) -> pd.DataFrame:
    """Corpus scores with 95 % bootstrap intervals and signatures; `counting` are preset and reference."""
    return evaluation.score_table(runs, test, metrics, counting=evaluation.Counting(**counting))


def compare(
    runs: Sequence[Run],
    test: str = "test",
    method: str = "bootstrap",
    metrics: Sequence[str] = ("bleu",),
    **counting: Any,
) -> pd.DataFrame:
    """Every run against the first: difference, interval, p and p after Holm, by bootstrap, randomization or sign."""
    return evaluation.comparison_table(runs, test, runs[0].name, method, metrics, evaluation.Counting(**counting))


def _matching(pattern: str) -> list[str]:
    if not glob.has_magic(pattern):
        return [pattern]
    found = view.baselines(sorted(path for path in glob.glob(pattern) if (Path(path) / CONFIG).is_file()))
    if not found:
        raise RunError(f"no run matches {pattern}; a run is a folder with a {CONFIG}")
    return found
