"""One job over the processes that `torchrun` started: each does its share, the first one gathers, writes and speaks.

Whole batches are shared out, so that any number of processes gives the same bits. Knows processes and rows; nothing of
what is done with them. Without `torchrun` there is one process, the first.
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
    """How many processes share the work."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def own_device(device: str) -> str:
    """`cuda` is each process's own device where there are several; any other name is what it says."""
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" and world() > 1 else device


def over_ranks(
    batches: Sequence[list[int]],
    work: Callable[[list[int]], Iterable[Result]],
    step: Callable[[int, int], None] | None = None,
) -> dict[int, Result] | None:
    """work(rows) of every batch, shared over the ranks: row -> result on the first rank, None on the others.

    Batches are dealt whole, one by one: numbers depend in their last bits on what is computed together, and so any
    number of ranks gives the very same ones. step: is told (rows done, rows in all) of this rank's share.
    """
    own = batches[rank() :: world()]
    total = sum(map(len, own))
    found: dict[int, Result] = {}
    for rows in own:
        found.update(zip(rows, work(rows), strict=True))
        if step is not None:
            step(len(found), total)
    if world() == 1:
        return found
    import torch.distributed as distributed

    parts: list[Any] | None = [None] * world() if rank() == 0 else None
    distributed.gather_object(found, parts, group=_group())
    return None if parts is None else {row: one for part in parts for row, one in part.items()}


def wait() -> None:
    """Until all ranks are here: what the first one wrote can then be read."""
    if world() > 1:
        import torch.distributed as distributed

        distributed.barrier(group=_group())


def _group() -> Any:
    """The processes as a group that passes Python objects, which needs the CPU's backend."""
    import torch.distributed as distributed

    if not distributed.is_initialized():
        distributed.init_process_group("gloo", timeout=PATIENCE)
    if distributed.get_backend() == "gloo":
        return distributed.group.WORLD
    return distributed.new_group(backend="gloo", timeout=PATIENCE)
