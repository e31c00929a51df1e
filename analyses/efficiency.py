"""What systems cost, side by side: measured numbers with their ratio to a baseline.

Does not measure anything (`workbench.bench` does) and takes whatever columns it is handed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def table(measurements: Sequence[Mapping[str, Any]], baseline: str | None = None) -> pd.DataFrame:
    """One row a system, in the order given; after each numeric column `x` stands `x_ratio`, to the baseline's value.

    measurements: one mapping a system with `system` and any of parameters, parameters_without_embeddings,
    train_tokens_per_second, …; what a system was not measured for is NaN. baseline: a system, by default the first.
    Raises ValueError for a repeated or unknown system.
    """
    if not measurements:
        raise ValueError("There are no measurements to make a table of.")
    unnamed = [number for number, measured in enumerate(measurements) if "system" not in measured]
    if unnamed:
        raise ValueError(f"Measurement {unnamed[0]} has no field 'system': name the system that was measured.")
    frame = pd.DataFrame([dict(measured) for measured in measurements])
    twice = frame.system[frame.system.duplicated()]
    if len(twice):
        raise ValueError(f"System {twice.iloc[0]!r} was measured twice: average the runs first or name them apart.")
    baseline = frame.system[0] if baseline is None else baseline
    if baseline not in set(frame.system):
        raise ValueError(f"The baseline {baseline!r} is not among the systems: {', '.join(frame.system)}.")
    reference = frame[frame.system == baseline].iloc[0]
    columns = {"system": frame.system}
    for name in frame.columns.drop("system"):
        columns[name] = frame[name]
        if pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name]):
            columns[f"{name}_ratio"] = frame[name] / reference[name]
    return pd.DataFrame(columns)
