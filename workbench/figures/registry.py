"""Figures by name: every function that draws one, ours and those of other packages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection
from functools import cache
from typing import TYPE_CHECKING

from core_models.plugins import function, join
from workbench.figures.request import Request

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure

Drawing = Callable[[Request], "Figure"]
DRAWINGS: dict[str, Drawing] = {}
OF_A_SENTENCE: set[str] = set()  # the drawings that show one sentence, not a whole test set
WITHOUT_RUNS: set[str] = set()  # the drawings that have something to show when no run is given
OPTIONS: dict[str, frozenset[str]] = {}  # what may be asked of a drawing; one that is not here refuses others itself


def drawing(
    name: str, of_a_sentence: bool = False, without_runs: bool = False, options: Collection[str] | None = None
) -> Callable[[Drawing], Drawing]:
    """Adds a function to the drawings. options: the names that a request may have; None where the function refuses
    others itself."""

    def add(function: Drawing) -> Drawing:
        DRAWINGS[name] = function
        if of_a_sentence:
            OF_A_SENTENCE.add(name)
        if without_runs:
            WITHOUT_RUNS.add(name)
        if options is not None:
            OPTIONS[name] = frozenset(options)
        return function

    return add


def import_views(ending: str) -> None:
    """Import the modules of `workbench.views` whose names end so: what they define joins its registry."""
    views = importlib.import_module("workbench.views")
    for module in pkgutil.walk_packages(views.__path__, f"{views.__name__}."):
        if module.name.endswith(ending):
            importlib.import_module(module.name)


@cache
def load() -> dict[str, Drawing]:
    """Every drawing by name: those of the views, and those of other packages.

    Another package names a function (Request -> Figure) as an entry point of the group nmt_workbench.figures; if it
    shows one sentence, the function has an attribute `of_a_sentence = True`.
    """
    import_views("figures")
    join("figures", DRAWINGS, function)
    OF_A_SENTENCE.update(name for name, drawn in DRAWINGS.items() if getattr(drawn, "of_a_sentence", False))
    return DRAWINGS


def of_a_sentence(name: str) -> bool:
    """Does the drawing show one sentence, not a whole test set?"""
    return name in load() and name in OF_A_SENTENCE
