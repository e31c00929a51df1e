"""Over- and under-translation by gold links: source words without a counterpart, and words generated too often.

Counts words: each output word stands for one source word that it can translate. Which forms can translate a source word
is learned from gold links (`Forms`). Source and output words are paired by a maximum matching. A source word with a
counterpart in the reference is left out if it is unmatched. An output word is repeated if it could translate a word of
the sentence but all of these have as many counterparts as in the reference. Equal source words are interchangeable:
their number is exact, the choice among them arbitrary. Works on words and links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from analyses.alignment import Link
from analyses.scores import Shares

Words = Sequence[str]
MEASURES = {"left out": "source words without a counterpart", "repeated": "words written too often"}


@dataclass
class Forms:
    """Translations learned from gold links.

    of: the target words linked to each source word; together: the pairs of source words that one target word translates
    at once (German `im` for `in the`); alone: the target words without links.
    """

    of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    together: dict[str, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    alone: set[str] = field(default_factory=set)

    def learn(self, source: Words, target: Words, links: Iterable[Link]) -> None:
        """Add the gold links (source position, target position) of one sentence."""
        words_of_target = defaultdict(list)
        for i, j in links:
            self.of[source[i]].add(target[j])
            words_of_target[j].append(source[i])
        for j, words in words_of_target.items():
            for number, word in enumerate(words):
                self.together[target[j]].update(frozenset((word, other)) for other in words[:number])
        self.alone.update(word for j, word in enumerate(target) if j not in words_of_target)

    def instead_of(self, word: str) -> set[str]:
        """An unlinked target word and the words that may replace it, e.g. another article."""
        kinds = [forms for forms in self.of.values() if word in forms]
        return {word} | self.alone.intersection(*([set().union(*kinds)] if kinds else [set()]))


@dataclass(frozen=True)
class Counted:
    """Word coverage of one sentence, in positions from 0.

    wanted: the number of source words with a counterpart in the reference; left_out: source words without counterpart
    in the output; repeated: output words that are repeated; foreign: output words that translate no word of the
    sentence.
    """

    wanted: int
    left_out: frozenset[int]
    repeated: frozenset[int]
    foreign: frozenset[int]


def counted(source: Words, reference: Words, links: AbstractSet[Link], hypothesis: Words, forms: Forms) -> Counted:
    """Match the source words of a sentence with the words of a hypothesis; links are those of the reference."""
    times = Counter(i for i, _ in links)
    rows = sorted(times)
    candidates = {i: [j for j, word in enumerate(hypothesis) if word in forms.of[source[i]]] for i in rows}
    translating = {j for positions in candidates.values() for j in positions}
    pairing = _Pairing(candidates, {i: source[i] for i in rows}, hypothesis, forms)
    paired = {i for i in rows if pairing.add(i)}
    paired |= {i for i in rows if i not in paired and pairing.add(i, sharing=True)}
    linked = {j for _, j in links}
    for number, word in enumerate(word for j, word in enumerate(reference) if j not in linked):
        usable = forms.instead_of(word)
        candidates[-1 - number] = [j for j, written in enumerate(hypothesis) if written in usable]
        pairing.add(-1 - number)
    for i in rows:
        for _ in range(times[i] - 1):
            pairing.add(i)
    surplus = set(range(len(hypothesis))) - set(pairing.taken)
    return Counted(
        len(rows), frozenset(rows) - paired, frozenset(surplus & translating), frozenset(surplus - translating)
    )


@dataclass
class _Pairing:
    """Matching of output words (positions) with one source word each, or two that one word translates elsewhere.

    candidates: the output words that can translate each source word; words: the source words.
    """

    candidates: dict[int, list[int]]
    words: dict[int, str]
    hypothesis: Words
    forms: Forms
    taken: dict[int, list[int]] = field(default_factory=dict)

    def add(self, i: int, sharing: bool = False, seen: set[int] | None = None) -> bool:
        """Match one more output word to i along an augmenting path; matched words stay matched."""
        seen = set() if seen is None else seen
        for j in self.candidates[i]:
            if j in seen:
                continue
            seen.add(j)
            partners = self.taken.get(j, [])
            if not partners or (sharing and len(partners) == 1 and self._together(i, partners[0], j)):
                self.taken[j] = [*partners, i]
                return True
            for other in partners:
                remaining = [partner for partner in partners if partner != other]
                if all(self._together(i, partner, j) for partner in remaining) and self.add(other, sharing, seen):
                    self.taken[j] = [*remaining, i]
                    return True
        return False

    def _together(self, i: int, other: int, j: int) -> bool:
        pair = frozenset((self.words.get(i, ""), self.words.get(other, "")))
        return pair in self.forms.together.get(self.hypothesis[j], ())


class ShareStatistics(Shares):
    """Shares as statistics, to be bucketed and compared as scores are; scores are percent, lower is better.

    values[sentences, 2]: numerator and denominator.
    """

    @property
    def higher_is_better(self) -> bool:
        return False

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return 100 * super().scores(sums)


def shares(sentences: Sequence[Counted]) -> dict[str, ShareStatistics]:
    """The statistics of each of MEASURES, as shares of the source words with a counterpart in the reference."""
    counts = {
        "left out": [len(sentence.left_out) for sentence in sentences],
        "repeated": [len(sentence.repeated) for sentence in sentences],
    }
    denominators = [sentence.wanted for sentence in sentences]
    return {
        name: ShareStatistics(
            name, np.column_stack([numerators, denominators]).astype(np.int64).reshape(-1, 2), "by true links"
        )
        for name, numerators in counts.items()
    }
