"""Drawings of beam searches that were recorded: one system's tree, two beside each other, and their difference.

Options of all: `steps` (first and last of a window, or all), `minimum_probability`, `node_cap`, `pruned`; see `USUAL`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.figures.registry import drawing
from workbench.figures.request import Request, of_the_first, styles
from workbench.store.runs import Run, RunError, short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


USUAL: dict[str, Any] = {"minimum_probability": 0.01, "node_cap": 400, "pruned": False}  # on pages and on paper
MOST_STEPS = 12  # drawn unless told


def usual_steps(longest: int) -> tuple[int, int]:
    """The steps of a search that are drawn unless told, both ends in."""
    return 1, min(MOST_STEPS, longest)


def _options(request: Request, *trees: dict[str, Any]) -> dict[str, Any]:
    """The options of a request and the usual ones that it leaves open; `steps` may be all."""
    usual = {"steps": usual_steps(max(max(tree["step"]) for tree in trees)), **USUAL}
    found = {**usual, **request.options}
    return {**found, "steps": None} if found["steps"] == "all" else found


def _tree(run: Run, request: Request) -> dict[str, Any]:
    return run.translations(request.test).tree(request.sentence)


@drawing("beam-tree", of_a_sentence=True)
def _beam_tree(request: Request) -> Figure:
    from analyses import beam
    from workbench.views.beam_search.plots import beam_tree

    tree = _tree(request.runs[0], request)
    return of_the_first(beam_tree(beam.tree(tree), **_options(request, tree)), request)


def _pair(request: Request) -> tuple[Run, Run]:
    if len(request.runs) < 2:
        raise RunError("two runs are needed to compare their beams; choose another one")
    return request.runs[0], request.runs[1]


@drawing("beam-trees", of_a_sentence=True)
def _beam_trees(request: Request) -> Figure:
    from analyses import beam
    from workbench.views.beam_search.plots import beam_trees_side_by_side

    first, second = _pair(request)
    names = short_names((first, second))
    trees = _tree(first, request), _tree(second, request)
    figure = beam_trees_side_by_side(
        beam.tree(trees[0]), beam.tree(trees[1]), (names[first.name], names[second.name]), **_options(request, *trees)
    )
    return of_the_first(figure, request, 2)


@drawing("beam-diff", of_a_sentence=True)
def _beam_diff(request: Request) -> Figure:
    from analyses import beam
    from workbench.views.beam_search.difference_plots import beam_diff

    first, second = _pair(request)
    names = short_names((first, second))
    trees = _tree(first, request), _tree(second, request)
    found = beam.diff(*trees)
    figure = beam_diff(
        found.nodes,
        (names[first.name], names[second.name]),
        divergence_step=found.divergence_step,
        styles=styles(request),
        **_options(request, *trees),
    )
    return of_the_first(figure, request, 2)
