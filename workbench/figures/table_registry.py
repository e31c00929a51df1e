"""Registry of analyses by name: the project's and those of other packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core_models.plugins import brought_by, function, join
from workbench.figures.drawing import failures_named
from workbench.figures.options import FigureOptions, read
from workbench.figures.registry import import_views
from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

Analysis = Callable[[Request], "pd.DataFrame"]
ANALYSES: dict[str, Analysis] = {}


def analysis(
    name: str, options: type[FigureOptions] = FigureOptions
) -> Callable[[Callable[[Request, Any], pd.DataFrame]], Callable[[Request, Any], pd.DataFrame]]:
    """Register a function (request, options) -> table as an analysis, with the model of its options."""

    def add(function: Callable[[Request, Any], pd.DataFrame]) -> Callable[[Request, Any], pd.DataFrame]:
        def parsed(request: Request) -> pd.DataFrame:
            return function(replace(request, options={}), read(options, request.options, name))

        parsed.__doc__ = function.__doc__
        ANALYSES[name] = parsed
        return function

    return add


def analyses() -> dict[str, Analysis]:
    """Every analysis by name, a function from a request to a tidy table.

    Other packages add theirs as entry points of the group nmt_workbench.analyses.
    """
    import_views("tables")
    join("analyses", ANALYSES, function)
    return ANALYSES


def analyze(name: str, request: Request) -> pd.DataFrame:
    """Compute the table of an analysis; raises RunError if the name is unknown or a run lacks the data."""
    if name not in analyses():
        from core_models.settings import nearest

        raise RunError(f"no analysis is called {name!r}; {nearest(name, list(ANALYSES))}")
    if not request.runs:
        raise RunError("no run is chosen; name at least one")
    if package := brought_by("analyses", name):
        import pandas as pd

        with failures_named("analysis", name, package):
            table = ANALYSES[name](request)
            if not isinstance(table, pd.DataFrame):
                raise TypeError(f"gives a {type(table).__name__}, not a DataFrame")
            return table
    try:
        return ANALYSES[name](request)
    except (TypeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{name} cannot be computed with {request.options}: {error}") from error
