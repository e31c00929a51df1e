"""The figure families by name: what each draws and which tables it needs. `workbench figure NAME` looks here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

import pandas as pd

from workbench.figures.grammar import Figure


@dataclass(frozen=True)
class Family:
    """One kind of figure. `needs` maps each table argument of `build` to the columns it must have."""

    name: str
    title: str
    needs: dict[str, tuple[str, ...]]
    build: Callable[..., Figure]


FAMILIES: dict[str, Family] = {}


def register(
    name: str, title: str, needs: dict[str, tuple[str, ...]]
) -> Callable[[Callable[..., Figure]], Callable[..., Figure]]:
    """Adds the decorated function to the families under `name`; a name taken by another function is refused."""

    def add(build: Callable[..., Figure]) -> Callable[..., Figure]:
        known = FAMILIES.get(name)
        if known is not None and known.build.__module__ != build.__module__:
            raise ValueError(f"figure {name!r} is already drawn by {known.build.__module__}; choose another name")
        FAMILIES[name] = Family(name, title, needs, build)
        return build

    return add


def load() -> dict[str, Family]:
    """Imports every module of this package except the renderers and returns the families."""
    import workbench.figures as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.endswith("_renderer"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return FAMILIES


def names() -> list[str]:
    """All names, sorted."""
    return sorted(load())


def family(name: str) -> Family:
    """The family of a name; an unknown name is answered with the nearest known one."""
    known = load()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
        raise KeyError(f"no figure is called {name!r}; {hint}")
    return known[name]


def describe() -> list[dict[str, str]]:
    """Name, title and needed tables of every family, as text."""
    return [
        {
            "name": name,
            "title": load()[name].title,
            "needs": "; ".join(f"{table}: {', '.join(columns)}" for table, columns in load()[name].needs.items()),
        }
        for name in names()
    ]


def require_columns(table: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    """Raises ValueError that names the table, its missing columns and those it has."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(f"table {name!r} lacks {', '.join(missing)}; it has {', '.join(map(str, table.columns))}")
