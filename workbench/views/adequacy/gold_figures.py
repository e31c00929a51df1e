"""Figures of adequacy by the truth of the controlled corpus.

Pronouns and commitments by distance; omitted and repeated words by source length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, named, styles
from workbench.store.runs import short_names
from workbench.views.adequacy.controlled_choices import MAJORITY, choices_table
from workbench.views.adequacy.word_coverage import in_buckets, statistics

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure

TITLES = {
    "pronoun": "pronouns: sentences back",
    "commitment": "commitments: words to what is forced",
}


class TrueAdequacyOptions(FigureOptions):
    """Options of the figure `true-adequacy`."""

    measure: Literal["left out", "repeated"] = Field("left out", description="Which words are counted")
    scheme: str = Field("short", description="Buckets of source length: tens or short")


@figure("true-choices", scope="test_set")
def _choices(request: Request, options: FigureOptions) -> Figure:
    """Pronouns and forced first words that are right by the truth of the controlled corpus, by distance."""
    from workbench.views.adequacy.plots import choices

    short = {**short_names(request.runs), MAJORITY: MAJORITY}
    table = choices_table(request.runs, request.test, "reach")
    caption = (
        f"What the controlled corpus knows of {request.test}: pronouns for the right gender, and first words that get "
        "what they force, of those that can be decided by counting words; 95% Wilson intervals. Grey: the commonest "
        "pronoun throughout."
    )
    return choices(table.assign(system=table["system"].map(short)), "reach", TITLES, MAJORITY, caption, styles(request))


@figure("true-adequacy", scope="test_set", options=TrueAdequacyOptions)
def _true_adequacy(request: Request, options: TrueAdequacyOptions) -> Figure:
    """Source words left out, or words repeated, by the truth of the controlled corpus and by source length."""
    from analyses import buckets
    from workbench.views.buckets.plots import length_scores

    measure = options.measure
    counts = statistics(request.runs, request.test, measure)
    lengths = in_buckets(request.runs[0], request.test, options.scheme)
    table = buckets.scores(counts, lengths, baseline=request.base).dropna(subset=["score"])
    short = short_names(request.runs)
    figure = length_scores(named(table, request), f"{measure} (%)", styles=styles(request))
    totals = ", ".join(f"{short[name]} {counts_of_run.total:.2f} %" for name, counts_of_run in counts.items())
    rule = (
        "Source words whose counterparts in the reference have none in the translation, left out or translated as "
        "another word"
        if measure == "left out"
        else "Words that could translate a source word of the sentence, beyond as many as the reference has"
    )
    caption = (
        f"{figure.caption} {rule}, by counting words against the truth of the controlled corpus, in percent of source "
        f"words with a counterpart; lower is better. All lengths: {totals}."
    )
    return replace(figure, name="true-adequacy", title=f"Words {measure}, by the truth", caption=caption)
