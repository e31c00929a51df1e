"""Registry of figures by name: the project's and those of other packages, with scope and options."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from core_models.plugins import function, join
from workbench.figures.options import FigureOptions, changed_options, read
from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure

Scope = Literal["sentence", "test_set", "runs"]  # runs: of their training, sizes or results, not of one test set
Drawing = Callable[[Request, Any], "Figure"]
Files = Callable[[Request, Any], Iterable[Path]]


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure: its function (request, options) -> Figure, its scope and options.

    options: the model of its options; None if a function of another package reads the request's options itself.
    depends_on: the files that it reads in addition to the runs' translations, traces and weights.
    """

    name: str
    function: Callable[..., Figure]
    scope: Scope = "test_set"
    options: type[FigureOptions] | None = FigureOptions
    needs_runs: bool = True
    depends_on: Files | None = None

    @property
    def summary(self) -> str:
        """One sentence on what it shows."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())

    def read(self, options: Mapping[str, Any]) -> FigureOptions:
        """Parse its options; raises RunError."""
        return read(self.options or FigureOptions, options if self.options else {}, self.name)

    def differing(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options that differ from their defaults; raises RunError."""
        return changed_options(self.read(options)) if self.options else dict(options)

    def draw(self, request: Request) -> Figure:
        """Draw the figure; raises RunError."""
        if self.options is None:
            return self.function(request)
        return self.function(replace(request, options={}), self.read(request.options))

    def test_sets(self, request: Request) -> tuple[str, ...]:
        """The test sets that it shows; raises RunError."""
        return self.read(request.options).test_sets(request.test)

    def files(self, request: Request) -> list[Path]:
        """The files that it reads in addition to those of its runs; raises RunError."""
        return list(self.depends_on(request, self.read(request.options))) if self.depends_on else []


FIGURES: dict[str, FigureSpec] = {}


def figure(
    name: str,
    *,
    scope: Scope,
    options: type[FigureOptions] = FigureOptions,
    needs_runs: bool = True,
    depends_on: Files | None = None,
) -> Callable[[Drawing], Drawing]:
    """Register a function as a figure; see `FigureSpec`. Raises ValueError for a name that is taken."""

    def add(function: Drawing) -> Drawing:
        if name in FIGURES:
            raise ValueError(f"two figures are called {name!r}; give one another name")
        FIGURES[name] = FigureSpec(name, function, scope, options, needs_runs, depends_on)
        return function

    return add


def import_views(ending: str) -> None:
    """Import the modules of `workbench.views` whose names end with `ending`, so that they register their contents."""
    views = importlib.import_module("workbench.views")
    for module in pkgutil.walk_packages(views.__path__, f"{views.__name__}."):
        if module.name.endswith(ending):
            importlib.import_module(module.name)


@cache
def load() -> dict[str, FigureSpec]:
    """Every figure by name: those of the views, and those of other packages.

    Another package names a function (Request -> Figure) as an entry point of the group nmt_workbench.figures; if it
    shows one sentence, the function has an attribute `of_a_sentence = True`. A function with an attribute `options`, a
    model of `FigureOptions`, is called with these too.
    """
    import_views("figures")
    figures: dict[str, Any] = dict(FIGURES)
    join("figures", figures, function)
    for name, drawn in figures.items():
        if name not in FIGURES:
            scope: Scope = "sentence" if getattr(drawn, "of_a_sentence", False) else "test_set"
            FIGURES[name] = FigureSpec(name, drawn, scope, getattr(drawn, "options", None))
    return FIGURES


def spec_of(name: str) -> FigureSpec:
    """The specification of a figure by name; raises RunError for an unknown name."""
    if name not in load():
        from core_models.settings import nearest

        raise RunError(f"no figure is called {name!r}; {nearest(name, list(load()))}")
    return load()[name]


def of_a_sentence(name: str) -> bool:
    """Return True if the figure shows one sentence, not a whole test set."""
    return name in load() and load()[name].scope == "sentence"
