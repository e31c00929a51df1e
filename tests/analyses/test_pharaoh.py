"""Gold links in Pharaoh format: sure and possible ones, counting from 0 or 1, lines that fit no sentence."""

import pytest

from analyses.pharaoh import parse


def test_sure_links_are_possible_too():
    gold = parse(["0-0 1-2 2?3", "", "1p1"], [(3, 4), (1, 1), (2, 2)])
    assert gold.sure == [{(0, 0), (1, 2)}, set(), set()]
    assert gold.possible == [{(0, 0), (1, 2), (2, 3)}, set(), {(1, 1)}]
    assert (gold.base, gold.counting) == (0, "counted from 0")


def test_a_file_that_counts_from_one_is_detected_by_its_last_words():
    from_zero, from_one = ["0-0 2?1", "1-1"], ["1-1 3?2", "2-2"]
    lengths = [(3, 2), (2, 2)]
    zero, one = parse(from_zero, lengths), parse(from_one, lengths)
    assert (zero.base, one.base) == (0, 1)
    assert one.counting == "counted from 1"
    assert (one.sure, one.possible) == (zero.sure, zero.possible)


def test_a_file_that_does_not_tell_is_taken_from_zero_and_says_so():
    gold = parse(["1-1"], [(3, 3)])
    assert (gold.sure, gold.base, gold.certain) == ([{(1, 1)}], 0, False)
    assert "no link of the file tells" in gold.counting


@pytest.mark.parametrize(
    ("lines", "lengths", "message"),
    [
        (["0-0", "0-0 2-0"], [(2, 1), (2, 1)], "gold.txt:2: link 2-0 is outside .* counted from 0, and there are 2"),
        (["1-1 4-1"], [(3, 1)], "gold.txt:1: link 4-1 is outside of its sentence: words are counted from 1"),
        (["0-0 1:2"], None, "gold.txt:1: '1:2' is no link: write 0-0"),
        (["0-0"], [(1, 1), (1, 1)], "gold.txt has 1 lines for 2 sentences"),
    ],
)
def test_links_that_fit_no_sentence_are_named(lines, lengths, message):
    with pytest.raises(ValueError, match=message):
        parse(lines, lengths, "gold.txt")
