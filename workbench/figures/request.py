"""What is to be drawn: runs, test set, sentence and the options of a figure; and how runs are named and look in it."""

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
    """What is to be drawn. `sentence` counts from 0; `options` are the drawing's own.

    `among`: all runs that are chosen, where others than `runs`; a run looks the same in every figure of one choice.
    """

    runs: tuple[Run, ...]
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    among: tuple[Run, ...] = ()

    @property
    def base(self) -> str:
        """The run that others are compared with: the one named, else the first."""
        return self.baseline or self.runs[0].name


def looks(runs: Sequence[Run]) -> dict[str, SeriesStyle]:
    """The style of each of the runs that are chosen, by name: the colour by its own name alone, dash and marker by all
    of them, not by their order."""
    from workbench.plotting import theme

    return theme.run_styles([run.name for run in runs])


def styles(request: Request) -> dict[str, SeriesStyle]:
    """The style of each run of a request, by its short name; one that is not chosen keeps its colour too."""
    from workbench.plotting import theme

    chosen = looks(request.among or request.runs)
    found = theme.run_styles([*chosen, *(run.name for run in request.runs if run.name not in chosen)], chosen)
    return {short: found[name] for name, short in short_names(request.runs).items()}


def of_the_first(figure: Figure, request: Request, count: int = 1) -> Figure:
    """The figure of the first so many runs of a request; its caption says so where there are more."""
    names = list(short_names(request.runs).values())
    if len(names) <= count:
        return figure
    said = f"Drawn of {' and '.join(names[:count])} alone, not of {', '.join(names[count:])}."
    return replace(figure, caption=f"{figure.caption} {said}".lstrip())


def named(table: pd.DataFrame, request: Request, column: str = "system") -> pd.DataFrame:
    """The table with short names of runs."""
    return table.assign(**{column: table[column].map(short_names(request.runs))})
