"""Names of the quantities that runs logged."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.store.runs import Run
from workbench.store.training_logs import training_table


def logged_names(runs: Sequence[Run]) -> list[str]:
    """Quantities that any of the runs logged, losses on the dev set first."""
    names = list(dict.fromkeys(training_table(runs)["name"]))
    return sorted(names, key=lambda name: (not name.startswith("dev_"), not name.startswith("train_")))
