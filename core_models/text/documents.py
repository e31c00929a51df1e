"""What stands before a sentence in its document, and how much of it a system reads.

Knows sentences in any form (text, pieces, numbers of lines) and document ids. Knows no files, tensors or models.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .parallel import TextError, check_documents
from .vocabulary import EOS

Sentence = TypeVar("Sentence")
Ids = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class ContextUse:
    """What a system reads beside a sentence: nothing, unless a part of it says so.

    sentences: how many before it; after: how many after it. longest: pieces of each, without EOS; a longer one is
    refused, or cut there (`cut`).
    states: the encoder's states of them are asked for. outputs: their translations are read too. joined: they are put
    before the sentence, each with its EOS, as one sequence.
    """

    sentences: int = 0
    longest: int = 256
    cut: bool = False
    states: bool = False
    outputs: bool = False
    joined: bool = False
    after: int = 0

    @property
    def entries(self) -> int:
        """Before and after, in all."""
        return self.sentences + self.after

    @classmethod
    def of_all(cls, uses: Iterable[ContextUse]) -> ContextUse:
        """What serves all of them; raises ValueError where one joins what another wants apart, or reads what follows
        and another does not."""
        readers = [use for use in uses if use.sentences]
        if not readers:
            return cls()
        if len({use.joined for use in readers}) > 1:
            raise ValueError("one part joins the sentences before to the sentence, another reads them apart")
        if len({use.after for use in readers}) > 1:
            raise ValueError("one part reads the sentences after the sentence too, another not, or not as many")
        return cls(
            sentences=max(use.sentences for use in readers),
            longest=min(use.longest for use in readers),
            cut=all(use.cut for use in readers),
            states=any(use.states for use in readers),
            outputs=any(use.outputs for use in readers),
            joined=readers[0].joined,
            after=readers[0].after,
        )

    def fitted(self, ids: Ids, where: str) -> Ids:
        """A sentence before in pieces, cut if it may be; raises TextError where it is too long."""
        if len(ids) <= self.longest:
            return ids
        if not self.cut:
            raise TextError(
                f"{where}: a sentence before it has {len(ids)} pieces, and this system reads at most {self.longest} of "
                "a context sentence: split that sentence, or train with a larger context_length or long_context=cut."
            )
        return ids[: self.longest]


def before(
    sentences: Sequence[Sentence], documents: Sequence[str], reach: int, after: int = 0
) -> list[list[Sentence | None]]:
    """For each sentence `reach` entries: entry k is the sentence k + 1 before it in its document, or None; behind them
    `after` entries: the first is the next sentence.

    Raises TextError where a document is more than one unbroken run, or there is not one id a sentence.
    """
    if len(documents) != len(sentences):
        raise TextError(f"{len(sentences)} sentences but {len(documents)} document ids; need one each.")
    check_documents(documents, "documents")
    entries: list[list[Sentence | None]] = []
    for _, run in itertools.groupby(range(len(sentences)), key=documents.__getitem__):
        rows = list(run)
        steps = [*range(-1, -reach - 1, -1), *range(1, after + 1)]
        entries += [
            [sentences[rows[number + step]] if 0 <= number + step < len(rows) else None for step in steps]
            for number in range(len(rows))
        ]
    return entries


def runs(documents: Sequence[str]) -> list[list[int]]:
    """The rows of every document, in order."""
    return [list(run) for _, run in itertools.groupby(range(len(documents)), key=documents.__getitem__)]


def joined(ids: Ids, context: Sequence[Ids | None]) -> list[int]:
    """The sentences before, the farthest first and each with its EOS, then the sentence itself (without)."""
    ahead = [[*sentence, EOS] for sentence in reversed(context) if sentence is not None]
    return [int(piece) for piece in itertools.chain(*ahead, ids)]
