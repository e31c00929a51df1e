"""Scores for reranking n-best lists: log-probabilities by each part of a system, and the length.

Zheng 2018, Table 7; D8 of the specification, `nbest`.

    parts = parts_of(translator, sources, translator.translate(sources, beam=12, n_best=12))
    best = [chosen(hypotheses, {"decoder": 1, "past": 1, "future": 1}) for hypotheses in parts]

Every prediction of words is a part, called by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core_models.decoding.inputs import Texts
from core_models.decoding.outputs import Translation
from core_models.settings import ConfigError, nearest
from core_models.translator import Translator

LENGTH = "length"
_END = ".log_prob"
Parts = dict[str, float]


def parts_of(
    translator: Translator,
    sources: Sequence[str],
    translations: Sequence[Translation],
    contexts: Texts | None = None,
    context_outputs: Texts | None = None,
) -> list[list[Parts]]:
    """For each source the scores of its translation and n-best list: log P by every part, in nats, and the length.

    `main` is the system's prediction; if distributions are mixed in the search, `decoder` is its vocabulary head only.
    `length` counts pieces with </s>. Losses of PAST and FUTURE take part as in the translator's own search.
    contexts, context_outputs: of each source, as in `Translator.translate`.
    """
    hypotheses_of = [[translation, *translation.n_best] for translation in translations]

    def repeated(values: Sequence[Any]) -> list[Any]:
        return [value for value, hypotheses in zip(values, hypotheses_of, strict=True) for _ in hypotheses]

    tokens = [hypothesis.tokens for hypotheses in hypotheses_of for hypothesis in hypotheses]
    traces = iter(
        translator.trace(
            repeated(sources),
            tokens,
            ["log_prob", f"*{_END}"],
            contexts=None if contexts is None else repeated(contexts),
            context_outputs=None if context_outputs is None else repeated(context_outputs),
        )
    )
    return [[_sums(next(traces)) for _ in hypotheses] for hypotheses in hypotheses_of]


def _sums(trace: Mapping) -> Parts:
    """Sums over positions, without the arrays of layers, which are no predictions of words."""
    sums = {
        name.removesuffix(_END): float(array.values.sum()) for name, array in trace.items() if array.axes == ("target",)
    }
    sums["main"] = sums.pop("log_prob")
    sums[LENGTH] = float(len(trace["log_prob"].values))
    return sums


def weighted(parts: Parts, weights: Mapping[str, float]) -> float:
    """The weighted sum; parts without a weight count 0. Raises ConfigError for a weight of an unknown part."""
    for name in weights:
        if name not in parts:
            raise ConfigError(f"rescoring: these hypotheses have no part {name!r}; {nearest(name, list(parts))}")
    return sum(weight * parts[name] for name, weight in weights.items())


def chosen(hypotheses: Sequence[Parts], weights: Mapping[str, float]) -> int:
    """The rank of the best hypothesis of one source, the first of equals."""
    scores = [weighted(parts, weights) for parts in hypotheses]
    return max(range(len(scores)), key=scores.__getitem__)
