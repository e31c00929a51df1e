"""Labels and scores from elsewhere: what becomes a number, what a label, and what is refused with its place."""

import numpy as np
import pytest

from analyses.segment_annotations import from_lines, from_table


def test_lines_are_labels_unless_every_one_is_a_number():
    assert from_lines(["news", "", " chat "], "domain", 3)["domain"].tolist() == [
        "news",
        "",
        "chat",
    ]
    np.testing.assert_array_equal(from_lines(["0.5", "", "-1"], "comet", 3)["comet"], [0.5, np.nan, -1])
    assert from_lines(["1", "two"], "mixed", 2)["mixed"].tolist() == ["1", "two"]


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_table_has_a_column_for_each_name(delimiter):
    rows = [["comet", "who", "mqm"], ["0.5", '"a, b; ""c"""', "-5"], ["", "**", "0"]]
    content = "\r\n".join(delimiter.join(row) for row in rows) + "\r\n"
    found = from_table(content, "human", 2)
    assert list(found) == ["human: comet", "human: who", "human: mqm"]
    assert found["human: who"].tolist() == ['a, b; "c"', "**"]
    assert found["human: mqm"].tolist() == [-5, 0]
    np.testing.assert_array_equal(found["human: comet"], [0.5, np.nan])


def test_an_empty_cell_of_a_single_column_is_a_segment_too():
    assert from_table("label\na\n\nb\n", "x", 3)["x: label"].tolist() == ["a", "", "b"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the table is empty"),
        ("a,b\n1,2\n", "has 1 rows below its header but the test set has 2 segments"),
        ("a,b\n1,2\n3\n", "row 2 has 1 cells but the header has 2"),
        ("a,a\n1,2\n3,4\n", "give every column a name of its own"),
        ('a,b\n1,"2\n3,4\n', "close every quotation mark"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(content, said):
    with pytest.raises(ValueError, match=said):
        from_table(content, "human", 2)


def test_labels_that_miss_lines_are_counted():
    with pytest.raises(ValueError, match="domain: has 2 lines but the test set has 3 segments"):
        from_lines(["a", "b"], "domain", 3)
