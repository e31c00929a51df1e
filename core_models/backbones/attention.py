"""Multi-head attention for forced passes and for steps: weights only when a trace asks for them.

Knows tensors and masks, nothing of encoders, decoders or beams. Masks are boolean, True = may be attended.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Scaled dot-product attention: query [B, H, N, e], key and value [B, H, M, e] -> [B, H, N, e].

    mask broadcasts to [B, H, N, M]. With `weights` the distribution [B, H, N, M] is returned too, computed in the open;
    otherwise PyTorch's fused kernel does the work. A query that may attend nowhere gets zeros in both.
    """
    if not weights:
        fused = nn.functional.scaled_dot_product_attention(query, key, value, mask, dropout, is_causal=causal)
        return fused, None
    energy = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if causal:
        allowed = torch.ones(energy.shape[-2:], dtype=torch.bool, device=energy.device).tril()
        mask = allowed if mask is None else mask & allowed
    if mask is not None:
        energy = energy.masked_fill(~mask, float("-inf"))
        energy = energy.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    share = torch.softmax(energy, dim=-1)
    if mask is not None:
        share = share * mask
    return nn.functional.dropout(share, dropout) @ value, share


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, N, d] -> [B, H, N, d / H]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """[B, H, N, e] -> [B, N, H e]."""
    return x.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Self-attention with one projection for queries, keys and values (Vaswani 2017, section 3.2.2)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool, weights: bool) -> tuple[Tensor, Tensor | None]:
        """x [S, N, d]; mask [S, N] of real positions -> [S, N, d] and, if asked, weights [S, H, N, N].

        A causal pass needs no mask: padding stands on the right, where no real position looks.
        """
        query, key, value = (split_heads(part, self.heads) for part in self.project(x).chunk(3, dim=-1))
        seen = None if mask is None else mask[:, None, None, :]
        mixed, share = attend(query, key, value, seen, causal, self.dropout if self.training else 0.0, weights)
        return self.output(join_heads(mixed)), share

    def step(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """One position of every hypothesis: x [R, d]; cache [R, capacity, 2, d], written in place at `position`."""
        query, memory = self.project(x).split([x.shape[-1], 2 * x.shape[-1]], dim=-1)
        cache[:, position] = memory.unflatten(-1, (2, -1))
        key, value = (split_heads(cache[:, : position + 1, part], self.heads) for part in (0, 1))
        mixed, _ = attend(split_heads(query[:, None], self.heads), key, value)
        return self.output(join_heads(mixed)[:, 0])


class CrossAttention(nn.Module):
    """Attention from target positions (or beams) to a memory whose keys and values are made once per sentence."""

    def __init__(self, width: int, memory_width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(memory_width, 2 * width)
        self.output = nn.Linear(width, width)

    def keys_and_values(self, memory: Tensor) -> Tensor:
        """[S, I, d] -> [S, 2, H, I, d / H]."""
        projected = self.memory(memory).unflatten(-1, (2, self.heads, -1))  # [S, I, 2, H, e]
        return projected.permute(0, 2, 3, 1, 4).contiguous()

    def forward(self, x: Tensor, keys_and_values: Tensor, mask: Tensor, weights: bool) -> tuple[Tensor, Tensor | None]:
        """x [S, N, d], mask [S, I] -> [S, N, d] and, if asked, weights [S, H, N, I]; N may be beams, sharing keys."""
        key, value = keys_and_values.unbind(1)
        dropout = self.dropout if self.training else 0.0
        mixed, share = attend(
            split_heads(self.query(x), self.heads), key, value, mask[:, None, None, :], False, dropout, weights
        )
        return self.output(join_heads(mixed)), share
