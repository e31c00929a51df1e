"""Figures of recorded beam searches: one tree, two trees, and their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt

from workbench.figures.options import FigureOptions, split_list
from workbench.figures.registry import figure
from workbench.figures.request import Request, of_the_first, styles
from workbench.store.runs import Run, RunError, short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


MOST_STEPS = 24  # drawn by default


def _window(value: object) -> object:
    return value if value in (None, "all") else split_list(value)


class BeamOptions(FigureOptions):
    """Options of all figures of a beam search."""

    steps: Annotated[tuple[PositiveInt, PositiveInt] | Literal["all"] | None, BeforeValidator(_window)] = Field(
        None, description=f"First and last step of a window; the first {MOST_STEPS} unless told"
    )
    minimum_probability: Annotated[float, Field(ge=0, le=1)] = Field(
        0.01, description="Hypotheses whose last word is less probable are left out"
    )
    node_cap: PositiveInt = Field(400, description="How many hypotheses at most")
    pruned: bool = Field(False, description="Also those that the search threw away")


def default_steps(longest: int) -> tuple[int, int]:
    """Default window of the steps of a search, inclusive."""
    return 1, min(MOST_STEPS, longest)


def _plot_options(options: BeamOptions, *trees: dict[str, Any]) -> dict[str, Any]:
    """Options for the plots, where None stands for all steps."""
    steps = options.steps or default_steps(max(max(tree["step"]) for tree in trees))
    return {**options.model_dump(), "steps": None if steps == "all" else steps}


def _tree(run: Run, request: Request) -> dict[str, Any]:
    return run.translations(request.test).tree(request.sentence)


@figure("beam-tree", scope="sentence", options=BeamOptions)
def _beam_tree(request: Request, options: BeamOptions) -> Figure:
    """The recorded search of the first run as a tree of hypotheses."""
    from analyses import beam
    from workbench.views.beam_search.plots import beam_tree

    tree = _tree(request.runs[0], request)
    return of_the_first(beam_tree(beam.tree(tree), **_plot_options(options, tree)), request)


def _pair(request: Request) -> tuple[Run, Run]:
    if len(request.runs) < 2:
        raise RunError("two runs are needed to compare their beams; choose another one")
    return request.runs[0], request.runs[1]


@figure("beam-trees", scope="sentence", options=BeamOptions)
def _beam_trees(request: Request, options: BeamOptions) -> Figure:
    """Recorded searches of two runs, one above the other."""
    from analyses import beam
    from workbench.views.beam_search.plots import beam_trees_side_by_side

    first, second = _pair(request)
    names = short_names((first, second))
    trees = _tree(first, request), _tree(second, request)
    figure = beam_trees_side_by_side(
        beam.tree(trees[0]),
        beam.tree(trees[1]),
        (names[first.name], names[second.name]),
        **_plot_options(options, *trees),
    )
    return of_the_first(figure, request, 2)


@figure("beam-diff", scope="sentence", options=BeamOptions)
def _beam_diff(request: Request, options: BeamOptions) -> Figure:
    """Two searches merged into one tree, with what only one of them reached."""
    from analyses import beam
    from workbench.views.beam_search.difference_plots import beam_diff

    first, second = _pair(request)
    names = short_names((first, second))
    trees = _tree(first, request), _tree(second, request)
    difference = beam.diff(*trees)
    figure = beam_diff(
        difference.nodes,
        (names[first.name], names[second.name]),
        divergence_step=difference.divergence_step,
        styles=styles(request),
        **_plot_options(options, *trees),
    )
    return of_the_first(figure, request, 2)
