"""Learning-rate schedules as one pure function of the step."""

from __future__ import annotations

import math

from core_models.config import TrainingConfig


def learning_rate(step: int, training: TrainingConfig, total_steps: int, reductions: int = 0) -> float:
    """The learning rate of update number `step` (1-based).

    Linear warm-up, then inverse_sqrt (Vaswani 2017, Eq. 3; its peak is `learning_rate`), fixed, cosine to the end of
    training, or plateau: multiplied by its factor `reductions` times. After the warm-up it is at least
    `minimum_learning_rate`.
    """
    peak, warmup = training.learning_rate, training.warmup
    if step <= warmup:
        return peak * step / warmup
    if training.schedule == "inverse_sqrt":
        rate = peak * math.sqrt(max(warmup, 1) / step)
    elif training.schedule == "cosine":
        share = min(1.0, (step - warmup) / max(1, total_steps - warmup))
        rate = peak * 0.5 * (1 + math.cos(math.pi * share))
    elif training.schedule == "plateau":
        rate = peak * training.plateau_factor**reductions
    else:
        rate = peak
    return max(rate, training.minimum_learning_rate)
