"""Tables of runs with their progress and scores. Never imports torch.

The pages Start and Runs show these; contents of runs come from `runs`, scores from `evaluation`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation import bleu_cache, scoring
from workbench.store.file_cache import KeptByFiles
from workbench.store.run_configs import MOST_RUNS
from workbench.store.runs import Run, RunError
from workbench.store.translations import Translations

if TYPE_CHECKING:
    import pandas as pd

MOST_COUNTED = 100  # runs whose BLEU is counted for a table, if they have not too many segments
MOST_SEGMENTS = 10_000  # whose BLEU is counted for a table: about two seconds; more only on request


def runs_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """A row per run: run, system, data, step, of (steps or epochs planned), state, dev_loss, tests, bleu, problem.

    bleu: of `test`, if cached or quick to count; see `unscored`. The row of a broken run has its problem only.
    """
    import pandas as pd

    usable_runs = [run for run in runs if not run.problem]
    statuses = {run.name: _status_of(run, test) for run in usable_runs}
    counted = _counted([run for run in usable_runs if statuses[run.name].unscored], test)
    rows = [
        {"run": run.name, "state": "broken", "problem": run.problem}
        if run.problem
        else {"bleu": counted.get(run.name, statuses[run.name].bleu), **statuses[run.name].row}
        for run in runs
    ]
    columns = ["run", "system", "data", "step", "of", "state", "dev_loss", "tests", "bleu", "problem"]
    return pd.DataFrame(rows, columns=columns).astype({"step": "Int64", "dev_loss": float, "bleu": float})


def unscored(runs: Sequence[Run], test: str) -> list[Run]:
    """The runs with a translation of the test set and references, whose BLEU is not counted yet."""
    return [run for run in runs if not run.problem and _status_of(run, test).unscored]


@dataclass(frozen=True)
class _RunStatus:
    """A run's row of the table, its cached BLEU, and `unscored`: BLEU could be counted but is not yet."""

    row: dict[str, object]
    bleu: float | None
    unscored: bool


_STATUSES: KeptByFiles[_RunStatus] = KeptByFiles(MOST_RUNS)
_COUNTED: KeptByFiles[float | None] = KeptByFiles(MOST_COUNTED)


def _status_of(run: Run, test: str) -> _RunStatus:
    score = bleu_cache.SCORES.path(run, test)
    files: list[str | Path] = [*run.decisive_files(), run.log, score, *bleu_cache.texts(run, test)]
    return _STATUSES.get((run.reference, run.name, test), files, lambda: _read_status(run, test))


def _read_status(run: Run, test: str) -> _RunStatus:
    tests = run.tests()
    bleu = bleu_cache.known(run, test) if test in tests else None
    referenced = test in tests and (run.translations_folder(test) / "references.txt").is_file()
    return _RunStatus(_row_or_problem(run, tests), bleu, referenced and bleu is None)


def _row_or_problem(run: Run, tests: Sequence[str]) -> dict[str, object]:
    """The row of a run, or its problem if one of its files cannot be read, so that it stops no other run."""
    try:
        return _row(run, tests)
    except OSError as error:
        return {"run": run.name, "state": "broken", "problem": f"{error.filename}: {error.strerror}"}


def _row(run: Run, tests: Sequence[str]) -> dict[str, object]:
    if run.outside:
        return {
            "run": run.name, "system": run.system, "state": "outside", "tests": ", ".join(tests),
            "problem": "",
        }  # fmt: skip
    events = run.events()
    plan = run.config.training
    losses = [event["main_loss"] for event in events if event.get("event") == "valid" and "main_loss" in event]
    data = run.config.data_folder(run.folder)  # of a grid: GRID/data
    planned = f"{plan.max_steps} steps" if plan.max_steps else f"{plan.max_epochs} epochs"
    return {
        "run": run.name, "system": run.system, "data": data.parent.name if data.name == "data" else data.name,
        "step": events[-1].get("step") if events else None,
        "of": planned if events or not run.finished else "",  # trained elsewhere: nothing was planned here
        "state": "trained" if run.finished else "unfinished" if run.trained or events else "new",
        "dev_loss": losses[-1] if losses else None, "tests": ", ".join(tests), "problem": "",
    }  # fmt: skip


def _counted(runs: Sequence[Run], test: str) -> dict[str, float]:
    """BLEU by run if counting all of them is quick, without runs that cannot be scored."""
    if len(runs) > MOST_COUNTED:
        return {}
    opened = []
    for run in runs:
        with contextlib.suppress(RunError):
            opened.append((run, run.translations(test)))
    if sum(len(translations) for _, translations in opened) > MOST_SEGMENTS:
        return {}
    scores = {}
    for run, translations in opened:
        key, files = (run.reference, test), bleu_cache.texts(run, test)
        bleu = _COUNTED.get(key, files, partial(_bleu, run, translations))
        if bleu is not None:
            scores[run.name] = bleu
    return scores


def _bleu(run: Run, translations: Translations) -> float | None:
    with contextlib.suppress(RunError):  # texts that do not match: an empty cell
        return scoring.statistics(run, translations, "bleu").total
    return None
