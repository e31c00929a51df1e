"""Kept arrays come back as they were, a damaged file is as good as none, and a file is whole whoever else writes it."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from analyses import npz_cache
from analyses.npz_cache import read_arrays, write_arrays


def test_arrays_come_back_with_their_kinds_and_as_readable_as_any_new_file(tmp_path):
    path = tmp_path / "new" / "kept.npz"
    write_arrays(path, counts=np.arange(3), text=np.array("said"))
    found = read_arrays(path)
    assert found["counts"].dtype == np.int64
    assert (found["counts"].tolist(), str(found["text"])) == ([0, 1, 2], "said")
    (plain := path.with_name("plain")).touch()
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(os.listdir(path.parent)) == ["kept.npz", "plain"]


def test_what_cannot_be_read_is_not_there(tmp_path):
    path = tmp_path / "kept.npz"
    assert read_arrays(path) is None
    write_arrays(path, counts=np.arange(1000))
    whole = path.read_bytes()
    for damage in (b"", b"PK no archive", whole[: len(whole) // 2]):
        path.write_bytes(damage)
        assert read_arrays(path) is None
    with path.open("wb") as file:
        np.save(file, np.arange(3))  # an array, no archive of them
    assert read_arrays(path) is None
    with path.open("wb") as file:
        np.savez(file, pickled=np.array([{"a": 1}], dtype=object))
    assert read_arrays(path) is None


@pytest.mark.long
def test_a_file_with_a_changed_byte_is_read_or_is_not_there(tmp_path):
    """Flipped one after the other, in the archive's heads, in packed numbers, in sums."""
    path = tmp_path / "kept.npz"
    write_arrays(path, counts=np.arange(40), text=np.array("said"))
    whole = path.read_bytes()
    lost = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        found = read_arrays(path)
        lost += found is None
        assert found is None or set(found) <= {"counts", "text"}
    assert lost > len(whole) / 2


def test_a_failure_leaves_the_earlier_file_and_nothing_else(tmp_path):
    path = tmp_path / "kept.npz"
    write_arrays(path, counts=np.arange(3))

    class Unwritable:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("no array")

    with pytest.raises(RuntimeError, match="no array"):
        write_arrays(path, counts=Unwritable())
    assert read_arrays(path)["counts"].tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["kept.npz"]


def test_two_that_write_at_once_leave_the_file_of_one(tmp_path):
    path = tmp_path / "kept.npz"
    write_arrays(path, counts=np.full(50_000, 0))

    def write(number):
        for _ in range(10):
            write_arrays(path, counts=np.full(50_000, number))

    seen = []
    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, number) for number in (1, 2)]
        while not all(writer.done() for writer in writers):
            seen.append(read_arrays(path))
        for writer in writers:
            writer.result()
    assert all(found is not None and len(np.unique(found["counts"])) == 1 for found in [*seen, read_arrays(path)])
    assert os.listdir(tmp_path) == ["kept.npz"]


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there, so nothing is removed")
def test_a_file_that_another_removes_before_we_lock_it_is_begun_anew(tmp_path, monkeypatch):
    """The other has locked it, as it looked abandoned, and removes it a moment later."""
    lock, removals = npz_cache._lock, []

    class WrittenAfterTheRemoval:
        def __array__(self, *args, **kwargs):
            removals[0].join()
            return np.arange(3)

    def lock_after_another(file, **wait):
        if not removals:
            other = os.open(file.name, os.O_RDWR)
            assert lock(other)
            removals.append(threading.Timer(0.2, lambda: (os.unlink(file.name), os.close(other))))
            removals[0].start()
        return lock(file, **wait)

    monkeypatch.setattr(npz_cache, "_lock", lock_after_another)
    write_arrays(tmp_path / "kept.npz", counts=WrittenAfterTheRemoval())
    assert read_arrays(tmp_path / "kept.npz")["counts"].tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["kept.npz"]
