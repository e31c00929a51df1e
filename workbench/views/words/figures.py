"""Figures of words: F-measure by word frequency, and the n-grams by which two systems differ.

Only the first reference is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt

from workbench.evaluation import scoring
from workbench.evaluation.word_frequencies import COUNTED, of_training
from workbench.figures.options import FigureOptions, split_list
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure

MOST_NGRAMS = 12  # of each system in the figure


class WordOptions(FigureOptions):
    """Options of tokenization."""

    tokenize: str = Field("13a", description="One of sacreBLEU's tokenizers: 13a, intl, zh, char, none, …")
    lowercase: bool = Field(False, description="Ignore case")

    @property
    def tokenization(self) -> tuple[str, bool]:
        """Tokenizer and lowercase, arguments of `analyses.tokenization`."""
        return self.tokenize, self.lowercase


class WordFMeasureOptions(WordOptions):
    """Options of the figure `word-f-measure`."""

    counts: Literal["test", "training"] = Field(
        "test", description="Where frequencies are counted: references, or the baseline's training text"
    )


class NgramOptions(WordOptions):
    """Options of the figure `ngram-differences`."""

    beside: str | None = Field(None, description="The run beside the baseline by its short name; the next unless told")
    orders: Annotated[tuple[PositiveInt, ...], BeforeValidator(split_list)] = Field(
        (1, 2, 3, 4), description="Of how many words"
    )
    most: NonNegativeInt = Field(MOST_NGRAMS, description="How many of either system")


def _lines(request: Request, options: WordOptions) -> tuple[dict[str, list[str]], list[str]]:
    """Tokenized outputs by short run name, and the tokenized reference."""
    from analyses.tokenization import tokenized

    translations = {run.name: run.translations(request.test) for run in request.runs}
    reference = scoring.references(translations)[0]
    names, tokenization = short_names(request.runs), options.tokenization
    outputs = {
        names[run]: tokenized(run_translations.hypotheses, *tokenization)
        for run, run_translations in translations.items()
    }
    return outputs, tokenized(reference, *tokenization)


def f_measure_table(request: Request, options: WordFMeasureOptions, samples: int = 1000) -> pd.DataFrame:
    """`analyses.words.by_frequency` of the runs of a request."""
    from analyses.words import by_frequency, frequencies

    outputs, reference = _lines(request, options)
    base = next((run for run in request.runs if run.name == request.base), request.runs[0])
    counted = frequencies(reference) if options.counts == "test" else of_training(base, "target", *options.tokenization)
    return by_frequency(outputs, reference, counted, samples=samples)


def ngram_table(request: Request, options: NgramOptions) -> pd.DataFrame:
    """`analyses.words.ngram_differences` of the baseline and one other run."""
    from analyses.words import ngram_differences

    first, second = pair(request, options)
    outputs, reference = _lines(request, options)
    return ngram_differences(outputs[first], outputs[second], reference, options.orders)


def pair(request: Request, options: NgramOptions) -> tuple[str, str]:
    """Short names of the baseline and of the run it is compared with."""
    names = short_names(request.runs)
    others = {name: short for name, short in names.items() if name != request.base}
    if not others:
        raise RunError("two runs are needed to compare their n-grams; choose another one")
    beside = options.beside or next(iter(others.values()))
    if beside not in others.values():
        raise RunError(f"there is no run {beside!r} beside the baseline; choose {', '.join(others.values())}")
    return names[request.base], beside


@figure("word-f-measure", scope="test_set", options=WordFMeasureOptions)
def _f_measure(request: Request, options: WordFMeasureOptions) -> Figure:
    """F-measure of words by their frequency."""
    from workbench.views.words.plots import word_f_measure

    table = f_measure_table(request, options)
    return word_f_measure(table, COUNTED[options.counts], styles=styles(request))


@figure("ngram-differences", scope="test_set", options=NgramOptions)
def _ngram_differences(request: Request, options: NgramOptions) -> Figure:
    """The n-grams that the baseline and one other run match more often than the other."""
    import pandas as pd

    from workbench.views.words.plots import ngram_differences

    table, most = ngram_table(request, options), options.most
    rows = pd.concat([ahead(table, sign).head(most) for sign in (1, -1)]).drop(columns="examples")
    if rows.empty:
        raise RunError("the two runs match the same n-grams equally often; there is nothing to draw")
    return ngram_differences(rows, pair(request, options), styles=styles(request))


def ahead(table: pd.DataFrame, sign: int) -> pd.DataFrame:
    """N-grams that the first system (sign 1) or the second (-1) matches more often, the most telling first."""
    rows = table[table["difference"] * sign > 0]
    return rows.sort_values(["ratio", "order"], ascending=[sign < 0, False], kind="stable", ignore_index=True)
