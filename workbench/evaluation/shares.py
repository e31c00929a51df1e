"""Shares of the work on a test set, dealt over the tasks of an array: each is one file or folder, whole or not there.

    RESULTS/shares/KIND/TEST/KEY/0007-of-0256*      the results of some batches
    RESULTS/shares/KIND/TEST/KEY/gathered.json      they were all there and are gathered: the stamp of the result

KEY is a digest of all that the results depend on: with other weights or settings there are other shares. Batches are
never split, and which of them a share has does not depend on the number of tasks, so that any number gives the same
bits. Knows batches and files, not what is computed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from core_models.files.atomic_files import write_atomic
from core_models.files.atomic_folders import folders_in, others, remove
from core_models.files.run_files import RECORD, read_json
from workbench.store.errors import RunError
from workbench.store.file_digests import stamp_of

MOST = 256  # shares of a test set: a task that is killed loses at most one, and a folder of so many is quickly listed
_FORMAT = 1  # of the files; raise it where older ones mean something else
_NAME = re.compile(r"(?P<number>\d{4})-of-(?P<count>\d{4})(\.jsonl)?")
_KEY = re.compile(r"[0-9a-f]{16}")
_GATHERED, _LOCK = "gathered.json", "gathering.lock"


class Unfinished(RunError):
    """Shares of other tasks are not there yet."""


@dataclass(frozen=True)
class Shares:
    """The shares of a test set's work. result: the file that is there once they are gathered, with its time."""

    folder: Path
    result: Path
    ending: str = ""

    @property
    def key(self) -> str:
        return self.folder.name

    def gathered(self) -> bool:
        """True if the result was gathered from these shares and is there as it was written."""
        with suppress(OSError, ValueError, AttributeError):
            return read_json(self.folder / _GATHERED, RECORD).get("result") == stamp_of(self.result)
        return False

    def tasks(self, tasks: int) -> list[int]:
        """Those of a number of tasks that have something to do; the first gathers, if that alone is left."""
        if self.gathered():
            return []
        there = [match for name in folders_in(self.folder) if (match := _NAME.fullmatch(name))]
        if not there:
            return list(range(tasks))  # how many shares there will be is known once the text is in batches
        count = int(there[0]["count"])
        missing = {*range(count)} - {int(match["number"]) for match in there}
        return sorted({number % tasks for number in missing}) or [0]

    def do(
        self,
        batches: Sequence[list[int]],
        write: Callable[[Path, Sequence[list[int]]], None],
        task: int,
        tasks: int,
        say: Callable[[str], None] = print,
    ) -> list[Path]:
        """Do those of a task's shares that are not there, and return all; raises Unfinished if some are missing.

        write: makes the file or folder of a share from its batches, atomically.
        """
        count = min(len(batches), MOST)
        paths = [self.folder / f"{number:04d}-of-{count:04d}{self.ending}" for number in range(count)]
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in range(task, count, tasks):
            if not paths[number].exists():
                write(paths[number], batches[number::count])
                say(f"{paths[number]}: written")
        missing = sum(not path.exists() for path in paths)
        if missing and not self.gathered():
            raise Unfinished(f"{self.folder}: {missing} of {count} shares are still to be done, by other tasks")
        return paths

    @contextmanager
    def gathering(self) -> Iterator[bool]:
        """Yield True to the one task that is to write the result; another that comes meanwhile waits, and has False.

        The shares are removed once the result is there, and those made by other weights or settings with them.
        """
        with FileLock(self.folder / _LOCK):
            if self.gathered():
                yield False
            else:
                yield True
                write_atomic(self.folder / _GATHERED, json.dumps({"result": stamp_of(self.result)}))
            self._clear_up()

    def _clear_up(self) -> None:
        for name, other in folders_in(self.folder.parent).items():
            if other != self.folder and _KEY.fullmatch(name) and others(other, _is_ours) is None:
                remove(other)
        for name in folders_in(self.folder):
            path = self.folder / name
            if _NAME.fullmatch(name):
                remove(path) if path.is_dir() else path.unlink(missing_ok=True)


def _is_ours(name: str) -> bool:
    """Return True for a file or a folder of traces below KEY, whole or not."""
    first = name.split("/")[0]
    return first in (_GATHERED, _LOCK) or _NAME.match(first.lstrip(".")) is not None


def shares_of(results: Path, kind: str, result: Path, made_of: Mapping[str, Any], ending: str = "") -> Shares:
    """The shares of a result, RESULTS/KIND/TEST/FILE; made_of: all that decides its content."""
    key = hashlib.sha256(json.dumps([_FORMAT, made_of], sort_keys=True).encode()).hexdigest()[:16]
    return Shares(results / "shares" / kind / result.parent.name / key, result, ending)
