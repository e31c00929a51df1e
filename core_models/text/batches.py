"""Batches by token budget: which sentences go together, and the tensors they become.

A plan is a pure function of lengths, budget, seed and epoch. Knows piece numbers and lengths. Knows nothing of files,
and segments text only by the vocabularies it is handed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from .parallel import TextError
from .vocabulary import BOS, EOS, PAD, Vocabulary

if TYPE_CHECKING:
    from .arrays import BinaryText

Ids = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Context:
    """The sentences before each sentence of a batch; position k on axis 1 is always the sentence k + 1 before."""

    words: torch.Tensor  # [S, K, C] int64: pieces, EOS, then PAD
    mask: torch.Tensor  # [S, K, C] bool: a piece or EOS stands here
    present: torch.Tensor  # [S, K] bool: there is such a sentence in the same document

    @property
    def distance(self) -> torch.Tensor:
        """[K] int64: 1 … K, how many sentences before."""
        return torch.arange(1, self.words.shape[1] + 1, device=self.words.device)

    def to(self, device: torch.device | str) -> Context:
        return Context(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))


@dataclass(frozen=True)
class Batch:
    """Sentences side by side. Without targets the target tensors have T = 0."""

    source: torch.Tensor  # [S, I] int64: pieces, EOS, then PAD
    source_mask: torch.Tensor  # [S, I] bool
    target_in: torch.Tensor  # [S, T] int64: BOS, y_1, …, then PAD
    target: torch.Tensor  # [S, T] int64: y_1, …, EOS, then PAD
    target_mask: torch.Tensor  # [S, T] bool: of target_in and of target
    indices: torch.Tensor  # [S] int64: which sentences of the text
    context: Context | None
    source_tokens: int  # real ones, EOS included
    target_tokens: int

    def __len__(self) -> int:
        return self.source.shape[0]

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        moved = {
            field.name: value.to(device, non_blocking=True)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), torch.Tensor)
        }
        return replace(self, **moved, context=None if self.context is None else self.context.to(device))


def collate(
    sources: Sequence[Ids],
    targets: Sequence[Ids] | None = None,
    contexts: Sequence[Sequence[Ids | None]] | None = None,
    indices: Sequence[int] | np.ndarray | None = None,
) -> Batch:
    """Pad piece numbers (without BOS and EOS) to a batch.

    contexts: for each sentence K entries, entry k the pieces of the sentence k + 1 before, or None where there is none.
    """
    for what, given in (("targets", targets), ("contexts", contexts), ("indices", indices)):
        if given is not None and len(given) != len(sources):
            raise TextError(f"collate: {len(sources)} sources but {len(given)} {what}; need one for each.")
    source, source_mask, _ = _pad(sources)
    target, target_mask, target_in = _pad(targets) if targets is not None else _no_words(len(sources))
    numbers = np.arange(len(sources)) if indices is None else np.array(indices)
    return Batch(
        source=torch.from_numpy(source),
        source_mask=torch.from_numpy(source_mask),
        target_in=torch.from_numpy(target_in),
        target=torch.from_numpy(target),
        target_mask=torch.from_numpy(target_mask),
        indices=torch.from_numpy(numbers.astype(np.int64)),
        context=None if contexts is None else _collate_context(contexts),
        source_tokens=int(source_mask.sum()),
        target_tokens=int(target_mask.sum()),
    )


def _pad(sentences: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words that end in EOS, where they are real, and the same words shifted behind BOS: each [S, longest + 1]."""
    lengths = np.fromiter((len(ids) for ids in sentences), dtype=np.int64, count=len(sentences))
    pieces = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sentences]) if len(sentences) else lengths
    positions = np.arange(lengths.max(initial=0) + 1)
    before_end = positions < lengths[:, None]
    words = np.full(before_end.shape, PAD, dtype=np.int64)
    words[before_end] = pieces
    words[np.arange(len(words)), lengths] = EOS
    shifted = np.full_like(words, PAD)
    shifted[:, 0] = BOS
    shifted[:, 1:][before_end[:, :-1]] = pieces
    return words, positions <= lengths[:, None], shifted


def _no_words(sentences: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    words = np.empty((sentences, 0), dtype=np.int64)
    return words, words.astype(bool), words


def _collate_context(contexts: Sequence[Sequence[Ids | None]]) -> Context:
    reach = len(contexts[0])
    if any(len(entries) != reach for entries in contexts):
        raise TextError("collate: every sentence needs the same number of context entries; None where there is none.")
    entries = [ids for sentence in contexts for ids in sentence]
    present = np.array([ids is not None for ids in entries], dtype=bool)
    words, mask, _ = _pad([() if ids is None else ids for ids in entries])
    words[~present], mask[~present] = PAD, False
    return Context(
        words=torch.from_numpy(words.reshape(len(contexts), reach, -1)),
        mask=torch.from_numpy(mask.reshape(len(contexts), reach, -1)),
        present=torch.from_numpy(present.reshape(len(contexts), reach)),
    )


class BatchPlan:
    """Which sentences make up each batch of one epoch, on one rank.

    source_lengths, target_lengths: [N] pieces without EOS. token_budget bounds max(S·I, S·T), EOS included; a sentence
    that is longer alone is a batch of its own. Every sentence occurs, and once: ranks get equally many batches because
    the largest are halved until the number divides. Only where every batch is down to one sentence is the number made
    up by batches that occur twice in the epoch. `plan[i]` costs the same for every i.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        token_budget: int,
        seed: int,
        epoch: int,
        rank: int = 0,
        world: int = 1,
        max_sentences: int | None = None,
    ) -> None:
        if len(source_lengths) != len(target_lengths) or len(source_lengths) == 0:
            raise TextError(
                f"{len(source_lengths)} source and {len(target_lengths)} target lengths: need one each, at least one."
            )
        if token_budget < 1 or not 0 <= rank < world or (max_sentences is not None and max_sentences < 1):
            raise TextError(
                f"token_budget={token_budget}, rank={rank}, world={world}, max_sentences={max_sentences}: "
                "the budget and max_sentences are at least 1 and the rank is below the world."
            )
        random = np.random.PCG64([seed, epoch])  # raw draws: NumPy keeps them the same from version to version
        self._order = _sorted_by_length(source_lengths, target_lengths, random)
        longest = np.maximum(source_lengths, target_lengths)[self._order]
        # A first batch of random size moves all the cuts of the epoch.
        first = token_budget - int(random.random_raw()) % (token_budget // 2 + 1)
        starts = _cut(longest, token_budget, first, max_sentences or len(longest))
        starts = _halve_largest(starts, world)
        self._starts, self._ends = starts[:-1], starts[1:]
        shuffled = np.argsort(random.random_raw(len(self._starts)), kind="stable")
        shuffled = np.resize(shuffled, -(-len(shuffled) // world) * world)  # repeats only what could not be halved
        self._mine = shuffled[rank::world]

    def __len__(self) -> int:
        return len(self._mine)

    def __getitem__(self, number: int) -> np.ndarray:
        """[S] int64: the sentences of this rank's batch `number`."""
        batch = self._mine[number]
        return self._order[self._starts[batch] : self._ends[batch]].astype(np.int64)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))


_LENGTH_BITS = 12
_CHUNK = 1 << 18  # sentences whose keys are made at once: 12 MB beside the keys


def _sorted_by_length(source_lengths: np.ndarray, target_lengths: np.ndarray, random: np.random.PCG64) -> np.ndarray:
    """Sentence numbers, sentences of like lengths side by side: by source, within it by target, ties at random.

    Each sentence is one 64-bit key (source | target | random | number) that is sorted in place: eight bytes a sentence.
    Lengths are jittered and paired, so that an epoch's neighbours differ from the last one's; on Multi30k this costs
    four percent of padding and leaves one pair of batch mates in ten together instead of one in two.
    """
    size = len(source_lengths)
    number_bits = max(1, (size - 1).bit_length())
    random_bits = 64 - 2 * _LENGTH_BITS - number_bits
    highest = (1 << _LENGTH_BITS) - 1
    keys = np.empty(size, dtype=np.uint64)
    for start in range(0, size, _CHUNK):
        chunk = slice(start, min(start + _CHUNK, size))
        draws = random.random_raw(chunk.stop - chunk.start)
        sources = np.minimum(source_lengths[chunk].astype(np.uint64) + (draws & 1), highest) >> 1
        targets = np.minimum(target_lengths[chunk].astype(np.uint64) + (draws >> 1 & 1), highest)
        # Up and down in turn, so that a batch that reaches into the next source length meets targets of its own length.
        targets = np.where(sources & 1, highest - targets, targets)
        numbers = np.arange(chunk.start, chunk.stop, dtype=np.uint64)
        keys[chunk] = (sources << _LENGTH_BITS | targets) << (64 - 2 * _LENGTH_BITS)
        keys[chunk] |= (draws >> (64 - random_bits)) << number_bits | numbers
    keys.sort()
    keys &= np.uint64((1 << number_bits) - 1)
    return keys.astype(np.min_scalar_type(size))


def _cut(longest: np.ndarray, budget: int, first_budget: int, most: int) -> np.ndarray:
    """Cut the sorted sentences into batches; returns where each begins, and the end. One step a batch."""
    starts, size = [0], len(longest)
    counts = np.arange(1, min(most, budget, size) + 1)
    while starts[-1] < size:
        allowed = budget if len(starts) > 1 else first_budget
        start = starts[-1]
        # + 1 for EOS. No batch holds more sentences than the first one's length allows.
        reach = min(most, max(1, allowed // (int(longest[start]) + 1)))
        widths = np.maximum.accumulate(longest[start : start + reach].astype(np.int64) + 1)
        fitting = np.searchsorted(widths * counts[: len(widths)], allowed, side="right")
        starts.append(start + max(1, int(fitting)))
    return np.array(starts)


def _halve_largest(starts: np.ndarray, world: int) -> np.ndarray:
    """Halve the batches with most sentences until their number divides by `world` or each holds one sentence."""
    while missing := -(len(starts) - 1) % world:
        sizes = np.diff(starts)
        largest = np.argsort(-sizes, kind="stable")[:missing]
        largest = largest[sizes[largest] > 1]
        if len(largest) == 0:
            break
        starts = np.sort(np.concatenate([starts, starts[largest] + sizes[largest] // 2]))
    return starts


class BatchLoader:
    """The batches of a binarised text, epoch after epoch, as tensors on the CPU.

    With `sampling_alpha` each sentence is segmented anew from its text, drawn from (seed, epoch, sentence) alone; the
    plan keeps to the stored lengths, so such a batch may exceed the budget by what its draws are longer.
    context_sentences: K, how many sentences before each one come along; never across a document boundary.
    """

    def __init__(
        self,
        text: BinaryText,
        token_budget: int,
        seed: int = 1,
        rank: int = 0,
        world: int = 1,
        max_sentences: int | None = None,
        vocabularies: tuple[Vocabulary, Vocabulary] | None = None,
        sampling_alpha: float | None = None,
        nbest: int = 64,
        context_sentences: int = 0,
    ) -> None:
        if sampling_alpha is not None and vocabularies is None:
            raise TextError("subword sampling needs vocabularies=(source, target) to segment with.")
        if context_sentences and text.documents is None:
            raise TextError("context sentences need document ids, and this text has none: prepare it with `.docids`.")
        self.text, self.seed, self.context_sentences = text, seed, context_sentences
        self._token_budget, self._rank, self._world, self._max_sentences = token_budget, rank, world, max_sentences
        self._vocabularies, self._sampling_alpha, self._nbest = vocabularies, sampling_alpha, nbest
        self._plan: tuple[int, BatchPlan] | None = None

    def plan(self, epoch: int) -> BatchPlan:
        """The epoch's plan; the last one asked for is kept."""
        if self._plan is None or self._plan[0] != epoch:
            self._plan = None  # two plans of a large corpus need not be in memory at once
            lengths = self.text.source_lengths, self.text.target_lengths
            plan = BatchPlan(
                *lengths, self._token_budget, self.seed, epoch, self._rank, self._world, self._max_sentences
            )
            self._plan = (epoch, plan)
        return self._plan[1]

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The epoch's batches on this rank, from batch number `start` on; what was skipped costs nothing."""
        plan = self.plan(epoch)
        return (self._batch(plan[number], epoch) for number in range(start, len(plan)))

    def _batch(self, indices: np.ndarray, epoch: int) -> Batch:
        return collate(
            [self._segment(0, i, epoch) for i in indices],
            [self._segment(1, i, epoch) for i in indices],
            [self._context(i, epoch) for i in indices] if self.context_sentences else None,
            indices,
        )

    def _context(self, index: int, epoch: int) -> list[Ids | None]:
        before = self.text.before(index, self.context_sentences)
        return [None if i is None else self._segment(0, i, epoch) for i in before]

    def _segment(self, side: int, index: int, epoch: int) -> Ids:
        if self._sampling_alpha is None or self._vocabularies is None:
            return (self.text.source, self.text.target)[side](index)
        line = (self.text.source_text, self.text.target_text)[side](index)
        generator = np.random.Generator(np.random.PCG64([self.seed, epoch, index, side]))
        return self._vocabularies[side].sample(line, self._sampling_alpha, generator, self._nbest)
