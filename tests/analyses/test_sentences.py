"""Sentences: sacreBLEU's own sentence scores, filters that agree with a loop, differences that give the texts back."""

import time

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from analyses import scores, sentences
from analyses.sentences import Difference

REFERENCES = ["the cat sat on the mat", "a dog", "it rains again today , they say", "yes", "one two three four five"]
OUTPUTS = {
    "base": ["the cat sat on a mat", "dog", "it rains today , they say", "", "five four three two one"],
    "other": ["the cat sat on the mat", "a big dog", "again it rains , they say", "no", "one two three four five six"],
}
SOURCES = ["die Katze sitzt", "ein Hund", "es regnet wieder", "ja", "eins zwei drei vier fünf"]


@pytest.mark.parametrize(
    ("metric", "theirs"),
    [
        ("bleu", BLEU(effective_order=True)),
        ("chrf", CHRF()),
        ("chrf++", CHRF(word_order=2)),
        ("ter", TER()),
    ],
)
def test_segment_scores_are_those_of_sacrebleu(metric, theirs):
    for lines in OUTPUTS.values():
        found = sentences.segment_scores(scores.extract(lines, REFERENCES, metric))
        expected = [theirs.sentence_score(line, [ref]).score for line, ref in zip(lines, REFERENCES, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_smoothing_of_the_options_is_kept():
    found = sentences.segment_scores(scores.extract(OUTPUTS["base"], REFERENCES, "bleu", smooth_method="floor"))
    expected = [
        sacrebleu.sentence_bleu(line, [ref], smooth_method="floor").score
        for line, ref in zip(OUTPUTS["base"], REFERENCES, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.fixture
def table() -> sentences.Sentences:
    by_system = {
        name: sentences.segment_scores(scores.extract(lines, REFERENCES, "chrf")) for name, lines in OUTPUTS.items()
    }
    given = pd.DataFrame({"comet": [0.9, 0.5, np.nan, 0.1, 0.5], "domain": ["news", "chat", "news", "", "chat"]})
    return sentences.sentence_table(SOURCES, REFERENCES, OUTPUTS, {"chrF": by_system}, "base", given)


def test_the_table_holds_differences_length_ratios_and_what_comes_from_elsewhere(table):
    values = table.values
    np.testing.assert_allclose(values["Δ chrF other"], values["chrF other"] - values["chrF base"])
    assert "Δ chrF base" not in values
    assert values["length ratio other"].tolist() == [1.0, 1.5, 6 / 7, 1.0, 6 / 5]
    assert values["source words"].tolist() == [3, 2, 3, 1, 5]
    assert table.labels["domain"].tolist() == ["news", "chat", "news", "", "chat"]
    assert list(table.texts) == ["source", "reference", "base", "other"]


def test_a_reference_without_words_has_no_length_ratio():
    found = sentences.sentence_table(["x"], [""], {"a": ["y"]}, {})
    assert found.values["length ratio a"].isna().all()


def test_conditions_hold_together(table):
    assert sentences.select(table).tolist() == [0, 1, 2, 3, 4]
    assert sentences.select(table, "RAINS").tolist() == [2]
    assert sentences.select(table, "katze").tolist() == [0]
    assert sentences.select(table, "katze", within=["reference", "other"]).tolist() == []
    assert sentences.select(table, labels={"domain": ["chat", ""]}).tolist() == [1, 3, 4]
    assert sentences.select(table, ranges={"comet": (0.1, 0.5)}).tolist() == [1, 3, 4]
    assert sentences.select(table, "a", ranges={"comet": (0.5, 1)}, labels={"domain": ["news"]}).tolist() == [0]


def test_a_text_is_found_in_whichever_of_the_texts_has_it():
    drawn = np.random.default_rng(1)
    texts = [["".join(drawn.choice(list("aAbBß ,"), 4)) for _ in range(80)] for _ in range(4)]
    found = sentences.sentence_table(texts[0], texts[1], {"one": texts[2], "other": texts[3]}, {})
    for wanted in ("ab", "B,", "ß", "a", "bbbb"):
        rows = [
            row
            for row, own in enumerate(zip(*texts, strict=True))
            if any(wanted.lower() in text.lower() for text in own)
        ]
        assert sentences.select(found, wanted).tolist() == rows
        long = [row for row in rows if len(texts[0][row].split()) >= 2]
        assert sentences.select(found, wanted, ranges={sentences.WORDS: (2, 9)}).tolist() == long


def test_a_text_is_found_as_typed_not_as_a_pattern():
    found = sentences.sentence_table(["a.c", "abc", "$x$ (", "**"], None, {"s": [""] * 4}, {})
    assert [sentences.select(found, text).tolist() for text in (".", "$x$ (", "**")] == [[0], [2], [3]]


def test_order_is_stable_with_missing_values_last(table):
    assert sentences.select(table, order="comet").tolist() == [3, 1, 4, 0, 2]
    assert sentences.select(table, order="comet", descending=True).tolist() == [0, 1, 4, 3, 2]
    assert sentences.select(table, order="sentence", descending=True).tolist() == [4, 3, 2, 1, 0]
    assert sentences.select(table, order="domain").tolist() == [1, 4, 0, 2, 3]
    assert sentences.select(table, order="domain", descending=True).tolist() == [0, 2, 1, 4, 3]
    assert sentences.select(table, order="source").tolist() == [0, 1, 4, 2, 3]


def test_what_is_not_there_is_named(table):
    with pytest.raises(ValueError, match=r"no column 'comett'.*Did you mean 'comet'"):
        sentences.select(table, order="sentence", ranges={"comett": (0, 1)})
    with pytest.raises(ValueError, match="base has 1 lines but there are 2 sources"):
        sentences.sentence_table(["a", "b"], None, {"base": ["x"]}, {})
    with pytest.raises(ValueError, match="A system is called 'source'"):
        sentences.sentence_table(["a"], None, {"source": ["x"]}, {})


@pytest.mark.timing
def test_a_hundred_thousand_sentences_of_ten_systems_are_filtered_and_sorted_under_a_second():
    draw = np.random.default_rng(1)
    words = np.array(["".join(draw.choice(list("abcdefgh"), 5)) for _ in range(999)], dtype=object)
    pool = [" ".join(draw.choice(words, 25)) for _ in range(2000)]
    rows = draw.integers(len(pool), size=(12, 100_000))
    texts = {f"text-{number}": pd.Series([pool[row] for row in own], dtype="str") for number, own in enumerate(rows)}
    values = pd.DataFrame({f"chrF {number}": draw.random(100_000) for number in range(10)})
    labels = pd.DataFrame({"domain": draw.choice(["news", "chat", "law"], 100_000)})
    big = sentences.Sentences(pd.DataFrame(texts), values, labels, tuple(map(str, range(10))))
    began = time.process_time()
    found = sentences.select(
        big, "abc", ranges={"chrF 3": (0.01, 1)}, labels={"domain": ["news", "law", "chat"]}, order="chrF 7"
    )
    assert time.process_time() - began < 1
    kept = values["chrF 3"].to_numpy() >= 0.01
    has = np.array(["abc" in line for line in pool])[rows].any(axis=0)
    assert sorted(found) == np.flatnonzero(kept & has).tolist()
    assert (np.diff(values["chrF 7"].to_numpy()[found]) >= 0).all()


def test_a_difference_worked_by_hand():
    assert sentences.word_diff("the black cat sleeps.", "the cat  sleeps here.") == [
        Difference(True, "the ", "the "),
        Difference(False, "black ", ""),
        Difference(True, "cat sleeps", "cat  sleeps "),
        Difference(False, "", "here"),
        Difference(True, ".", "."),
    ]
    assert sentences.word_diff("我爱你", "我恨你") == [
        Difference(True, "我", "我"),
        Difference(False, "爱", ""),
        Difference(False, "", "恨"),
        Difference(True, "你", "你"),
    ]


@settings(max_examples=60, deadline=None)
@given(*[st.text("ab <$*.\u00e9e\u0301我 \n\u05d0", max_size=20)] * 2)
def test_a_difference_gives_both_texts_back(first, second):
    found = sentences.word_diff(first, second)
    assert "".join(piece.first for piece in found) == first
    assert "".join(piece.second for piece in found) == second
    for piece in found:
        if piece.equal:
            assert "".join(piece.first.split()) == "".join(piece.second.split())
        else:
            assert (piece.first == "") != (piece.second == "")
    if first.split() == second.split():
        assert all(piece.equal or not (piece.first + piece.second).strip() for piece in found)
