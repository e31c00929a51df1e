"""From the search's numbers to text and back: translations as they are handed out, and given pieces as numbers.

Knows vocabularies, no system and no search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from core_models.decoding import Found, Hypothesis, Tree
from core_models.text.vocabulary import UNK, Vocabulary
from core_models.traces import Trace


@dataclass
class Translation:
    """One sentence's translation. `ids` are piece numbers without </s>; `tokens` and `token_log_probs` (nats) end with
    </s> when finished; `score` is under the length penalty, `log_prob` is not. `n_best` holds the other hypotheses,
    `tree` the search if it was recorded.
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
    """A request that cannot be served; the message says which and why."""


class HypothesisDecoder:
    """Writes what was found in words of two vocabularies."""

    def __init__(self, source: Vocabulary, target: Vocabulary) -> None:
        self.source, self.target = source, target

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self.target.pieces(range(len(self.target))))}

    def translation(self, source: list[int], found: Found) -> Translation:
        """What a search found for a source in pieces: the best with its n-best list, and the tree if it was kept."""
        best, *others = [self.hypothesis(source, hypothesis) for hypothesis in found.hypotheses]
        best.n_best = others
        if found.tree is not None:
            best.tree = self.tree(found.tree)
        return best

    def hypothesis(self, source: list[int], hypothesis: Hypothesis) -> Translation:
        """One hypothesis by itself."""
        tokens = self.target.pieces(hypothesis.words) + (["</s>"] if hypothesis.finished else [])
        return Translation(
            self.target.decode([hypothesis.words])[0],
            tokens,
            [*self.source.pieces(source), "</s>"],
            hypothesis.normalised,
            hypothesis.score,
            hypothesis.token_log_probs,
            hypothesis.finished,
            hypothesis.words,
        )

    def tree(self, tree: Tree) -> dict[str, Any]:
        """The search as named lists, words as text: what `analyses.beam` reads."""
        distinct = sorted(set(tree.word))
        names = dict(zip(distinct, self.target.pieces(distinct), strict=True))
        return {**vars(tree), "word": [names[word] for word in tree.word]}

    def given(self, source: list[int], tokens: list[str]) -> Translation:
        """A translation known in pieces, without scores; raises TranslatorError for pieces of another vocabulary."""
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
        """The pieces of what translations must begin with; raises TranslatorError where there are none for a word."""
        found = self.target.encode(list(prefix))
        for number, (text, ids) in enumerate(zip(prefix, found, strict=True), start=1):
            if UNK in ids:
                words = text.split()
                unknown = [w for w, pieces in zip(words, self.target.encode(words), strict=True) if UNK in pieces]
                raise TranslatorError(
                    f"prefix {number} ({text[:60]!r}): the target vocabulary has no pieces for "
                    f"{', '.join(map(repr, unknown or [text]))}; a translation can only begin with what it can write: "
                    "write it otherwise or leave it out"
                )
        return found
