"""Over- and under-translation by gold links: source words without a counterpart, and words generated too often.

Counts words: each output word stands for one source word that it can translate. Which forms can translate a source word
is learned from gold links (`Forms`). Source and output words are paired by a maximum matching, one to one; where a word
stands for several together, the others join it one after the other, which need not be the most there could be. A source
word with a counterpart in the reference is left out if it is unmatched. An output word is repeated if it could
translate a word of the sentence but all of these have as many counterparts as in the reference. Equal source words are
interchangeable: their number is exact, the choice among them arbitrary. Works on words and links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from analyses.alignment import Link
from analyses.scores import Shares

Words = Sequence[str]
MEASURES = {"left out": "source words without a counterpart", "repeated": "words written too often"}


@dataclass
class Forms:
    """Translations learned from gold links.

    translations: the target words linked to each source word; joint: the pairs of source words that one target word
    translates at once (German `im` for `in the`); unlinked: the target words without links.
    """

    translations: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    joint: dict[str, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    unlinked: set[str] = field(default_factory=set)

    def learn(self, source: Words, target: Words, links: Iterable[Link]) -> None:
        """Add the gold links (source position, target position) of one sentence."""
        source_words = defaultdict(list)
        for i, j in links:
            self.translations[source[i]].add(target[j])
            source_words[j].append(source[i])
        for j, words in source_words.items():
            self.joint[target[j]].update(map(frozenset, combinations(words, 2)))
        self.unlinked.update(word for j, word in enumerate(target) if j not in source_words)

    def replacements_of(self, word: str) -> set[str]:
        """An unlinked target word and the words that may replace it, e.g. another article."""
        alternatives = set[str]().union(*(forms for forms in self.translations.values() if word in forms))
        return {word} | (self.unlinked & alternatives)


@dataclass(frozen=True)
class SentenceCoverage:
    """Word coverage of one sentence, in positions from 0.

    linked: the number of source words with a counterpart in the reference; left_out: source words without counterpart
    in the output; repeated: output words that are repeated; foreign: output words that translate no word of the
    sentence.
    """

    linked: int
    left_out: frozenset[int]
    repeated: frozenset[int]
    foreign: frozenset[int]


def sentence_coverage(
    source: Words, reference: Words, links: AbstractSet[Link], hypothesis: Words, forms: Forms
) -> SentenceCoverage:
    """Match the source words of a sentence with the words of a hypothesis; links: of the reference."""
    link_counts = Counter(i for i, _ in links)
    rows = sorted(link_counts)
    candidates = {
        i: [j for j, word in enumerate(hypothesis) if word in forms.translations.get(source[i], ())] for i in rows
    }
    translating = {j for positions in candidates.values() for j in positions}
    matching = _Matching(candidates, {i: source[i] for i in rows}, hypothesis, forms)
    matched = {i for i in rows if matching.add(i)}
    matched |= {i for i in rows if i not in matched and matching.add(i, share=True)}
    linked_targets = {j for _, j in links}
    unlinked_words = [word for j, word in enumerate(reference) if j not in linked_targets]
    for number, word in enumerate(unlinked_words):
        usable = forms.replacements_of(word)
        candidates[-1 - number] = [j for j, output in enumerate(hypothesis) if output in usable]
        matching.add(-1 - number)
    for i in rows:
        for _ in range(link_counts[i] - 1):
            matching.add(i)
    surplus = set(range(len(hypothesis))) - set(matching.partners)
    return SentenceCoverage(
        len(rows), frozenset(rows) - matched, frozenset(surplus & translating), frozenset(surplus - translating)
    )


@dataclass
class _Matching:
    """Matching of output words (positions) with one source word each, or with two that it may translate jointly.

    candidates: the output words that can translate each source word; words: the source words; partners: those matched
    with each output word.
    """

    candidates: dict[int, list[int]]
    words: dict[int, str]
    hypothesis: Words
    forms: Forms
    partners: dict[int, list[int]] = field(default_factory=dict)

    def add(self, i: int, share: bool = False, visited: set[int] | None = None) -> bool:
        """Match one more output word to source word i along an augmenting path; matched words stay matched."""
        visited = set() if visited is None else visited
        for j in self.candidates[i]:
            if j in visited:
                continue
            visited.add(j)
            partners = self.partners.get(j, [])
            if not partners or (share and len(partners) == 1 and self._are_joint(i, partners[0], j)):
                self.partners[j] = [*partners, i]
                return True
            for replaced in partners:
                remaining = [partner for partner in partners if partner != replaced]
                if all(self._are_joint(i, partner, j) for partner in remaining) and self.add(replaced, share, visited):
                    self.partners[j] = [*remaining, i]
                    return True
        return False

    def _are_joint(self, i: int, other: int, j: int) -> bool:
        pair = frozenset((self.words.get(i, ""), self.words.get(other, "")))
        return pair in self.forms.joint.get(self.hypothesis[j], ())


class ShareStatistics(Shares):
    """Shares as statistics, to be bucketed and compared as scores are; scores are percent, lower is better.

    values[sentences, 2]: numerator and denominator.
    """

    @property
    def higher_is_better(self) -> bool:
        return False

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return 100 * super().scores(sums)


def shares(sentences: Sequence[SentenceCoverage]) -> dict[str, ShareStatistics]:
    """The statistics of each of MEASURES, as shares of the source words with a counterpart in the reference."""
    counts = {
        "left out": [len(sentence.left_out) for sentence in sentences],
        "repeated": [len(sentence.repeated) for sentence in sentences],
    }
    denominators = [sentence.linked for sentence in sentences]
    return {
        name: ShareStatistics(
            name, np.column_stack([numerators, denominators]).astype(np.int64).reshape(-1, 2), "by true links"
        )
        for name, numerators in counts.items()
    }
