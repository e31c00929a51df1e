"""Drawing of figures by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from core_models.plugins import brought_by
from workbench.figures.provenance import provenance
from workbench.figures.registry import spec_of
from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


def draw(name: str, request: Request) -> Figure:
    """Draw the figure of a name; raises RunError if the name is unknown or a run lacks the data."""
    spec = spec_of(name)
    if not request.runs and spec.needs_runs:
        raise RunError("no run is chosen; name at least one")
    if request.baseline is not None and request.baseline not in [run.name for run in request.runs]:
        names = ", ".join(run.name for run in request.runs)
        raise RunError(f"the baseline {request.baseline!r} is not among the runs: {names}")
    if package := brought_by("figures", name):
        with failures_named("figure", name, package):
            return _with_provenance(name, request, spec.draw(request))
    try:
        figure = spec.draw(request)
    except (TypeError, ValueError) as error:
        if isinstance(error, RunError) or not request.options:
            raise
        raise RunError(f"{name} cannot be drawn with {request.options}: {error}") from error
    return _with_provenance(name, request, figure)


def _with_provenance(name: str, request: Request, figure: Figure) -> Figure:
    from workbench.plotting.grammar import Figure

    if not isinstance(figure, Figure):
        raise TypeError(f"gives a {type(figure).__name__}, not a Figure")
    return replace(figure, provenance={**figure.provenance, **provenance(name, request, figure)})


@contextmanager
def failures_named(kind: str, name: str, package: str) -> Iterator[None]:
    """Turn exceptions of another package's code into RunErrors that name it; its RunErrors stay unchanged."""
    try:
        yield
    except RunError:
        raise
    except (Exception, SystemExit) as error:
        raise RunError(
            f"the {kind} {name!r} of the plug-in {package} failed: {type(error).__name__}: {error}; "
            "WORKBENCH_DEBUG=1 shows where"
        ) from error
