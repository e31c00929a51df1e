"""A run of somebody else whose files are links to files of ours: these are read, and never written, cut or replaced."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core_models.files.atomic_files import atomic_replace
from core_models.files.run_files import UnfitFile, open_to_write

COMMANDS = {
    "evaluate": ("evaluate", "runs/one", "--n-resamples", "40"),
    "compare": ("compare", "runs/one", "runs/one"),
    "translate": ("translate", "runs/one", "--search", "beam=1"),
    "trace": ("trace", "runs/one", "--sentences", "0-1"),
    "resume": ("resume", "runs/one", "--device", "cpu"),
    "average": ("runs", "average", "runs/one", "--last", "1", "--use"),
    "beam-sweep": ("beam-sweep", "runs/one", "--beams", "1"),
}


def link_all(run: Path, outside: Path) -> dict[Path, bytes]:
    """Move every file of a run to a folder outside, with a link in its place; what the files outside hold."""
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        target = outside / path.relative_to(run)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        path.symlink_to(target)
    return {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("name", "locked"), [*((name, False) for name in COMMANDS), ("resume", True)])
def test_no_command_writes_through_a_link_of_a_run(spoiled_run, tmp_path, monkeypatch, name, locked):
    from tests.bad_input.conftest import run_command

    config = spoiled_run / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 4", "max_steps: 6"))
    if not locked:  # else a link in the place of the lock is refused before anything else
        (spoiled_run / ".training.lock").unlink()
    before = link_all(spoiled_run, tmp_path / "outside")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        run_command(monkeypatch, COMMANDS[name])
    assert stopped.value.code in (None, 0, 2)
    after = {path: path.read_bytes() for path in (tmp_path / "outside").rglob("*") if path.is_file()}
    assert after == before


def test_a_link_is_replaced_and_what_it_points_to_stays(tmp_path):
    (tmp_path / "ours").write_text("stays")
    (tmp_path / "link").symlink_to("ours")
    with atomic_replace(tmp_path / "link") as path:
        path.write_text("new")
    assert ((tmp_path / "ours").read_text(), (tmp_path / "link").read_text()) == ("stays", "new")
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("append", [False, True])
def test_nothing_is_written_through_a_link_or_into_a_pipe(tmp_path, append):
    (tmp_path / "ours").write_text("stays")
    (tmp_path / "link").symlink_to("ours")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("link", "a link, through which nothing is written"), ("pipe", "a named pipe, not a file")):
        with pytest.raises(UnfitFile, match=why):
            open_to_write(tmp_path / name, append)
    assert (tmp_path / "ours").read_text() == "stays"


def test_the_place_of_a_device_is_taken_by_no_file():
    with pytest.raises(OSError, match="a device of the system"), atomic_replace(Path("/dev/null")):
        pass
