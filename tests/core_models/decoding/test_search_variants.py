"""Finished hypotheses that stay in the beam, sampling, and ensembles."""

from collections import Counter

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding import Ensemble, beam_search, penalty, sample
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS, PAD
from tests.core_models.decoding.table_model import Table, next_log_probs, random_table
from tests.core_models.laws import SYSTEMS, random_sentences, random_system

pytestmark = pytest.mark.long

LIMITS = torch.tensor([6, 3, 8])


def nematus_search(table, limit, settings):
    """A finished hypothesis keeps its place among the K and its score; the K are ranked under the penalty at last."""
    beam = [(0.0, [])]
    for _ in range(limit):
        offered = [one for one in beam if EOS in one[1]]
        offered += [
            (score + value, [*words, word])
            for score, words in beam
            if EOS not in words
            for word, value in enumerate(next_log_probs(table, words))
            if word not in (PAD, BOS)
        ]
        beam = sorted(offered, key=lambda one: -one[0])[: settings.beam]
    return sorted(beam, key=lambda one: -one[0] / penalty(len(one[1]), settings))[: settings.n_best]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("kind", "alpha"), [("power", 1.0), ("gnmt", 0.0)])
def test_finished_hypotheses_may_stay(seed, kind, alpha):
    settings = SearchConfig(
        beam=1 + seed % 4, n_best=1 + seed % 4, length_penalty=alpha, penalty=kind, finished_hypotheses="keep"
    )
    table = random_table(3, 7, seed)
    table[..., EOS] += seed % 3
    for row, sentence in enumerate(beam_search(Table(), table, LIMITS, settings)):
        expected = nematus_search(table[row], int(LIMITS[row]), settings)
        assert [one.words + [EOS] * one.finished for one in sentence.hypotheses] == [words for _, words in expected]
        assert [one.score for one in sentence.hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-9)
        for one in sentence.hypotheses:
            assert sum(one.token_log_probs) == pytest.approx(one.score, abs=1e-9)


def test_a_staying_beam_may_be_wider_than_the_tree():
    settings = SearchConfig(beam=50, n_best=3, finished_hypotheses="keep", length_penalty=1.0, penalty="power")
    table = random_table(1, 7, 1)
    found = beam_search(Table(), table, torch.tensor([2]), settings)[0]
    expected = nematus_search(table[0], 2, settings)
    assert [one.score for one in found.hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-9)


def test_a_prefix_is_forced_on_a_staying_beam_too():
    settings = SearchConfig(beam=3, n_best=3, finished_hypotheses="keep")
    prefix = torch.tensor([[4, 5], [6, -1], [5, 4]])
    for row, sentence in enumerate(beam_search(Table(), random_table(3, 7, 2), LIMITS, settings, prefix)):
        forced = [word for word in prefix[row].tolist() if word >= 0]
        assert all(one.words[: len(forced)] == forced for one in sentence.hypotheses)


def frequencies(table, draws=4000, **options):
    found = sample(Table(), table, torch.tensor([2]), draws, generator=torch.Generator().manual_seed(3), **options)[0]
    return found, Counter(tuple(one.words + [EOS] * one.finished) for one in found)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"top": 3}])
def test_samples_follow_the_models_distribution(options):
    """The share of every two-word output lies within four standard errors of its probability."""
    table, draws = random_table(1, 7, 8, spread=1.0), 4000
    _, counts = frequencies(table, draws, **options)

    def distribution(words):
        values = torch.tensor(next_log_probs(table[0], words)) / options.get("temperature", 1.0)
        values[[PAD, BOS]] = -torch.inf
        if "top" in options:
            values[values < values.topk(options["top"]).values[-1]] = -torch.inf
        return torch.softmax(values, 0).tolist()

    expected = {}
    for first, probability in enumerate(distribution([])):
        if first == EOS:
            expected[EOS,] = probability
            continue
        for second, then in enumerate(distribution([first])):
            expected[first, second] = probability * then
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= {words for words, probability in expected.items() if probability > 0}
    for words, probability in expected.items():
        error = (probability * (1 - probability) / draws) ** 0.5
        assert abs(counts[words] / draws - probability) <= 4 * error + 1e-12, words


def test_samples_are_a_function_of_the_seed_and_carry_plain_log_probabilities():
    table = random_table(1, 7, 8)
    one, _ = frequencies(table, 20, temperature=0.7)
    two, _ = frequencies(table, 20, temperature=0.7)
    assert one == two
    for drawn in one:
        words = drawn.words + [EOS] * drawn.finished
        told = [next_log_probs(table[0], words[:place])[word] for place, word in enumerate(words)]
        assert drawn.token_log_probs == pytest.approx(told, abs=1e-9)


@pytest.mark.parametrize("top", [1, 3])
def test_of_equal_words_no_more_than_top_are_drawn(top):
    _, counts = frequencies(torch.zeros_like(random_table(1, 7, 8)), 200, top=top)
    assert len({words[0] for words in counts}) == top


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_ensemble_of_one_is_the_system(name):
    system, batch = random_system(name), collate(random_sentences([4, 2], 1))
    settings, limits = SearchConfig(beam=3, n_best=3), torch.tensor([7, 5])
    with torch.no_grad():
        alone = beam_search(system, system.encode(batch), limits, settings)
        together = beam_search(Ensemble([system]), [system.encode(batch)], limits, settings)
    for one, other in zip(alone, together, strict=True):
        assert [hypothesis.words for hypothesis in one.hypotheses] == [
            hypothesis.words for hypothesis in other.hypotheses
        ]
        assert [h.score for h in one.hypotheses] == pytest.approx([h.score for h in other.hypotheses], abs=1e-9)


def test_an_ensemble_of_two_is_their_mean_probability():
    """Two different kinds of systems, beams reordered once: each keeps its own state."""
    systems = [random_system("future-cost-2"), random_system("rnnsearch", seed=2)]
    batch, words = collate(random_sentences([4, 2], 1)), torch.tensor([[5, 6], [7, 8]])
    parents = torch.tensor([[0, 0], [0, 0]])

    def after_one_word(model, encoded):
        _, state = model.step(torch.full((2, 1), BOS), model.start(encoded))
        return model.step(words, state.select(None, parents))[0]

    with torch.no_grad():
        alone = [torch.softmax(after_one_word(system, system.encode(batch)).values, -1) for system in systems]
        scores = after_one_word(Ensemble(systems), [system.encode(batch) for system in systems])
    assert scores.normalized
    torch.testing.assert_close(scores.values.exp(), (alone[0] + alone[1]) / 2, atol=1e-12, rtol=0)
