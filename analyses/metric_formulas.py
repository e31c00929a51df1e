"""Scores from summed sufficient statistics, vectorized over many sums.

sacreBLEU scores one vector of sums per call; a bootstrap needs a hundred thousand. These are its formulas over a last
axis of statistics. They keep the precision of their input: float32 sums are rounded as in sacreBLEU's significance
tests.
"""

from __future__ import annotations

import numpy as np

# sacreBLEU's logarithm of a zero precision (sacrebleu.utils.my_log).
LOG_OF_ZERO = -9999999999.0
SMOOTHING_DEFAULTS = {"none": 0.0, "floor": 0.1, "add-k": 1.0, "exp": 0.0}


def _floating(sums: np.ndarray) -> np.ndarray:
    sums = np.asarray(sums)
    return sums if np.issubdtype(sums.dtype, np.floating) else sums.astype(np.float64)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    """The quotient numerator / denominator, or `otherwise` where the denominator is not positive."""
    filler = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), otherwise, dtype=denominator.dtype)
    return np.divide(numerator, denominator, out=filler, where=denominator > 0)


def _brevity_penalty(system_length: np.ndarray, reference_length: np.ndarray) -> np.ndarray:
    """Papineni et al. 2002, section 2.2.2; lengths are whole tokens, so this stays float64."""
    system_length, reference_length = np.trunc(system_length).astype(np.float64), np.trunc(reference_length)
    too_short = system_length < reference_length
    penalty = np.exp(1.0 - _ratio(reference_length.astype(np.float64), system_length, otherwise=np.inf))
    return np.where(too_short, penalty, 1.0)


def bleu(
    sums: np.ndarray,
    smooth_method: str = "exp",
    smooth_value: float | None = None,
    max_ngram_order: int = 4,
    effective_order: bool = False,
) -> np.ndarray:
    """BLEU, 0 to 100 (Papineni et al. 2002, smoothing as Chen and Cherry 2014).

    sums[..., 2 + 2 * max_ngram_order]: system length, reference length, correct n-grams, all n-grams. Returns [...].
    """
    sums, orders = _floating(sums), max_ngram_order
    correct, total = sums[..., 2 : 2 + orders], sums[..., 2 + orders : 2 + 2 * orders]
    value = SMOOTHING_DEFAULTS[smooth_method] if smooth_value is None else smooth_value
    if smooth_method == "add-k":
        higher = np.arange(orders) > 0
        correct, total = np.where(higher, correct + value, correct), np.where(higher, total + value, total)
    scored = np.logical_and.accumulate(total > 0, axis=-1)  # orders after the first empty one do not count
    unmatched = scored & (correct == 0)
    precisions = np.where(scored, _ratio(100.0 * correct, total), 0.0)
    if smooth_method == "exp":
        halvings = (2.0 ** np.cumsum(unmatched, axis=-1)).astype(sums.dtype)
        precisions = np.where(unmatched, _ratio(np.full_like(total, 100.0), halvings * total), precisions)
    elif smooth_method == "floor":
        precisions = np.where(unmatched, _ratio(np.full_like(total, 100.0 * value), total), precisions)
    precisions = precisions.astype(np.float64)
    logs = np.where(precisions > 0, np.log(np.where(precisions > 0, precisions, 1.0)), LOG_OF_ZERO)
    if effective_order:
        mean = _ratio((logs * scored).sum(-1), scored.sum(-1).astype(np.float64))
    else:
        mean = logs.sum(-1) / orders
    matched = (sums[..., 2 : 2 + orders] > 0).any(-1)
    return np.where(matched, _brevity_penalty(sums[..., 0], sums[..., 1]) * np.exp(mean), 0.0)


def chrf(sums: np.ndarray, beta: int = 2, eps_smoothing: bool = False) -> np.ndarray:
    """The scores chrF and chrF++, 0 to 100 (Popović 2015, 2017).

    sums[..., 3 * orders]: per order the n-grams of hypothesis and reference and the matches. Returns [...].
    """
    sums = _floating(sums)
    hypothesis, reference, match = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
    factor, epsilon = beta**2, 1e-16
    precision, recall = _ratio(match, hypothesis, epsilon), _ratio(match, reference, epsilon)
    if eps_smoothing:
        f_scores = _ratio((1 + factor) * precision * recall, factor * precision + recall, epsilon)
        return 100 * f_scores.sum(-1) / f_scores.shape[-1]
    present = (hypothesis > 0) & (reference > 0)
    used = present.sum(-1).astype(sums.dtype)
    # cumsum adds order after order as sacreBLEU does; sum() would pair them and round differently in float32.
    precision = _ratio(np.where(present, precision, 0).cumsum(-1)[..., -1], used)
    recall = _ratio(np.where(present, recall, 0).cumsum(-1)[..., -1], used)
    return 100 * _ratio((1 + factor) * precision * recall, factor * precision + recall)


def ter(sums: np.ndarray) -> np.ndarray:
    """TER in percent, lower is better (Snover et al. 2006). sums[..., 2]: edits, mean reference length."""
    sums = _floating(sums)
    edits, length = sums[..., 0], sums[..., 1]
    return 100 * np.where(length > 0, _ratio(edits, length), (edits > 0).astype(sums.dtype))


def mean(sums: np.ndarray) -> np.ndarray:
    """The mean over segments. sums[..., 2]: sum of values and their number; NaN for none. Returns [...]."""
    sums = _floating(sums)
    return _ratio(sums[..., 0], sums[..., 1], otherwise=np.nan)
