"""Ranks of a sentence's words by its predictions of bags: those of the sorted logits, whoever is in the batch."""

import numpy as np
import pytest
import torch

from core_models.inspection.logit_lens import bag_ranks, record
from core_models.interface.mechanism import Prediction
from core_models.text.batches import collate
from core_models.text.vocabulary import PAD
from core_models.traces import TraceWriter
from tests.core_models.laws import random_sentences, random_system

SIDES = ("past", "future")


def traced(system, sources, targets) -> list[dict]:
    batch, writer = collate(sources, targets), TraceWriter(["*_bag.rank"])
    forced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    record(system, forced, batch.target, writer)
    lengths = {"source": batch.source_mask.sum(1).tolist(), "target": batch.target_mask.sum(1).tolist()}
    return writer.sentences(lengths)


@torch.no_grad()
@pytest.mark.parametrize(
    "name",
    ["gdr-bow", "clf-bow-bca:bag_head=tanh", "attn-bow-bca:bag_begins=true,bag=strict", "gdr-bow:tie_embeddings=none"],
)
def test_ranks_are_places_in_the_sorted_logits(name):
    system = random_system(name)
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    traces = traced(system, random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    notes = system(system.encode(batch), batch.target_in, batch.target_mask).active.states["guided_capsules"].notes
    mechanism = system.mechanisms["guided_capsules"]
    matrix, bias = system.backbone.output_matrix
    for side in SIDES:
        vectors = mechanism.bag_heads[side](notes[side])
        tanh = mechanism.options.bag_head == "tanh"
        energies = (torch.tanh(vectors) if tanh else vectors) @ matrix.T + (0 if bias is None else bias)
        energies = energies.numpy().copy()
        energies[..., PAD] = -np.inf
        for row, trace in enumerate(traces):
            array = trace[f"{side}_bag.rank"]
            words = batch.target[row][batch.target_mask[row]].tolist()
            assert array.axes == ("target", "target_key")
            for step in range(len(words)):
                better = [(energies[row, step] > energies[row, step, word]).sum() for word in words]
                assert array.values[step].tolist() == [count + 1 for count in better]


@torch.no_grad()
def test_company_changes_no_rank():
    system = random_system("gdr-bow-bca")
    sources, targets = random_sentences([4, 1, 9], 1), random_sentences([2, 7, 4], 2)
    together = traced(system, sources, targets)
    for row, trace in enumerate(together):
        (alone,) = traced(system, sources[row : row + 1], targets[row : row + 1])
        for side in SIDES:
            np.testing.assert_array_equal(trace[f"{side}_bag.rank"].values, alone[f"{side}_bag.rank"].values)


def test_equal_words_share_the_better_rank_and_padding_has_none():
    bag = Prediction("past_bag", torch.ones(1, 2, 1), target="past_bag")
    matrix = torch.tensor([[3.0], [1.0], [2.0], [2.0], [0.0]])
    assert bag_ranks(bag, matrix, None, torch.tensor([[2, 4]])).tolist() == [[[1, 4], [1, 4]]]


@torch.no_grad()
def test_who_predicts_no_bag_has_no_ranks():
    assert not any("rank" in name for trace in traced(random_system("gdr"), [[5, 6]], [[7]]) for name in trace)
