"""Plans of batches within a token budget.

A plan is a pure function of lengths, budget, seed and epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .parallel import TextError


class BatchPlan:
    """The batches of sentences of one epoch on one rank.

    source_lengths, target_lengths: [N] pieces without EOS. token_budget bounds max(S·I, S·T) with EOS, and with
    context_widths [N] (padded pieces of context per sentence) that plus S·W, where W is their maximum. A sentence above
    the budget is a batch by itself. Every sentence occurs exactly once: the largest batches are halved until all ranks
    have equally many. Only if every batch has one sentence, batches are repeated within the epoch. `plan[i]` takes
    constant time.
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
        context_widths: np.ndarray | None = None,
    ) -> None:
        if len(source_lengths) != len(target_lengths) or len(source_lengths) == 0:
            raise TextError(
                f"{len(source_lengths)} source and {len(target_lengths)} target lengths: need one each, at least one."
            )
        if token_budget < 1 or not 0 <= rank < world:
            raise TextError(
                f"token_budget={token_budget}, rank={rank}, world={world}: the budget is at least 1 and the rank is "
                "below the world."
            )
        random = np.random.PCG64([seed, epoch])  # raw draws, which are the same in all versions of NumPy
        # Source and target have similar lengths; those of context are independent.
        second = target_lengths if context_widths is None else context_widths
        self._order = _sorted_by_length(source_lengths, second, random)
        longest = np.maximum(source_lengths, target_lengths)[self._order]
        contexts = None if context_widths is None else context_widths[self._order]
        # A first batch of random size shifts all the cuts of the epoch.
        first = token_budget - int(random.random_raw()) % (token_budget // 2 + 1)
        starts = _cut(longest, contexts, token_budget, first)
        starts = _halve_largest(starts, world)
        self._starts, self._ends = starts[:-1], starts[1:]
        shuffled = np.argsort(random.random_raw(len(self._starts)), kind="stable")
        shuffled = np.resize(shuffled, -(-len(shuffled) // world) * world)  # repeats batches only if none can be halved
        self._mine = shuffled[rank::world]

    def __len__(self) -> int:
        return len(self._mine)

    def __getitem__(self, number: int) -> np.ndarray:
        """The sentences of this rank's batch `number`: [S] int64."""
        batch = self._mine[number]
        return self._order[self._starts[batch] : self._ends[batch]].astype(np.int64)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))


_LENGTH_BITS = 12
_CHUNK = 1 << 18  # sentences whose keys are computed at once: 12 MB besides the keys


def _sorted_by_length(source_lengths: np.ndarray, target_lengths: np.ndarray, random: np.random.PCG64) -> np.ndarray:
    """Sentence numbers sorted by source length, then target length, ties at random.

    Each sentence is one 64-bit key (source | target | random | number) that is sorted in place: eight bytes per
    sentence. Lengths are jittered and paired, so that neighbors change between epochs; on Multi30k this costs four
    percent of padding, and one pair of sentences in ten stays in one batch instead of one in two.
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
        # Alternately ascending and descending, so that a batch across two source lengths has similar target lengths.
        targets = np.where(sources & 1, highest - targets, targets)
        numbers = np.arange(chunk.start, chunk.stop, dtype=np.uint64)
        keys[chunk] = (sources << _LENGTH_BITS | targets) << (64 - 2 * _LENGTH_BITS)
        keys[chunk] |= (draws >> (64 - random_bits)) << number_bits | numbers
    keys.sort()
    keys &= np.uint64((1 << number_bits) - 1)
    return keys.astype(np.min_scalar_type(size))


def _cut(longest: np.ndarray, contexts: np.ndarray | None, budget: int, first_budget: int) -> np.ndarray:
    """Cut the sorted sentences into batches, one step per batch; returns the start of each, and the end.

    The width of a batch is its longest sentence plus the widest of its `contexts`.
    """
    starts, size = [0], len(longest)
    counts = np.arange(1, min(budget, size) + 1)
    while starts[-1] < size:
        allowed = budget if len(starts) > 1 else first_budget
        start = starts[-1]
        # + 1 for EOS. No batch holds more sentences than the first one's length allows.
        reach = max(1, allowed // (int(longest[start]) + 1))
        widths = np.maximum.accumulate(longest[start : start + reach].astype(np.int64) + 1)
        if contexts is not None:
            widths += np.maximum.accumulate(contexts[start : start + reach].astype(np.int64))
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
