"""The events of a training's log, RUN/training.jsonl: one a line. Never imports torch.

A line that is none, cut short by a killed process or spoiled, is passed over: what the others say stays true.
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
    """Where training was, and numbers by their names."""

    __pydantic_extra__: dict[str, float] = Field(init=False)

    epoch: Count | None = None
    tokens: Count | None = None
    seconds: float | None = Field(None, ge=0, le=1e12)


class _Started(_Event):
    steps: Count | None = None
    device: str | None = None
    precision: str | None = None
    processes: Count | None = None
    threads: Count | None = None


_KINDS: dict[Any, type[_Event]] = {"train": _Measured, "valid": _Measured, "start": _Started}


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a log, none where there is no file; raises OSError where it cannot be read."""
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
    """The event of a line; None where it is none."""
    try:
        event = parse_json(line)
        if not isinstance(event, dict):
            return None
        _KINDS.get(str(event.get("event")), _Event).model_validate(event)
    except (ValueError, ValidationError):
        return None
    return event
