"""Drawings of beam searches that were recorded: one system's tree, two beside each other, and their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.drawing import Request, drawing, of_the_first, short_names, styles
from workbench.runs import Run, RunError

if TYPE_CHECKING:
    from workbench.figures.grammar import Figure


def _tree(run: Run, request: Request) -> dict[str, Any]:
    return run.translations(request.test).tree(request.sentence)


@drawing("beam-tree", of_a_sentence=True)
def _beam_tree(request: Request) -> Figure:
    from analyses import beam
    from workbench.figures.beam import beam_tree

    return of_the_first(beam_tree(beam.tree(_tree(request.runs[0], request)), **request.options), request)


def _pair(request: Request) -> tuple[Run, Run]:
    if len(request.runs) < 2:
        raise RunError("two runs are needed to compare their beams; choose another one")
    return request.runs[0], request.runs[1]


@drawing("beam-trees", of_a_sentence=True)
def _beam_trees(request: Request) -> Figure:
    from analyses import beam
    from workbench.figures.beam import beam_trees_side_by_side

    first, second = _pair(request)
    names = short_names((first, second))
    figure = beam_trees_side_by_side(
        beam.tree(_tree(first, request)),
        beam.tree(_tree(second, request)),
        (names[first.name], names[second.name]),
        **request.options,
    )
    return of_the_first(figure, request, 2)


@drawing("beam-diff", of_a_sentence=True)
def _beam_diff(request: Request) -> Figure:
    from analyses import beam
    from workbench.figures.beam_difference import beam_diff

    first, second = _pair(request)
    names = short_names((first, second))
    found = beam.diff(_tree(first, request), _tree(second, request))
    figure = beam_diff(
        found.nodes,
        (names[first.name], names[second.name]),
        divergence_step=found.divergence_step,
        styles=styles(request),
        **request.options,
    )
    return of_the_first(figure, request, 2)
