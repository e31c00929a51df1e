"""The vocabulary head: log-partition of every prediction in one fused pass, everything else as dot products.

log P(y) = u . E[y] - log sum_v exp(u . E[v]). Only the last term needs the whole vocabulary, so the one expensive
function here is `log_partition`; the logit of a word, of a bag of words (a cumulative sum of embeddings) or the mean
logit of label smoothing is a dot product with an embedding row and needs no [positions, V] tensor.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Logits that training keeps for its backward pass, in numbers; above it they are computed a second time, in chunks.
KEPT_LOGITS = 1 << 27


class _LogPartition(torch.autograd.Function):
    """log sum exp of vectors @ matrix.T + bias along the vocabulary, keeping at most KEPT_LOGITS numbers."""

    @staticmethod
    def forward(ctx, vectors: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
        rows = max(1, min(len(vectors), KEPT_LOGITS // len(matrix)))
        keep = len(vectors) <= rows and any(ctx.needs_input_grad)
        parts, energies = [], vectors.new_empty(0)
        for chunk in vectors.split(rows):
            energies = logits(chunk, matrix, bias)
            parts.append(torch.logsumexp(energies, dim=-1))
        partition = (
            torch.cat(parts) if parts else vectors.new_empty(0, dtype=torch.promote_types(vectors.dtype, torch.float32))
        )
        ctx.rows, ctx.biased = rows, bias is not None
        ctx.save_for_backward(vectors, matrix, bias, partition, energies if keep else None)
        return partition

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        vectors, matrix, bias, partition, kept = ctx.saved_tensors
        grad_vectors = torch.empty_like(vectors)
        grad_matrix = torch.zeros_like(matrix)
        grad_bias = torch.zeros_like(bias) if ctx.biased else None
        for start in range(0, len(vectors), ctx.rows):
            part = slice(start, start + ctx.rows)
            energies = logits(vectors[part], matrix, bias) if kept is None else kept
            share = energies.sub_(partition[part, None]).exp_().mul_(grad[part, None])  # the softmax, scaled  [n, V]
            low = share.to(vectors.dtype)
            torch.mm(low, matrix.to(low.dtype), out=grad_vectors[part])
            grad_matrix += low.t() @ vectors[part]
            if grad_bias is not None:
                grad_bias += share.sum(0)
        return grad_vectors, grad_matrix, grad_bias


def logits(vectors: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """Logits over the vocabulary: vectors [..., d], matrix [V, d] -> [..., V], never below float32."""
    energies = torch.nn.functional.linear(vectors, matrix.to(vectors.dtype))
    energies = energies.to(torch.promote_types(energies.dtype, torch.float32))
    return energies if bias is None else energies + bias


def log_partition(vectors: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """log sum_v exp(vectors . matrix[v] + bias[v]): vectors [P, d], matrix [V, d] -> [P], never below float32.

    Under autocast the product runs in the autocast type; the sum over the vocabulary does not.
    """
    device = vectors.device.type
    if torch.is_autocast_enabled(device):
        vectors = vectors.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        return _LogPartition.apply(vectors, matrix, bias)


def word_logits(vectors: Tensor, matrix: Tensor, words: Tensor, bias: Tensor | None = None) -> Tensor:
    """The logit of one word per position: vectors [P, d], words [P] -> [P], never below float32."""
    wide = torch.promote_types(vectors.dtype, torch.float32)
    chosen = (vectors.to(wide) * torch.nn.functional.embedding(words, matrix).to(wide)).sum(-1)
    return chosen if bias is None else chosen + bias[words]
