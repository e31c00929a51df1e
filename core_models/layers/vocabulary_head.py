"""The vocabulary head: the log-partition of all predictions in one fused pass, everything else as dot products.

log P(y) = u . E[y] - log sum_v exp(u . E[v]). Only the last term needs the whole vocabulary, so the one expensive
function here is `log_partition`; the logit of a word, of a bag of words (a cumulative sum of embeddings) or the mean
logit of label smoothing is a dot product with an embedding row and needs no [positions, V] tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from core_models.layers.precision import wide, widened

# Logits that training keeps for its backward pass; more are recomputed in chunks.
KEPT_LOGITS = 1 << 27
# On a CPU a chunk of logits stays in the cache while it is computed, exponentiated and summed.
CACHED_LOGITS = 1 << 20


class _LogPartition(torch.autograd.Function):
    """Log-sum-exp of vectors @ matrix.T + bias over the vocabulary, keeping at most KEPT_LOGITS numbers.

    Keeps exp(logit - row maximum), in the type of the vectors. The softmax is that divided by the row's sum; the
    backward pass divides on the [P, d] side of both products, never on [P, V].
    """

    @staticmethod
    def forward(ctx, vectors: Tensor, matrix: Tensor, bias: Tensor | None, differentiable: bool) -> Tensor:
        # `needs_input_grad` ignores no_grad, and gradients are always off in this function.
        keep = differentiable and any(ctx.needs_input_grad) and vectors.shape[0] * len(matrix) <= KEPT_LOGITS
        kept_powers = vectors.new_empty(len(vectors), len(matrix)) if keep else None
        accumulated = widened(vectors.dtype)
        largest, sums = vectors.new_empty(2, len(vectors), dtype=accumulated)
        for part in _chunks(vectors, matrix):
            out = kept_powers[part] if kept_powers is not None and kept_powers.dtype == accumulated else None
            powers, largest[part] = _powers(vectors[part], matrix, bias, out)
            torch.sum(powers, dim=-1, out=sums[part])
            if kept_powers is not None and out is None:
                kept_powers[part] = powers
        ctx.save_for_backward(vectors, matrix, bias, sums, kept_powers)
        return largest + sums.log()

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        vectors, matrix, bias, sums, kept_powers = ctx.saved_tensors
        weight = grad / sums  # [P]
        weighted = vectors * weight[:, None].to(vectors.dtype)
        low = matrix.to(vectors.dtype)
        if kept_powers is not None:
            grad_vectors = (kept_powers @ low) * weight[:, None]
            grad_bias = None if bias is None else (weight.to(kept_powers.dtype) @ kept_powers).to(bias.dtype)
            return grad_vectors.to(vectors.dtype), (kept_powers.t() @ weighted).to(matrix.dtype), grad_bias, None
        grad_vectors, grad_matrix = torch.empty_like(vectors), torch.zeros_like(matrix)
        grad_bias = None if bias is None else torch.zeros_like(bias)
        for part in _chunks(vectors, matrix):
            powers = _powers(vectors[part], matrix, bias)[0].to(vectors.dtype)
            grad_vectors[part] = (powers @ low) * weight[part, None]
            grad_matrix += powers.t() @ weighted[part]
            if grad_bias is not None:
                grad_bias += weight[part].to(powers.dtype) @ powers
        return grad_vectors, grad_matrix, grad_bias, None


def _chunks(vectors: Tensor, matrix: Tensor) -> Iterator[slice]:
    """Slices of rows whose logits are in memory at once."""
    limit = CACHED_LOGITS if vectors.device.type == "cpu" else KEPT_LOGITS
    rows = max(1, limit // len(matrix))
    return (slice(start, start + rows) for start in range(0, len(vectors), rows))


def _powers(vectors: Tensor, matrix: Tensor, bias: Tensor | None, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The powers exp(logit - row maximum) [n, V] and the maxima [n]; written into `out` if given."""
    if out is None:
        energies = logits(vectors, matrix, bias)
    elif bias is None:
        energies = torch.mm(vectors, matrix.t(), out=out)
    else:
        energies = torch.addmm(bias, vectors, matrix.t(), out=out)
    largest = energies.amax(-1)
    return energies.sub_(largest[:, None]).exp_(), largest


def logits(vectors: Tensor, matrix: Tensor, bias: Tensor | None = None, cap: float | None = None) -> Tensor:
    """Logits over the vocabulary: vectors [..., d], matrix [V, d] -> [..., V], never below float32.

    cap: what they are softly capped at before the bias is added, cap tanh(logit / cap).
    """
    energies = torch.nn.functional.linear(vectors, matrix.to(vectors.dtype))
    energies = _capped(energies.to(widened(energies.dtype)), cap)
    return energies if bias is None else energies + bias


def _capped(energies: Tensor, cap: float | None) -> Tensor:
    return energies if cap is None else cap * torch.tanh(energies / cap)


def log_partition(vectors: Tensor, matrix: Tensor, bias: Tensor | None = None, cap: float | None = None) -> Tensor:
    """Log-partition log sum_v exp(vectors . matrix[v] + bias[v]): vectors [P, d], matrix [V, d] -> [P].

    Never below float32. Under autocast the product runs in the autocast type, the sum over the vocabulary does not. So
    in bfloat16 its logits have a relative error of about 1/256 and those of `word_logits` do not: log P of a nearly
    certain word may be above 0, by 0.03 at a logit of 8. Equal rounding of both would cost the gradient that precision.
    """
    device = vectors.device.type
    if torch.is_autocast_enabled(device):
        vectors = vectors.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        if cap is not None:
            parts = [logits(vectors[part], matrix, bias, cap).logsumexp(-1) for part in _chunks(vectors, matrix)]
            return torch.cat(parts) if parts else vectors.new_zeros(0, dtype=widened(vectors.dtype))
        return _LogPartition.apply(vectors, matrix, bias, torch.is_grad_enabled())


@wide
def one_logit(vectors: Tensor, row: Tensor) -> Tensor:
    """The logit of one row at all positions: vectors [P, d], row [d] -> [P], never below float32, also in autocast."""
    return vectors @ row


def word_logits(
    vectors: Tensor, matrix: Tensor, words: Tensor, bias: Tensor | None = None, cap: float | None = None
) -> Tensor:
    """The logit of one word per position: vectors [P, d], words [P] -> [P], never below float32."""
    accumulated = widened(vectors.dtype)
    dots = (vectors.to(accumulated) * torch.nn.functional.embedding(words, matrix).to(accumulated)).sum(-1)
    dots = _capped(dots, cap)
    return dots if bias is None else dots + bias[words]
