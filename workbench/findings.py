"""What stands beside a figure on a page: numbers and lists found in the runs, each a call of an analysis.

It knows runs and analyses, no Streamlit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from workbench.drawing.future_cost import future_cost_pairs
from workbench.figures.request import Request
from workbench.runs import Run, RunError, short_names, training_table

if TYPE_CHECKING:
    import pandas as pd

    from analyses.beam import BeamDiff


def logged_names(runs: Sequence[Run]) -> list[str]:
    """The quantities that any of the runs logged, losses on the dev set first."""
    names = list(dict.fromkeys(training_table(runs)["name"]))
    return sorted(names, key=lambda name: (not name.startswith("dev_"), not name.startswith("train_")))


def longest_search(request: Request) -> int:
    """The last step of the searches of a sentence."""
    return max(max(run.translations(request.test).tree(request.sentence)["step"]) for run in request.runs)


def beam_difference(request: Request) -> BeamDiff:
    """Two searches of a sentence merged, with what only one of them reached."""
    from analyses import beam

    first, second = (run.translations(request.test).tree(request.sentence) for run in request.runs[:2])
    return beam.diff(first, second)


def estimates(run: Run) -> bool:
    """Does it estimate a future cost?"""
    return "future_cost" in run.mechanisms


def has_trees(run: Run, test: str) -> bool:
    """Were the searches of a test set recorded?"""
    return test in run.tests() and run.translations(test).has_trees


def is_traced(run: Run, test: str) -> bool:
    """Has the run traces of a test set?"""
    try:
        run.traces(test)
    except RunError:
        return False
    return True


def agreement_table(request: Request) -> pd.DataFrame:
    """How estimated and realised log P agree: system, pearson, spearman, mean_absolute_error, bias (nats), n words."""
    import pandas as pd

    from analyses.future_cost import summary

    names = short_names(request.runs)
    return pd.DataFrame(
        [{"system": names[run.name], **asdict(summary(*future_cost_pairs(run, request.test)))} for run in request.runs]
    )


def token_table(tokens: Sequence[str], log_probs: Sequence[float]) -> pd.DataFrame:
    """A row a token of a translation: step (from 1), token, log_prob (nats), probability."""
    import pandas as pd

    return pd.DataFrame(
        {
            "step": range(1, len(tokens) + 1),
            "token": list(tokens),
            "log_prob": list(log_probs),
            "probability": [math.exp(value) for value in log_probs],
        }
    )
