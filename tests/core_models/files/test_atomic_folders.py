"""What is replaced is whole before and after, whoever is killed in between; what is not ours is never replaced."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from core_models.files.atomic_files import atomic_replace
from core_models.files.atomic_folders import (
    FolderError,
    anything,
    atomic_replace_folder,
    folders_in,
    mend,
    others,
    remove,
    write_through,
)
from core_models.files.file_marks import MARK, atomic_replace_files, mark, mended, unmarked

TOKEN = "0123456789abcdef"


def fill(folder: Path, content: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "file").write_text(content)
    return folder


def content(folder: Path) -> str:
    return (mend(folder) / "file").read_text()


def test_files_are_synced_where_only_what_may_be_written_can_be(tmp_path, monkeypatch):
    """As on Windows; a file that may only be read is synced as it is."""
    fcntl = pytest.importorskip("fcntl", reason="the flags of a file are asked for with fcntl")
    synced, fsync = [], os.fsync

    def strict(number: int) -> None:
        writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        synced.append((Path(f"/proc/self/fd/{number}").resolve().name, writable))
        fsync(number)

    monkeypatch.setattr(os, "fsync", strict)
    write_through(fill(tmp_path / "folder", "new"))
    assert synced == [("file", True)]


def replace(folder: Path, text: str, patience: float = 1.0) -> None:
    with atomic_replace_folder(folder, "test", lambda own: others(own, "file".__eq__), patience) as part:
        (part / "file").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_one_result_takes_the_place_of_another_and_leaves_nothing(tmp_path):
    replace(tmp_path / "a" / "result", "old")
    replace(tmp_path / "a" / "result", "new")
    assert content(tmp_path / "a" / "result") == "new"
    assert names(tmp_path / "a") == ["result"]


def test_where_it_fails_the_old_result_stays_and_nothing_else(tmp_path):
    replace(tmp_path / "result", "old")

    def fail() -> None:
        with atomic_replace_folder(tmp_path / "result", "test", lambda own: None) as part:
            (part / "file").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert content(tmp_path / "result") == "old"
    assert names(tmp_path) == ["result"]


def test_what_was_moved_aside_is_put_back_when_it_is_opened(tmp_path):
    fill(tmp_path / f".result.old-{TOKEN}", "old")
    fill(tmp_path / f".result.part-{TOKEN}", "half")
    assert content(tmp_path / "result") == "old"
    assert names(tmp_path) == ["result"]


def test_what_took_its_place_stays_and_the_old_result_goes(tmp_path):
    fill(tmp_path / f".result.old-{TOKEN}", "old")
    fill(tmp_path / "result", "new")
    assert content(tmp_path / "result") == "new"
    assert names(tmp_path) == ["result"]


def test_a_list_of_results_has_what_was_moved_aside_and_not_what_is_unfinished(tmp_path):
    fill(tmp_path / f".one.old-{TOKEN}", "old")
    fill(tmp_path / f".two.part-{TOKEN}", "half")
    fill(tmp_path / "three", "whole")
    found = {name: path for name, path in folders_in(tmp_path).items() if path.is_dir()}
    assert found == {"one": tmp_path / "one", "three": tmp_path / "three"}


def test_where_nothing_can_be_changed_the_old_result_is_read_in_its_place(tmp_path, monkeypatch):
    """Root may write anywhere, so the lock of somebody who never ends stands for a disk that is for reading only."""
    fill(tmp_path / f".result.old-{TOKEN}", "old")
    (tmp_path / ".result.writing.lock").mkdir()  # no lock can be taken here
    assert content(tmp_path / "result") == "old"
    assert {name: path.name for name, path in folders_in(tmp_path).items() if path.is_dir()} == {
        "result": f".result.old-{TOKEN}"
    }


def test_who_comes_second_is_refused_and_the_first_goes_on(tmp_path):
    replace(tmp_path / "result", "old")
    begun, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with atomic_replace_folder(tmp_path / "result", "test", lambda own: None) as part:
            (part / "file").write_text("first")
            begun.set()
            go_on.wait(60)

    writer = threading.Thread(target=first)
    writer.start()
    begun.wait(60)
    assert content(tmp_path / "result") == "old", "a reader neither waits nor takes what is being written for a rest"
    with pytest.raises(FolderError, match="result: another process is writing it; wait until that has ended"):
        replace(tmp_path / "result", "second", patience=0.1)
    go_on.set()
    writer.join()
    assert content(tmp_path / "result") == "first"
    assert names(tmp_path) == ["result"]


@pytest.mark.long
def test_readers_find_one_or_the_other_while_it_is_replaced_again_and_again(tmp_path):
    replace(tmp_path / "result", "0")
    ended, found, failed = threading.Event(), set(), []

    def read() -> None:
        while not ended.is_set():
            try:
                found.add((mend(tmp_path / "result") / "file").exists() or mend(tmp_path / "result").exists())
            except OSError as error:
                failed.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(40):
        replace(tmp_path / "result", str(number), patience=20)
    ended.set()
    for reader in readers:
        reader.join()
    assert (found, failed) == ({True}, [])
    assert content(tmp_path / "result") == "39"
    assert names(tmp_path) == ["result"]


@pytest.mark.parametrize("name", ["mine", "deep/er/mine", "empty/"])
def test_a_folder_that_holds_anything_else_is_left_as_it_is(tmp_path, name):
    replace(tmp_path / "result", "old")
    path = tmp_path / "result" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if name.endswith("/") else path.write_text("mine")
    with pytest.raises(FolderError, match=f"result: holds {name}, which `workbench test` did not make"):
        replace(tmp_path / "result", "new")
    assert content(tmp_path / "result") == "old"
    assert path.exists()


def test_through_a_link_the_folder_is_replaced_and_the_link_stays(tmp_path):
    replace(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    replace(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "real") == "new"
    assert names(tmp_path) == ["link", "real"]


def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FolderError, match=r"\.: is the current folder, which cannot be replaced"):
        replace(Path(), "new")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(FolderError, match=r"\.\.: holds the current folder, which cannot be replaced"):
        replace(Path(".."), "new")


def test_a_result_is_removed_in_one_move(tmp_path):
    replace(tmp_path / "result", "old")
    remove(tmp_path / "result")
    remove(tmp_path / "result")
    assert names(tmp_path) == []


def test_a_mark_names_what_was_made_as_it_was_made_and_by_whom(tmp_path):
    fill(tmp_path, "ours")
    mark(tmp_path, "test")
    assert unmarked(tmp_path, "test") is None
    assert unmarked(tmp_path, "another") == "file"
    (tmp_path / "file").write_text("edited")
    assert unmarked(tmp_path, "test") == "file"
    (tmp_path / MARK).write_text("{")
    assert unmarked(tmp_path, "test") == "file"


def write_set(prefix: Path, **contents: str) -> None:
    with atomic_replace_files(prefix, ("en", "de", "ids"), "test") as part:
        for ending, text in contents.items():
            (part / f"{prefix.name}.{ending}").write_text(text)


def set_at(prefix: Path) -> dict[str, str]:
    found = {ending: mended(f"{prefix}.{ending}") for ending in ("en", "de", "ids")}
    return {ending: path.read_text() for ending, path in found.items() if path.exists()}


def test_files_are_replaced_together_and_those_that_are_no_more_go(tmp_path):
    (tmp_path / "other.en").write_text("mine")
    write_set(tmp_path / "text", en="a", de="b", ids="c")
    write_set(tmp_path / "text", en="d", de="e")
    assert set_at(tmp_path / "text") == {"en": "d", "de": "e"}
    assert names(tmp_path) == [".text.workbench.json", "other.en", "text.de", "text.en"]


def test_a_file_of_the_same_name_that_is_not_ours_is_left_as_it_is(tmp_path):
    write_set(tmp_path / "text", en="a")
    (tmp_path / "text.de").write_text("mine")
    with pytest.raises(FolderError, match=r"text\.de: `workbench test` did not make this file"):
        write_set(tmp_path / "text", en="d")
    assert set_at(tmp_path / "text") == {"en": "a", "de": "mine"}


def test_a_file_that_took_no_place_is_gone_with_the_next(tmp_path):
    (tmp_path / f".file.part-{TOKEN}").write_text("of a process that was killed")
    with atomic_replace(tmp_path / "file") as one:
        with atomic_replace(tmp_path / "file") as other:
            other.write_text("other")
        one.write_text("one")
    assert (tmp_path / "file").read_text() == "one"
    assert names(tmp_path) == ["file"]


def test_a_mark_that_somebody_else_wrote_moves_and_removes_files_of_its_prefix_alone(tmp_path):
    """`text.en` is opened, and beside it lies a folder that claims to be about to replace other files."""
    (tmp_path / "outside").write_text("stays")
    folder = tmp_path / "texts"
    new = folder / ".text.new-0123456789abcdef"
    new.mkdir(parents=True)
    for name in ("text.en", "other.en"):
        (folder / name).write_text("stays")
    (new / "other.en").write_text("hostile")
    claimed = {"other.en": "", "../outside": "", "text.en/../../outside": "", "text.": ""}
    content = {"by": "data", "files": claimed, "instead_of": ["../outside", "other.en", "/etc/hostname", 3, ""]}
    (new / MARK).write_text(json.dumps(content))
    assert mended(folder / "text.en").read_text() == "stays"
    assert [(tmp_path / "outside").read_text(), (folder / "other.en").read_text()] == ["stays", "stays"]


def test_nothing_may_be_there_for_what_begins(tmp_path):
    assert anything(tmp_path) is None
    (tmp_path / ".DS_Store").touch()
    assert anything(tmp_path) is None
    assert anything(fill(tmp_path / "a", "x").parent) == "a/file"
