"""Figure of the adequacy of runs over a test set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, named, styles
from workbench.store.runs import short_names

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


class AdequacyOptions(FigureOptions):
    """Options of the figure `adequacy` and of the table of sentences."""

    aligner: str | None = Field(
        None, description="A file of `workbench data train-aligner …`; the one of the data unless told"
    )
    towards: Literal["first", "union"] = Field(
        "first", description="Of several references: what the first covers, or any of them"
    )


@figure("adequacy", scope="test_set", options=AdequacyOptions)
def _adequacy(request: Request, options: AdequacyOptions) -> Figure:
    """Coverage difference ratio, under- and over-translation of each run by one frozen aligner."""
    from analyses.adequacy import OVER, UNDER
    from workbench.evaluation.adequacy import adequacy_table, aligner_of, reference_text
    from workbench.views.scores.plots import score_dots

    aligner, origin = aligner_of(request.runs, request.test, options.aligner)
    towards = options.towards
    covering = reference_text(len(request.runs[0].translations(request.test).test_set.all_references), towards)
    table = adequacy_table(request.runs, request.test, aligner, towards=towards).rename(columns={"measure": "metric"})
    figure = score_dots(
        named(table, request),
        baseline=short_names(request.runs).get(request.base),
        styles=styles(request),
        lower_is_better=(UNDER, OVER),
    )
    description = (
        f"CDR: of the source words that {covering} covers, the share that the translation covers too, of all words and "
        "(macro) as a mean over sentences. Under and over are proxies, no human counts: the rest, and source words "
        f"that the same word translates twice or more, and more often than in {covering}. All links are of one frozen "
        f"aligner ({aligner.digest}, {origin})."
    )
    return replace(figure, name="adequacy", title="Adequacy", caption=f"{figure.caption} {description}")
