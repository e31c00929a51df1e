"""How routing spreads: entropy and diversity of assignments (Dou 2019, section 5.3), effective and dead capsules.

Assignments [iterations, ..., L, N] say how much of input l goes to output n; they sum to one over N. Every measure is a
mean over positions, one number an iteration. Knows arrays only.
"""

from __future__ import annotations

import numpy as np


def entropy(assignments: np.ndarray) -> np.ndarray:
    """Entropy of where an input goes, in nats, a mean over inputs and positions: [iterations].

    Dou 2019, Eq. 17, corrected: as printed it lacks the sign and divides by N too (`entropy_as_printed`); the numbers
    of the paper (6.24 = log 512) are these.
    """
    return _positions(-_plogp(assignments).sum(-1).mean(-1))


def entropy_as_printed(assignments: np.ndarray) -> np.ndarray:
    """Eq. 17 to the letter: the sum of C log C over inputs and outputs, divided by their number: [iterations]."""
    return _positions(_plogp(assignments).mean((-1, -2)))


def diversity(assignments: np.ndarray) -> np.ndarray:
    """One minus the mean cosine of two outputs, each the vector of what it gets from the inputs: [iterations].

    Dou 2019, Eq. 18, corrected: the mean cosine itself, as printed, is 1 where all are alike, and the paper prints 0
    there. By the square of the sum of unit vectors, so in the number of outputs, not of pairs. NaN for one output.
    """
    values = np.asarray(assignments, dtype=np.float64)
    outputs = values.shape[-1]
    lengths = np.linalg.norm(values, axis=-2, keepdims=True)
    units = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
    together = np.square(units.sum(-1)).sum(-1) - (lengths[..., 0, :] > 0).sum(-1)
    pairs = outputs * (outputs - 1)
    return _positions(1 - together / pairs if pairs else np.full(values.shape[:-2], np.nan))


def effective_capsules(assignments: np.ndarray) -> np.ndarray:
    """exp of the entropy: among how many outputs an input is spread as if evenly: [iterations]."""
    return np.exp(entropy(assignments))


def dead_share(assignments: np.ndarray, below: float = 0.1) -> np.ndarray:
    """Share of outputs that get, over all inputs and positions, less than `below` of an even part: [iterations]."""
    values = np.asarray(assignments, dtype=np.float64)
    got = values.reshape(len(values), -1, values.shape[-1]).mean(1)  # [iterations, N]
    return (got < below / values.shape[-1]).mean(-1)


def _plogp(assignments: np.ndarray) -> np.ndarray:
    values = np.asarray(assignments, dtype=np.float64)
    return values * np.log(values, out=np.zeros_like(values), where=values > 0)


def _positions(values: np.ndarray) -> np.ndarray:
    """The mean over all axes but the first."""
    return values.reshape(len(values), -1).mean(1)
