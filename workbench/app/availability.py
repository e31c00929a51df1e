"""Which pages of the menu have something to show: the others are grey and name a run that they could show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from workbench.app.pages import PAGES, Page
from workbench.store.runs import Run


def titles(chosen: Collection[str], runs: Sequence[Run]) -> dict[str, str]:
    """The title of each page in the menu, by its name. chosen: names of runs.

    A page that shows none of the chosen runs has the name of one that it would show beside its title, or "no run".
    """
    usable = [run for run in runs if not run.problem]
    return {page.name: _title(page, chosen, usable) for page in PAGES.values()}


def _title(page: Page, chosen: Collection[str], runs: Sequence[Run]) -> str:
    shown = [run for run in runs if run.mechanisms & set(page.mechanisms)]
    if not page.mechanisms or any(run.name in chosen for run in shown):
        return page.title
    return f"{page.title} · {shown[0].name.rpartition('/')[2] if shown else 'no run'}"


def style(titles_by_name: Mapping[str, str]) -> str:
    """Style sheet that greys the menu's links of pages whose title is not their own."""
    grey = [f'a[href$="/{name}"]' for name, title in titles_by_name.items() if title != PAGES[name].title]
    links = ", ".join(f'[data-testid="stTopNavLinkContainer"] {link}' for link in grey)
    return f"<style>{links} {{opacity: 0.55}}</style>" if grey else "<style></style>"
