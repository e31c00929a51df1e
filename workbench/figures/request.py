"""Requests for figures: runs, test set, sentence and options; names and styles of the runs in a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure, SeriesStyle


@dataclass(frozen=True)
class Request:
    """Runs, test set and options of a figure to be drawn. `sentence` counts from 0.

    `palette_runs`: all selected runs if they differ from `runs`; they decide the styles of runs that have none in their
    runs folder.
    """

    runs: tuple[Run, ...]
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    palette_runs: tuple[Run, ...] = ()

    @property
    def base(self) -> str:
        """The name of the run that others are compared with: the baseline, else the first run."""
        return self.baseline or self.runs[0].name


def looks(runs: Sequence[Run], beside: Mapping[str, SeriesStyle] = MappingProxyType({})) -> dict[str, SeriesStyle]:
    """The style of each selected run by name: the one that it has for good in its runs folder (`run_styles`).

    A run that has none, and one of more runs of a color than there are lines, keeps its color and gets a dash and
    marker that no other of these and of those `beside` has. The order of the runs has no effect.
    """
    from workbench.figures import run_styles
    from workbench.plotting import theme

    fixed = dict(beside)
    for name, line in sorted(run_styles.lines_of(runs).items()):
        style = theme.style_on_line(name, line)
        if style not in fixed.values():
            fixed.setdefault(name, style)
    return theme.run_styles([*beside, *(run.name for run in runs if run.name not in beside)], fixed)


def styles(request: Request) -> dict[str, SeriesStyle]:
    """The style of each run of a request by its short name; a run outside of the selection keeps its own too."""
    style_of_run = looks(request.runs, looks(request.palette_runs or request.runs))
    return {short: style_of_run[name] for name, short in short_names(request.runs).items()}


def of_the_first(figure: Figure, request: Request, count: int = 1) -> Figure:
    """The figure with a note in its caption if the request has more runs than the `count` that are drawn."""
    names = list(short_names(request.runs).values())
    if len(names) <= count:
        return figure
    note = f"Drawn of {' and '.join(names[:count])} alone, not of {', '.join(names[count:])}."
    return replace(figure, caption=f"{figure.caption} {note}".lstrip())


def named(table: pd.DataFrame, request: Request, column: str = "system") -> pd.DataFrame:
    """The table with short names of runs."""
    return table.assign(**{column: table[column].map(short_names(request.runs))})
