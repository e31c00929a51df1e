"""Tables of analyses by name, ours and those of other packages."""

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
    """Add a function (request, options) -> table to the analyses, with the model of its options."""

    def add(function: Callable[[Request, Any], pd.DataFrame]) -> Callable[[Request, Any], pd.DataFrame]:
        def parsed(request: Request) -> pd.DataFrame:
            return function(replace(request, options={}), read(options, request.options, name))

        parsed.__doc__ = function.__doc__
        ANALYSES[name] = parsed
        return function

    return add


def analyses() -> dict[str, Analysis]:
    """Every analysis by name: a function from a request to a tidy table, ours and those of other packages (entry points
    of the group nmt_workbench.analyses)."""
    import_views("tables")
    join("analyses", ANALYSES, function)
    return ANALYSES


def analyse(name: str, request: Request) -> pd.DataFrame:
    """The table of an analysis; raises RunError where there is none of this name, or a run lacks what it needs."""
    if name not in analyses():
        from core_models.settings import nearest

        raise RunError(f"no analysis is called {name!r}; {nearest(name, list(ANALYSES))}")
    if not request.runs:
        raise RunError("no run is chosen; name at least one")
    if package := brought_by("analyses", name):
        import pandas as pd

        with failures_named("analysis", name, package):
            found = ANALYSES[name](request)
            if not isinstance(found, pd.DataFrame):
                raise TypeError(f"gives a {type(found).__name__}, not a DataFrame")
            return found
    try:
        return ANALYSES[name](request)
    except (TypeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{name} cannot be computed with {request.options}: {error}") from error
