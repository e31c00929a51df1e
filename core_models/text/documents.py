"""Context sentences of a sentence in its document, and how much of them a system reads.

Works on sentences in any form (text, pieces, line numbers) and document ids.
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
    """The context that a system reads; none by default.

    sentences: number of preceding sentences; after: number of following ones. longest: pieces of each, without EOS; a
    longer sentence is rejected, or truncated if `cut`. states: their encoder states are read. outputs: their
    translations are read too. joined: they are prepended to the sentence, each with its EOS.
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
        """The number of context sentences, before and after."""
        return self.sentences + self.after

    @classmethod
    def of_all(cls, uses: Iterable[ContextUse]) -> ContextUse:
        """The union of several context uses; raises ValueError if they differ in `joined` or `after`."""
        readers = [use for use in uses if use.sentences]
        if not readers:
            return cls()
        if len({use.joined for use in readers}) > 1:
            raise ValueError("one part prepends the sentences before to the sentence, another reads them separately")
        if len({use.after for use in readers}) > 1:
            raise ValueError("the parts read different numbers of sentences after the sentence")
        return cls(
            sentences=max(use.sentences for use in readers),
            longest=min(use.longest for use in readers),
            cut=all(use.cut for use in readers),
            states=any(use.states for use in readers),
            outputs=any(use.outputs for use in readers),
            joined=readers[0].joined,
            after=readers[0].after,
        )

    @classmethod
    def of_ensemble(cls, uses: Sequence[ContextUse]) -> ContextUse:
        """What an ensemble reads; raises ValueError if one of its systems would read another context than alone."""
        common = cls.of_all(uses)
        if len({use.joined for use in uses}) > 1:
            raise ValueError("one joins the sentences before to the sentence, another reads the sentence alone")
        if common.joined and len({use.sentences for use in uses}) > 1:
            raise ValueError("they join different numbers of sentences before to the sentence")
        if common.after and len({use.sentences for use in uses if use.sentences}) > 1:
            raise ValueError("they read sentences after the sentence, and different numbers of sentences before it")
        if len({(use.longest, use.cut) for use in uses if use.sentences}) > 1:
            raise ValueError("their context_length or long_context differ, so each would read other parts of sentences")
        return common

    def fit(self, ids: Ids, where: str) -> Ids:
        """A context sentence in pieces, truncated if `cut`; raises TextError if it is too long."""
        if len(ids) <= self.longest:
            return ids
        if not self.cut:
            raise TextError(
                f"{where}: a sentence of its context has {len(ids)} pieces, and this system reads at most "
                f"{self.longest} of a context sentence: split that sentence, or train with a larger context_length or "
                "long_context=cut."
            )
        return ids[: self.longest]


def context_entries(
    sentences: Sequence[Sentence], documents: Sequence[str], reach: int, after: int = 0
) -> list[list[Sentence | None]]:
    """The context of each sentence: `reach` entries, entry k the sentence k + 1 before it in its document, or None.

    `after` entries follow, beginning with the next sentence. Raises TextError if a document is not contiguous, or the
    numbers of sentences and ids differ.
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


def document_rows(documents: Sequence[str]) -> list[list[int]]:
    """The rows of every document, in order."""
    return [list(run) for _, run in itertools.groupby(range(len(documents)), key=documents.__getitem__)]


def prepend_context(ids: Ids, context: Sequence[Ids | None]) -> list[int]:
    """Prepend the context sentences, the farthest first and each with its EOS, to the sentence (without EOS)."""
    prefix = [[*sentence, EOS] for sentence in reversed(context) if sentence is not None]
    return [int(piece) for piece in itertools.chain(*prefix, ids)]
