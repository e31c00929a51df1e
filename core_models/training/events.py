"""The events of a training log, RUN/training.jsonl, one per line. Never imports torch.

Invalid lines, truncated by a killed process or damaged, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core_models.files.run_files import LOG, open_file, parse_json

Count = Annotated[int, Field(ge=0, le=1 << 53)]


class _Event(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    event: str
    step: Count


class _Measured(_Event):
    """An event with numbers by name, and the position in training."""

    __pydantic_extra__: dict[str, float] = Field(init=False)

    epoch: Count | None = None
    tokens: Count | None = None
    seconds: float | None = Field(None, ge=0, le=1e12)


class _Started(_Event):
    steps: Count | None = None
    device: str | None = None
    precision: str | None = None
    commit: str | None = None
    processes: Count | None = None
    threads: Count | None = None


_KINDS: dict[Any, type[_Event]] = {"train": _Measured, "valid": _Measured, "start": _Started}


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log, none if the file is missing; raises OSError if it cannot be read."""
    try:
        lines = open_file(path, LOG)
    except FileNotFoundError:
        return
    with lines:
        for line in lines:
            event = event_of(line)
            if event is not None:
                yield event


def event_of(line: bytes) -> dict[str, Any] | None:
    """Parse the event of a line; None if it is invalid."""
    try:
        event = parse_json(line)
        if not isinstance(event, dict):
            return None
        _KINDS.get(str(event.get("event")), _Event).model_validate(event)
    except (ValueError, ValidationError):
        return None
    return event
