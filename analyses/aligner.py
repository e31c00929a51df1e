"""A word aligner that is trained once and then frozen: the same links for the same words, whichever system wrote them.

The model of fast_align (Dyer et al. 2013) in both directions, joined by grow-diag-final-and (Koehn et al. 2005): a word
is made by a word of the other side or by none, near the diagonal rather than far from it. Knows lists of words.
(fast_align itself comes from the registries for one platform and one Python only; eflomal samples its links anew.)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import digamma

from analyses.alignment import Link
from analyses.npz_cache import DAMAGED, open_arrays, write_arrays

NULL = 0  # the word that makes those that no word makes
NULL_SHARE = 0.08
TENSION = 4.0  # how steeply links far from the diagonal become unlikely
CONCENTRATION = 0.01  # of the Dirichlet prior: few translations for each word
UNSEEN = 1e-9  # probability of a pair that the training text has not
VERSION = 1
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)?|[^\w\s]|_")
Text = Sequence[Sequence[str]]


def words(line: str) -> list[str]:
    """The words of a line as the aligner wants them: small letters, punctuation apart, a Chinese character a word."""
    return _WORD.findall(line.lower())


@dataclass(frozen=True, eq=False)
class _Direction:
    """Pairs (giving word, made word) as ascending keys, and the probability of the made word for each."""

    keys: np.ndarray  # [pairs], int64: giving * made words + made
    probabilities: np.ndarray  # [pairs], float32
    made_words: int

    def links(self, giving: np.ndarray, made: np.ndarray, alike: np.ndarray) -> np.ndarray:
        """For each made word [n] the giving word's place, from 0; -1: none. alike[m, n]: are they spelled alike?"""
        keys = np.concatenate(([NULL], giving))[:, None] * self.made_words + made[None, :]  # [m + 1, n]
        places = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        found = np.where(self.keys[places] == keys, self.probabilities[places], UNSEEN)
        # A word that the training text has not is number 0 too, but no null word. It goes with none but its like (a
        # name): on the diagonal by default, any babble would cover the source.
        strange = (giving == NULL)[:, None] | (made == NULL)[None, :]
        found[1:] = np.where(strange, np.where(alike, 1.0, UNSEEN), found[1:])
        found[0, made == NULL] = UNSEEN / NULL_SHARE
        return (found * _prior(len(giving), len(made))).argmax(axis=0) - 1


@dataclass(frozen=True, eq=False)
class Aligner:
    """A frozen aligner: source and target words by number (from 1), and one table a direction."""

    source_words: list[str]
    target_words: list[str]
    forward: _Direction  # source words make target words
    backward: _Direction

    @cached_property
    def _numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        first, second = (
            {word: number for number, word in enumerate(side, start=1)}
            for side in (self.source_words, self.target_words)
        )
        return first, second

    def align(self, source: Sequence[str], target: Sequence[str]) -> set[Link]:
        """Links (source place, target place), from 0."""
        if not source or not target:
            return set()
        first, second = (
            np.array([numbers.get(word, NULL) for word in side], dtype=np.int64)
            for numbers, side in zip(self._numbers, (source, target), strict=True)
        )
        alike = np.array([[word == other for other in target] for word in source])
        forward = {(int(i), j) for j, i in enumerate(self.forward.links(first, second, alike)) if i >= 0}
        backward = {(i, int(j)) for i, j in enumerate(self.backward.links(second, first, alike.T)) if j >= 0}
        return grow_diag_final_and(forward, backward)

    def align_all(self, sources: Text, targets: Text) -> list[set[Link]]:
        return [self.align(source, target) for source, target in zip(sources, targets, strict=True)]

    @cached_property
    def digest(self) -> str:
        """Twelve signs of the sha256 of all that decides about a link."""
        found = hashlib.sha256(f"{VERSION} {NULL_SHARE} {TENSION} {UNSEEN}".encode())
        for name, array in sorted(self._arrays().items()):
            found.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:12]

    def save(self, path: Path | str) -> None:
        """Write the aligner, whole or not at all."""
        write_arrays(Path(path), version=np.array(VERSION), **self._arrays())

    def _arrays(self) -> dict[str, Any]:
        sides = {"source_words": self.source_words, "target_words": self.target_words}
        texts = {name: np.frombuffer("\n".join(side).encode(), dtype=np.uint8) for name, side in sides.items()}
        tables = {"forward": self.forward, "backward": self.backward}
        return {
            **texts,
            **{f"{name}_keys": table.keys for name, table in tables.items()},
            **{f"{name}_probabilities": table.probabilities for name, table in tables.items()},
        }


def load(path: Path | str) -> Aligner:
    """An aligner that `save` wrote. Raises ValueError for a file that holds none."""
    try:
        with open_arrays(path) as stored:
            if int(stored["version"]) != VERSION:
                raise ValueError(f"it is of version {int(stored['version'])}, not {VERSION}")
            source, target = (stored[f"{side}_words"].tobytes().decode().split("\n") for side in ("source", "target"))
            tables = [(stored[f"{name}_keys"], stored[f"{name}_probabilities"]) for name in ("forward", "backward")]
    except DAMAGED as error:
        raise ValueError(f"{path}: no aligner can be read here ({error}); train it again.") from None
    forward, backward = tables
    return Aligner(source, target, _Direction(*forward, len(target) + 1), _Direction(*backward, len(source) + 1))


def train(sources: Text, targets: Text, iterations: int = 5) -> Aligner:
    """An aligner from parallel text, a list of words a sentence; some 16 bytes for each pair of words of a sentence.

    Raises ValueError where no sentence has words on both sides.
    """
    both = [(source, target) for source, target in zip(sources, targets, strict=True) if len(source) and len(target)]
    if not both:
        raise ValueError("An aligner needs parallel text: no sentence has words on both sides.")
    sides = [[pair[side] for pair in both] for side in (0, 1)]
    vocabularies = [sorted({word for sentence in side for word in sentence}) for side in sides]
    encoded = [
        _encode(side, {word: number for number, word in enumerate(vocabulary, start=1)})
        for side, vocabulary in zip(sides, vocabularies, strict=True)
    ]
    source_words, target_words = vocabularies
    forward = _trained(encoded[0], encoded[1], len(target_words) + 1, iterations)
    backward = _trained(encoded[1], encoded[0], len(source_words) + 1, iterations)
    return Aligner(source_words, target_words, forward, backward)


def _encode(sentences: Text, numbers: dict[str, int]) -> list[np.ndarray]:
    return [np.array([numbers[word] for word in sentence], dtype=np.int64) for sentence in sentences]


def _trained(giving: list[np.ndarray], made: list[np.ndarray], made_words: int, iterations: int) -> _Direction:
    """Expectation maximisation, the M-step variational (Dyer et al. 2013, section 2)."""
    keys, priors, owners, begun = [], [], [], 0
    for left, right in zip(giving, made, strict=True):
        keys.append((np.concatenate(([NULL], left))[:, None] * made_words + right[None, :]).ravel())
        priors.append(_prior(len(left), len(right)).ravel())
        owners.append(np.tile(np.arange(begun, begun + len(right), dtype=np.int32), len(left) + 1))
        begun += len(right)
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    prior, owner, place = np.concatenate(priors), np.concatenate(owners), place.astype(np.int32)
    giver = pairs // made_words
    kinds = np.bincount(giver)  # different words that each giving word meets
    probabilities = np.full(len(pairs), 1.0 / made_words)
    for _ in range(iterations):
        weights = probabilities[place] * prior
        weights /= np.bincount(owner, weights)[owner]
        counts = np.bincount(place, weights, minlength=len(pairs))
        totals = np.bincount(giver, counts) + CONCENTRATION * kinds
        probabilities = np.exp(digamma(counts + CONCENTRATION) - digamma(totals)[giver])
    return _Direction(pairs, probabilities.astype(np.float32), made_words)


def _prior(giving: int, made: int) -> np.ndarray:
    """How likely each place gives each made word [giving + 1, made]; the first row is the null word's."""
    places = np.arange(1, giving + 1)[:, None] / giving - np.arange(1, made + 1)[None, :] / made
    near = np.exp(-TENSION * np.abs(places))
    near *= (1 - NULL_SHARE) / near.sum(axis=0)
    return np.vstack([np.full((1, made), NULL_SHARE), near])


def grow_diag_final_and(forward: set[Link], backward: set[Link]) -> set[Link]:
    """Two directions joined (Koehn et al. 2005): their intersection, grown along neighbours in the union that link a
    word without a link, then links of either direction between two words without one."""
    union = sorted(forward | backward)
    links = forward & backward
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    neighbours = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    grown = True
    while grown:
        grown = False
        for i, j in union:
            beside = any((i + a, j + b) in links for a, b in neighbours)
            if (i, j) not in links and beside and (i not in sources or j not in targets):
                links.add((i, j))
                sources.add(i)
                targets.add(j)
                grown = True
    for i, j in [*sorted(forward), *sorted(backward)]:
        if i not in sources and j not in targets:
            links.add((i, j))
            sources.add(i)
            targets.add(j)
    return links
