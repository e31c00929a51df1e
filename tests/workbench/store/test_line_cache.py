"""Lines kept in memory: those of the file as it is now, one list for one text, bounded."""

import os

import pytest

from core_models.text.parallel import TextError
from workbench.store import line_cache
from workbench.store.line_cache import lines_of


def test_a_file_that_changed_is_read_again(tmp_path):
    path = tmp_path / "text"
    path.write_text("one\ntwo\n", encoding="utf-8")
    first = lines_of(path)
    assert first == ["one", "two"]
    assert lines_of(path) is first
    other = tmp_path / "other"
    other.write_text("uno\ndue\n", encoding="utf-8")  # as long, and put into its place as writers do
    os.utime(other, ns=(path.stat().st_mtime_ns, path.stat().st_mtime_ns))
    os.replace(other, path)
    assert lines_of(path) == ["uno", "due"]


def test_files_with_the_same_text_share_their_lines(tmp_path):
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        path.write_text("the same\n", encoding="utf-8")
    assert lines_of(paths[0]) is lines_of(paths[1])


def test_what_was_used_longest_ago_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(line_cache, "MOST_BYTES", 25)
    monkeypatch.setattr(line_cache, "_KEPT", type(line_cache._KEPT)())
    paths = [tmp_path / str(number) for number in range(3)]
    for path in paths:
        path.write_text(f"text {path.name} ...\n", encoding="utf-8")  # 11 bytes
    first, second = lines_of(paths[0]), lines_of(paths[1])
    assert lines_of(paths[0]) is first
    lines_of(paths[2])
    assert lines_of(paths[0]) is first
    assert lines_of(paths[1]) is not second


def test_a_file_that_is_no_text_is_refused_each_time(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"one\n\xff\n")
    for _ in range(2):
        with pytest.raises(TextError, match=":2"):
            lines_of(path)
