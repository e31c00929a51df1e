"""Laws of batches: every sentence once, within the budget, the same on every rank, little padding, true context."""

import os
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core_models.text.batch_loader import BatchLoader
from core_models.text.batch_plan import BatchPlan
from core_models.text.batches import collate
from core_models.text.buckets import rounded
from core_models.text.documents import ContextUse
from core_models.text.parallel import ParallelText, TextError, read_parallel
from core_models.text.prepared import prepare
from core_models.text.vocabulary import BOS, EOS, PAD, Vocabulary
from tests.paths import ROOT

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=120)


def _split(lengths):
    source, target = np.array(lengths, dtype=np.uint16).T
    return source, target


@settings(deadline=None)
@given(LENGTHS, st.integers(1, 200), st.integers(1, 5), st.integers(0, 3))
def test_every_sentence_once_within_the_budget_on_equal_ranks(lengths, budget, world, epoch):
    source, target = _split(lengths)
    plans = [BatchPlan(source, target, budget, 3, epoch, rank, world) for rank in range(world)]
    assert len({len(plan) for plan in plans}) == 1
    batches = [batch.tolist() for plan in plans for batch in plan]
    for batch in batches:
        longest = max(source[batch].max(), target[batch].max()) + 1
        assert len(batch) * longest <= budget or len(batch) == 1
    seen = sorted(i for batch in batches for i in batch)
    if seen != list(range(len(lengths))):  # allowed only where nothing is left to halve, and nothing is lost even then
        assert set(seen) == set(range(len(lengths)))
        assert all(len(batch) == 1 for batch in batches)
        assert len(batches) - len(lengths) < world


@settings(deadline=None)
@given(LENGTHS, st.integers(20, 200))
def test_a_plan_is_a_function_of_seed_and_epoch_and_seeking_equals_iterating(lengths, budget):
    plan, again = (BatchPlan(*_split(lengths), budget, 5, 2) for _ in range(2))
    iterated = [batch.tolist() for batch in plan]
    assert [again[number].tolist() for number in reversed(range(len(again)))] == iterated[::-1]


def test_two_ranks_share_what_one_rank_has():
    source, target = np.random.default_rng(0).integers(1, 30, size=(2, 500))
    alone = BatchPlan(source, target, 300, 1, 0)
    if len(alone) % 2:
        pytest.fail("choose lengths whose number of batches is even, so that nothing is halved")
    ranks = [BatchPlan(source, target, 300, 1, 0, rank, 2) for rank in range(2)]
    assert [ranks[number % 2][number // 2].tolist() for number in range(len(alone))] == [b.tolist() for b in alone]


@pytest.fixture(scope="module")
def two_million():
    """Lengths of two million pairs, as they are stored."""
    return np.random.default_rng(7).integers(1, 57, size=(2, 2_000_000)).astype(np.uint16)


@pytest.mark.long
def test_a_plan_costs_a_few_bytes_a_pair(two_million):
    """Kept: 4 bytes a pair, its place in the order. While planning: 8 more for its sort key, and room for lengths."""
    tracemalloc.start()
    plan = BatchPlan(*two_million, 4096, 1, 0)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    pairs = two_million.shape[1]
    assert kept < 5 * pairs
    assert peak < 20 * pairs
    assert sum(map(len, plan)) == pairs


@pytest.mark.timing
def test_seeking_costs_the_same_wherever_it_leads(two_million):
    """Any of some twenty thousand batches at once; to pass over those before it would take seconds."""
    plan = BatchPlan(*two_million, 4096, 1, 0)
    assert len(plan) > 15_000
    for number in (0, len(plan) // 2, len(plan) - 1):
        began = time.process_time()
        assert len(plan[number])
        assert time.process_time() - began < 0.01


def test_lengths_beyond_the_sort_keys_are_still_planned():
    lengths = np.array([100_000, 3, 5_000, 4])
    batches = [sorted(batch.tolist()) for batch in BatchPlan(lengths, lengths[::-1], 20, 1, 0)]
    assert sorted(batches) == [[0], [1], [2], [3]]


def test_impossible_plans_are_refused():
    with pytest.raises(TextError, match="need one each"):
        BatchPlan(np.ones(3), np.ones(2), 10, 1, 0)
    with pytest.raises(TextError, match="rank=2, world=2"):
        BatchPlan(np.ones(3), np.ones(3), 10, 1, 0, rank=2, world=2)


def _multi30k() -> Path:
    folder = Path(os.environ.get("NMT_WORKBENCH_DATA", ROOT.parent / "shared" / "data")) / "multi30k"
    if not (folder / "train.en.gz").is_file():
        pytest.skip("Multi30k is not here; set NMT_WORKBENCH_DATA to the folder that holds multi30k/train.{en,de}.gz")
    return folder


@pytest.fixture(scope="module")
def multi30k_lengths():
    text = read_parallel(_multi30k() / "train.en.gz", _multi30k() / "train.de.gz")
    vocabulary = Vocabulary.train([*text.sources, *text.targets], 8000)
    return [np.array([len(ids) for ids in vocabulary.encode(side)]) for side in (text.sources, text.targets)]


@pytest.mark.long
@pytest.mark.parametrize("budget", [2048, 4096])
def test_padding_on_multi30k(multi30k_lengths, budget):
    source, target = multi30k_lengths
    real = source.sum() + target.sum() + 2 * len(source)
    companions = []
    for epoch in (0, 1):
        plan = BatchPlan(source, target, budget, 1, epoch)
        area = sum(len(batch) * (source[batch].max() + target[batch].max() + 2) for batch in plan)
        assert sorted(np.concatenate(list(plan))) == list(range(len(source)))
        assert area <= 1.15 * real
        print(f"budget {budget}, epoch {epoch}: {len(plan)} batches, padded area / real tokens = {area / real:.4f}")
        companions.append({(i, j) for batch in plan for i, j in zip(np.sort(batch), np.sort(batch)[1:], strict=False)})
    kept = len(companions[0] & companions[1]) / len(companions[0])
    print(f"budget {budget}: {kept:.1%} of neighbouring batch mates stay neighbours in the next epoch")
    assert kept < 0.25


def test_collated_by_hand():
    batch = collate([[5, 6], [7]], [[8], [9, 10, 11]], [[[5], None], [None, []]], indices=[4, 2])
    assert batch.source.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.source_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target_in.tolist() == [[BOS, 8, PAD, PAD], [BOS, 9, 10, 11]]
    assert batch.target.tolist() == [[8, EOS, PAD, PAD], [9, 10, 11, EOS]]
    assert batch.target_mask.tolist() == [[True, True, False, False], [True] * 4]
    assert (batch.source_tokens, batch.target_tokens) == (5, 6)
    assert batch.indices.tolist() == [4, 2]
    assert batch.context.words.tolist() == [[[5, EOS], [PAD, PAD]], [[PAD, PAD], [EOS, PAD]]]
    assert batch.context.mask.tolist() == [[[True, True], [False, False]], [[False, False], [True, False]]]
    assert batch.context.present.tolist() == [[True, False], [False, True]]


def test_sources_alone_make_a_batch_without_target_positions():
    batch = collate([np.array([5, 6], dtype=np.uint16), []]).to("cpu")
    assert batch.source.tolist() == [[5, 6, EOS], [EOS, PAD, PAD]]
    assert batch.target.shape == batch.target_in.shape == batch.target_mask.shape == (2, 0)
    assert batch.target_mask.dtype == torch.bool
    assert (batch.target_tokens, batch.context, len(batch)) == (0, None, 2)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    generator = np.random.default_rng(4)
    words = ["Haus", "Baum", "Straße", "Katze", "läuft", "sieht", "grüne", "alte"]
    sources = [" ".join(generator.choice(words, size=generator.integers(1, 9))) for _ in range(150)]
    text = ParallelText("text", sources, [line.upper() for line in sources], [f"d{i // 6}" for i in range(150)])
    return prepare(tmp_path_factory.mktemp("loader"), text, text, pieces=45)


def _same(one, other):
    return torch.equal(one.source, other.source) and torch.equal(one.target, other.target)


def test_the_loader_gives_the_planned_sentences_and_seeks(prepared):
    loader = BatchLoader(prepared.split("train"), 200)
    batches = list(loader.epoch(0))
    text = prepared.split("train")
    for planned, batch in zip(loader.plan(0), batches, strict=True):
        assert batch.indices.tolist() == planned.tolist()
        for row, i in enumerate(planned):
            assert batch.source[row][batch.source_mask[row]].tolist() == [*text.source(i).tolist(), EOS]
            assert batch.target[row][batch.target_mask[row]].tolist() == [*text.target(i).tolist(), EOS]
    resumed = list(BatchLoader(prepared.split("train"), 200).epoch(0, start=3))
    assert len(resumed) == len(batches) - 3
    assert all(_same(one, other) for one, other in zip(resumed, batches[3:], strict=True))


def test_rounding_up_takes_lengths_beyond_the_type_they_are_stored_in(prepared, monkeypatch):
    """255 pieces are stored in 8 bits, and are 256 positions with EOS."""
    text, stored = prepared.split("train"), np.array([255, 3, 4], dtype=np.uint8)
    for side in ("source_lengths", "target_lengths"):
        monkeypatch.setattr(type(text), side, stored)
    loader = BatchLoader(text, 512, buckets=True)
    assert loader.longest() == (256, 256)
    assert [one.tolist() for one in loader.lengths()[:2]] == [[255, 7, 7]] * 2
    assert sorted(sorted(batch.tolist()) for batch in loader.plan(0)) == [[0], [1, 2]]


def test_batches_of_few_shapes_fit_the_learned_positions_also_with_sampled_segmentations(prepared):
    text, vocabularies = prepared.split("train"), (prepared.source_vocabulary, prepared.target_vocabulary)
    room = BatchLoader(text, 200).longest()
    assert int(rounded(min(room))) > min(room)  # a longest sentence has no bucket of its own
    sampled = {"vocabularies": vocabularies, "sampling_alpha": 0.1}
    loader = BatchLoader(text, 200, room=(min(room), min(room)), buckets=True, **sampled)
    widths = {
        side.shape[1] for epoch in (0, 1) for batch in loader.epoch(epoch) for side in (batch.source, batch.target)
    }
    assert max(widths) == min(room)
    assert widths - {min(room)} <= set(map(int, rounded(np.arange(1, 300))))


def test_context_stays_in_the_document_at_its_distance(prepared):
    text = prepared.split("train")
    for batch in BatchLoader(text, 300, context=ContextUse(3)).epoch(1):
        for row, i in enumerate(batch.indices.tolist()):
            assert batch.context.present[row].tolist() == [i % 6 >= distance for distance in (1, 2, 3)]
            for k in range(min(i % 6, 3)):
                words = batch.context.words[row, k][batch.context.mask[row, k]]
                assert words.tolist() == [*text.source(i - k - 1).tolist(), EOS]


def test_sampled_segmentations_depend_on_seed_epoch_and_sentence_alone(prepared):
    text, vocabularies = prepared.split("train"), (prepared.source_vocabulary, prepared.target_vocabulary)

    def segmentations(epoch, budget=200, seed=1):
        loader = BatchLoader(text, budget, seed, vocabularies=vocabularies, sampling_alpha=0.2)
        return {
            int(i): batch.source[row][batch.source_mask[row]].tolist()[:-1]
            for batch in loader.epoch(epoch)
            for row, i in enumerate(batch.indices)
        }

    first = segmentations(0)
    assert first == segmentations(0, budget=90)  # other batches, the same draws
    assert first != segmentations(1)
    assert first != segmentations(0, seed=2)
    assert prepared.source_vocabulary.decode([first[i] for i in range(150)]) == [
        text.source_text(i) for i in range(150)
    ]


def test_a_loader_that_lacks_what_it_needs_is_refused(prepared, tmp_path):
    with pytest.raises(TextError, match="needs vocabularies"):
        BatchLoader(prepared.split("train"), 200, sampling_alpha=0.1)
    dev = prepared.test("dev")
    plain = ParallelText("plain", dev.sources, dev.targets)
    with pytest.raises(TextError, match="need document ids"):
        BatchLoader(prepare(tmp_path, plain, plain, pieces=45).split("train"), 200, context=ContextUse(1))
