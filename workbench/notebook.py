"""The workbench in a notebook: runs by a pattern, any figure of the pages, scores and tests as tables.

    from workbench.notebook import figure, runs
    figure("length-scores", runs("runs/demo/*"))

Thin: `drawing.draw` makes the figure, `evaluation` the tables. Knows only Jupyter's display methods.
"""

from __future__ import annotations

import base64
import glob
import gzip
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from core_models.config import CONFIG
from core_models.settings import ConfigError
from workbench.app import url_state
from workbench.evaluation import scoring
from workbench.figures import table_registry
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store import listing
from workbench.store.runs import Run, RunError, open_runs

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.plotting.grammar import Figure, Font


# The first chart of a page unpacks and runs the library; a page may have many charts.
_CHART = Template(
    """<div id="$id" style="width:100%;height:${height}px"></div>
<script>
(async () => {
  if (!window.Plotly) {
    window.plotlyUnpacked ??= (async () => {
      const packed = Uint8Array.from(atob("$library"), (sign) => sign.charCodeAt(0));
      const code = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      window.PlotlyConfig = {MathJaxConfig: "local"};
      const script = document.createElement("script");
      script.textContent = await new Response(code).text();
      document.head.append(script);
    })();
    await window.plotlyUnpacked;
  }
  const chart = $chart;
  Plotly.newPlot("$id", chart.data, chart.layout, {displaylogo: false, responsive: true});
})();
</script>"""
)


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
        """The interactive Plotly figure, which may be changed."""
        from workbench.plotting.plotly_renderer import to_plotly

        return to_plotly(self.figure)

    def save(self, path: str | Path, width: str | float | None = None, font: Font = "sans") -> Path:
        """Write .pdf, .svg, .png, .csv or .json; `width`: column, page, aaai-column, …, or inches."""
        from workbench.export.files import save

        return save(replace(self.figure, font=font), path, width)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Plotly's display data for this front end, with a much smaller HTML page."""
        bundle = self.plotly._repr_mimebundle_(include, exclude) or {}
        return {**bundle, "text/html": self._repr_html_(), "text/plain": self.figure.summary}

    def _repr_html_(self) -> str:
        """The chart as HTML that needs no network, no kernel and no other cell."""
        chart = self.plotly
        return _CHART.substitute(
            id=f"chart-{uuid4().hex}", height=chart.layout.height, library=_library(), chart=chart.to_json()
        )


def runs(*patterns: str | Path) -> tuple[Run, ...]:
    """Open the runs of folders, patterns or RUN@step; the first is the baseline. Raises RunError.

    A pattern such as `runs/demo/*` puts a run with the name of a baseline system first.
    """
    return tuple(open_runs([path for pattern in patterns for path in _matching(str(pattern))]))


def figure(
    name: str,
    runs: Sequence[Run],
    test: str = "test",
    sentence: int = 0,
    baseline: str | None = None,
    palette_runs: Sequence[Run] = (),
    **options: Any,
) -> Shown:
    """Any figure that `workbench figure list` names, with the options that its `--option` takes. Raises RunError.

    palette_runs: all selected runs, if more than these; a run has the same style in all figures of one selection.
    """
    if "among" in options:
        warnings.warn("the argument among is called palette_runs now", DeprecationWarning, stacklevel=2)
        palette_runs = options.pop("among")
    return Shown(draw(name, Request(tuple(runs), test, sentence, baseline, options, tuple(palette_runs))))


def scores(
    runs: Sequence[Run], test: str = "test", metrics: str | Sequence[str] = ("bleu", "chrf"), **counting: Any
) -> pd.DataFrame:
    """Corpus scores with 95% bootstrap intervals and signatures; `counting` are preset and reference."""
    return scoring.score_table(runs, test, metrics, counting=scoring.Counting(**counting))


def compare(
    runs: Sequence[Run],
    test: str = "test",
    method: str = "bootstrap",
    metrics: str | Sequence[str] = ("bleu",),
    **counting: Any,
) -> pd.DataFrame:
    """Every run against the first: difference, interval, p and p after Holm, by one of `scoring.TESTS`."""
    return scoring.comparison_table(runs, test, runs[0].name, method, metrics, scoring.Counting(**counting))


def analyze(
    name: str,
    runs: Sequence[Run],
    test: str = "test",
    sentence: int = 0,
    baseline: str | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Any analysis that `workbench analyze list` names, with the options that its `--option` takes. Raises RunError."""
    return table_registry.analyze(name, Request(tuple(runs), test, sentence, baseline, options))


def analyse(*arguments: Any, **options: Any) -> pd.DataFrame:
    """The former name of `analyze`; it goes with the next release."""
    warnings.warn("notebook.analyse is called analyze now", DeprecationWarning, stacklevel=2)
    return analyze(*arguments, **options)


def _matching(pattern: str) -> list[str]:
    if not glob.has_magic(pattern):
        return [pattern]
    folders = sorted(path for path in glob.glob(pattern) if (Path(path) / CONFIG).is_file())
    if not folders:
        raise RunError(f"no run matches {pattern}; a run is a folder with a {CONFIG}")
    known = [listing.Known(path, finished=Run(Path(path), path).finished) for path in folders]
    return url_state.baselines(folders, "", known)


def _as_a_sentence(error: Exception) -> list[str]:
    """The lines that IPython prints for an error: the message without a traceback."""
    return [f"{type(error).__name__}: {error}"]


if not os.environ.get("WORKBENCH_DEBUG"):
    for _kind in (RunError, ConfigError):  # IPython calls this method of an error
        setattr(_kind, "_render_traceback_", _as_a_sentence)  # noqa: B010 (the class does not declare it)


@cache
def _library() -> str:
    """The text of plotly.js, gzipped, in base64."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
