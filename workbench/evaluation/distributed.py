"""Distribution of work over the processes of `torchrun`: each does its share, the first gathers and writes.

Batches are never split, so that any number of processes gives the same bits. Knows processes and rows, not what is
computed for them. Without `torchrun` there is one process, the first.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")
# Ranks wait for the slowest share; where one dies, torchrun ends the others.
PATIENCE = datetime.timedelta(days=7)


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def world() -> int:
    """The number of processes that share the work."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_device(device: str) -> str:
    """The device of this process: for `cuda` each process gets its own; `auto` is `cuda` where there is a GPU."""
    if device == "auto":
        from core_models.devices import resolved

        device = resolved(device)
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" and world() > 1 else device


def over_ranks(
    batches: Sequence[list[int]],
    work: Callable[[list[int]], Iterable[Result]],
    step: Callable[[int, int], None] | None = None,
) -> dict[int, Result] | None:
    """Call `work` for every batch, shared over the ranks: row -> result on the first rank, None on the others.

    Batches are assigned round-robin and never split: the last bits of numbers depend on the batch, and so any number
    of ranks gives the same results. step: called with (rows done, rows in all) of this rank's share.
    """
    share = batches[rank() :: world()]
    total = sum(map(len, share))
    results: dict[int, Result] = {}
    for rows in share:
        results.update(zip(rows, work(rows), strict=True))
        if step is not None:
            step(len(results), total)
    if world() == 1:
        return results
    import torch.distributed as distributed

    parts: list[Any] | None = [None] * world() if rank() == 0 else None
    distributed.gather_object(results, parts, group=_group())
    return None if parts is None else {row: result for part in parts for row, result in part.items()}


def wait() -> None:
    """Wait for all ranks; files written by the first can be read afterwards."""
    if world() > 1:
        import torch.distributed as distributed

        distributed.barrier(group=_group())


def _group() -> Any:
    """A process group for passing Python objects, which needs the CPU backend."""
    import torch.distributed as distributed

    if not distributed.is_initialized():
        distributed.init_process_group("gloo", timeout=PATIENCE)
    if distributed.get_backend() == "gloo":
        return distributed.group.WORLD
    return distributed.new_group(backend="gloo", timeout=PATIENCE)
