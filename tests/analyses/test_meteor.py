"""METEOR of NLTK, exact and stem matches: published and hand-worked values, means over segments, a missing library."""

import sys

import numpy as np
import pytest

from analyses import meteor, scores
from analyses.sentences import segment_scores
from analyses.significance import bootstrap_interval

pytest.importorskip("nltk")


def value(hypothesis: str, *references: str, **options) -> float:
    return scores.extract([hypothesis], [[line] for line in references], "meteor", **options).total


@pytest.mark.parametrize(
    ("hypothesis", "percent"),
    [
        ("the cat sat on the mat", 99.77),  # one chunk of six words: 1 - 0.5 (1/6)^3
        ("the cat was sat on the mat", 96.54),  # F = 10 P R / (R + 9 P) = 0.9836, two chunks
    ],
)
def test_the_examples_of_the_encyclopedia(hypothesis, percent):
    """The worked examples of Wikipedia's article on METEOR."""
    assert value(hypothesis, "the cat sat on the mat") == pytest.approx(percent, abs=0.006)


def test_a_stem_is_a_match_and_a_synonym_is_none():
    assert value("the dogs slept", "the dog slept") == pytest.approx(100 * (1 - 0.5 / 27))
    matches, precision = 2, 2 / 3
    assert value("the hound slept", "the dog slept") == pytest.approx(100 * precision * (1 - 0.5 * (2 / matches) ** 3))


def test_case_never_counts_and_punctuation_is_a_word():
    assert value("The Cat sat.", "the cat sat .") == value("the cat sat .", "the cat sat .")
    assert value("the cat sat.", "the cat sat .", tokenize="none") < value("the cat sat.", "the cat sat .")


def test_the_best_reference_counts_and_a_missing_one_does_not():
    best = value("the cat sat on the mat", "a dog", "the cat sat on the mat")
    assert best == pytest.approx(99.77, abs=0.006)
    found = scores.extract(["the cat", "a dog"], [["the cat", "a dog"], [None, "the dog"]], "meteor")
    assert found.signature.startswith("nrefs:var|case:lc|match:exact+stem|tok:13a")
    assert "nltk:" in found.signature


def test_a_corpus_value_is_the_mean_over_segments_of_any_subset():
    lines = ["the cat sat on the mat", "", "the dogs slept", "nothing in common"]
    references = ["the cat sat on the mat", "the end", "the dog slept", "quite other words"]
    found = scores.extract(lines, references, "meteor")
    each = segment_scores(found)
    alone = [value(line, reference) for line, reference in zip(lines, references, strict=True)]
    np.testing.assert_allclose(each, alone)
    assert each[1] == each[3] == 0.0
    assert found.total == pytest.approx(np.mean(alone))
    assert found.subset(np.array([0, 2])).total == pytest.approx((alone[0] + alone[2]) / 2)
    interval = bootstrap_interval(found, samples=200)
    assert min(alone) <= interval.low <= found.total <= interval.high <= max(alone)


def test_every_preset_counts_meteors_words_as_its_bleu_does():
    assert scores.preset("zh").options("meteor") == {"tokenize": "zh"}
    assert scores.preset("duan-2020").options("meteor") == {"tokenize": "none"}
    assert scores.preset("lowercase").options("meteor") == {}
    assert value("猫坐着", "猫坐着", tokenize="zh") == pytest.approx(100 * (1 - 0.5 / 27))


def test_the_label_names_the_variant():
    import nltk

    assert meteor.label() == f"METEOR (NLTK {nltk.__version__}: exact, stem)"


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    meteor._library.cache_clear()
    with pytest.raises(meteor.MissingLibrary, match=r"pip install 'nmt-workbench\[meteor\]'"):
        scores.extract(["a"], ["a"], "meteor")
    meteor._library.cache_clear()


def test_an_option_it_does_not_take_is_refused():
    with pytest.raises(ValueError, match="METEOR does not take the option 'smooth_method'"):
        scores.extract(["a"], ["a"], "meteor", smooth_method="none")
