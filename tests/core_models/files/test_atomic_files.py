"""Files that are written atomically, while another process looks for abandoned ones."""

import os
import sys
import threading

import pytest

from core_models.files import atomic_files


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there, so nothing is removed")
def test_a_file_that_another_removes_before_we_lock_it_is_begun_anew(tmp_path, monkeypatch):
    """The other has locked it, as it looked abandoned, and removes it a moment later."""
    lock, removals = atomic_files._lock, []

    def lock_after_another(opened, **wait):
        if not removals:
            (unfinished,) = tmp_path.iterdir()
            other = os.open(unfinished, os.O_RDWR)
            assert lock(other)
            removals.append(threading.Timer(0.2, lambda: (unfinished.unlink(), os.close(other))))
            removals[0].start()
        return lock(opened, **wait)

    monkeypatch.setattr(atomic_files, "_lock", lock_after_another)
    with atomic_files.atomic_replace(tmp_path / "kept.txt") as unfinished:
        unfinished.write_text("whole")
        removals[0].join()
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    assert (tmp_path / "kept.txt").read_text() == "whole"
