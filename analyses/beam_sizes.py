"""What a wider beam does: scores, lengths and empty outputs by beam size, and search errors against exact search.

A search error is a sentence whose best output is more probable than what the beam found (Stahlberg and Byrne 2019).
Knows no model: takes translations and log-probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.scores import extract_all
from analyses.significance import bootstrap_intervals
from analyses.wilson import wilson

NOISE_NATS = 1e-3  # two log-probabilities of one output, computed in other batches, differ by less


def quality(outputs: Mapping[int, Sequence[str]], references: Sequence[str], samples: int = 1000) -> pd.DataFrame:
    """size, bleu, low, high (95 % bootstrap), length_ratio (words, output to reference), empty, n, signature."""
    found = extract_all({str(size): lines for size, lines in outputs.items()}, references, "bleu")
    intervals = bootstrap_intervals(found, samples)
    words = sum(len(line.split()) for line in references)
    return pd.DataFrame(
        [
            {
                "size": size,
                "bleu": intervals[str(size)].score,
                "low": intervals[str(size)].low,
                "high": intervals[str(size)].high,
                "length_ratio": sum(len(line.split()) for line in lines) / words if words else math.nan,
                "empty": sum(not line.strip() for line in lines),
                "n": len(lines),
                "signature": found[str(size)].signature,
            }
            for size, lines in outputs.items()
        ]
    )


def search_errors(found: Mapping[int, Sequence[float]], best: Sequence[float], decided: Sequence[bool]) -> pd.DataFrame:
    """size, errors, n, error_rate, error_low, error_high (Wilson, 95 %) over the sentences that were decided.

    found: log P (nats) of what each beam size found, −inf where it found no complete output; best: of the best output.
    """
    sure = np.asarray(decided, dtype=bool)
    limit = np.asarray(best, dtype=float)[sure]
    rows = []
    for size, values in found.items():
        errors = int((limit - np.asarray(values, dtype=float)[sure] > NOISE_NATS).sum())
        low, high = wilson(errors, len(limit))
        rate = errors / len(limit) if len(limit) else math.nan
        rows.append(
            {
                "size": size,
                "errors": errors,
                "n": len(limit),
                "error_rate": rate,
                "error_low": low,
                "error_high": high,
            }
        )
    return pd.DataFrame(rows)
