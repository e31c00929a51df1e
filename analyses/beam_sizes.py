"""Effects of the beam size: scores, lengths and empty outputs, and search errors against exact search.

A search error is a sentence whose most probable output is more probable than the output of beam search (Stahlberg and
Byrne 2019). Works on translations and log-probabilities.
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
    """BLEU, length ratio and empty outputs by beam size.

    Columns: size, bleu, low, high (95 % bootstrap), length_ratio (words, output to reference), empty, n, signature.
    """
    statistics = extract_all({str(size): lines for size, lines in outputs.items()}, references, "bleu")
    intervals = bootstrap_intervals(statistics, samples)
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
                "signature": statistics[str(size)].signature,
            }
            for size, lines in outputs.items()
        ]
    )


def search_errors(
    log_probs_by_size: Mapping[int, Sequence[float]], best: Sequence[float], decided: Sequence[bool]
) -> pd.DataFrame:
    """Search errors by beam size over the sentences that exact search decided.

    Columns: size, errors, n, error_rate, error_low, error_high (Wilson, 95 %).

    log_probs_by_size: log P (nats) of the output of each beam size, −inf without a complete output; best: log P of the
    most probable output; decided: did exact search finish.
    """
    is_decided = np.asarray(decided, dtype=bool)
    best_log_probs = np.asarray(best, dtype=float)[is_decided]
    rows = []
    for size, values in log_probs_by_size.items():
        errors = int((best_log_probs - np.asarray(values, dtype=float)[is_decided] > NOISE_NATS).sum())
        low, high = wilson(errors, len(best_log_probs))
        rate = errors / len(best_log_probs) if len(best_log_probs) else math.nan
        rows.append(
            {
                "size": size,
                "errors": errors,
                "n": len(best_log_probs),
                "error_rate": rate,
                "error_low": low,
                "error_high": high,
            }
        )
    return pd.DataFrame(rows)
