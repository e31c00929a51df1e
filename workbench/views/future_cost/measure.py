"""Estimated and realized future costs from traces."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, short_names
from workbench.store.trace_index import matches_tokens

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from core_models.traces import TraceStore

FUTURE = "future_cost.log_prob"
GATE = "future_cost.gate"


def estimates(run: Run) -> bool:
    """Return True if the run estimates a future cost."""
    return "future_cost" in run.mechanisms


def is_traced(run: Run, test: str) -> bool:
    """Return True if the run has traces of the test set."""
    try:
        run.traces(test)
    except RunError:
        return False
    return True


def agreement_table(request: Request) -> pd.DataFrame:
    """Agreement of estimated and realized log P.

    Columns: system, pearson, spearman, mean_absolute_error, bias (nats), n (words).
    """
    import numpy as np
    import pandas as pd

    from analyses.future_cost import summary

    names = short_names(request.runs)
    rows = []
    for run in request.runs:
        estimated, realized = future_cost_pairs(run, request.test)
        of_words = summary(np.concatenate(estimated), np.concatenate(realized))
        rows.append({"system": names[run.name], **asdict(of_words)})
    return pd.DataFrame(rows)


def future_cost_pairs(run: Run, test: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Estimated and realized log P of the words of every traced sentence of a test set, [T] each."""
    traces = _future_traces(run, test)
    estimated = [traces.array(FUTURE, sentence).values for sentence in traces]
    return estimated, [traces.array("log_prob", sentence).values for sentence in traces]


def _future_traces(run: Run, test: str) -> TraceStore:
    """Traces of a run's current translations; raises RunError without future cost and log P."""
    if "future_cost" not in run.mechanisms:
        raise RunError(f"{run.name} estimates no future cost; choose a run of future-cost-1 or future-cost-2")
    traces = run.traces(test)
    missing = [name for name in (FUTURE, "log_prob") if name not in traces.names]
    if missing:
        raise RunError(
            f"{run.name}: {missing[0]} of {test!r} is not traced; do it: "
            f"workbench trace {run.typed} --test {shlex.quote(test)}"
        )
    details = run.translations(test).details
    if not matches_tokens(traces.folder, {row: details[row]["tokens"] for row in traces if row < len(details)}):
        raise RunError(
            f"{run.name}: the traces of {test!r} are of other translations; trace them again: "
            f"workbench trace {run.typed} --test {shlex.quote(test)}"
        )
    return traces


def future_cost_table(run: Run, test: str, sentence: int) -> pd.DataFrame:
    """Realized and estimated log P and the gate at each step of one traced sentence."""
    from analyses.future_cost import overlay

    traces = _future_traces(run, test)
    translations = run.translations(test)
    if sentence not in traces:
        raise RunError(
            f"{run.name}: sentence {sentence} of {test!r} is not traced (of {len(translations)}, from 0); trace all: "
            f"workbench trace {run.typed} --test {shlex.quote(test)}"
        )
    trace = traces[sentence]
    gate = trace[GATE].values if GATE in trace else None
    tokens = translations.details[sentence]["tokens"]
    return overlay(tokens, trace["log_prob"].values, trace[FUTURE].values, gate)
