"""Drawings of attribution: of a word or the sentence as bars, of every output word as a matrix.

Computes nothing: arrays become the tables of the figure family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.figures.options import ForcedOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import short_names
from workbench.views.attribution.measure import BASELINES, METHODS, WHOLE, Explained, explain, sums

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure


class AttributionOptions(ForcedOptions):
    """Options of the figure `attribution-matrix`."""

    method: Literal["integrated_gradients", "gradient_x_input", "occlusion"] = Field(
        "integrated_gradients", description="How log P is attributed"
    )
    baseline: Literal["zero", "padding"] = Field("zero", description="The embedding that stands for no word")


class WordAttributionOptions(AttributionOptions):
    """Options of the figure `attribution`."""

    word: PositiveInt | Literal["sentence"] = Field("sentence", description="The output word that is explained, from 1")


def explained(request: Request, options: AttributionOptions, word: int | str | None = None) -> list[Explained]:
    """The attribution of each run of a request; of every word, unless one or the sentence is named."""
    asked = options.forced, options.method, options.baseline, word
    return [explain(run, request.test, request.sentence, *asked) for run in request.runs]


def sums_table(request: Request, options: AttributionOptions, word: int | str | None = None) -> pd.DataFrame:
    """What the attributions sum to, beside what they should: see `workbench.views.attribution.measure.sums`."""
    return sums(explained(request, options, word), short_names(request.runs))


def _cells(found: list[Explained], request: Request) -> pd.DataFrame:
    """system, row, word, position (-1: the sentence), side, place, token, nats; prefix words not yet written are left
    out."""
    import pandas as pd

    from workbench.plotting.axes import matrix_table

    names = short_names(request.runs)
    tables = []
    for one in found:
        for side, values, tokens in (
            ("source", one.found.source, one.source),
            ("prefix", one.found.prefix, one.prefix),
        ):
            table = matrix_table(values, tokens, one.words, "place", "row", "nats")
            table = table.rename(columns={"place_token": "token", "row_token": "word"})
            places = table["row"].map(dict(enumerate(one.found.chosen)))  # -1: the sentence
            written = (side == "source") | (places < 0) | (table["place"] <= places)
            tables.append(table.assign(system=names[one.run.name], side=side, position=places)[written])
    return pd.concat(tables, ignore_index=True)


def _caption(found: list[Explained], options: AttributionOptions) -> str:
    method = METHODS[options.method]
    baseline = BASELINES[options.baseline]
    said = f"{method} of log P, sums over the width of each piece's embedding; baseline: {baseline.lower()}."
    for one in found:
        if one.constants:
            said += f" Not covered in {one.run.name}: what a mechanism reads at {', '.join(one.constants)}."
    return said


def _said(found: list[Explained], request: Request) -> str:
    """The completeness of each run's attribution in words: sum, difference, error and steps of the last row."""
    said = []
    names = short_names(request.runs)
    for one in found:
        values = one.found
        difference, error, steps = values.difference[-1], values.error[-1], values.steps[-1]
        taken = f" after {steps} steps" if steps else ""
        end = "" if values.complete[-1] or not steps else ", more than allowed"
        whole = len(values.chosen) > 1 and values.steps.any()
        rows = f"; complete are {values.complete.sum()} of {len(values.chosen)} rows" if whole else ""
        said.append(
            f"{names[one.run.name]}: log P of {one.words[-1]} is {values.log_prob[-1]:.2f}, of the baseline "
            f"{values.baseline_log_prob[-1]:.2f}, difference {difference:+.3f} nats; the attributions sum to "
            f"{difference + error:+.3f} (error {error:+.4f}{taken}{end}){rows}"
        )
    return f"{'; '.join(said)}."


@figure("attribution", scope="sentence", options=WordAttributionOptions)
def _attribution(request: Request, options: WordAttributionOptions) -> Figure:
    """What each word read adds to log P of one output word or of the whole output."""
    from workbench.views.attribution.plots import attribution

    found = explained(request, options, options.word)
    what = "the whole output" if options.word == WHOLE else f"output word {options.word}"
    return attribution(
        _cells(found, request),
        f"What speaks for {what}. {_caption(found, options)}",
        _said(found, request),
        styles(request),
    )


@figure("attribution-matrix", scope="sentence", options=AttributionOptions)
def _matrix(request: Request, options: AttributionOptions) -> Figure:
    """What each word read adds to log P of every output word."""
    from workbench.views.attribution.plots import attribution_matrix

    found = explained(request, options)
    cells = _cells(found, request)
    return attribution_matrix(cells[cells["position"] >= 0], _caption(found, options), _said(found, request))
