"""What other packages add to the workbench: their pages, and a list of all that they bring.

Mechanisms and systems join in `core_models.system_catalogue`, figures and analyses in `workbench.figures`; this asks
them. Imports torch only where a package brings a mechanism or a system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core_models.plugins import GROUP, Plugged, function, installed, join, joined
from workbench.app.pages import PAGES
from workbench.figures import registry, table_registry


@dataclass(frozen=True)
class Page:
    """A page of another package: `name` is its place in the URL, `show` draws it."""

    name: str
    title: str
    show: Callable[[], None]


# Our own pages by name, so that none is replaced; those of other packages have a function.
_PAGES: dict[str, Callable[[], None] | None] = dict.fromkeys(PAGES)


def pages() -> list[Page]:
    """The pages of other packages: functions without arguments (entry points of the group nmt_workbench.pages), their
    titles made of their names."""
    join("pages", _PAGES, function)
    return [Page(name, name.replace("_", " ").capitalize(), show) for name, show in _PAGES.items() if show]


def plugged_in() -> list[Plugged]:
    """Every part that another package brings, those with a problem too."""
    if not installed():  # nothing of ours needs to be imported to say so
        return []
    registry.load()
    table_registry.analyses()
    pages()
    if any(point.group in (f"{GROUP}.mechanisms", f"{GROUP}.systems") for point in installed()):
        from core_models import system_catalogue

        system_catalogue.plugged_in()
    return joined()
