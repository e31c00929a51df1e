"""Conversion of search results to translations, and of given pieces to numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from core_models.decoding import Hypothesis, SearchResult, Tree
from core_models.text.vocabulary import UNK, Vocabulary
from core_models.traces import Trace


@dataclass
class Translation:
    """The translation of one sentence.

    ids: piece numbers without </s>; tokens, token_log_probs (nats): with </s> when finished; score: under the length
    penalty; log_prob: without it; n_best: the other hypotheses; tree: the search tree if it was recorded.
    """

    text: str
    tokens: list[str]
    source_tokens: list[str]
    score: float
    log_prob: float
    token_log_probs: list[float]
    finished: bool
    ids: list[int]
    n_best: list[Translation] = field(default_factory=list)
    trace: Trace | None = None
    tree: dict[str, Any] | None = None


class TranslatorError(ValueError):
    """A request that cannot be fulfilled; the message names it and the reason."""


class HypothesisDecoder:
    """Converts piece numbers of hypotheses to text with two vocabularies."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self.source, self.target = source, target

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self.target.pieces(range(len(self.target))))}

    def translation(self, source: list[int], result: SearchResult) -> Translation:
        """The best hypothesis of a search result with its n-best list and, if recorded, the search tree."""
        best, *others = [self.hypothesis(source, hypothesis) for hypothesis in result.hypotheses]
        best.n_best = others
        if result.tree is not None:
            best.tree = self.tree(result.tree)
        return best

    def hypothesis(self, source: list[int], hypothesis: Hypothesis) -> Translation:
        """Convert one hypothesis."""
        tokens = self.target.pieces(hypothesis.words) + (["</s>"] if hypothesis.finished else [])
        return Translation(
            self.target.decode([hypothesis.words])[0],
            tokens,
            [*self.source.pieces(source), "</s>"],
            hypothesis.normalized,
            hypothesis.score,
            hypothesis.token_log_probs,
            hypothesis.finished,
            hypothesis.words,
        )

    def tree(self, tree: Tree) -> dict[str, Any]:
        """The search tree as named lists with words as text, as `analyses.beam` reads it."""
        distinct = sorted(set(tree.word))
        names = dict(zip(distinct, self.target.pieces(distinct), strict=True))
        return {**vars(tree), "word": [names[word] for word in tree.word]}

    def given(self, source: list[int], tokens: list[str]) -> Translation:
        """A translation given in pieces, without scores; raises TranslatorError for pieces of another vocabulary."""
        finished = tokens[-1:] == ["</s>"]
        words = tokens[:-1] if finished else tokens
        if foreign := [piece for piece in words if piece not in self._numbers]:
            raise TranslatorError(
                f"the target vocabulary has no piece {foreign[0]!r}: this translation was made with another one; "
                "translate its source again"
            )
        ids = [self._numbers[piece] for piece in words]
        return self.hypothesis(source, Hypothesis(ids, math.nan, math.nan, finished, []))

    def prefixes(self, prefix: Sequence[str]) -> list[list[int]]:
        """The piece numbers of forced prefixes; raises TranslatorError for a word without pieces."""
        ids_by_prefix = self.target.encode(list(prefix))
        for number, (text, ids) in enumerate(zip(prefix, ids_by_prefix, strict=True), start=1):
            if UNK in ids:
                words = text.split()
                unknown = [w for w, pieces in zip(words, self.target.encode(words), strict=True) if UNK in pieces]
                raise TranslatorError(
                    f"prefix {number} ({text[:60]!r}): the target vocabulary has no pieces for "
                    f"{', '.join(map(repr, unknown or [text]))}; a translation can only begin with what it can write: "
                    "write it otherwise or leave it out"
                )
        return ids_by_prefix
