"""Files of runs are opened as what they should be, or refused at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from core_models.files.run_files import UnfitFile, check, open_file, parse_json, read_bytes, read_json

MOST = 1 << 10


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


def _link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


UNFIT = {
    "a named pipe": (_pipe, UnfitFile),
    "a socket": (_socket, UnfitFile),
    "a link to a named pipe": (_link_to_a_pipe, UnfitFile),
    "a link to a device without end": (lambda path: path.symlink_to("/dev/zero"), UnfitFile),
    "a link to a device without content": (lambda path: path.symlink_to("/dev/null"), UnfitFile),
    "a sparse file": (_sparse, UnfitFile),
    "a folder": (Path.mkdir, IsADirectoryError),
    "a link to a folder": (lambda path: path.symlink_to("/"), IsADirectoryError),
    "a link to itself": (lambda path: path.symlink_to(path), OSError),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), FileNotFoundError),
    "nothing": (lambda path: None, FileNotFoundError),
}


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("reader", [check, open_file, read_bytes, read_json])
def test_what_is_no_file_is_refused_in_words_that_name_it(tmp_path, case, reader):
    lay, kind = UNFIT[case]
    path = tmp_path / "config.yaml"
    lay(path)
    with pytest.raises(kind) as refused:
        reader(path, MOST)
    assert refused.value.filename == str(path)
    assert refused.value.strerror


def test_a_path_with_a_nul_is_refused_as_a_file_is(tmp_path):
    with pytest.raises(UnfitFile, match="no path of a file"):
        read_bytes(f"{tmp_path}/a\0b", MOST)


def test_files_and_links_to_them_are_read_up_to_the_limit_of_their_kind(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(path)
    path.write_bytes(b"1" * MOST)
    assert read_bytes(path, MOST) == read_bytes(link, MOST) == path.read_bytes()
    path.write_bytes(b"1" * (MOST + 1))
    with pytest.raises(UnfitFile, match="larger than"):
        read_bytes(link, MOST)


def test_json_is_read_or_refused_with_a_value_error(tmp_path):
    assert parse_json(b'{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    for content in (b"", b"{", b"[" * 100_000, b"\xff", b"9" * 5000):
        with pytest.raises(ValueError):  # noqa: PT011 - any sentence
            parse_json(content)
