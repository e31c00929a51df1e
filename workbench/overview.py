"""What is there, in tables: the runs with how far they are, and the health of this machine. Never imports torch.

The pages Start and Runs show these; what a run holds is asked of `runs`, scores of `evaluation`.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from core_models.resources import processors
from workbench import evaluation, known_scores
from workbench.runs import Run, RunError
from workbench.view import Known

if TYPE_CHECKING:
    import pandas as pd

MOST_SEGMENTS = 10_000  # whose BLEU is counted for a table: about two seconds; more only where somebody asks for it
PACKAGES = ("nmt-workbench", "torch", "streamlit", "plotly", "matplotlib", "sacrebleu", "pandas", "numpy")


def known(runs: Sequence[Run]) -> list[Known]:
    """The usable runs, with the sentences of each test set that they have translated; broken translations are none."""
    return [Known(run.name, dict(_translated(run))) for run in runs if not run.problem]


def _translated(run: Run) -> Iterator[tuple[str, int]]:
    for test in run.tests():
        with contextlib.suppress(RunError):
            yield test, len(run.translations(test))


def runs_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """A row a run: run, system, data, step, of (steps or epochs planned), state, dev_loss, tests, bleu, problem.

    bleu: of `test`, where it is known or counted in a moment; see `unscored`. A broken run has its problem and no more.
    """
    import pandas as pd

    scores = _scores(runs, test)
    rows = [
        {"run": run.name, "state": "broken", "problem": run.problem}
        if run.problem
        else {**_row(run), "bleu": scores.get(run.name)}
        for run in runs
    ]
    columns = ["run", "system", "data", "step", "of", "state", "dev_loss", "tests", "bleu", "problem"]
    return pd.DataFrame(rows, columns=columns).astype({"step": "Int64", "dev_loss": float, "bleu": float})


def _row(run: Run) -> dict[str, object]:
    if run.outside:
        return {
            "run": run.name, "system": run.system, "state": "outside", "tests": ", ".join(run.tests()),
            "problem": "",
        }  # fmt: skip
    events = run.events()
    plan = run.config.training
    losses = [event["main_loss"] for event in events if event.get("event") == "valid" and "main_loss" in event]
    ended = any(event.get("event") == "end" for event in events)
    return {
        "run": run.name, "system": run.system, "data": (run.folder / run.config.data).resolve().parent.name,
        "step": events[-1].get("step") if events else None,
        "of": f"{plan.max_steps} steps" if plan.max_steps else f"{plan.max_epochs} epochs",
        "state": "trained" if ended else "unfinished" if run.trained or events else "new",
        "dev_loss": losses[-1] if losses else None, "tests": ", ".join(run.tests()), "problem": "",
    }  # fmt: skip


def unscored(runs: Sequence[Run], test: str) -> list[Run]:
    """The runs that have translated the test set, towards references, and whose BLEU was not counted yet."""
    able = [run for run in runs if not run.problem and test in run.tests()]
    referenced = [run for run in able if (run.translations_folder(test) / "references.txt").is_file()]
    return [run for run in referenced if known_scores.known(run, test) is None]


def _scores(runs: Sequence[Run], test: str) -> dict[str, float]:
    """BLEU by run, as far as it is known; what is not is counted where all of it takes a moment."""
    translated = [run for run in runs if test in run.tests()]
    found = {run.name: bleu for run in translated if (bleu := known_scores.known(run, test)) is not None}
    unknown = []
    for run in unscored(runs, test):
        with contextlib.suppress(RunError):
            unknown.append((run, run.translations(test)))
    if sum(len(translations) for _, translations in unknown) <= MOST_SEGMENTS:
        for run, translations in unknown:
            with contextlib.suppress(RunError):  # texts that do not fit together: the table has an empty cell
                found[run.name] = evaluation.statistics(run, translations, "bleu").total
    return found


@dataclass(frozen=True)
class Health:
    """One thing that the workbench needs of the machine, as it is found, and what to do where it is wanting."""

    name: str
    found: str
    advice: str = ""


def health() -> list[Health]:
    """Device, fonts and versions, without loading PyTorch."""
    from workbench.figures.fonts import families

    chinese = [
        family
        for family in families()
        if any(part in family for part in ("CJK", "WenQuanYi", "Han Sans", "PingFang", "YaHei", "SimHei"))
    ]
    advice = "Figures with Chinese words cannot be exported: install fonts-wqy-microhei or fonts-noto-cjk."
    fonts = f"{families()[0]}; Chinese: {chinese[0] if chinese else 'none'}"
    return [
        Health("Device", _device()),
        Health("Fonts", fonts, "" if chinese else advice),
        Health("Python", platform.python_version()),
        *(Health(name, found) for name in PACKAGES if (found := _version(name))),
    ]  # fmt: skip


def _device() -> str:
    processor = f"CPU, {processors()} cores"
    if "+cpu" in _version("torch") or not shutil.which("nvidia-smi"):
        return processor
    asked = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    cards = [line.strip() for line in asked.stdout.splitlines() if line.strip()] if asked.returncode == 0 else []
    return f"{', '.join(cards)}; {processor}" if cards else processor


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
