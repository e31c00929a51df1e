"""Few shapes of batches: lengths are rounded up and batches filled up, so that a compiled step fits many of them.

The padded shape of a batch then depends on the token budget and on its rounded lengths alone. Sentences that fill a
batch up have one source word and no target word: they take part in no loss and in no gradient.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from core_models.text.batches import Batch, Context
from core_models.text.vocabulary import BOS, EOS

SMALLEST = 8


def rounded(sizes: np.ndarray | int) -> np.ndarray:
    """Sizes rounded up to 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, …: four an octave, at most a quarter larger."""
    sizes = np.maximum(np.asarray(sizes, dtype=np.int64), SMALLEST)
    step = 1 << np.maximum(np.ceil(np.log2(sizes)).astype(np.int64) - 3, 1)
    return -(-sizes // step) * step


def filled(batch: Batch, token_budget: int, positions: float = math.inf) -> Batch:
    """The batch with the shape of its bucket: rounded lengths, and as many sentences as the budget has room for.

    positions: the model's number of learned positions, past which no length is rounded up.
    """
    source, target = (_rounded_within(side.shape[1], positions) for side in (batch.source, batch.target))
    context, width = batch.context, max(source, target)
    if context is not None:
        context = _widened(context)
        width += sum(side[0].numel() for side in (context.words, context.outputs) if side is not None)
    room = token_budget // width
    rows = room if room >= len(batch) else len(batch) if len(batch) == 1 else int(rounded(len(batch)))
    more = rows - len(batch)
    grown = replace(
        batch,
        source=_padded(batch.source, source, more),
        source_mask=_padded(batch.source_mask, source, more),
        target_in=_padded(batch.target_in, target, more),
        target=_padded(batch.target, target, more),
        target_mask=_padded(batch.target_mask, target, more),
        indices=torch.nn.functional.pad(batch.indices, (0, more), value=-1),
        context=None if context is None else context.changed(lambda value: _with_rows(value, more)),
        sentences=len(batch),
    )
    grown.source[len(batch) :, 0], grown.source_mask[len(batch) :, 0] = EOS, True
    grown.target_in[len(batch) :, 0] = BOS
    return grown


def _rounded_within(length: int, positions: float) -> int:
    return max(length, int(min(int(rounded(length)), positions)))


def _padded(values: torch.Tensor, width: int, more: int) -> torch.Tensor:
    """Values [S, N] -> [S + more, width], with PAD (0) or False."""
    return torch.nn.functional.pad(values, (0, width - values.shape[1], 0, more))


def _with_rows(values: torch.Tensor, more: int) -> torch.Tensor:
    return torch.cat([values, values.new_zeros(more, *values.shape[1:])])


def _widened(context: Context) -> Context:
    """The context with rounded lengths [S, K, C]; all its words count as those of the longest sentence."""

    def widen(values: torch.Tensor) -> torch.Tensor:
        return values if values.dim() < 3 else _last_padded(values)

    wide = context.changed(widen)
    return replace(wide, longest=wide.words[0].numel())


def _last_padded(values: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, int(rounded(values.shape[-1])) - values.shape[-1]))
