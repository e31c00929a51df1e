"""The aligner beside a twin in plain Python on small random texts: tables, links of unknown words, symmetrisation."""

import random

import numpy as np
import pytest

from analyses import aligner
from tests.analyses import fast_align

SOURCE, TARGET = ["a", "b", "c", "d", "x"], ["P", "Q", "R", "S", "T", "x"]
STRANGE = ["x", "y", "z", "R"]  # in neither text, or in one of the two alone


def _random_text(seed: int, sentences: int = 12, longest: int = 6) -> list[list[list[str]]]:
    """Two sides of random words, of unequal lengths and with repetitions: no grammar that would hide an error."""
    drawn = random.Random(seed)
    return [
        [[drawn.choice(words) for _ in range(drawn.randint(1, longest))] for _ in range(sentences)]
        for words in (SOURCE[:-1], TARGET[:-1])
    ]


def _table(direction, giving: list[str], made: list[str]) -> dict:
    """A trained direction as {(giving word, made word): probability}."""
    names = [None, *giving], [None, *made]
    first, second = np.divmod(direction.keys, len(names[1]))
    pairs = zip(first, second, direction.probabilities, strict=True)
    return {(names[0][i], names[1][j]): float(value) for i, j, value in pairs}


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_tables_are_those_of_the_model_in_plain_python(iterations):
    sources, targets = _random_text(iterations)
    trained = aligner.train(sources, targets, iterations)
    names = trained.source_words, trained.target_words
    found = _table(trained.forward, *names), _table(trained.backward, *reversed(names))
    wanted = (
        fast_align.translation_table(sources, targets, iterations),
        fast_align.translation_table(targets, sources, iterations),
    )
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.keys() == theirs.keys()
        assert ours == pytest.approx(theirs, rel=1e-5)


def test_five_iterations_unless_one_says_otherwise():
    sources, targets = _random_text(7)
    five, default = aligner.train(sources, targets, 5), aligner.train(sources, targets)
    np.testing.assert_array_equal(default.forward.probabilities, five.forward.probabilities)
    np.testing.assert_array_equal(default.backward.probabilities, five.backward.probabilities)


def test_links_are_those_of_the_model_in_plain_python():
    """Sentences of known and unknown words, some spelled alike on both sides; where two places explain a word equally
    well to five digits (a repeated word in the middle of two), rounding decides, and the sentence is left out."""
    sources, targets = _random_text(3, sentences=25)
    trained = aligner.train(sources, targets)
    tables = fast_align.translation_table(sources, targets, 5), fast_align.translation_table(targets, sources, 5)
    drawn, compared = random.Random(5), 0
    for _ in range(300):
        source, target = (
            [drawn.choice(words) for _ in range(drawn.randint(1, 7))]
            for words in (SOURCE + STRANGE, [*TARGET, *STRANGE, "a"])
        )
        sides = ((tables[0], source, target), (tables[1], target, source))
        explained = [
            [fast_align.posteriors(table, left, right, j) for j in range(1, len(right) + 1)]
            for table, left, right in sides
        ]
        ranked = [sorted(values, reverse=True) for direction in explained for values in direction]
        if any(second > first * (1 - 1e-5) for first, second, *_ in ranked):
            continue
        forward, backward = (
            [(values.index(max(values)) - 1, place) for place, values in enumerate(direction)]
            for direction in explained
        )
        wanted = fast_align.grow_diag_final_and(
            {(i, j) for i, j in forward if i >= 0},
            {(place, j) for j, place in backward if j >= 0},
            len(source),
            len(target),
        )
        assert trained.align(source, target) == wanted
        compared += 1
    assert compared > 100


def test_directions_are_joined_as_in_plain_python():
    drawn = random.Random(9)
    for _ in range(400):
        sources, targets = drawn.randint(1, 6), drawn.randint(1, 6)
        cells = [(i, j) for i in range(sources) for j in range(targets)]
        forward, backward = ({cell for cell in cells if drawn.random() < 0.3} for _ in range(2))
        found = aligner.grow_diag_final_and(forward, backward)
        assert forward & backward <= found <= forward | backward
        assert found == fast_align.grow_diag_final_and(forward, backward, sources, targets)


def test_joining_by_hand_grows_diagonally_and_takes_the_forward_direction_first_at_the_end():
    assert aligner.grow_diag_final_and({(0, 0), (1, 1)}, {(0, 0)}) == {(0, 0), (1, 1)}  # a diagonal neighbour
    assert aligner.grow_diag_final_and({(2, 3), (1, 2)}, {(2, 3), (0, 1)}) == {(2, 3), (1, 2), (0, 1)}  # link by link
    assert aligner.grow_diag_final_and({(0, 1)}, {(0, 0), (1, 1)}) == {(0, 1)}  # no word of the backward links is free
