"""What the system says against a command, by whatever library, is one sentence; a fault of the program is none."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock, Timeout

from core_models.text.parallel import write_lines
from workbench.cli.sentences import of_the_system

# The address space is bounded once everything is imported: to the text and its copies, not to what is learnt from it.
LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
import core_models.text.prepared
from workbench.cli import main

taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (220 << 20),) * 2)
main()
"""


def raised(function) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def no_room() -> None:
    with open("/dev/full", "w") as file:
        file.write("x")


def hidden() -> None:
    try:
        no_room()
    finally:
        raise AttributeError("of a library that was surprised")


def held(path) -> None:
    with FileLock(path), FileLock(path, timeout=0):
        pass


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.empty(1 << 62, dtype=torch.uint8),
        lambda: np.empty(1 << 60, dtype=np.uint8),
        lambda: bytearray(1 << 62),
    ],
    ids=["torch", "numpy", "python"],
)
def test_too_little_memory_is_a_sentence(function):
    assert of_the_system(raised(function)).startswith("not enough memory")


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="this system does not bound the address space")
@pytest.mark.slow
def test_too_little_memory_for_a_vocabulary_is_a_sentence(tmp_path):
    """SentencePiece itself aborts the process in which it finds none."""
    generator = random.Random(1)
    lines = [" ".join(generator.choices(["baku", "mino", "reto", "bakumi", "nore"], k=40)) for _ in range(60_000)]
    write_lines(tmp_path / "x.txt", lines)
    text = f"{tmp_path / 'x.txt'},{tmp_path / 'x.txt'}"
    words = ["data", "prepare", "--train", text, "--dev", text, "--vocab-size", "20", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if not line.startswith("preparing ")]
    assert said.startswith("workbench: not enough memory (SentencePiece was learning 20 pieces from 120000 lines; ")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("function", [no_room, hidden])
def test_a_full_disk_is_a_sentence_also_behind_another_error(function):
    said = of_the_system(raised(function))
    assert said.startswith("a file: no space left on device; nothing half-written is left: make room on the disk")


def test_a_lock_that_is_held_is_named(tmp_path):
    error = raised(lambda: held(tmp_path / "a.lock"))
    assert isinstance(error, Timeout)
    assert of_the_system(error) == f"{tmp_path / 'a.lock'}: another process holds this lock; wait until it has ended"


def test_a_fault_of_the_program_is_none():
    assert of_the_system(ValueError("x")) is None
    assert of_the_system(RuntimeError("mat1 and mat2 shapes cannot be multiplied")) is None
    assert of_the_system(raised(lambda: {}["x"])) is None


def test_files_are_named(tmp_path):
    said = of_the_system(raised(lambda: (tmp_path / "no" / "file").open()))
    assert (
        said == f"{tmp_path / 'no' / 'file'}: no such file or directory; check the path, its permissions and the disk"
    )
    assert "read-only file system" in of_the_system(OSError(errno.EROFS, os.strerror(errno.EROFS), "x"))
