"""Choosing anew among the hypotheses of a search: a weighted sum of what each part of a system says of them, and of
their length (Zheng 2018, Table 7; D8 of the specification, `nbest`).

    parts = parts_of(translator, sources, translator.translate(sources, beam=12, n_best=12))
    best = [chosen(hypotheses, {"decoder": 1, "past": 1, "future": 1}) for hypotheses in parts]

Knows translators and sums of log-probabilities, no mechanism: whatever predicts words is a part by its name.
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
    """Of each source, for its translation and then its n-best list: log P by every part, in nats, and the length.

    `main` is the system's own; where distributions are mixed in the search, `decoder` is its vocabulary head alone.
    `length` counts pieces, </s> included. contexts, context_outputs: of each source, as in `Translator.translate`.
    """
    every = [[translation, *translation.n_best] for translation in translations]

    def repeated(values: Sequence[Any]) -> list[Any]:
        return [value for value, found in zip(values, every, strict=True) for _ in found]

    tokens = [one.tokens for found in every for one in found]
    traces = iter(
        translator.trace(
            repeated(sources),
            tokens,
            ["log_prob", f"*{_END}"],
            contexts=None if contexts is None else repeated(contexts),
            context_outputs=None if context_outputs is None else repeated(context_outputs),
        )
    )
    return [[_sums(next(traces)) for _ in found] for found in every]


def _sums(trace: Mapping) -> Parts:
    """Sums over positions; what is said of layers is none of words' predictions."""
    sums = {
        name.removesuffix(_END): float(array.values.sum()) for name, array in trace.items() if array.axes == ("target",)
    }
    sums["main"] = sums.pop("log_prob")
    sums[LENGTH] = float(len(trace["log_prob"].values))
    return sums


def weighted(parts: Parts, weights: Mapping[str, float]) -> float:
    """The weighted sum; parts without a weight count nothing. Raises ConfigError for a weight of no part."""
    for name in weights:
        if name not in parts:
            raise ConfigError(f"rescoring: these hypotheses have no part {name!r}; {nearest(name, list(parts))}")
    return sum(weight * parts[name] for name, weight in weights.items())


def chosen(hypotheses: Sequence[Parts], weights: Mapping[str, float]) -> int:
    """The place of the best hypothesis of one source, the first among equals."""
    scores = [weighted(parts, weights) for parts in hypotheses]
    return max(range(len(scores)), key=scores.__getitem__)
