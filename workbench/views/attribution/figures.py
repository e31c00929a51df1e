"""Figures of attribution: bars for one word or the sentence, a matrix for all output words."""

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
    """Attribute with each run of a request: all words, or one word, or "sentence"."""
    settings = options.forced_target, options.method, options.baseline, word
    return [explain(run, request.test, request.sentence, *settings) for run in request.runs]


def sums_table(request: Request, options: AttributionOptions, word: int | str | None = None) -> pd.DataFrame:
    """Sums of the attributions and the differences that they should equal (`attribution.measure.sums`)."""
    return sums(explained(request, options, word), short_names(request.runs))


def _cells(explained: list[Explained], request: Request) -> pd.DataFrame:
    """Table of the attributions without the prefix words that are not yet written.

    Columns: system, row, word, position (-1: the sentence), side, place, token, nats.
    """
    import pandas as pd

    from workbench.plotting.axes import matrix_table

    names = short_names(request.runs)
    tables = []
    for item in explained:
        for side, values, tokens in (
            ("source", item.attribution.source, item.source),
            ("prefix", item.attribution.prefix, item.prefix),
        ):
            table = matrix_table(values, tokens, item.words, "place", "row", "nats")
            table = table.rename(columns={"place_token": "token", "row_token": "word"})
            positions = table["row"].map(dict(enumerate(item.attribution.positions)))  # -1: the sentence
            written = (side == "source") | (positions < 0) | (table["place"] <= positions)
            tables.append(table.assign(system=names[item.run.name], side=side, position=positions)[written])
    return pd.concat(tables, ignore_index=True)


def _caption(explained: list[Explained], options: AttributionOptions) -> str:
    method = METHODS[options.method]
    baseline = BASELINES[options.baseline]
    caption = f"{method} of log P, sums over the width of each piece's embedding; baseline: {baseline.lower()}."
    for item in explained:
        if item.constants:
            caption += f" Not covered in {item.run.name}: what a mechanism reads at {', '.join(item.constants)}."
    return caption


def _completeness_text(explained: list[Explained], request: Request) -> str:
    """Sentence on the completeness of each run's attribution: sum, difference, error and steps of the last row."""
    from workbench.plotting.axes import token_text

    descriptions = []
    names = short_names(request.runs)
    for item in explained:
        values = item.attribution
        difference, error, steps = values.difference[-1], values.error[-1], values.steps[-1]
        steps_text = f" after {steps} steps" if steps else ""
        end = "" if values.complete[-1] or not steps else ", more than allowed"
        several = len(values.positions) > 1 and values.steps.any()
        rows = f"; complete are {values.complete.sum()} of {len(values.positions)} rows" if several else ""
        descriptions.append(
            f"{names[item.run.name]}: log P of {token_text(item.words[-1])} is {values.log_prob[-1]:.2f}, of the "
            f"baseline {values.baseline_log_prob[-1]:.2f}, difference {difference:+.3f} nats; the attributions sum to "
            f"{difference + error:+.3f} (error {error:+.4f}{steps_text}{end}){rows}"
        )
    return f"{'; '.join(descriptions)}."


@figure("attribution", scope="sentence", options=WordAttributionOptions)
def _attribution(request: Request, options: WordAttributionOptions) -> Figure:
    """Contribution of each input word to log P of one output word or of the whole output."""
    from workbench.views.attribution.plots import attribution

    attributed = explained(request, options, options.word)
    target = "the whole output" if options.word == WHOLE else f"output word {options.word}"
    return attribution(
        _cells(attributed, request),
        f"What speaks for {target}. {_caption(attributed, options)} {_completeness_text(attributed, request)}",
        styles=styles(request),
    )


@figure("attribution-matrix", scope="sentence", options=AttributionOptions)
def _matrix(request: Request, options: AttributionOptions) -> Figure:
    """Contribution of each input word to log P of every output word."""
    from workbench.views.attribution.plots import attribution_matrix

    attributed = explained(request, options)
    cells = _cells(attributed, request)
    caption = f"{_caption(attributed, options)} {_completeness_text(attributed, request)}"
    return attribution_matrix(cells[cells["position"] >= 0], caption)
