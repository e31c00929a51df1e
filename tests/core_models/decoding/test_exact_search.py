"""Exact search against brute force; what it prunes, and what it says when it is not let through."""

import itertools

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding import Ensemble, beam_search, exact_search
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS, PAD, UNK
from tests.core_models.decoding.table_model import Table, next_log_probs, random_table
from tests.core_models.laws import log_probs, random_sentences, random_system

WORDS, LIMIT = 7, 5
CHOICES = [word for word in range(WORDS) if word not in (PAD, BOS, EOS)]
OUTPUTS = [list(words) for length in range(LIMIT) for words in itertools.product(CHOICES, repeat=length)]


def total(table, words):
    told = [next_log_probs(table, words[:place])[word] for place, word in enumerate([*words, EOS])]
    return sum(told)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_brute_force_on_a_table(seed):
    table = random_table(1, WORDS, seed)
    table[..., EOS] -= seed % 3  # ends are rare, so that the best output is not always a short one
    totals = [total(table[0], words) for words in OUTPUTS]
    best = max(totals)
    found = exact_search(Table(), table, LIMIT)
    assert found.decided
    assert found.words == OUTPUTS[totals.index(best)]
    assert found.log_prob == pytest.approx(best, abs=1e-9)
    assert found.nodes <= len(OUTPUTS)


@pytest.mark.parametrize("name", ["transformer", "rnnsearch", "future-cost-2"])
def test_it_is_brute_force_on_a_system(name):
    words, limit = 6, 4
    system, (source,) = random_system(name, words=words), random_sentences([3], 4, words)
    choices = [word for word in range(words) if word not in (PAD, BOS, EOS)]
    outputs = [list(some) for length in range(limit) for some in itertools.product(choices, repeat=length)]
    with torch.no_grad():
        encoded = system.encode(collate([source]))
        batch = collate([source] * len(outputs), outputs)
        told = log_probs(system, batch).gather(2, batch.target[..., None])[..., 0]
        totals = (told * batch.target_mask).sum(1)
        for model, start in ((system, encoded), (Ensemble([system, system]), [encoded, encoded])):
            found = exact_search(model, start, limit)
            assert found.words == outputs[int(totals.argmax())]
            assert found.log_prob == pytest.approx(float(totals.max()), abs=1e-9)


def test_a_bound_spares_work_and_loses_nothing():
    spared = 0
    for seed in range(20):
        table = random_table(1, WORDS, seed)
        free = exact_search(Table(), table, LIMIT)
        settings = SearchConfig(beam=2, length_penalty=0.0)
        (beam,) = beam_search(Table(), table, torch.tensor([LIMIT]), settings)
        if not beam.hypotheses[0].finished:
            continue
        bound = beam.hypotheses[0].score
        found = exact_search(Table(), table, LIMIT, bound - 1e-9)
        assert (found.words, found.decided) == (free.words, True)
        assert found.nodes <= free.nodes
        spared += free.nodes - found.nodes
        above = exact_search(Table(), table, LIMIT, free.log_prob + 1e-9)
        assert (above.words, above.log_prob) == (None, free.log_prob + 1e-9)
        prefixes = {tuple(words[:end]) for words in OUTPUTS for end in range(len(words) + 1)}
        likely = [some for some in prefixes if partial(table[0], list(some)) > free.log_prob + 1e-9]
        assert above.nodes == len(likely)  # with nothing to find, exactly the prefixes above the bound are stepped
    assert spared > 0


def partial(table, words):
    return sum(next_log_probs(table, words[:place])[word] for place, word in enumerate(words))


def test_too_few_nodes_are_said_to_be_too_few():
    table = random_table(1, WORDS, 1, spread=0.1)
    free = exact_search(Table(), table, LIMIT)
    short = exact_search(Table(), table, LIMIT, most_nodes=free.nodes - 1)
    assert (short.decided, short.nodes) == (False, free.nodes - 1)
    assert short.log_prob <= free.log_prob
    assert exact_search(Table(), table, LIMIT, most_nodes=free.nodes).decided


def test_the_empty_output_is_found_where_nothing_beats_it():
    table = random_table(1, WORDS, 2)
    table[..., EOS] += 20
    assert exact_search(Table(), table, LIMIT).words == []
    assert exact_search(Table(), random_table(1, WORDS, 2), 1).words == []  # the only one that is short enough
    assert UNK in CHOICES
