"""Contrastive accuracy worked by hand; items of the controlled corpus, where the right pronoun is known."""

import math

import pytest

from analyses import contrastive, pronouns
from analyses.contrastive import Item, Scored, with_contexts
from core_models.text.controlled import generate

# right, wrong, tie, right only per token: log P of the right one, of the wrong ones, and their tokens
SCORED = [
    Scored(-2.0, (-3.0, -2.5), 4, (4, 5)),
    Scored(-5.0, (-4.0,), 5, (4,)),
    Scored(-3.0, (-3.0,), 3, (3,)),
    Scored(-6.0, (-4.0, -9.0), 6, (2, 9)),
]
TAGS = [{"distance": "10"}, {"distance": "2"}, {"distance": "2"}, {}]


def test_an_item_is_right_above_every_wrong_one_and_a_tie_is_none():
    table = contrastive.judged(SCORED, TAGS)
    assert table["outcome"].tolist() == ["right", "wrong", "tie", "wrong"]
    assert table["margin"].tolist() == [0.5, -1.0, 0.0, -2.0]
    assert table["margin_per_token"].tolist() == pytest.approx([-0.5 + 0.5, -1.0 + 1.0, 0.0, -1.0 + 1.0])
    assert table["chance"].tolist() == pytest.approx([1 / 3, 1 / 2, 1 / 2, 1 / 3])
    assert table["distance"].tolist() == ["10", "2", "2", "(none)"]


def test_accuracy_by_tag_has_wilson_intervals_and_counts_ties_as_wrong():
    table = contrastive.accuracy(contrastive.judged(SCORED, TAGS), "distance")
    assert table["tag"].tolist() == ["2", "10", "(none)"], "numbers by size, then the rest"
    assert table[["n", "right", "ties"]].to_numpy().tolist() == [[2, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert table["margin"].tolist() == [-0.5, 0.5, -2.0]
    (whole,) = contrastive.accuracy(contrastive.judged(SCORED, TAGS)).itertuples()
    assert (whole.n, whole.right, whole.ties, whole.share) == (4, 1, 1, 0.25)
    z, n, p = 1.959963985, 4, 0.25  # Wilson 1927
    centre, reach = p + z**2 / (2 * n), z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert whole.low == pytest.approx((centre - reach) / (1 + z**2 / n))
    assert whole.high == pytest.approx((centre + reach) / (1 + z**2 / n))
    assert whole.chance == pytest.approx((1 / 3 + 1 / 2 + 1 / 2 + 1 / 3) / 4)


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(ValueError, match="Item 0 has no wrong translation"):
        contrastive.judged([Scored(-1.0, (), 2, ())], [{}])
    with pytest.raises(ValueError, match="2 items were scored, but there are tags of 1"):
        contrastive.judged(SCORED[:2], TAGS[:1])
    with pytest.raises(ValueError, match="No item has the tag 'gender'; there is distance"):
        contrastive.accuracy(contrastive.judged(SCORED, TAGS), "gender")


@pytest.fixture(scope="module")
def corpus():
    return generate(sentences=20, dev=20, test=400, seed=5).test


@pytest.fixture(scope="module")
def items(corpus) -> list[Item]:
    return contrastive.from_truth(corpus.sources, corpus.targets, corpus.truth, corpus.documents)


def test_items_of_the_controlled_corpus_differ_in_the_pronoun_alone(corpus, items):
    assert len(items) == sum(len(truth["pronouns"]) for truth in corpus.truth) > 40
    for item in items:
        assert item.right in corpus.targets
        assert len(item.wrong) == 2
        for wrong in item.wrong:
            changed = [(a, b) for a, b in zip(item.right.split(), wrong.split(), strict=True) if a != b]
            assert [right.lower() for right, _ in changed] == [item.tags["pronoun"]]
        assert all(line in corpus.sources for line in item.context)


def test_who_knows_the_truth_is_right_by_every_tag_and_who_inverts_it_by_none(corpus, items):
    """The known truth: a scorer of pronouns alone, through another way of judging them."""
    tags = [item.tags for item in items]
    for right, share in ((-1.0, 1.0), (-3.0, 0.0)):
        scored = [Scored(right, (-2.0,) * len(item.wrong), 5, (5,) * len(item.wrong)) for item in items]
        table = contrastive.accuracy(contrastive.judged(scored, tags), "distance")
        assert (table["share"] == share).all()
    references = [line.split() for line in corpus.targets]
    distances = pronouns.outcomes(references, references, corpus.truth)["distance"].astype(str).value_counts()
    assert dict(zip(table["tag"], table["n"], strict=True)) == distances.to_dict()


def test_several_tags_are_crossed_and_what_does_not_occur_is_left_out():
    scored = [Scored(-1.0, (-2.0,), 1, (1,)), Scored(-3.0, (-2.0,), 1, (1,)), Scored(-1.0, (-2.0,), 1, (1,))]
    tags = [{"distance": "2", "order": "no"}, {"distance": "2", "order": "yes"}, {"distance": "1", "order": "no"}]
    table = contrastive.accuracy(contrastive.judged(scored, tags), "distance,order")
    assert table[["tag", "n", "right"]].to_numpy().tolist() == [["1, no", 1, 1], ["2, no", 1, 1], ["2, yes", 1, 0]]
    named = [{**own, "pronoun": form} for own, form in zip(tags, ("es", "er", "er"), strict=True)]
    assert contrastive.majority(named, "distance,order") == {"1, no": 1.0, "2, no": 0.0, "2, yes": 1.0}
    with pytest.raises(ValueError, match="No item has the tag 'gender'"):
        contrastive.accuracy(contrastive.judged(scored, tags), "distance,gender")


def test_the_majority_is_the_commonest_right_form_throughout():
    tags = [
        {"distance": "1", "pronoun": "er"},
        {"distance": "1", "pronoun": "sie"},
        {"distance": "2", "pronoun": "er"},
        {"distance": "2", "pronoun": "er"},
        {"distance": "2", "pronoun": "es"},
    ]
    assert contrastive.majority(tags) == {"all": pytest.approx(3 / 5)}
    assert contrastive.majority(tags, "distance") == {"1": pytest.approx(1 / 2), "2": pytest.approx(2 / 3)}
    assert contrastive.majority([{"distance": "1"}]) == {}
    assert contrastive.majority(tags, "size") == {}


def test_items_of_the_truth_reach_back_as_far_as_is_asked(corpus, items):
    far = contrastive.from_truth(corpus.sources, corpus.targets, corpus.truth, corpus.documents, reach=10)
    rows = [row for row, truth in enumerate(corpus.truth) for _ in truth["pronouns"]]
    for row, one, other in zip(rows, items, far, strict=True):
        before = [place for place in range(row) if corpus.documents[place] == corpus.documents[row]]
        for item, reach in ((one, int(one.tags["distance"])), (other, 10)):
            wanted = before[-reach:] if reach else []
            assert item.context == tuple(corpus.sources[place] for place in wanted)
            assert item.context_outputs == tuple(corpus.targets[place] for place in wanted)
        ahead = [place for place in range(len(corpus.sources)) if corpus.documents[place] == corpus.documents[row]]
        assert other.context_after == tuple(corpus.sources[place] for place in ahead if row < place <= row + 10)
        assert one.context_after == ()
    assert any(len(other.context) > len(one.context) for one, other in zip(items, far, strict=True))


def test_contexts_of_a_control_are_empty_or_anothers_or_backwards():
    items = [Item(f"s{n}", "r", ("w",), {}, (f"a{n} b", f"c{n}"), (f"A{n} B", f"C{n}"), (f"d{n} e",)) for n in range(4)]
    assert with_contexts(items, "none") == [Item(f"s{n}", "r", ("w",), {}) for n in range(4)]
    another = with_contexts(items, "another")
    assert [item.context for item in another] == [items[n].context for n in (2, 3, 0, 1)]
    assert [item.context_after for item in another] == [items[n].context_after for n in (2, 3, 0, 1)]
    backwards = Item("s0", "r", ("w",), {}, ("b a0", "c0"), ("B A0", "C0"), ("e d0",))
    assert with_contexts(items, "words-backwards")[0] == backwards
    with pytest.raises(ValueError, match="none, another, words-backwards"):
        with_contexts(items, "before")
    with pytest.raises(ValueError, match="There is no other item"):
        with_contexts(items[:1], "another")
