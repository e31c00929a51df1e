"""Pages of other packages, and a list of everything that they add to the workbench.

Mechanisms and systems are registered in `core_models.system_catalogue`, figures and analyses in `workbench.figures`;
the list is read from there. Imports torch only if a package brings a mechanism or a system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core_models.plugins import GROUP, Plugged, function, installed, join, joined
from workbench.app.pages import FORMER, PAGES
from workbench.figures import registry, table_registry


@dataclass(frozen=True)
class Page:
    """A page of another package: `name` is its path in the URL, `show` draws it."""

    name: str
    title: str
    show: Callable[[], None]


# The app's own pages by name, former ones too, so that none is replaced; pages of other packages have a function.
_PAGES: dict[str, Callable[[], None] | None] = dict.fromkeys([*PAGES, *FORMER])


def pages() -> list[Page]:
    """The pages of other packages, with titles made of their names.

    A page is a function without arguments, an entry point of the group nmt_workbench.pages.
    """
    join("pages", _PAGES, function)
    return [Page(name, name.replace("_", " ").capitalize(), show) for name, show in _PAGES.items() if show]


def plugged_in() -> list[Plugged]:
    """Every part that another package brings, including those with a problem."""
    if not installed():  # without any plug-in nothing needs to be imported
        return []
    registry.load()
    table_registry.analyses()
    pages()
    if any(point.group in (f"{GROUP}.mechanisms", f"{GROUP}.systems") for point in installed()):
        from core_models import system_catalogue

        system_catalogue.plugged_in()
    return joined()
