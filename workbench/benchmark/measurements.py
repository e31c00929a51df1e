"""Measurements so far, stored in FILE.measured.jsonl beside the table, so that a stopped benchmark can be resumed.

The first line has the settings, each other line a measurement. Knows the file, not how anything is measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analyses.efficiency import SPEEDS
from core_models.files.atomic_files import write_atomic
from workbench.store.runs import RunError
from workbench.store.translations import read_records

Record = dict[str, Any]


class Key(NamedTuple):
    """Key of a measurement: sentence length (None: the mix of lengths), round from 1, engine."""

    length: int | None
    round: int
    engine: str


class Kept(NamedTuple):
    """A measurement and its duration in seconds."""

    record: Record
    seconds: float


class Measurements:
    """The measurements of one table; without a table they are kept in memory only.

    Raises RunError if the stored ones were made with other settings or cannot be read.
    """

    def __init__(self, table: Path | None, settings: Mapping[str, Any]) -> None:
        self.path = None if table is None else table.with_name(f"{table.name}.measured.jsonl")
        self._settings, self._kept = dict(settings), dict[Key, Kept]()
        if self.path is None or table is None:
            return
        if self.path.exists():
            self._kept = self._read(self.path)
        elif table.exists():
            raise RunError(
                f"{table} is there, but not what it was measured from ({self.path.name}), so it cannot go on; name "
                "another file, or remove it to measure again"
            )

    def get(self, key: Key) -> Kept | None:
        return self._kept.get(key)

    def add(self, key: Key, record: Record, seconds: float) -> Kept:
        """Store a measurement, on disk before this returns."""
        kept = self._kept[key] = Kept(record, seconds)
        if self.path is not None:
            lines: list[Record] = [{"settings": self._settings}]
            for stored_key, stored in self._kept.items():
                lines.append({**stored_key._asdict(), "seconds": stored.seconds, "record": stored.record})
            write_atomic(self.path, "".join(f"{json.dumps(line)}\n" for line in lines))
        return kept

    def _read(self, path: Path) -> dict[Key, Kept]:
        settings, *lines = list(read_records(path)) or [{}]
        stored_settings = settings.get("settings")
        if not isinstance(stored_settings, dict):
            raise RunError(f"{path}: the first line has no settings; remove the file to measure again")
        for name, value in self._settings.items():
            if stored_settings.get(name) != value:
                raise RunError(
                    f"{path} was measured with {name} {stored_settings.get(name)}, this is {value}: in one table they "
                    "could not be compared; name another file"
                )
        return dict(_kept(path, number, line) for number, line in enumerate(lines, start=2))


def _kept(path: Path, number: int, line: Mapping[str, Any]) -> tuple[Key, Kept]:
    key = Key(line.get("length"), line.get("round", 0), line.get("engine", ""))
    record, seconds = line.get("record"), line.get("seconds")
    valid = (
        all(isinstance(part, int) and not isinstance(part, bool) for part in key[:2] if part is not None)
        and isinstance(record, dict)
        and record.get("engine") == key.engine
        and _positive(seconds)
        and all(_positive(record[speed]) for speed in SPEEDS if speed in record)
        and any(speed in record for speed in SPEEDS)
    )
    if not valid:
        raise RunError(f"{path}:{number}: not a measurement; remove the line, or the file to measure again")
    return key, Kept(dict(record or {}), float(seconds or 0))


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
