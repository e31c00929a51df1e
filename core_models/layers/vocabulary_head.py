"""The vocabulary head: the log-partition of all predictions in one fused pass, everything else as dot products.

log P(y) = u . E[y] - log sum_v exp(u . E[v]). Only the last term needs the whole vocabulary, so the one expensive
function here is `log_partition`; the logit of a word, of a bag of words (a cumulative sum of embeddings) or the mean
logit of label smoothing is a dot product with an embedding row and needs no [positions, V] tensor.

Training adds up its losses, so that all positions of a prediction have one gradient but for weights that are known
before: `summed_log_partitions` computes the gradients with the sums, and keeps none of the vocabulary's numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from core_models.layers.precision import wide, widened

# Logits that training keeps for its backward pass; more are recomputed in chunks.
KEPT_LOGITS = 1 << 27
# On a CPU a chunk of logits stays in the cache while it is computed, exponentiated and summed.
CACHED_LOGITS = 1 << 20
# The least rows of a chunk where each also adds to the matrix's gradient [V, d], which is read and written each time.
ROWS_WITH_GRADIENTS = 512


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


class _SummedLogPartitions(torch.autograd.Function):
    """Weighted sums of the log-partitions of consecutive groups of rows, with their gradients in the same pass.

    The gradient of a group's sum with respect to its vectors, and to matrix and bias, is known up to one factor, which
    the backward pass gives. So that is exact for whatever is done with the sums.
    """

    @staticmethod
    def forward(
        ctx, vectors: Tensor, matrix: Tensor, bias: Tensor | None, weights: Tensor, counts: tuple[int, ...]
    ) -> Tensor:
        accumulated = widened(vectors.dtype)
        low = matrix.to(vectors.dtype)
        sums = torch.zeros(len(counts), dtype=accumulated, device=vectors.device)
        grad_vectors = torch.empty_like(vectors)
        grad_matrices = [torch.zeros_like(matrix) for _ in counts] if ctx.needs_input_grad[1] else []
        grad_biases = [torch.zeros_like(bias) for _ in counts] if bias is not None and ctx.needs_input_grad[2] else []
        place = 0
        for group, count in enumerate(counts):
            for chunk in _chunks(vectors[place : place + count], matrix, ROWS_WITH_GRADIENTS):
                part = slice(place + chunk.start, min(place + chunk.stop, place + count))
                powers, largest = _powers(vectors[part], matrix, bias)
                totals = powers.sum(-1)
                sums[group] += weights[part] @ (largest + totals.log())
                scale, powers = weights[part] / totals, powers.to(vectors.dtype)
                grad_vectors[part] = (powers @ low) * scale[:, None]
                weighted = vectors[part] * scale[:, None].to(vectors.dtype)
                if grad_matrices and matrix.dtype == vectors.dtype:
                    torch.addmm(grad_matrices[group], powers.t(), weighted, out=grad_matrices[group])
                elif grad_matrices:
                    grad_matrices[group] += powers.t() @ weighted
                if grad_biases:
                    grad_biases[group] += scale.to(powers.dtype) @ powers
            place += count
        ctx.counts, ctx.has_matrices, ctx.has_biases = counts, bool(grad_matrices), bool(grad_biases)
        ctx.save_for_backward(grad_vectors, *grad_matrices, *grad_biases)
        return sums

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, None, None]:
        grad_vectors, *rest = ctx.saved_tensors
        factors = grad.unbind()

        def times_factors(parts: Sequence[Tensor]) -> list[Tensor]:
            return [(part * factor).to(part.dtype) for part, factor in zip(parts, factors, strict=True)]

        groups = len(ctx.counts)
        grad_matrix = sum(times_factors(rest[:groups])) if ctx.has_matrices else None
        grad_bias = sum(times_factors(rest[-groups:])) if ctx.has_biases else None
        return torch.cat(times_factors(grad_vectors.split(ctx.counts))), grad_matrix, grad_bias, None, None


def _chunks(vectors: Tensor, matrix: Tensor, least: int = 1) -> Iterator[slice]:
    """Slices of rows whose logits are in memory at once; least: the fewest rows, but for the rest."""
    limit = CACHED_LOGITS if vectors.device.type == "cpu" else KEPT_LOGITS
    rows = max(least, limit // len(matrix))
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
    vectors = _autocast(vectors)
    with torch.autocast(vectors.device.type, enabled=False):
        if cap is not None:
            parts = [logits(vectors[part], matrix, bias, cap).logsumexp(-1) for part in _chunks(vectors, matrix)]
            return torch.cat(parts) if parts else vectors.new_zeros(0, dtype=widened(vectors.dtype))
        return _LogPartition.apply(vectors, matrix, bias, torch.is_grad_enabled())


def summed_log_partitions(
    vectors: Tensor, matrix: Tensor, bias: Tensor | None, weights: Tensor, counts: Sequence[int]
) -> Tensor:
    """Weighted sums of log-partitions: of the first counts[0] rows, the next counts[1], and so on; -> [len(counts)].

    vectors [P, d]; weights [P], which get no gradient. Types as of `log_partition`. With gradients it takes three
    products with the matrix and keeps [P, d] and, for each sum, [V, d].
    """
    if not torch.is_grad_enabled():
        values = weights * log_partition(vectors, matrix, bias)
        return torch.stack([part.sum() for part in values.split(list(counts))])
    vectors = _autocast(vectors)
    with torch.autocast(vectors.device.type, enabled=False):
        return _SummedLogPartitions.apply(vectors, matrix, bias, weights, tuple(counts))


def _autocast(vectors: Tensor) -> Tensor:
    """The vectors in the type of autocast, if it is on."""
    device = vectors.device.type
    return vectors.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else vectors


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
