"""Odd lines: each finding on a line made to have it, and none on plain text."""

import pytest

from analyses import text_checks


def _found(line: str) -> list[tuple[str, str]]:
    return list(text_checks.line_checks([line])[["finding", "detail"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    "line", ["Straße und Übung", "那是一只猫。", "مرحبا بالعالم", "a\ttab", "„Zitat“ – so", "naïve café"]
)
def test_plain_text_of_any_script_is_not_odd(line):
    assert _found(line) == []


@pytest.mark.parametrize(
    ("line", "finding", "detail"),
    [
        ("", text_checks.EMPTY, ""),
        ("   ", text_checks.EMPTY, ""),
        ("a\u200bb\ufeffc\u200bd", text_checks.ODD, "U+200B, U+FEFF"),
        ("lost \ufffd", text_checks.ODD, "U+FFFD"),
        ("two\u2028lines", text_checks.ODD, "U+2028"),
        ("bell\x07", text_checks.ODD, "U+0007"),
        ("cafe\u0301", text_checks.DECOMPOSED, ""),
        ("a" * 101, text_checks.LONG, "101 characters"),
        (" a", text_checks.SPACES, "at an end, or several together"),
        ("a  b", text_checks.SPACES, "at an end, or several together"),
    ],
)
def test_each_finding(line, finding, detail):
    assert _found(line) == [(finding, detail)]


def test_a_copy_and_a_length_out_of_proportion():
    sources = ["a sentence of some length here"] * 4 + ["ja"]
    outputs = ["ein Satz von einiger Länge hier", sources[1], "kurz", "lang " * 30, "ja"]
    table = text_checks.pair_checks(sources, outputs, expected_ratio=1.0)
    assert list(table[["sentence", "finding"]].itertuples(index=False, name=None)) == [
        (1, text_checks.COPY),
        (2, text_checks.RATIO),
        (3, text_checks.RATIO),
        (4, text_checks.COPY),
    ]


def test_the_version_of_a_test_set_changes_with_any_line_and_with_where_sides_part():
    assert text_checks.digest(["a", "b"], ["c"]) == text_checks.digest(["a", "b"], ["c"])
    assert (
        len(
            {
                text_checks.digest(["a", "b"], ["c"]),
                text_checks.digest(["a"], ["b", "c"]),
                text_checks.digest(["a", "b"]),
            }
        )
        == 3
    )
