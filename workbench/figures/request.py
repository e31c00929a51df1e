"""Requests for figures: runs, test set, sentence and options; names and styles of the runs in a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure, SeriesStyle


@dataclass(frozen=True)
class Request:
    """Runs, test set and options of a figure to be drawn. `sentence` counts from 0.

    `palette_runs`: all selected runs if they differ from `runs`; a run has one style in all figures of a selection.
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


def looks(runs: Sequence[Run]) -> dict[str, SeriesStyle]:
    """The style of each selected run by name: its own name decides the color, all names the dash and marker.

    The order of the runs has no effect.
    """
    from workbench.plotting import theme

    return theme.run_styles([run.name for run in runs])


def styles(request: Request) -> dict[str, SeriesStyle]:
    """The style of each run of a request by its short name; a run outside of the selection keeps its color too."""
    from workbench.plotting import theme

    chosen = looks(request.palette_runs or request.runs)
    style_of_run = theme.run_styles([*chosen, *(run.name for run in request.runs if run.name not in chosen)], chosen)
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
