"""A sentence pair under construction: words, links and choices, and the truth record derived from them.

Words are objects whose positions are assigned at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass(eq=False, slots=True)
class Word:
    """One written word; `other` is its text in the other form of address, `content` marks what repetitions count."""

    text: str
    other: str | None = None
    content: bool = False
    position: int = -1


@dataclass(slots=True)
class Part:
    """A part of the sentence on both sides; each side has its own order."""

    source: list[Word] = field(default_factory=list)
    target: list[Word] = field(default_factory=list)


@dataclass(slots=True)
class Choice:
    """Words that are decided together by one draw; each variant has a text, or None, for every slot."""

    slots: list[Word | None]
    variants: list[list[str | None]]


@dataclass(slots=True)
class Pronoun:
    source: Word
    target: Word
    gender: str
    alternatives: list[str]


@dataclass(slots=True)
class Draft:
    """The annotations of one sentence pair; `draws` only decides between right translations."""

    draws: Random
    links: list[tuple[Word, Word]] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    tags: dict[str, None] = field(default_factory=dict)
    mentions: list[tuple[str, str, Word]] = field(default_factory=list)  # thing class, noun, source word
    pronouns: list[Pronoun] = field(default_factory=list)
    addresses: list[tuple[Word, Word]] = field(default_factory=list)
    cue: Word | None = None

    def tag(self, name: str) -> None:
        self.tags[name] = None

    def pair(self, source: Sequence[str], target: Sequence[str], links: Sequence[tuple[int, int]] = ((0, 0),)) -> Part:
        part = Part([Word(text) for text in source], [Word(text) for text in target])
        self.links += [(part.source[i], part.target[j]) for i, j in links]
        return part

    def link_all(self, source: Sequence[Word], target: Sequence[Word]) -> None:
        self.links += [(s, t) for s in source for t in target]

    def settle(self, variants: list[list[str | None]], bracket: bool = False) -> tuple[list[Word | None], int]:
        """Sample one variant; return its words (None for an empty slot; do not modify) and its number.

        The choice is recorded if there are several variants, or if the words are a `bracket` that must be closed.
        """
        index = self.draws.randrange(len(variants))
        slots = [None if text is None else Word(text) for text in variants[index]]
        if len(variants) > 1 or bracket:
            self.choices.append(Choice(slots, variants))
        return slots, index

    def force(self, choice: Choice, word: Word, texts: list[str | None]) -> None:
        """Add a word decided by an earlier choice, with its text in every variant."""
        choice.slots = [*choice.slots, word]
        choice.variants = [[*variant, text] for variant, text in zip(choice.variants, texts, strict=True)]


def place_words(part: Part) -> None:
    """Drop German commas next to other punctuation, and number the words of both sides."""
    words: list[Word] = []
    for word in part.target:
        if word.text in {".", "?", ","} and words and words[-1].text == ",":
            words.pop()
        words.append(word)
    part.target[:] = words
    for side in (part.source, part.target):
        for position, word in enumerate(side):
            word.position = position


def truth(draft: Draft, source: Sequence[Word], target: Sequence[Word]) -> dict[str, Any]:
    """Return the truth of a sentence without context: alignment, commitments, repetitions, phenomena."""
    alignment = sorted({(s.position, t.position) for s, t in draft.links if t.position >= 0})
    linked_source, linked_target = {i for i, _ in alignment}, {j for _, j in alignment}
    commitments = sorted(filter(None, map(commitment, draft.choices)), key=lambda record: record["target"])
    repeated_words = repetitions(source)
    if any(record["alternatives"] for record in commitments):
        draft.tag("commitment")
    if repeated_words:
        draft.tag("repetition")
    return {
        "alignment": [list(link) for link in alignment],
        "unaligned_source": [i for i in range(len(source)) if i not in linked_source],
        "unaligned_target": [j for j in range(len(target)) if j not in linked_target],
        "pronouns": [],
        "commitments": commitments,
        "repetitions": repeated_words,
        "phenomena": list(draft.tags),
    }


def commitment(choice: Choice) -> dict[str, Any] | None:
    """Return the record of a choice whose first word forces later ones, or None if it forces none.

    `continuations` has, for the chosen word and for each alternative, the words that it forces, in their order.
    """
    placed = sorted((word.position, slot) for slot, word in enumerate(choice.slots) if word is not None)
    while placed and len(choice.variants) > 1 and len({variant[placed[0][1]] for variant in choice.variants}) == 1:
        placed.pop(0)  # a word that all variants share decides nothing yet
    if len(placed) < 2:
        return None
    first, slot = placed[0]
    chosen = choice.slots[slot]
    assert chosen is not None
    later = [index for _, index in placed[1:]]
    later += [index for index, word in enumerate(choice.slots) if word is None]
    continuations: dict[str, list[str]] = {}
    for variant in choice.variants:
        text = variant[slot]
        if text is not None:
            continuations.setdefault(text, [word for index in later if (word := variant[index]) is not None])
    later_words = [choice.slots[index] for index in later]
    continuations[chosen.text] = [word.text for word in later_words if word is not None]
    return {
        "target": first,
        "chosen": chosen.text,
        "alternatives": [t for t in continuations if t != chosen.text],
        "forces": [position for position, _ in placed[1:]],
        "continuations": continuations,
    }


def repetitions(source: Sequence[Word]) -> list[list[int]]:
    """Return the source positions of every noun, adjective and number that occurs more than once."""
    groups: dict[str, list[int]] = {}
    for word in source:
        if word.content:
            groups.setdefault(word.text, []).append(word.position)
    return [positions for positions in groups.values() if len(positions) > 1]
