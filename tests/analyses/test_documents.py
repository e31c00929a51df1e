"""Whole documents as segments: n-grams reach over the ends of sentences."""

import pytest
from sacrebleu.metrics import BLEU

from analyses.documents import as_segments
from analyses.scores import extract

IDS = ["a", "a", "b"]
LINES, REFERENCES = ["one two", "three four", "five"], ["one two", "three four", "six five"]


def test_the_lines_of_a_document_are_one():
    assert as_segments(LINES, IDS) == ["one two three four", "five"]
    with pytest.raises(ValueError, match="3 lines but 2 document ids"):
        as_segments(LINES, IDS[:2])


def test_documents_have_n_grams_that_sentences_have_not():
    whole = extract(as_segments(LINES, IDS), [as_segments(REFERENCES, IDS)], "bleu")
    wanted = BLEU().corpus_score(["one two three four", "five"], [["one two three four", "six five"]])
    assert whole.total == pytest.approx(wanted.score)
    assert wanted.counts[3] == 1  # one two three four
    assert BLEU().corpus_score(LINES, [REFERENCES]).counts[3] == 0
