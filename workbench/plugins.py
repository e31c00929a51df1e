"""What other packages add to the workbench: which parts there are, the analyses by name, the pages.

Mechanisms and systems join in `core_models.systems`, figures in `workbench.drawing`; this asks them. Imports torch only
where a package brings a mechanism or a system.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import workbench.pages
from core_models.plugins import GROUP, Plugged, brought_by, function, installed, join, joined
from workbench.figures.drawing import failures_named
from workbench.figures.registry import load
from workbench.figures.request import Request
from workbench.figures.table_registry import ANALYSES, Analysis
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Page:
    """A page of another package: `name` is its place in the URL, `show` draws it."""

    name: str
    title: str
    show: Callable[[], None]


# Our own pages by name, so that none is replaced; those of other packages have a function.
_PAGES: dict[str, Callable[[], None] | None] = dict.fromkeys(
    module.name for module in pkgutil.iter_modules(workbench.pages.__path__)
)


def analyses() -> dict[str, Analysis]:
    """Every analysis by name: a function from a request to a tidy table, ours and those of other packages (entry points
    of the group nmt_workbench.analyses)."""
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


def pages() -> list[Page]:
    """The pages of other packages: functions without arguments (entry points of the group nmt_workbench.pages), their
    titles made of their names."""
    join("pages", _PAGES, function)
    return [Page(name, name.replace("_", " ").capitalize(), show) for name, show in _PAGES.items() if show]


def plugged_in() -> list[Plugged]:
    """Every part that another package brings, those with a problem too."""
    if not installed():  # nothing of ours needs to be imported to say so
        return []
    load()
    analyses()
    pages()
    if any(point.group in (f"{GROUP}.mechanisms", f"{GROUP}.systems") for point in installed()):
        from core_models import systems

        systems.plugged_in()
    return joined()
