"""Beam search against plain Python and against brute force; the recorded tree; the stop rule; prefixes."""

import itertools

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding import Scores, beam_search, candidates, penalty
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS, PAD
from tests.core_models.decoding.table_model import Table, next_log_probs, random_table
from tests.core_models.laws import DEVICE, SYSTEMS, log_probs, random_sentences, random_system

LIMITS = torch.tensor([6, 3, 8])


def config(**given) -> SearchConfig:
    return SearchConfig(**{"beam": 3, "n_best": given.get("beam", 3), **given})


def search(table, settings, limits=LIMITS, prefix=None, record=False):
    return beam_search(Table(), table, limits, settings, prefix, record)


def continuations(table, live, forced):
    """Every (score, words) that extends a live hypothesis, best first."""
    found = [
        (score + value, [*words, word])
        for score, words in live
        for word, value in enumerate(next_log_probs(table, words))
        if word not in (PAD, BOS) and forced in (-1, word)
    ]
    return sorted(found, key=lambda candidate: -candidate[0])


def plain_beam_search(table, limit, settings, prefix=()):
    """No stop rule: K live hypotheses, a finished one among the first K of 2K goes to a list, until the limit.

    But a beam of one is greedy search, which its first finished hypothesis ends.
    """
    live, done = [(0.0, [])], []
    for position in range(limit):
        if done and settings.beam == 1:
            break
        best = continuations(table, live, prefix[position] if position < len(prefix) else -1)[: 2 * settings.beam]
        done += [candidate for candidate in best[: settings.beam] if candidate[1][-1] == EOS]
        live = [candidate for candidate in best if candidate[1][-1] != EOS][: settings.beam] or live
    ranked = sorted(done, key=lambda one: -one[0] / penalty(len(one[1]), settings))
    return [(words, score) for score, words in ranked[: settings.n_best] or live[:1]]


def written(found):
    return [[(one.words + [EOS] * one.finished, one.score) for one in sentence.hypotheses] for sentence in found]


def assert_same(found, expected):
    assert [words for words, _ in found] == [words for words, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("kind", "alpha"), [("gnmt", 0.0), ("gnmt", 0.6), ("power", 1.0)])
def test_beam_search_is_the_plain_one_and_its_stop_rule_loses_nothing(seed, kind, alpha):
    settings = config(beam=1 + seed % 5, length_penalty=alpha, penalty=kind)
    table = random_table(3, 7, seed)
    table[..., EOS] += seed % 3
    for row, sentence in enumerate(written(search(table, settings))):
        assert_same(sentence, plain_beam_search(table[row], int(LIMITS[row]), settings))


class CountedSteps(Table):
    """The table's model, and how often it was asked for a step."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, words, state):
        self.steps += 1
        return super().step(words, state)


@pytest.mark.parametrize(("kind", "alpha"), [("gnmt", 0.0), ("gnmt", 0.6), ("power", 1.0)])
@pytest.mark.parametrize("n_best", [1, 2])
def test_a_search_ends_once_the_n_best_are_final(n_best, kind, alpha):
    """They are those of the search without a stop rule, and of one that records, which goes on for its tree."""
    steps = dict.fromkeys((False, True), 0)
    for seed in range(12):
        table = random_table(3, 7, seed)
        table[..., EOS] += seed % 3
        settings = config(beam=4, n_best=n_best, length_penalty=alpha, penalty=kind)
        expected = [
            plain_beam_search(rows, limit, settings) for rows, limit in zip(table, LIMITS.tolist(), strict=True)
        ]
        for record in steps:
            model = CountedSteps()
            found = beam_search(model, table, LIMITS, settings, record=record)
            steps[record] += model.steps
            for mine, plain in zip(written(found), expected, strict=True):
                assert_same(mine, plain)
    assert steps[False] < steps[True]


@pytest.mark.parametrize("seed", range(4))
def test_prefixes_are_forced(seed):
    settings, table = config(), random_table(3, 7, seed)
    prefix = torch.tensor([[4, 5, -1], [6, -1, -1], [5, 5, 4]])
    for row, sentence in enumerate(written(search(table, settings, prefix=prefix))):
        forced = [word for word in prefix[row].tolist() if word >= 0]
        assert all(words[: len(forced)] == forced for words, _ in sentence)
        assert_same(sentence, plain_beam_search(table[row], int(LIMITS[row]), settings, forced))


@pytest.mark.long
def test_candidates_are_the_best_of_all_continuations():
    values, so_far = torch.randn(2, 3, 9, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    totals = so_far[..., None] + torch.log_softmax(values, -1)
    totals[..., [PAD, BOS]] = -torch.inf
    scores, parents, words = candidates(Scores(values.clone(), False), so_far, None, 6)
    expected = totals.flatten(1).sort(descending=True)
    torch.testing.assert_close(scores, expected.values[:, :6])
    assert torch.equal(parents * 9 + words, expected.indices[:, :6])


def test_penalties_by_hand():
    assert penalty(7.0, config(length_penalty=0.5, penalty="gnmt")) == pytest.approx(2**0.5)
    assert penalty(9.0, config(length_penalty=0.5)) == pytest.approx(3.0)
    assert penalty(9.0, config(length_penalty=0.0)) == 1.0


def test_a_hypothesis_carries_its_own_log_probabilities():
    settings, table = config(), random_table(3, 7, 5)
    for row, sentence in enumerate(search(table, settings)):
        for one in sentence.hypotheses:
            words = one.words + [EOS] * one.finished
            told = [next_log_probs(table[row], words[:place])[word] for place, word in enumerate(words)]
            assert one.token_log_probs == pytest.approx(told, abs=1e-9)
            assert one.normalized == pytest.approx(one.score / penalty(len(words), settings), abs=1e-9)
        assert sentence.hypotheses == sorted(sentence.hypotheses, key=lambda one: -one.normalized)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_a_beam_of_one_is_greedy(seed, length_penalty):
    table = random_table(3, 7, seed)
    for row, sentence in enumerate(written(search(table, config(beam=1, length_penalty=length_penalty)))):
        words: list[int] = []
        while len(words) < LIMITS[row] and EOS not in words:
            told = next_log_probs(table[row], words)
            words.append(max(range(EOS, 7), key=lambda word, told=told: told[word]) if max(told[EOS:]) > told[1] else 1)
        assert sentence[0][0] == words


def test_what_never_ends_is_cut_at_the_limit():
    table = random_table(3, 7, 1)
    table[..., EOS] = -1e4
    for row, sentence in enumerate(search(table, config())):
        assert [(len(one.words), one.finished) for one in sentence.hypotheses] == [(int(LIMITS[row]), False)]


@pytest.mark.parametrize("seed", range(6))
def test_the_recorded_tree_is_the_search(seed):
    settings, table = config(beam=2 + seed % 2, length_penalty=0.6), random_table(3, 7, seed)
    plain, recorded = search(table, settings), search(table, settings, record=True)
    assert [found.hypotheses for found in plain] == [found.hypotheses for found in recorded]
    for found in recorded:
        tree = found.tree
        for row, parent in enumerate(tree.parent):
            before = 0.0 if parent < 0 else tree.score[parent]
            assert tree.score[row] == pytest.approx(before + tree.log_prob[row], abs=1e-9)
            assert tree.normalised[row] == pytest.approx(tree.score[row] / penalty(tree.step[row], settings), abs=1e-9)
            assert (parent == -1) == (tree.step[row] == 1)
            assert parent == -1 or (tree.fate[parent], tree.step[parent]) == ("kept", tree.step[row] - 1)
        live = 1
        for step in range(1, tree.step[-1] + 1):
            rows = [row for row, at in enumerate(tree.step) if at == step]
            assert [tree.rank[row] for row in rows] == list(
                range(min(2 * settings.beam, 5 * live))
            )  # 7 words, 5 of them real
            assert [tree.score[row] for row in rows] == sorted((tree.score[row] for row in rows), reverse=True)
            live = sum(tree.fate[row] == "kept" for row in rows)
            assert live == min(settings.beam, sum(tree.word[row] != EOS for row in rows))
            assert all(tree.fate[row] == "finished" for row in rows[: settings.beam] if tree.word[row] == EOS)
        words, row = [], tree.best
        while row >= 0:
            words, row = [tree.word[row], *words], tree.parent[row]
        best = found.hypotheses[0]
        assert words == best.words + [EOS] * best.finished
        assert tree.score[tree.best] == pytest.approx(best.score, abs=1e-9)


TINY, LONGEST = 6, 4  # UNK and two words besides the control pieces; EOS included


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("kind", "alpha", "prefix"), [("gnmt", 0.6, []), ("power", 1.0, []), ("gnmt", 0.0, [4])])
def test_a_beam_as_wide_as_the_tree_is_brute_force(name, kind, alpha, prefix):
    """Law 3: all 40 outputs of at most 4 words are forced; the search finds the best of them, in order."""
    system = random_system(name, words=TINY)
    sources = random_sentences([3, 1], 4, TINY)
    settings = SearchConfig(beam=27 * 4, n_best=5, length_penalty=alpha, penalty=kind)
    outputs = [list(words) for length in range(LONGEST) for words in itertools.product([1, 4, 5], repeat=length)]
    forced = torch.tensor([prefix, prefix], device=DEVICE) if prefix else None
    limits = torch.tensor([LONGEST] * 2, device=DEVICE)
    with torch.no_grad():
        found = beam_search(system, system.encode(collate(sources).to(DEVICE)), limits, settings, forced)
        for source, sentence in zip(sources, found, strict=True):
            batch = collate([source] * len(outputs), outputs).to(DEVICE)
            told = log_probs(system, batch).gather(2, batch.target[..., None])[..., 0]
            totals = (told * batch.target_mask).sum(1).tolist()
            allowed = [
                (total, words) for total, words in zip(totals, outputs, strict=True) if words[: len(prefix)] == prefix
            ]
            ranked = sorted(allowed, key=lambda one: -one[0] / penalty(len(one[1]) + 1, settings))[:5]
            assert_same(
                [(one.words, one.score) for one in sentence.hypotheses], [(words, total) for total, words in ranked]
            )
