"""What stands before a sentence: within its document, at its distance, no longer than is read, within the budget."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core_models.text.batch_loader import BatchLoader
from core_models.text.batch_plan import BatchPlan
from core_models.text.batches import collate
from core_models.text.documents import ContextUse, context_entries, document_rows, prepend_context
from core_models.text.parallel import ParallelText, TextError
from core_models.text.prepared import prepare
from core_models.text.vocabulary import EOS, PAD

SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=8)


@settings(deadline=None)
@given(SIZES, st.integers(1, 5), st.integers(0, 3))
def test_no_boundary_is_crossed_and_every_distance_is_true(sizes, reach, after):
    documents = [f"d{number}" for number, size in enumerate(sizes) for _ in range(size)]
    sentences = [(document, place) for number, size in enumerate(sizes) for document, place in
                 ((f"d{number}", place) for place in range(size))]  # fmt: skip
    for (document, place), found in zip(sentences, context_entries(sentences, documents, reach, after), strict=True):
        assert found[:reach] == [(document, place - k) if k <= place else None for k in range(1, reach + 1)]
        following = [(document, place + k) for k in range(1, after + 1)]
        assert found[reach:] == [one if one in sentences else None for one in following]
    assert [len(run) for run in document_rows(documents)] == sizes


def test_documents_that_come_apart_are_refused():
    with pytest.raises(TextError, match=r"documents:3: document 'a' begins again .* one unbroken run"):
        context_entries(["x", "y", "z"], ["a", "b", "a"], 1)
    with pytest.raises(TextError, match="3 sentences but 2 document ids"):
        context_entries(["x", "y", "z"], ["a", "b"], 1)


def test_sentences_that_are_too_long_are_refused_or_cut():
    with pytest.raises(TextError, match=r"sentence 4: a sentence of its context has 5 pieces, .* at most 3"):
        ContextUse(1, longest=3).fit([4, 5, 6, 7, 8], "sentence 4")
    assert ContextUse(1, longest=3, cut=True).fit([4, 5, 6, 7, 8], "sentence 4") == [4, 5, 6]
    assert ContextUse(1, longest=3).fit([4, 5, 6], "sentence 4") == [4, 5, 6]


def test_joined_by_their_ends():
    assert prepend_context([9, 8], [[5], None, [6, 7]]) == [6, 7, EOS, 5, EOS, 9, 8]
    assert prepend_context([9], [None, None]) == [9]


def test_what_serves_several():
    use = ContextUse.of_all([ContextUse(), ContextUse(2, 50), ContextUse(4, 80, cut=True, outputs=True, states=True)])
    assert use == ContextUse(4, 50, states=True, outputs=True)
    assert ContextUse.of_all([]) == ContextUse.of_all([ContextUse()]) == ContextUse()
    with pytest.raises(ValueError, match="prepends the sentences before"):
        ContextUse.of_all([ContextUse(1, joined=True), ContextUse(1)])


def test_words_in_order_by_hand():
    context = collate([[4], [4]], contexts=[[[5, 6], [7]], [None, []]]).context
    words, order = context.in_order()
    assert words.tolist() == [[7, EOS, 5, 6, EOS], [EOS, PAD, PAD, PAD, PAD]]
    assert order.distance.tolist() == [[2, 2, 1, 1, 1], [2, 0, 0, 0, 0]]
    assert order.mask.tolist() == [[True] * 5, [True] + [False] * 4]


def test_a_reach_is_cut_and_filled():
    context = collate([[4]], contexts=[[[5], [6, 7]]], outputs=[[[8], [9]]]).context
    assert context.reaching(2) is context
    assert context.reaching(1).words.tolist() == [[[5, EOS, PAD]]]
    wider = context.reaching(3)
    assert wider.words.tolist() == [[[5, EOS, PAD], [6, 7, EOS], [PAD] * 3]]
    assert wider.present.tolist() == [[True, True, False]]
    assert wider.outputs_mask.tolist() == [[[True, True], [True, True], [False, False]]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    draw = np.random.default_rng(4)
    words = ["Haus", "Baum", "Straße", "Katze", "läuft", "sieht", "grüne", "alte"]
    sources = [" ".join(draw.choice(words, size=draw.integers(1, 12))) for _ in range(200)]
    targets = [" ".join(draw.choice(words, size=draw.integers(1, 12))).upper() for _ in range(200)]
    documents = np.repeat(np.arange(40), draw.multinomial(200 - 40, [1 / 40] * 40) + 1)
    text = ParallelText("text", sources, targets, [f"d{number}" for number in documents])
    return prepare(tmp_path_factory.mktemp("documents"), text, text, pieces=45)


USES = [ContextUse(1), ContextUse(3), ContextUse(3, outputs=True), ContextUse(2, joined=True), ContextUse(2, after=2)]


@pytest.mark.parametrize("use", USES)
def test_context_is_within_the_budget(prepared, use):
    text, budget = prepared.split("train"), 400
    seen = []
    for batch in BatchLoader(text, budget, context=use).epoch(1):
        area = max(batch.source.numel(), batch.target.numel())
        if batch.context is not None:
            area += batch.context.words.numel()
            area += 0 if batch.context.outputs is None else batch.context.outputs.numel()
        assert area <= budget or len(batch) == 1
        seen += batch.indices.tolist()
    assert sorted(seen) == list(range(len(text)))


@pytest.mark.parametrize(("reach", "after"), [(3, 0), (2, 2), (1, 4)])
def test_planned_lengths_are_those_of_the_context(prepared, reach, after):
    text = prepared.split("train")
    longest, together = text.context_lengths(text.source_lengths, reach, after)
    for index in range(len(text)):
        read = [*text.before(index, reach), *text.after(index, after)]
        sizes = [len(text.source(other)) + 1 for other in read if other is not None]
        assert (longest[index], together[index]) == (max(sizes, default=0), sum(sizes))


def test_sentences_after_are_those_that_a_sentence_is_before_of(prepared):
    """And stand behind those before in a batch, the next one first."""
    text = prepared.split("train")
    for index in range(len(text)):
        for distance, other in enumerate(text.after(index, 3)):
            assert other is None or text.before(other, 3)[distance] == index
        assert sum(one is not None for one in text.after(index, 3)) == sum(
            index in text.before(other, 3) for other in range(index + 1, min(index + 4, len(text)))
        )
    for batch in BatchLoader(text, 600, context=ContextUse(2, after=2)).epoch(0):
        for row, index in enumerate(batch.indices.tolist()):
            for k, other in enumerate([*text.before(index, 2), *text.after(index, 2)]):
                found = batch.context.words[row, k][batch.context.mask[row, k]].tolist()
                assert found == ([] if other is None else [*text.source(other).tolist(), EOS])


def test_joined_batches_hold_the_sentences_before(prepared):
    text = prepared.split("train")
    for batch in BatchLoader(text, 400, context=ContextUse(2, joined=True)).epoch(0):
        assert batch.context is None
        for row, index in enumerate(batch.indices.tolist()):
            context = [None if other is None else text.source(other).tolist() for other in text.before(index, 2)]
            wanted = [*prepend_context(text.source(index).tolist(), context), EOS]
            assert batch.source[row][batch.source_mask[row]].tolist() == wanted


def test_translations_before_come_along(prepared):
    text = prepared.split("train")
    for batch in BatchLoader(text, 600, context=ContextUse(2, outputs=True)).epoch(0):
        context = batch.context
        for row, index in enumerate(batch.indices.tolist()):
            for k, other in enumerate(text.before(index, 2)):
                found = context.outputs[row, k][context.outputs_mask[row, k]].tolist()
                assert found == ([] if other is None else [*text.target(other).tolist(), EOS])


def test_a_text_that_is_longer_than_is_read_is_refused_or_cut(prepared):
    text = prepared.split("train")
    with pytest.raises(TextError, match="reads at most 4 of a context sentence"):
        BatchLoader(text, 400, context=ContextUse(2, longest=4))
    cut = BatchLoader(text, 400, context=ContextUse(2, longest=4, cut=True))
    assert max(int(batch.context.mask.sum(2).max()) for batch in cut.epoch(0)) == 5  # four pieces and </s>


def test_a_plan_without_context_is_as_it_was():
    lengths = np.random.default_rng(1).integers(1, 30, size=(2, 300)).astype(np.uint16)
    plain = [batch.tolist() for batch in BatchPlan(*lengths, 200, 1, 0)]
    none = [batch.tolist() for batch in BatchPlan(*lengths, 200, 1, 0, context_widths=None)]
    assert plain == none


@pytest.mark.parametrize("use", [ContextUse(3), ContextUse(2, outputs=True), ContextUse(2, joined=True)])
@pytest.mark.parametrize("buckets", [False, True])
def test_where_context_does_not_count_batches_have_the_sentences_of_those_without(prepared, use, buckets):
    text = prepared.split("train")
    plain = BatchLoader(text, 400, buckets=buckets)
    counted, not_counted = (
        BatchLoader(text, 400, context=use, count_context=c, buckets=buckets) for c in (True, False)
    )
    assert len(counted.plan(1)) > len(plain.plan(1))
    assert not_counted.longest() == counted.longest()
    for one, other in zip(plain.epoch(1), not_counted.epoch(1), strict=True):
        known = other.indices[other.indices >= 0]
        assert known.tolist() == one.indices[one.indices >= 0].tolist()
        assert int(other.source_mask.sum()) > int(one.source_mask.sum()) if use.joined else other.context is not None


def test_moving_takes_all_along():
    moved = collate([[4]], contexts=[[[5]]], outputs=[[[6]]]).to("meta").context
    assert {moved.words.device.type, moved.present.device.type, moved.outputs.device.type} == {"meta"}
    assert collate([[4]], contexts=[[[5]]]).to(torch.device("meta")).context.outputs is None


def test_parts_of_a_batch_are_its_sentences():
    whole = collate([[4], [5, 6], [7]], [[8, 9], [], [10]], [[[5]], [None], [[6, 7]]])
    first, rest = whole.part(slice(1)), whole.part(slice(1, 3))
    assert (len(first), len(rest)) == (1, 2)
    assert (first.source_tokens + rest.source_tokens, first.target_tokens, rest.target_tokens) == (7, 3, 3)
    for name in ("source", "source_mask", "target_in", "target", "target_mask", "indices"):
        assert torch.equal(torch.cat([getattr(first, name), getattr(rest, name)]), getattr(whole, name))
    for name in ("words", "mask", "present"):
        parts = [getattr(part.context, name) for part in (first, rest)]
        assert torch.equal(torch.cat(parts), getattr(whole.context, name))
