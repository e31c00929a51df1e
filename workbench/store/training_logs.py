"""What the training logs of runs say: curves as one table, and whether compared runs differ in their precision."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.store.runs import Run, short_names

if TYPE_CHECKING:
    import pandas as pd


def training_table(runs: Iterable[Run]) -> pd.DataFrame:
    """The training logs of runs, a row per value: run, step, epoch, tokens, seconds, name, value."""
    import pandas as pd

    rows = []
    for run in runs:
        for event in run.events():
            if event.get("event") not in ("train", "valid"):
                continue
            progress = {key: event.get(key) for key in ("step", "epoch", "tokens", "seconds")}
            prefix = "dev_" if event["event"] == "valid" else "train_"
            measured = {name: value for name, value in event.items() if name not in ("event", "time", *progress)}
            for name, value in measured.items():
                if math.isfinite(value):
                    shared = name in ("learning_rate", "gradient_norm", "tokens_per_second")
                    column = name if shared else prefix + name
                    rows.append({"run": run.name, **progress, "name": column, "value": float(value)})
    return pd.DataFrame(rows, columns=["run", "step", "epoch", "tokens", "seconds", "name", "value"])


def precision_note(runs: Sequence[Run]) -> str:
    """A sentence that names the precisions in which compared runs were trained, if there are several; else ""."""
    names = short_names(runs)
    trained: dict[str, list[str]] = {}
    for run in runs:
        if run.precision:
            trained.setdefault(run.precision, []).append(names[run.name])
    if len(trained) < 2:
        return ""
    listed = "; ".join(f"{precision}: {', '.join(of_it)}" for precision, of_it in trained.items())
    return f"Trained in different precisions ({listed}), so part of a difference may be of rounding."
