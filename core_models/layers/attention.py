"""Multi-head attention for forced passes and for steps; weights are returned only for traces.

Masks are boolean, True = may be attended.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from core_models.layers.dropout import dropout as drop

# PyTorch prefers cuDNN on recent GPUs, whose gradients of masked attention have been NaN (pytorch#196678).
torch.backends.cuda.enable_cudnn_sdp(False)
# Finite, so that a fully masked query has no NaN; so far below any energy that masked keys have weight 0.
NOWHERE = -1e30
HeadsHook = Callable[[Tensor], Tensor]  # what becomes of the heads' outputs [B, N, H, e] before the output map


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    need_weights: bool = False,
    may_be_empty: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot-product attention: query [B, H, N, e], key and value [B, H, M, e] -> [B, H, N, e].

    mask broadcasts to [B, H, N, M]. With `need_weights` the distribution [B, H, N, M] is computed explicitly and
    returned too; otherwise PyTorch's fused kernel is used, except with dropout on a CPU, where it has none.
    may_be_empty: a query may have no key at all; it gets zeros in both. Fused kernels are never given such a row, since
    not all of them have an answer to it.
    """
    if not need_weights and not (dropout and query.device.type == "cpu"):
        if mask is not None and may_be_empty:
            fused = nn.functional.scaled_dot_product_attention(query, key, value, never_empty(mask), dropout)
            return fused * mask.any(-1, keepdim=True), None
        fused = nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout, is_causal=causal)
        return fused, None
    energy = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    if causal:
        allowed = torch.ones(energy.shape[-2:], dtype=torch.bool, device=energy.device).tril()
        mask = allowed if mask is None else mask & allowed
    if mask is not None:
        energy = energy + torch.where(mask, 0.0, NOWHERE).to(energy.dtype)
    weights = torch.softmax(energy, dim=-1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return drop(weights, dropout) @ value, weights


def never_empty(mask: Tensor) -> Tensor:
    """The mask [..., M] with all keys shown where none is."""
    return mask | ~mask.any(-1, keepdim=True)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the width into heads: [B, N, d] -> [B, H, N, d / H]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Concatenate the heads: [B, H, N, e] -> [B, N, H e]."""
    return x.transpose(1, 2).flatten(2)


def aggregated(x: Tensor, output: nn.Module | None, heads_hook: HeadsHook | None) -> Tensor:
    """Concatenate the heads, changed by `heads_hook`, and map them: [B, H, N, e] -> [B, N, d].

    output: None in an attention whose map a mechanism replaces.
    """
    joined = join_heads(x) if heads_hook is None else heads_hook(x.transpose(1, 2)).flatten(2)
    return joined if output is None else output(joined)


class SelfAttention(nn.Module):
    """Self-attention with one projection for queries, keys and values (Vaswani 2017, section 3.2.2)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(
        self, x: Tensor, mask: Tensor | None, causal: bool, need_weights: bool, heads_hook: HeadsHook | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Attend within x [S, N, d], mask [S, N] of real positions -> [S, N, d] and weights [S, H, N, N] or None.

        A causal pass needs no mask: padding is on the right, which no real position attends to.
        """
        query, key, value = (split_heads(part, self.heads) for part in self.project(x).chunk(3, dim=-1))
        seen = None if mask is None else mask[:, None, None, :]
        mixed, weights = attend(query, key, value, seen, causal, self.dropout if self.training else 0.0, need_weights)
        return aggregated(mixed, self.output, heads_hook), weights

    def step(
        self, x: Tensor, slots: Tensor, places: int | Tensor, seen: Tensor, heads_hook: HeadsHook | None = None
    ) -> Tensor:
        """One position of K hypotheses per sentence: x [S, K, d] -> [S, K, d].

        slots [S, 2, H, capacity, e]: keys and values, of which K are filled here: those after the first `places`, or
        the places of a tensor [K], so that no shape depends on the position. seen: the slots of a hypothesis's past,
        [S, K, places + K], or [S, K, capacity].
        """
        query, key, value = (split_heads(part, self.heads) for part in self.project(x).chunk(3, dim=-1))
        if isinstance(places, int):
            filled = slots[:, :, :, : places + x.shape[1]]
            filled[:, 0, :, places:], filled[:, 1, :, places:] = key, value
        else:
            filled = slots.index_copy_(3, places, torch.stack([key, value], 1).to(slots.dtype))
        mixed, _ = attend(query, filled[:, 0], filled[:, 1], seen[:, None])
        return aggregated(mixed, self.output, heads_hook)


class CrossAttention(nn.Module):
    """Attention from target positions (or beams) to a memory whose keys and values are computed once per sentence."""

    def __init__(self, width: int, memory_width: int, heads: int, dropout: float, may_be_empty: bool = False) -> None:
        """may_be_empty: a memory may be masked as a whole; what is read of it is zero."""
        super().__init__()
        self.heads, self.dropout, self.may_be_empty = heads, dropout, may_be_empty
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(memory_width, 2 * width)
        self.output = nn.Linear(width, width)

    def keys_and_values(self, memory: Tensor) -> Tensor:
        """Keys and values of a memory: [S, I, d] -> [S, 2, H, I, d / H]."""
        projected = self.memory(memory).unflatten(-1, (2, self.heads, -1))  # [S, I, 2, H, e]
        return projected.permute(0, 2, 3, 1, 4).contiguous()

    def forward(
        self, x: Tensor, keys_and_values: Tensor, mask: Tensor, need_weights: bool, heads_hook: HeadsHook | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from x [S, N, d] (positions or beams), mask [S, I] -> [S, N, d] and weights [S, H, N, I] or None."""
        key, value = keys_and_values.unbind(1)
        dropout = self.dropout if self.training else 0.0
        query, seen = split_heads(self.query(x), self.heads), mask[:, None, None, :]
        mixed, weights = attend(query, key, value, seen, False, dropout, need_weights, self.may_be_empty)
        return aggregated(mixed, self.output, heads_hook), weights
