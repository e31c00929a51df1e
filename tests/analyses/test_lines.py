"""Odd lines: each finding on a line made to have it, and none on plain text."""

import pytest

from analyses import lines


def _found(line: str) -> list[tuple[str, str]]:
    return list(lines.line_checks([line])[["finding", "detail"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    "line", ["Straße und Übung", "那是一只猫。", "مرحبا بالعالم", "a\ttab", "„Zitat“ – so", "naïve café"]
)
def test_plain_text_of_any_script_is_not_odd(line):
    assert _found(line) == []


@pytest.mark.parametrize(
    ("line", "finding", "detail"),
    [
        ("", lines.EMPTY, ""),
        ("   ", lines.EMPTY, ""),
        ("a\u200bb\ufeffc\u200bd", lines.ODD, "U+200B, U+FEFF"),
        ("lost \ufffd", lines.ODD, "U+FFFD"),
        ("two\u2028lines", lines.ODD, "U+2028"),
        ("bell\x07", lines.ODD, "U+0007"),
        ("cafe\u0301", lines.DECOMPOSED, ""),
        ("a" * 101, lines.LONG, "101 characters"),
        (" a", lines.SPACES, "at an end, or several together"),
        ("a  b", lines.SPACES, "at an end, or several together"),
    ],
)
def test_each_finding(line, finding, detail):
    assert _found(line) == [(finding, detail)]


def test_a_copy_and_a_length_out_of_proportion():
    sources = ["a sentence of some length here"] * 4 + ["ja"]
    outputs = ["ein Satz von einiger Länge hier", sources[1], "kurz", "lang " * 30, "ja"]
    table = lines.pair_checks(sources, outputs, usual=1.0)
    assert list(table[["sentence", "finding"]].itertuples(index=False, name=None)) == [
        (1, lines.COPY),
        (2, lines.RATIO),
        (3, lines.RATIO),
        (4, lines.COPY),
    ]


def test_the_version_of_a_test_set_changes_with_any_line_and_with_where_sides_part():
    assert lines.digest(["a", "b"], ["c"]) == lines.digest(["a", "b"], ["c"])
    assert len({lines.digest(["a", "b"], ["c"]), lines.digest(["a"], ["b", "c"]), lines.digest(["a", "b"])}) == 3
