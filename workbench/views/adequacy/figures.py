"""Drawings that compare runs over a whole test set: training curves, scores, buckets, adequacy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.figures.options import choice
from workbench.figures.registry import drawing
from workbench.figures.request import Request, named, styles
from workbench.store.runs import short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@drawing("adequacy", options=("aligner", "towards"))
def _adequacy(request: Request) -> Figure:
    from workbench.evaluation.adequacy import TOWARDS, adequacy_table, aligner_of, covered_by
    from workbench.views.scores.plots import score_dots

    aligner, origin = aligner_of(request.runs, request.test, request.options.get("aligner"))
    towards = choice(request, "towards", TOWARDS)
    covering = covered_by(len(request.runs[0].translations(request.test).test_set.all_references), towards)
    table = adequacy_table(request.runs, request.test, aligner, towards=towards).rename(columns={"measure": "metric"})
    figure = score_dots(
        named(table, request), baseline=short_names(request.runs).get(request.base), styles=styles(request)
    )
    said = (
        f"CDR: of the source words that {covering} covers, the share that the translation covers too, of all words and "
        "(macro) as a mean over sentences. Under and over are proxies, no human counts: the rest, and source words "
        f"that the same word translates twice or more, and more often than in {covering}. All links are of one frozen "
        f"aligner ({aligner.digest}, {origin})."
    )
    return replace(figure, name="adequacy", title="Adequacy", caption=f"{figure.caption} {said}")
