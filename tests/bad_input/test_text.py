"""Text that cannot be prepared: one sentence with file and line, and what was prepared before stays as it was."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from core_models.text.prepared import Prepared
from tests.bad_input.conftest import SOURCES, TARGETS

pytestmark = pytest.mark.long

PREPARE = (
    "data",
    "prepare",
    "--train",
    "x.en,x.de",
    "--dev",
    "dev.en,dev.de",
    "--vocab-size",
    38,
    "--out",
    "prepared",
    "--replace",
)


def _joined(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def _with(number: int, line: str, lines: list[str] = SOURCES) -> bytes:
    return _joined([*lines[: number - 1], line, *lines[number:]])


TABLE = _joined([f"{number}\t{number}" for number in range(1, 400)])
TSV = ("--train", "x.tsv")
IDS = [f"d{number // 6}" for number in range(len(SOURCES))]

TEXTS = {
    "U+2028": (
        {"x.en": _joined(["one\u2028two", *SOURCES[2:]])},
        (),
        "x.en has 35 lines but x.de has 36: they part at "
        "line 1, where x.en holds U+2028 (line separator), which another tool took for a line end in x.de",
    ),
    "NEL": (
        {"x.de": _joined([*TARGETS[:4], "a\u0085b", *TARGETS[6:]])},
        (),
        "part at line 5, where x.de holds U+0085 (NEL)",
    ),
    "byte-order mark": (
        {"x.en": _joined([*SOURCES[:3], "\ufeff", *SOURCES[3:]])},
        (),
        "part at line 4, where x.en holds nothing but a byte-order mark; remove it",
    ),
    "an empty line too many": (
        {"x.en": _joined([*SOURCES[:3], "", *SOURCES[3:]])},
        (),
        "part at line 4, which is empty in x.en only; align them again",
    ),
    "a line too many": (
        {"x.en": _joined([*SOURCES, "end ."])},
        (),
        "at line 37 x.de has ended and x.en goes on with 'end .'",
    ),
    "not UTF-8": (
        {"x.en": _joined(SOURCES[:6]) + b"na\xefve\n" + _joined(SOURCES[7:])},
        (),
        "x.en:7: not UTF-8 (byte 0xef at byte 3 of the line: convert the file to UTF-8)",
    ),
    "UTF-16": (
        {"x.en": _joined(SOURCES).decode().encode("utf-16")},
        (),
        "x.en:1: not UTF-8 (it begins with the byte-order mark of UTF-16: convert the file to UTF-8)",
    ),
    "UTF-16 without its mark": ({"x.en": _joined(SOURCES).decode().encode("utf-16-le")}, (), "x.en:1: a NUL at byte 2"),
    "a NUL": ({"x.de": _with(9, "der\0Hund", TARGETS)}, (), "x.de:9: a NUL at byte 4 of the line"),
    "old Macintosh": ({"x.en": _joined(SOURCES, "\r")}, (), "x.en: its lines end in bare carriage returns"),
    "an empty file": ({"x.de": b""}, (), "x.de: the file is empty: copy it again, or name another"),
    "only empty lines": (
        {"x.en": b"\n" * 36, "x.de": b" \n" * 36},
        (),
        "train: there is no text to learn a vocabulary from",
    ),
    "a folder": ({"x.en/precious": b"text"}, (), "x.en: a folder, not a file; name the file in it"),
    "a cut archive": (
        {"x.en.gz": gzip.compress(_joined(SOURCES))[:-20]},
        ("--train", "x.en.gz,x.de"),
        "x.en.gz: not a whole gzip file",
    ),
    "an archive by another name": (
        {"x.en": gzip.compress(_joined(SOURCES))},
        (),
        "it is a gzip archive: let its name end in .gz",
    ),
    "one column in line 317": (
        {"x.tsv": TABLE.replace(b"317\t", b"317 ")},
        TSV,
        "x.tsv:317: 1 column, but column 1 (from 0) was asked for; put one tab",
    ),
    "a document that comes twice": (
        {"x.docids": _joined([*IDS[:-2], "d0", "d0"])},
        (),
        "x.docids:35: document 'd0' begins again (its first run began at line 1)",
    ),
    "an interrupted document": ({"x.docids": _with(3, "other", IDS)}, (), "x.docids:4: document 'd0' begins again"),
    "a sentence of no document": (
        {"x.docids": _with(8, "", IDS)},
        (),
        "x.docids:8: no document id; give every sentence one",
    ),
    "too few document ids": (
        {"x.docids": _joined(IDS[:-3])},
        (),
        "x.docids has 33 document ids but x.en has 36 sentences: "
        "x.docids ends before line 34 of x.en; give one id for every sentence",
    ),
    "more pieces than there are": (
        {},
        ("--vocab-size", 90_000),
        "train: 90000 pieces were asked for, but the text holds only",
    ),
    "no pieces": ({}, ("--vocab-size", 0), "train: 0 pieces were asked for: 4 are control pieces"),
    "an unknown kind": ({}, ("--model-type", "wordpiece"), "vocabulary kind 'wordpiece': choose one of unigram, bpe"),
    "all lines over the maximum": ({}, ("--max-length", 3), "train: none of its 36 pairs is left"),
    "a test set with a path for a name": (
        {},
        ("--test", "../x=dev.en,dev.de"),
        "test set '../x': the name is used as a file",
    ),
    "a folder of somebody's own": (
        {"mine/train/precious": b"text"},
        ("--out", "mine"),
        "mine: holds train/precious, which `workbench data prepare` did not make",
    ),
    "a file for a folder": ({"file": b"text"}, ("--out", "file"), "file: a file is in the place of the folder"),
}


def _lay_down(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        if path.parent.is_file():
            path.parent.unlink()
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)


@pytest.mark.parametrize("case", TEXTS)
def test_text_that_cannot_be_prepared_is_named_and_an_earlier_preparation_stays(texts, refused, case):
    files, changes, message = TEXTS[case]
    _lay_down(texts, files)
    assert message in refused(*PREPARE, *changes)


def test_a_preparation_that_is_refused_begins_no_folder(texts, refused):
    shutil.rmtree(texts / "prepared")
    assert "none of its 36 pairs is left" in refused(*PREPARE, "--max-length", 3)
    assert not (texts / "prepared").exists()


def test_empty_lines_and_lines_over_the_maximum_are_left_out_and_named(texts, done):
    _lay_down(texts, {"x.en": _with(5, ""), "x.de": _with(9, "der " * 300, TARGETS)})
    said = done(*PREPARE).splitlines()
    assert said[0].endswith("left out: 1 too long, 1 empty")
    assert said[1:3] == ["  too long: line 9", "  empty: line 5"]
    assert len(Prepared.open(texts / "prepared").split("train")) == 34


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(texts, done):
    done(*PREPARE)
    digest = Prepared.open(texts / "prepared").digest
    _lay_down(texts, {"x.en": b"\xef\xbb\xbf" + _joined(SOURCES, "\r\n"), "x.de": _joined(TARGETS, "\r\n")})
    done(*PREPARE)
    assert Prepared.open(texts / "prepared").digest == digest
