"""The progress of a training, RUN/state/step-*/progress.json, and its complete states. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from core_models.config import TrainingConfig
from core_models.files.run_files import RECORD, read_json
from core_models.settings import ConfigError, parse

PROGRESS = "progress.json"
Count = Annotated[int, Field(ge=0, le=1 << 53)]


class Progress(BaseModel):
    """The progress of training. batch: batches of `epoch` done, of `batches` on each of `processes`.

    best: of `metric`, higher is better. window: sums since the last line of the log. skipped: steps skipped in a row.
    precision: in which it trains; text: `Prepared.splits_digest` of what it trains on. States of earlier versions have
    "" for metric, precision and text, and 0 for batches.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    step: Count = 0
    epoch: Count = 0
    batch: Count = 0
    batches: Count = 0
    tokens: Count = 0
    seconds: float = Field(0.0, ge=0)
    best: float | None = None
    metric: str = ""
    best_step: Count = 0
    validations_without_gain: Count = 0
    reductions: Count = 0
    plateau_waits: Count = 0
    finished: bool = False
    reason: str = ""
    unmatched: list[str] = []
    processes: int = Field(1, ge=1, le=1 << 20)
    skipped: Count = 0
    window: dict[str, float] = {}
    precision: Literal["", "float32", "bfloat16", "float64"] = ""
    text: str = ""

    @model_validator(mode="after")
    def _in_order(self) -> Progress:
        for name in ("epoch", "best_step", "skipped", "validations_without_gain"):
            if getattr(self, name) > self.step:
                raise ValueError(f"{name}: {getattr(self, name)} is more than the {self.step} steps there were")
        return self

    def ending(self) -> dict[str, Any]:
        """The values of the log's end event."""
        return {"reason": self.reason, "best_step": self.best_step, "seconds": round(self.seconds, 3)}

    def reopen(self, training: TrainingConfig) -> bool:
        """Reopen a finished training if its configuration now allows more; returns whether it did."""
        without_gain = self.validations_without_gain
        reopened = self.finished and training.can_continue(self.step, self.epoch, without_gain)
        if reopened:
            self.finished, self.reason = False, ""
        return reopened

    def adopt(self, processes: int) -> None:
        """Continue with another number of processes, at about the same position in the epoch."""
        self.batch, self.batches, self.processes = self.batch * self.processes // processes, 0, processes

    def replan(self, batches: int) -> bool:
        """Continue in a plan of so many batches, at about the same position; returns whether it has another number."""
        other = self.batches not in (0, batches)
        if other:
            self.batch = self.batch * batches // self.batches
        self.batches = batches
        return other

    def watch(self, metric: str) -> bool:
        """Judge validations by this metric from now on; returns whether the best value of another was forgotten."""
        other = self.metric not in ("", metric) and self.best is not None
        if other:
            self.best, self.validations_without_gain, self.plateau_waits = None, 0, 0
        self.metric = metric
        return other


def states(folder: Path) -> list[Path]:
    """All states, sorted by step, not by name: step-1000000 is later than step-999999."""
    step_names = {path: path.name.removeprefix("step-") for path in folder.glob("step-*")}
    return sorted((path for path, step in step_names.items() if is_step(step)), key=lambda path: int(step_names[path]))


def is_step(name: str) -> bool:
    """True for a step number as in the names of states and checkpoints."""
    return name.isascii() and name.isdecimal()


def whole_states(folder: Path) -> list[Path]:
    """The complete states, sorted by step."""
    return [path for path in states(folder) if (path / PROGRESS).exists()]


def latest_state(folder: Path) -> Path | None:
    """The newest complete state, or None."""
    whole = whole_states(folder)
    return whole[-1] if whole else None


def read_progress(folder: Path) -> Progress | None:
    """The progress of the newest state, or None without state; raises OSError and ConfigError as `progress_of`."""
    state = latest_state(folder)
    return None if state is None else progress_of(state)


def progress_of(state: Path) -> Progress:
    """Read the progress of a state; raises OSError if the file cannot be read, ConfigError if it is invalid."""
    path = state / PROGRESS
    try:
        content = read_json(path, RECORD)
    except ValueError as error:
        raise ConfigError(f"{path}: not readable as JSON ({error})") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must be a mapping, not {type(content).__name__}")
    progress = parse(Progress, content, str(path))
    if progress.step != int(state.name.removeprefix("step-")):
        raise ConfigError(f"{path}: step: {progress.step} is not the step of its folder")
    return progress
