"""Batches cut to what fits into a device's memory; gradients stay those of the whole batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from core_models.decoding.memory_batching import out_of_memory, release_memory
from core_models.text.batches import Batch

Result = TypeVar("Result")


class FittingBatches:
    """Does work on batches, and where it runs out of memory, does it again on halves of them.

    Later batches are cut to the size that fitted before they are tried.
    """

    def __init__(self, say: Callable[[int, str], None]) -> None:
        """say: is told the new limit in padded words, and the allocator's message."""
        self._most, self._say = math.inf, say

    def cut_to(self, words: float) -> None:
        """Cut batches to at most so many padded words from now on."""
        self._most = min(self._most, words)

    def run(self, batches: Sequence[Batch], work: Callable[[list[Batch]], Result], undo: Callable[[], None]) -> Result:
        """work(batches), on parts of them if need be; undo() takes back what it did before it ran out of memory.

        Raises the allocator's error if sentences do not fit one by one.
        """
        while True:
            parts = [part for batch in batches for part in self._parts(batch)]
            try:
                return work(parts)
            except RuntimeError as error:
                cause = out_of_memory(error)
                if all(len(part) == 1 for part in parts):
                    raise
            # The tensors of the failed pass are only released outside `except`.
            undo()
            release_memory()
            self._most = max(_padded_words(part) for part in parts if len(part) > 1) // 2
            self._say(self._most, cause)

    def _parts(self, batch: Batch) -> list[Batch]:
        if len(batch) == 1 or _padded_words(batch) <= self._most:
            return [batch]
        half = len(batch) // 2
        return [*self._parts(batch.part(slice(half))), *self._parts(batch.part(slice(half, len(batch))))]


def _padded_words(batch: Batch) -> int:
    """Sentences times the longer side, padding, context and its translations included."""
    context = batch.context
    beside = [] if context is None else [words for words in (context.words, context.outputs) if words is not None]
    return len(batch) * (max(batch.source.shape[1], batch.target.shape[1]) + sum(words[0].numel() for words in beside))
