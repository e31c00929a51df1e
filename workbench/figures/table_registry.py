"""Registry of analyses by name: the project's and those of other packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core_models.plugins import brought_by, function, join
from workbench.figures.drawing import failures_named
from workbench.figures.options import FigureOptions, read
from workbench.figures.registry import import_views
from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

Table = Callable[[Request, Any], "pd.DataFrame"]


@dataclass(frozen=True)
class AnalysisSpec:
    """A registered analysis: its function (request, options) -> table and its options.

    options: the model of its options; None if a function of another package reads the request's options itself.
    """

    name: str
    function: Callable[..., pd.DataFrame]
    options: type[FigureOptions] | None = FigureOptions

    @property
    def summary(self) -> str:
        """One sentence on what the table holds."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())

    def table(self, request: Request) -> pd.DataFrame:
        """Compute the table; raises RunError."""
        if self.options is None:
            return self.function(request)
        return self.function(replace(request, options={}), read(self.options, request.options, self.name))


ANALYSES: dict[str, AnalysisSpec] = {}


def analysis(name: str, options: type[FigureOptions] = FigureOptions) -> Callable[[Table], Table]:
    """Register a function (request, options) -> table as an analysis, with the model of its options.

    Raises ValueError for a name that is taken.
    """

    def add(function: Table) -> Table:
        if name in ANALYSES:
            raise ValueError(f"two analyses are called {name!r}; give one another name")
        ANALYSES[name] = AnalysisSpec(name, function, options)
        return function

    return add


def analyses() -> dict[str, AnalysisSpec]:
    """Every analysis by name: those of the views, and those of other packages.

    Another package names a function (Request -> table) as an entry point of the group nmt_workbench.analyses.
    """
    import_views("analyses")
    named: dict[str, Any] = dict(ANALYSES)
    join("analyses", named, function)
    for name, computed in named.items():
        if name not in ANALYSES:
            ANALYSES[name] = AnalysisSpec(name, computed, options=None)
    return ANALYSES


def spec_of(name: str) -> AnalysisSpec:
    """The specification of an analysis by name; raises RunError for an unknown name."""
    if name not in analyses():
        from core_models.settings import nearest

        raise RunError(f"no analysis is called {name!r}; {nearest(name, list(ANALYSES))}")
    return ANALYSES[name]


def analyze(name: str, request: Request) -> pd.DataFrame:
    """Compute the table of an analysis; raises RunError if the name is unknown or a run lacks the data."""
    spec = spec_of(name)
    if not request.runs:
        raise RunError("no run is chosen; name at least one")
    if package := brought_by("analyses", name):
        import pandas as pd

        with failures_named("analysis", name, package):
            table = spec.table(request)
            if not isinstance(table, pd.DataFrame):
                raise TypeError(f"gives a {type(table).__name__}, not a DataFrame")
            return table
    try:
        return spec.table(request)
    except (TypeError, ValueError) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{name} cannot be computed with {request.options}: {error}") from error
