"""Commands that are killed at one of their operations on files, in children forked from one warm process.

A child counts what is opened for writing, made, renamed, removed and synced below a folder, and kills itself right
before the n-th. Others find no room on the disk, or no memory. What a command does knows nothing of it.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# What commands import when they run, so that a child has it already.
WARM = (
    "torch._dynamo",
    "workbench.cli",
    "workbench.evaluation.translate",
    "workbench.export.bundle",
    "workbench.export.report",
    "workbench.figures.drawing",
    "workbench.views.human_evaluation.tables",
    "workbench.views.reranking.measure",
    "workbench.views.beam_size.measure",
    "workbench.views.contrastive.measure",
    "workbench.evaluation.adequacy",
    "workbench.experiments.train",
    "workbench.store.external",
    "workbench.experiments.runner",
    "workbench.experiments.results",
    "analyses.calibration",
    "core_models.training.fit",
    "core_models.text.controlled",
    "analyses.adequacy",
    "analyses.beam_sizes",
    "analyses.scores",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
)
EXTRA = ("datasets",)
_EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Order:
    """A command to run in a folder; at: the operation before which it is killed, from 1; 0: none. limits: of what the
    system grants, by the names that `resource` has for them; RLIMIT_AS counts from what is taken already."""

    folder: str
    arguments: tuple[str, ...]
    at: int = 0
    limits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, negative for a signal; the operations it had begun; what it output."""

    code: int
    operations: tuple[str, ...]
    output: str


class Server:
    """The warm process."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.workbench.killing import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, folder: Path, arguments: Sequence[object], at: int = 0, **limits: int) -> Ended:
        """Run a command in a folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = Order(str(folder), tuple(map(str, arguments)), at, limits)
        try:
            self._process.stdin.write(json.dumps(asdict(order)) + "\n")
            self._process.stdin.flush()
            found = json.loads(self._process.stdout.readline())
        except BaseException:  # stopped while it waited: what comes next would be the answer to this
            self._process.kill()
            raise
        return Ended(found["code"], tuple(found["operations"]), found["output"])

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def server() -> Iterator[Server]:
    """A warm process, which ends with the block."""
    started = Server()
    try:
        yield started
    finally:
        started.close()


def serve() -> None:
    """Fork a child for each order that comes in, and say how it ended."""
    for module in WARM:
        importlib.import_module(module)
    for module in EXTRA:
        with suppress(ImportError):
            importlib.import_module(module)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        told, tell = os.pipe()  # what is output is no file, which a limit would cut
        with tempfile.TemporaryFile() as operations:
            child = os.fork()
            if child == 0:
                _obey(order, operations.fileno(), tell)
            os.close(tell)
            with os.fdopen(told, errors="replace") as pipe:
                output = pipe.read()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            operations.seek(0)
            begun = operations.read().decode(errors="replace").splitlines()
        print(json.dumps({"code": code, "operations": begun, "output": output}), flush=True)


def _obey(order: Order, operations: int, output: int) -> None:
    os.chdir(order.folder)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if order.limits:
        _set(order.limits)
    else:
        _Fuse(order, operations).lay()
    sys.argv = ["workbench", *order.arguments]
    code: Any = 1
    try:
        from workbench.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _set(limits: dict[str, int]) -> None:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    for name, value in limits.items():
        most = value + taken if name == "RLIMIT_AS" else value
        resource.setrlimit(getattr(resource, name), (most, most))


class _Fuse:
    """Tells each operation as it begins, and kills its process before one."""

    def __init__(self, order: Order, tell: int) -> None:
        self.root, self.at, self.tell, self.count = os.path.realpath(order.folder), order.at, tell, 0

    def lay(self) -> None:
        fsync = os.fsync

        def synced(opened: int) -> None:
            self._one("fsync", os.readlink(f"/proc/self/fd/{opened}"))
            fsync(opened)

        os.fsync = synced
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS or (event == "open" and not (arguments[2] or 0) & _WRITING):
            return
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            self._one(event, os.path.abspath(os.fsdecode(path)))
        elif event == "os.rename":
            self._one(event, os.path.abspath(os.fsdecode(arguments[1])))

    def _one(self, event: str, path: str) -> None:
        if os.path.commonpath([self.root, os.path.dirname(os.path.abspath(path))]) != self.root:
            return
        self.count += 1
        os.write(self.tell, f"{event} {path.removeprefix(self.root)!r}\n".encode(errors="replace"))
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
