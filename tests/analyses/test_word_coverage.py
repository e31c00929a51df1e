"""Words left out and repeated: right translations have none, whatever is taken out or written twice is found."""

import numpy as np
import pytest

from analyses.buckets import from_edges, paired_differences
from analyses.word_coverage import Forms, sentence_coverage, shares
from core_models.text.controlled import generate

SOURCE, REFERENCE = (
    ["the", "old", "dog", "sleeps", "in", "the", "house"],
    ["der", "alte", "Hund", "schläft", "im", "Haus"],
)
LINKS = {(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5)}


@pytest.fixture
def forms():
    """Learned of two sentences: `im` stands for two words at once, and `die` is linked to nothing in the second."""
    found = Forms()
    found.learn(SOURCE, REFERENCE, LINKS)
    found.learn(["the", "dog", "'s", "cats"], ["die", "Katzen", "des", "Hundes"], {(0, 2), (1, 3), (2, 3), (3, 1)})
    found.learn(["the"], ["die"], {(0, 0)})
    found.learn(["the"], ["das"], {(0, 0)})
    return found


def became(hypothesis, forms, source=SOURCE, reference=REFERENCE, links=LINKS):
    words = hypothesis.split()
    found = sentence_coverage(source, reference, links, words, forms)
    said = [source[i] for i in sorted(found.left_out)], [words[j] for j in sorted(found.repeated)]
    return *said, [words[j] for j in sorted(found.foreign)]


@pytest.mark.parametrize(
    ("hypothesis", "left_out", "repeated", "foreign"),
    [
        ("der alte Hund schläft im Haus", [], [], []),
        ("im Haus schläft der alte Hund", [], [], []),
        ("der Hund schläft im Haus", ["old"], [], []),
        ("der alte alte Hund schläft im Haus", [], ["alte"], []),
        ("der alte Mann schläft im Haus", ["dog"], [], ["Mann"]),
        ("die alte Hund schläft im Haus", [], [], []),  # another form of the same word
        ("der alte Hund schläft", ["in", "the", "house"], [], []),
        ("alte Hund schläft im Haus", ["the"], [], []),  # which of the two, nobody can tell
        ("", SOURCE, [], []),
    ],
)
def test_words_are_counted_by_hand(hypothesis, left_out, repeated, foreign, forms):
    said = became(hypothesis, forms)
    assert (sorted(said[0]), said[1], said[2]) == (sorted(left_out), repeated, foreign)


def test_counting_learns_nothing(forms):
    before = {word: set(found) for word, found in forms.translations.items()}
    became("der Hund", forms, ["this", "dog"], ["dieser", "Hund"], {(0, 0), (1, 1)})
    assert dict(forms.translations) == before


def test_a_word_without_link_is_none_too_many_and_another_of_its_kind_may_stand_there(forms):
    source, reference = ["the", "dog", "'s", "cats"], ["die", "Katzen", "des", "Hundes"]
    links = {(0, 2), (1, 3), (2, 3), (3, 1)}
    forms.learn(["the", "cats"], ["das", "Katzen"], {(1, 1)})  # so `das` too stands alone
    for article, repeated in (("die", []), ("das", []), ("die die", ["die"])):
        said = became(f"{article} Katzen des Hundes", forms, source, reference, links)
        assert (said[0], len(said[1]), said[2]) == ([], len(repeated), [])


def test_shares_are_percent_of_the_words_that_have_a_counterpart(forms):
    lines = ["der alte Hund schläft im Haus", "der Hund Hund schläft im Haus"]
    found = shares([sentence_coverage(SOURCE, REFERENCE, LINKS, line.split(), forms) for line in lines])
    assert found["left out"].values.tolist() == [[0, 7], [1, 7]]
    assert found["repeated"].values.tolist() == [[0, 7], [1, 7]]
    assert found["left out"].total == pytest.approx(100 / 14)
    assert not found["left out"].higher_is_better
    apart = paired_differences({"a": found["left out"], "b": found["left out"]}, from_edges([7, 7], ()), "a", 50)
    assert apart.delta.tolist() == [0.0]


@pytest.fixture(scope="module")
def corpus():
    return generate(600, 1, 150, seed=5)


@pytest.fixture(scope="module")
def learned(corpus):
    found = Forms()
    for text in (corpus.train, corpus.test):
        for source, target, record in zip(text.sources, text.targets, text.truth, strict=True):
            found.learn(source.split(), target.split(), map(tuple, record["alignment"]))
    return found


def whole(corpus):
    for source, target, record in zip(corpus.test.sources, corpus.test.targets, corpus.test.truth, strict=True):
        yield source.split(), target.split(), {(int(i), int(j)) for i, j in record["alignment"]}


def test_a_reference_leaves_out_nothing_and_repeats_nothing(corpus, learned):
    for source, target, links in whole(corpus):
        found = sentence_coverage(source, target, links, target, learned)
        assert not found.left_out | found.repeated | found.foreign
        assert found.linked == len({i for i, _ in links})


def test_another_right_translation_hardly_differs(corpus, learned):
    found = [
        sentence_coverage(source, target, links, other.split(), learned)
        for (source, target, links), other in zip(whole(corpus), corpus.second_targets, strict=True)
    ]
    assert [second == first for second, first in zip(corpus.second_targets, corpus.test.targets, strict=True)].count(0)
    for own in shares(found).values():
        assert own.total < 0.5


def test_what_is_taken_out_or_doubled_is_found(corpus, learned):
    drawn, tried = np.random.default_rng(1), 0
    for source, target, links in whole(corpus):
        alone = [i for i in range(len(source)) if source.count(source[i]) == 1 and source[i].isalpha()]
        once = [
            (i, j) for i, j in links if i in alone and target.count(target[j]) == 1
            and [k for k, _ in links if k == i] == [i] and [k for _, k in links if k == j] == [j]
            and not any(target[j] in learned.translations[word] for k, word in enumerate(source) if k != i)
            and sum(word in learned.translations[source[i]] for word in target) == 1
        ]  # fmt: skip
        if not once:
            continue
        i, j = once[drawn.integers(len(once))]
        tried += 1
        without = sentence_coverage(source, target, links, target[:j] + target[j + 1 :], learned)
        assert (without.left_out, without.repeated) == ({i}, frozenset())
        doubled = sentence_coverage(source, target, links, [*target[: j + 1], *target[j:]], learned)
        assert not doubled.left_out
        assert [doubled and (target[: j + 1] + target[j:])[k] for k in doubled.repeated] == [target[j]]
    assert tried > 50
