"""The frozen aligner: a small grammar word by word, gold links of others, and that it stays as it was written."""

import random

import numpy as np
import pytest

from analyses import aligner, pharaoh
from analyses.alignment import alignment_error_rate
from tests.analyses.test_alignment import gold_lines, needs_gold

NOUNS = {"dog": "hund", "man": "mann", "tree": "baum", "house": "haus", "cat": "katze"}
ADJECTIVES = {"old": "alt", "small": "klein", "green": "grün"}
VERBS = {"sees": "sieht", "finds": "findet", "loves": "liebt"}


def _text(sentences: int, seed: int) -> tuple[list[list[str]], list[list[str]], list[set[tuple[int, int]]]]:
    """Sentences whose verb goes to the end on the other side, and their links."""
    drawn, sources, targets, links = random.Random(seed), [], [], []
    for _ in range(sentences):
        chosen = [drawn.choice(list(kind.items())) for kind in (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS)]
        order = [0, 1, 3, 4, 2]
        sources.append([first for first, _ in chosen])
        targets.append([chosen[place][1] for place in order])
        links.append({(place, j) for j, place in enumerate(order)})
    return sources, targets, links


@pytest.fixture(scope="module")
def trained():
    return aligner.train(*_text(200, 1)[:2])


def test_words_that_go_together_are_linked_wherever_they_stand(trained):
    sources, targets, links = _text(50, 2)
    assert alignment_error_rate(trained.align_all(sources, targets), links) < 0.05


def test_a_word_that_the_training_text_has_not_is_linked_with_its_like_alone(trained):
    source = ["old", "zeppelin", "sees", "green", "cat"]
    known = {(0, 0), (3, 2), (4, 3), (2, 4)}
    assert trained.align(source, ["alt", "luftschiff", "grün", "katze", "sieht"]) == known
    assert trained.align(source, ["alt", "zeppelin", "grün", "katze", "sieht"]) == {*known, (1, 1)}
    assert trained.align(source, ["babble"] * 5) == set()
    assert trained.align(["old"], []) == set()


def test_one_sentence_is_aligned_the_same_whatever_stands_beside_it(trained):
    sources, targets, _ = _text(20, 3)
    assert trained.align_all(sources, targets)[7] == trained.align(sources[7], targets[7])


def test_a_frozen_aligner_comes_back_with_its_digest_and_its_links(trained, tmp_path):
    trained.save(tmp_path / "aligner.npz")
    again = aligner.load(tmp_path / "aligner.npz")
    sources, targets, _ = _text(20, 3)
    assert again.digest == trained.digest
    assert again.align_all(sources, targets) == trained.align_all(sources, targets)
    assert aligner.train(*_text(200, 4)[:2]).digest != trained.digest
    (tmp_path / "aligner.npz").write_bytes(b"PK no aligner")
    with pytest.raises(ValueError, match="no aligner can be read here"):
        aligner.load(tmp_path / "aligner.npz")
    np.savez(tmp_path / "other.npz", version=np.array(99))
    with pytest.raises(ValueError, match="version 99"):
        aligner.load(tmp_path / "other.npz")


def test_growing_worked_by_hand():
    """The intersection {(0, 0), (1, 1)} grows by (2, 1), a neighbour with a free source word; (3, 4) touches nothing
    and links two free words at the end; (0, 3) links a word that has its link and stays out."""
    forward, backward = {(0, 0), (1, 1), (3, 4)}, {(0, 0), (1, 1), (2, 1), (0, 3)}
    assert aligner.grow_diag_final_and(forward, backward) == {(0, 0), (1, 1), (2, 1), (3, 4)}


def test_words_of_a_line():
    assert aligner.words("Das ist's, 3,5 Häuser!") == ["das", "ist's", ",", "3", ",", "5", "häuser", "!"]
    assert aligner.words("我爱NLP。") == ["我", "爱", "nlp", "。"]


@needs_gold
def test_on_the_gold_sentences_alone_it_errs_no_more_than_fast_align():
    """fast_align (systran-align 3.5.0, favour_diagonal, optimised tension, variational Bayes) trained on the same 508
    sentences and nothing else: 47.3 %."""
    gold = pharaoh.parse(gold_lines("de-en.gold.talp"))
    german, english = ([line.lower().split() for line in gold_lines(f"de-en.{side}")] for side in ("de", "en"))
    links = aligner.train(german, english).align_all(german, english)
    assert alignment_error_rate(links, gold.sure, gold.possible) < 0.473
