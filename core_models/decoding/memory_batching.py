"""Batches of sentences of similar length that fit into memory, whatever is done with them."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

Result = TypeVar("Result")
CPU_ALLOCATOR = "DefaultCPUAllocator:"  # "can't allocate memory", or "not enough memory" on Windows


class TooLarge(MemoryError):
    """A single sentence does not fit into memory. row: its number; cause: the allocator's message."""

    def __init__(self, row: int, cause: str) -> None:
        super().__init__(cause)
        self.row, self.cause = row, cause


def batches(lengths: Sequence[int], budget: int, width: int) -> list[list[int]]:
    """Batches of rows of similar length, longest first, with sentences x width x longest length within the budget."""
    rows, planned = _longest_first(lengths), []
    while rows:
        planned.append(_first(rows, lengths, budget, width))
        rows = rows[len(planned[-1]) :]
    return planned


def _longest_first(lengths: Sequence[int]) -> list[int]:
    return sorted(range(len(lengths)), key=lambda row: -lengths[row])


def _first(rows: list[int], lengths: Sequence[int], budget: int, width: int) -> list[int]:
    """As many of the rows, longest first, as fit the budget; at least one."""
    return rows[: max(1, budget // (width * lengths[rows[0]]))]


class Capacity:
    """The batch size that fitted into memory so far, by kind of work; it only shrinks."""

    def __init__(self) -> None:
        self._budgets: dict[str, int] = {}
        self._logged: set[tuple[str, str]] = set()

    def run(
        self,
        work: str,
        lengths: Sequence[int],
        budget: int,
        width: int,
        function: Callable[[list[int]], Result],
    ) -> Iterator[tuple[list[int], Result]]:
        """Call function(rows) for batches that cover all sentences, longest first; yields each batch with its result.

        work: the kind of work, named in the log. A batch that runs out of memory is halved and tried again, and later
        batches stay within the size that fitted. Raises TooLarge if a single sentence does not fit.
        """
        rows = _longest_first(lengths)
        while rows:
            longest = lengths[rows[0]]
            batch = _first(rows, lengths, min(budget, self._budgets.get(work, budget)), width)
            try:
                result = function(batch)
            except RuntimeError as error:
                cause = out_of_memory(error)
            else:
                yield batch, result
                rows = rows[len(batch) :]
                continue
            # The tensors of the failed pass are only released outside `except`.
            release_memory()
            if len(batch) == 1:
                raise TooLarge(batch[0], cause)
            half = len(batch) // 2
            self._budgets[work] = half * width * longest
            self._say(work, cause, f"{len(batch)} sentences of up to {longest} pieces", half)

    def _say(self, work: str, cause: str, batch: str, half: int) -> None:
        kind = "CPU" if CPU_ALLOCATOR in cause else "CUDA"
        if (work, kind) in self._logged:
            return
        self._logged.add((work, kind))
        logging.getLogger(__name__).warning(
            "out of memory while %s %s: going on with %d at a time, and fewer where need be (%s)",
            work,
            batch,
            half,
            cause,
        )


def out_of_memory(error: RuntimeError) -> str:
    """The first line of the allocator's message; re-raises every other error."""
    if not isinstance(error, torch.OutOfMemoryError) and CPU_ALLOCATOR not in str(error):
        raise error
    return str(error).split("\n")[0]


def release_memory() -> None:
    """Release the tensors of a failed pass."""
    gc.collect()  # passes hold their tensors in cycles of closures
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
