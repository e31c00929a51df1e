"""From runs to figures: one function a figure, the same for `workbench figure` and for the pages.

A request names runs, test set and sentence; a drawing gathers the tables (evaluation, analyses) and hands them to its
figure family. Pages compute nothing: they call `draw`. A module of this package is a theme; `load` finds them all.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from core_models.plugins import brought_by, function, join
from workbench.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from workbench.figures.grammar import Figure, SeriesStyle


@dataclass(frozen=True)
class Request:
    """What is to be drawn. `sentence` counts from 0; `options` are the drawing's own.

    `among`: all runs that are chosen, where others than `runs`; a run looks the same in every figure of one choice.
    """

    runs: tuple[Run, ...]
    test: str = "test"
    sentence: int = 0
    baseline: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    among: tuple[Run, ...] = ()

    @property
    def base(self) -> str:
        """The run that others are compared with: the one named, else the first."""
        return self.baseline or self.runs[0].name

    @property
    def tests(self) -> tuple[str, ...]:
        """The test sets it is of: those that an option `tests` lists, else its own."""
        listed = self.options.get("tests", ())
        return tuple(listed.split(",") if isinstance(listed, str) else listed) or (self.test,)


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


@cache
def load() -> dict[str, Drawing]:
    """Every drawing by name: those of all modules of this package, and those of other packages.

    Another package names a function (Request -> Figure) as an entry point of the group nmt_workbench.figures; if it
    shows one sentence, the function has an attribute `of_a_sentence = True`.
    """
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    join("figures", DRAWINGS, function)
    OF_A_SENTENCE.update(name for name, drawn in DRAWINGS.items() if getattr(drawn, "of_a_sentence", False))
    return DRAWINGS


def of_a_sentence(name: str) -> bool:
    """Does the drawing show one sentence, not a whole test set?"""
    return name in load() and name in OF_A_SENTENCE


def draw(name: str, request: Request) -> Figure:
    """The figure of a name; raises RunError where there is none, or a run lacks what it needs."""
    if name not in load():
        from core_models.settings import nearest

        raise RunError(f"no figure is called {name!r}; {nearest(name, list(DRAWINGS))}")
    if not request.runs and name not in WITHOUT_RUNS:
        raise RunError("no run is chosen; name at least one")
    if request.baseline is not None and request.baseline not in [run.name for run in request.runs]:
        names = ", ".join(run.name for run in request.runs)
        raise RunError(f"the baseline {request.baseline!r} is not among the runs: {names}")
    _check_options(name, request)
    if package := brought_by("figures", name):
        with failures_named("figure", name, package):
            return _with_provenance(name, request, DRAWINGS[name](request))
    try:
        figure = DRAWINGS[name](request)
    except (TypeError, ValueError) as error:
        if isinstance(error, RunError) or not request.options:
            raise
        raise RunError(f"{name} cannot be drawn with {request.options}: {error}") from error
    return _with_provenance(name, request, figure)


def _with_provenance(name: str, request: Request, figure: Figure) -> Figure:
    from workbench.figures.grammar import Figure
    from workbench.recipe import provenance  # which imports this module

    if not isinstance(figure, Figure):
        raise TypeError(f"gives a {type(figure).__name__}, not a Figure")
    return replace(figure, provenance={**figure.provenance, **provenance(name, request, figure)})


@contextmanager
def failures_named(kind: str, name: str, package: str) -> Iterator[None]:
    """Whatever another package's part raises becomes a RunError that names both; its own RunErrors stay as they are."""
    try:
        yield
    except RunError:
        raise
    except (Exception, SystemExit) as error:
        raise RunError(
            f"the {kind} {name!r} of the plug-in {package} failed: {type(error).__name__}: {error}; "
            "WORKBENCH_DEBUG=1 shows where"
        ) from error


def _check_options(name: str, request: Request) -> None:
    """Raises RunError for an option that would be passed over."""
    known = OPTIONS.get(name)
    unknown = sorted(set(request.options) - known) if known is not None else []
    if unknown:
        there = ", ".join(sorted(known or ())) or "none"
        raise RunError(f"there is no option {unknown[0]!r} of {name}; there is {there}")


def looks(runs: Sequence[Run]) -> dict[str, SeriesStyle]:
    """The style of each of the runs that are chosen, by name: the colour by its own name alone, dash and marker by all
    of them, not by their order."""
    from workbench.figures import theme

    return theme.run_styles([run.name for run in runs])


def styles(request: Request) -> dict[str, SeriesStyle]:
    """The style of each run of a request, by its short name; one that is not chosen keeps its colour too."""
    from workbench.figures import theme

    chosen = looks(request.among or request.runs)
    found = theme.run_styles([*chosen, *(run.name for run in request.runs if run.name not in chosen)], chosen)
    return {short: found[name] for name, short in short_names(request.runs).items()}


def short_names(runs: Sequence[Run]) -> dict[str, str]:
    """Run names for legends: the last part of the path where that tells them apart."""
    last = [run.name.rsplit("/", 1)[-1] for run in runs]
    return {run.name: short if last.count(short) == 1 else run.name for run, short in zip(runs, last, strict=True)}


def of_the_first(figure: Figure, request: Request, count: int = 1) -> Figure:
    """The figure of the first so many runs of a request; its caption says so where there are more."""
    names = list(short_names(request.runs).values())
    if len(names) <= count:
        return figure
    said = f"Drawn of {' and '.join(names[:count])} alone, not of {', '.join(names[count:])}."
    return replace(figure, caption=f"{figure.caption} {said}".lstrip())


def named(table: pd.DataFrame, request: Request, column: str = "system") -> pd.DataFrame:
    """The table with short names of runs."""
    return table.assign(**{column: table[column].map(short_names(request.runs))})
