"""Table of the tokens of a translation with their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def token_table(tokens: Sequence[str], log_probs: Sequence[float]) -> pd.DataFrame:
    """Tokens of a translation, one per row: step (from 1), token, log_prob (nats), probability."""
    import pandas as pd

    return pd.DataFrame(
        {
            "step": range(1, len(tokens) + 1),
            "token": list(tokens),
            "log_prob": list(log_probs),
            "probability": [math.exp(value) for value in log_probs],
        }
    )
