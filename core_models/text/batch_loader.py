"""The batches of a binarized text, epoch by epoch, as a batch plan cuts them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from core_models.text.batch_plan import BatchPlan
from core_models.text.batches import Batch, collate
from core_models.text.buckets import filled, rounded

from .documents import ContextUse, Ids, prepend_context
from .parallel import TextError
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from core_models.text.mmap_arrays import BinaryText


class BatchLoader:
    """The batches of a binarized text, epoch by epoch, as tensors on the CPU.

    With `sampling_alpha` each sentence is segmented again from its text, depending only on (seed, epoch, sentence); the
    plan uses the stored lengths, so such a batch may exceed the budget; a segmentation that, with EOS, needs more
    positions than the `room` of its side gives way to the stored one. context: the context sentences to include, never
    across a document boundary; count_context: they count in the token budget (if not, the batches have the same
    sentences as without context). buckets: batches have few shapes, see `core_models.text.buckets`.
    """

    def __init__(
        self,
        text: BinaryText,
        token_budget: int,
        seed: int = 1,
        rank: int = 0,
        world: int = 1,
        vocabularies: tuple[Vocabulary, Vocabulary] | None = None,
        sampling_alpha: float | None = None,
        context: ContextUse = ContextUse(),  # noqa: B008 - it is frozen
        count_context: bool = True,
        buckets: bool = False,
        room: tuple[float, float] = (math.inf, math.inf),
    ) -> None:
        if sampling_alpha is not None and vocabularies is None:
            raise TextError("subword sampling needs vocabularies=(source, target) to segment with.")
        if context.sentences:
            _check_context(text, context)
        self.text, self.seed, self.context, self._buckets = text, seed, context, buckets
        self._counted = context if count_context else ContextUse()
        self._token_budget, self._rank, self._world = token_budget, rank, world
        self._vocabularies, self._sampling_alpha, self._room = vocabularies, sampling_alpha, room
        self._plan: tuple[int, BatchPlan] | None = None

    def plan(self, epoch: int) -> BatchPlan:
        """The epoch's plan; the last plan is cached."""
        if self._plan is None or self._plan[0] != epoch:
            self._plan = None  # two plans of a large corpus need not be in memory at once
            sources, targets, widths = self._lengths(self._counted)
            settings = (self._token_budget, self.seed, epoch, self._rank, self._world)
            self._plan = (epoch, BatchPlan(sources, targets, *settings, context_widths=widths))
        return self._plan[1]

    def lengths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Pieces of each source (with joined context) and target, and the padded width of other context; [N] each."""
        return self._lengths(self.context)

    def longest(self) -> tuple[int, int]:
        """Positions of the longest source (with joined context) and of the longest target, with EOS."""
        sources, targets, _ = self.lengths()
        return int(sources.max()) + 1, int(targets.max()) + 1

    def _lengths(self, use: ContextUse) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Lengths of sources and targets, and the padded width of their context; those of buckets are rounded up."""
        sources, targets = self.text.source_lengths, self.text.target_lengths
        joined, widths = sources, None
        if use.sentences:
            longest, total = self.text.context_lengths(_at_most(sources, use.longest), use.sentences, use.after)
            outputs = longest
            if use.outputs:
                outputs, _ = self.text.context_lengths(_at_most(targets, use.longest), use.sentences)
            if use.joined:
                joined = sources + total
            else:
                longest = np.maximum(longest, outputs)
                widths = (rounded(longest) if self._buckets else longest) * use.entries * (2 if use.outputs else 1)
        if self._buckets:
            wide = joined.astype(np.int64), targets.astype(np.int64)  # stored lengths have the smallest type
            joined, targets = (rounded(lengths + 1) - 1 for lengths in wide)  # + 1 for EOS
        return joined, targets, widths

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The epoch's batches on this rank, from batch number `start` on; skipping takes no time."""
        plan = self.plan(epoch)
        return (self._batch(plan[number], epoch) for number in range(start, len(plan)))

    def batch(self, epoch: int, number: int) -> Batch:
        """Batch `number` (from 0) of the epoch's plan."""
        return self._batch(self.plan(epoch)[number], epoch)

    def _batch(self, indices: np.ndarray, epoch: int) -> Batch:
        batch = self._collated(indices, epoch)
        return filled(batch, self._token_budget, min(self._room)) if self._buckets else batch

    def _collated(self, indices: np.ndarray, epoch: int) -> Batch:
        sources = [self._fitting(0, i, epoch) for i in indices]
        targets = [self._fitting(1, i, epoch) for i in indices]
        use = self.context
        if not use.sentences or use.joined:
            return collate(sources, targets, indices=indices)
        before = [self._rows_around(i) for i in indices]
        contexts = [self._context(0, rows, epoch) for rows in before]
        outputs = [self._context(1, rows, epoch) for rows in before] if use.outputs else None
        return collate(sources, targets, contexts, indices, outputs)

    def _rows_around(self, index: int) -> list[int | None]:
        return self.text.before(index, self.context.sentences) + self.text.after(index, self.context.after)

    def _fitting(self, side: int, index: int, epoch: int) -> Ids:
        """A sentence with the context that is joined to it; as stored where the sampled segmentation has no room."""
        ids = self._joined(side, index, epoch)
        return ids if len(ids) < self._room[side] else self._joined(side, index, None)

    def _joined(self, side: int, index: int, epoch: int | None) -> Ids:
        ids = self._segment(side, index, epoch)
        if side == 1 or not self.context.joined:
            return ids
        return prepend_context(ids, self._context(side, self._rows_around(index), epoch))

    def _context(self, side: int, rows: list[int | None], epoch: int | None) -> list[Ids | None]:
        # A sampled segmentation may be longer than the stored one, whose length was checked.
        return [None if i is None else self._segment(side, i, epoch)[: self.context.longest] for i in rows]

    def _segment(self, side: int, index: int, epoch: int | None) -> Ids:
        """A sentence in pieces, sampled in an epoch, without one as stored."""
        if self._sampling_alpha is None or self._vocabularies is None or epoch is None:
            return (self.text.source, self.text.target)[side](index)
        line = (self.text.source_text, self.text.target_text)[side](index)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch, index, side]))
        return self._vocabularies[side].sample(line, self._sampling_alpha, generator)


def _at_most(lengths: np.ndarray, most: int) -> np.ndarray:
    """Lengths [N] clipped to `most`, in their own type, which may be too small for that number."""
    return np.minimum(lengths, min(most, np.iinfo(lengths.dtype).max))


def _check_context(text: BinaryText, use: ContextUse) -> None:
    """Raise TextError if a text lacks the requested context."""
    if text.documents is None:
        raise TextError("context sentences need document ids, and this text has none: prepare it with `.docids`.")
    sides = [text.source_lengths, text.target_lengths] if use.outputs else [text.source_lengths]
    longest = max(int(side.max()) for side in sides)
    if longest > use.longest and not use.cut:
        raise TextError(
            f"{text.folder}: a sentence has {longest} pieces, and this system reads at most {use.longest} of a context "
            "sentence: give it a larger context_length or long_context=cut, or prepare with a smaller max_length."
        )
