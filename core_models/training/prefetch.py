"""Batches made ahead for a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import torch

from core_models.text.batches import Batch


def prefetched(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The same batches in their order; for a GPU each is made, and pinned, while the one before it is computed."""
    if device.type != "cuda":
        yield from batches
        return
    with ThreadPoolExecutor(1, "prefetch") as pool:
        upcoming = pool.submit(_next_pinned, batches)
        while (batch := upcoming.result()) is not None:
            upcoming = pool.submit(_next_pinned, batches)
            yield batch


def _next_pinned(batches: Iterator[Batch]) -> Batch | None:
    batch = next(batches, None)
    return None if batch is None else batch.pinned()
