"""Drawings of words: how well those of each frequency are translated, and the n-grams by which two systems differ.

Options: `counts` (test: frequencies in the references; training: in the text that the baseline was
trained on), `tokenize` (one of sacreBLEU's tokenizers) and `lowercase`. The first reference is the one that counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.evaluation import scoring
from workbench.evaluation.word_frequencies import COUNTED, of_training
from workbench.figures.registry import drawing
from workbench.figures.request import Request, styles
from workbench.store.runs import RunError, short_names

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure

MOST_NGRAMS = 12  # of either system in the figure
_OPTIONS = ("tokenize", "lowercase")


def _lines(request: Request) -> tuple[dict[str, list[str]], list[str]]:
    """What each run wrote, by its short name, and the reference; words apart."""
    from analyses.tokenization import tokenised

    opened = {run.name: run.translations(request.test) for run in request.runs}
    reference = scoring.references(opened)[0]
    names, way = short_names(request.runs), _way(request)
    outputs = {names[run]: tokenised(found.hypotheses, *way) for run, found in opened.items()}
    return outputs, tokenised(reference, *way)


def _way(request: Request) -> tuple[str, bool]:
    return str(request.options.get("tokenize", "13a")), bool(request.options.get("lowercase", False))


def f_measure_table(request: Request, samples: int = 1000) -> pd.DataFrame:
    """`analyses.words.by_frequency` of the runs of a request."""
    from analyses.words import by_frequency, frequencies

    outputs, reference = _lines(request)
    counts = request.options.get("counts", "test")
    if counts not in COUNTED:
        raise RunError(f"words are not counted in {counts!r}; choose {' or '.join(COUNTED)}")
    base = next((run for run in request.runs if run.name == request.base), request.runs[0])
    counted = frequencies(reference) if counts == "test" else of_training(base, "target", *_way(request))
    return by_frequency(outputs, reference, counted, samples=samples)


def ngram_table(request: Request) -> pd.DataFrame:
    """`analyses.words.ngram_differences` of the baseline and one other run (option `beside`: its short name); option
    `orders`: from 1 to 4 words unless told."""
    from analyses.words import ngram_differences

    first, second = pair(request)
    outputs, reference = _lines(request)
    orders = request.options.get("orders", (1, 2, 3, 4))
    return ngram_differences(outputs[first], outputs[second], reference, orders)


def pair(request: Request) -> tuple[str, str]:
    """The short names of the baseline and of the run beside it."""
    names = short_names(request.runs)
    others = {name: short for name, short in names.items() if name != request.base}
    if not others:
        raise RunError("two runs are needed to compare their n-grams; choose another one")
    beside = request.options.get("beside") or next(iter(others.values()))
    if beside not in others.values():
        raise RunError(f"there is no run {beside!r} beside the baseline; choose {', '.join(others.values())}")
    return names[request.base], str(beside)


@drawing("word-f-measure", options=(*_OPTIONS, "counts"))
def _f_measure(request: Request) -> Figure:
    from workbench.views.words.plots import word_f_measure

    table = f_measure_table(request)
    return word_f_measure(table, COUNTED[request.options.get("counts", "test")], styles=styles(request))


@drawing("ngram-differences", options=(*_OPTIONS, "beside", "orders", "most"))
def _ngram_differences(request: Request) -> Figure:
    import pandas as pd

    from workbench.views.words.plots import ngram_differences

    table, most = ngram_table(request), int(request.options.get("most", MOST_NGRAMS))
    chosen = pd.concat([ahead(table, sign).head(most) for sign in (1, -1)]).drop(columns="examples")
    if chosen.empty:
        raise RunError("the two runs match the same n-grams equally often; there is nothing to draw")
    return ngram_differences(chosen, pair(request), styles=styles(request))


def ahead(table: pd.DataFrame, sign: int) -> pd.DataFrame:
    """The n-grams by which the first system (1) or the second (-1) is ahead, those that say most first."""
    rows = table[table["difference"] * sign > 0]
    return rows.sort_values(["ratio", "order"], ascending=[sign < 0, False], kind="stable", ignore_index=True)
