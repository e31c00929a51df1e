"""Over- and under-translation where the truth is known: which source words have a counterpart written, which words are
written too often. Counts words: each word written stands for one source word that it can translate.

Which forms can translate a source word is read off true links (`Forms`). A source word that has a counterpart in the
reference is left out where, of all ways to pair source words with words written, the one that pairs most leaves it
alone. A written word is repeated where it could translate a word of the sentence but all of these have as many as in
the reference. Two source words of one kind are the same to these counts: how many is exact, which of them is a choice.
Knows words and links, no aligner and no model.
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
    """What translates what: the target words that each source word was linked to, which source words one target word
    ever stood for at once (German `im` for `in the`), and the target words that were linked to nothing."""

    of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    together: dict[str, set[frozenset[str]]] = field(default_factory=lambda: defaultdict(set))
    alone: set[str] = field(default_factory=set)

    def learn(self, source: Words, target: Words, links: Iterable[Link]) -> None:
        """Take in the true links (source place, target place) of one sentence."""
        joined = defaultdict(list)
        for i, j in links:
            self.of[source[i]].add(target[j])
            joined[j].append(source[i])
        for j, words in joined.items():
            for place, word in enumerate(words):
                self.together[target[j]].update(frozenset((word, other)) for other in words[:place])
        self.alone.update(word for j, word in enumerate(target) if j not in joined)

    def instead_of(self, word: str) -> set[str]:
        """A target word that is linked to nothing, and what may stand there as well: another article, for one."""
        kinds = [forms for forms in self.of.values() if word in forms]
        return {word} | self.alone.intersection(*([set().union(*kinds)] if kinds else [set()]))


@dataclass(frozen=True)
class Counted:
    """What became of one sentence, in places from 0: source words left out; written words that are repeated, and those
    that translate no word of this sentence. wanted: source words that have a counterpart in the reference."""

    wanted: int
    left_out: frozenset[int]
    repeated: frozenset[int]
    foreign: frozenset[int]


def counted(source: Words, reference: Words, links: AbstractSet[Link], hypothesis: Words, forms: Forms) -> Counted:
    """Pair the source words of a sentence with the words of a hypothesis; links are those of the reference."""
    times = Counter(i for i, _ in links)
    rows = sorted(times)
    able = {i: [j for j, word in enumerate(hypothesis) if word in forms.of[source[i]]] for i in rows}
    known = {j for places in able.values() for j in places}
    pairing = _Pairing(able, {i: source[i] for i in rows}, hypothesis, forms)
    paired = {i for i in rows if pairing.add(i)}
    paired |= {i for i in rows if i not in paired and pairing.add(i, sharing=True)}
    linked = {j for _, j in links}
    for number, word in enumerate(word for j, word in enumerate(reference) if j not in linked):
        usable = forms.instead_of(word)
        able[-1 - number] = [j for j, written in enumerate(hypothesis) if written in usable]
        pairing.add(-1 - number)
    for i in rows:
        for _ in range(times[i] - 1):
            pairing.add(i)
    surplus = set(range(len(hypothesis))) - set(pairing.taken)
    return Counted(len(rows), frozenset(rows) - paired, frozenset(surplus & known), frozenset(surplus - known))


@dataclass
class _Pairing:
    """Written words (places) and whom they stand for: one source word, or two that one such word stood for elsewhere.
    able: the written words that can stand for each; words: the source words."""

    able: dict[int, list[int]]
    words: dict[int, str]
    hypothesis: Words
    forms: Forms
    taken: dict[int, list[int]] = field(default_factory=dict)

    def add(self, i: int, sharing: bool = False, seen: set[int] | None = None) -> bool:
        """Find one more written word for i, moving others where that makes room (an augmenting path): who has one
        keeps one."""
        seen = set() if seen is None else seen
        for j in self.able[i]:
            if j in seen:
                continue
            seen.add(j)
            own = self.taken.get(j, [])
            if not own or (sharing and len(own) == 1 and self._together(i, own[0], j)):
                self.taken[j] = [*own, i]
                return True
            for other in own:
                rest = [one for one in own if one != other]
                if all(self._together(i, one, j) for one in rest) and self.add(other, sharing, seen):
                    self.taken[j] = [*rest, i]
                    return True
        return False

    def _together(self, i: int, other: int, j: int) -> bool:
        pair = frozenset((self.words.get(i, ""), self.words.get(other, "")))
        return pair in self.forms.together.get(self.hypothesis[j], ())


class ShareStatistics(Shares):
    """Counts that are a share of others, to be bucketed and compared as scores are: values[sentences, 2], the counted
    and what they are a share of. Scores are percent; less is better."""

    @property
    def higher_is_better(self) -> bool:
        return False

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return 100 * super().scores(sums)


def shares(found: Sequence[Counted]) -> dict[str, ShareStatistics]:
    """Of each measure of MEASURES the counts of every sentence, as a share of the source words with a counterpart."""
    counts = {"left out": [len(one.left_out) for one in found], "repeated": [len(one.repeated) for one in found]}
    wanted = [one.wanted for one in found]
    return {
        name: ShareStatistics(name, np.column_stack([own, wanted]).astype(np.int64).reshape(-1, 2), "by true links")
        for name, own in counts.items()
    }
