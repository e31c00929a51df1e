"""Attention maps: means, rollouts worked out by hand, words from pieces; rows sum to one whatever is done to them."""

import numpy as np
import pytest

from analyses import attention


def distributions(*shape: int, seed: int = 1) -> np.ndarray:
    values = np.random.default_rng(seed).random(shape)
    return values / values.sum(-1, keepdims=True)


def test_one_map_is_a_layer_and_a_head_or_their_mean():
    weights = distributions(2, 3, 4, 5)
    np.testing.assert_array_equal(attention.average(weights, 2, 3), weights[1, 2])
    np.testing.assert_allclose(attention.average(weights, 1), weights[0].sum(0) / 3)
    np.testing.assert_allclose(attention.average(weights), weights.reshape(6, 4, 5).sum(0) / 6)
    for name, wanted in (("layer", {"layer": 3}), ("head", {"head": 0})):
        with pytest.raises(ValueError, match=f"no {name} {wanted[name]}: this attention has {name}s 1 to"):
            attention.average(weights, **wanted)


def test_rollout_of_identity_is_identity():
    weights = np.broadcast_to(np.eye(4), (3, 2, 4, 4))
    np.testing.assert_array_equal(attention.rollout(weights), np.broadcast_to(np.eye(4), (3, 4, 4)))


def test_rollout_of_uniform_attention_by_hand():
    # With U uniform over two, A = (I + U) / 2 = [[3/4, 1/4], ...]; A A = [[5/8, 3/8], ...], since U U = U.
    found = attention.rollout(np.full((2, 5, 2, 2), 0.5))
    np.testing.assert_allclose(found[0], [[3 / 4, 1 / 4], [1 / 4, 3 / 4]])
    np.testing.assert_allclose(found[1], [[5 / 8, 3 / 8], [3 / 8, 5 / 8]])
    # In general (I + U)^n / 2^n = 2^-n I + (1 - 2^-n) U.
    deep = attention.rollout(np.full((7, 1, 3, 3), 1 / 3))[-1]
    np.testing.assert_allclose(deep, 2.0**-7 * np.eye(3) + (1 - 2.0**-7) / 3)


def test_rollout_takes_the_mean_over_heads_and_no_residual_multiplies_the_maps():
    weights = distributions(2, 3, 4, 4)
    first, second = weights.mean(1)
    np.testing.assert_allclose(attention.rollout(weights, residual=0.0)[-1], second @ first)


def test_rollout_through_a_decoder_by_hand():
    # One layer, one head. The first target word sees itself, the second both halves; both attend to source word 1.
    own = np.array([[[[1.0, 0.0], [0.5, 0.5]]]])
    cross = np.array([[[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]])
    found = attention.decoder_rollout(own, cross)
    np.testing.assert_allclose(found.source[0], [[0.5, 0, 0], [0.5, 0, 0]])
    np.testing.assert_allclose(found.target[0], [[0.5, 0], [0.125, 0.375]])
    # An encoder that swaps the first two words: with its residual, each position holds half of both.
    encoder = np.array([[[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]]])
    through = attention.decoder_rollout(own, cross, encoder)
    np.testing.assert_allclose(through.source[0], [[0.25, 0.25, 0], [0.25, 0.25, 0]])


def test_rollout_through_a_decoder_gives_all_weight_to_source_and_target_together():
    own = np.tril(np.random.default_rng(2).random((3, 4, 6, 6)))
    own /= own.sum(-1, keepdims=True)
    found = attention.decoder_rollout(own, distributions(3, 4, 6, 5), distributions(2, 4, 5, 5))
    np.testing.assert_allclose(found.source.sum(-1) + found.target.sum(-1), 1)
    assert (np.triu(found.target, 1) == 0).all()


def test_pieces_become_words():
    pieces = ["▁the", "▁Kr", "an", "▁", "ich", "</s>"]
    assert attention.word_numbers(pieces) == [0, 1, 1, 2, 2, 3]
    assert attention.joined(pieces) == ["the", "Kran", "ich", "</s>"]
    assert attention.joined(["<s>", "an", "▁b"]) == ["<s>", "an", "b"]
    assert attention.joined(["▁", "Kr", "an"]) == ["Kran"]
    assert attention.word_numbers([]) == attention.joined([]) == []


def test_pieces_that_are_continued_become_words():
    pieces = ["der", "Kr@@", "a@@", "n", "</s>"]
    assert attention.word_numbers(pieces) == [0, 1, 1, 1, 2]
    assert attention.text_of(pieces) == "der Kran"
    assert attention.text_of(["der", "Kran", "sinkt"]) == "der Kran sinkt"
    assert attention.joined(["▁a@@", "b"]) == ["a@@b"], "@@ is text where ▁ begins words"


def test_words_are_the_sum_over_keys_and_the_mean_over_queries():
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.0, 1.0, 0.0]])
    found = attention.to_words(weights, ["▁a", "b", "</s>"], ["▁c", "d", "</s>"])
    np.testing.assert_allclose(found, [[0.45, 0.55], [1.0, 0.0]])
    pieces = ["▁a", "b", "▁c", "d", "e", "</s>"]
    np.testing.assert_allclose(attention.to_words(distributions(6, 6), pieces, pieces).sum(-1), 1)


def test_the_ends_have_no_place_in_an_alignment():
    weights, queries, keys = attention.without_end(np.arange(6).reshape(2, 3), ["x", "</s>"], ["a", "b", "</s>"])
    assert (weights.tolist(), queries, keys) == ([[0, 1]], ["x"], ["a", "b"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: attention.average(np.ones((2, 2))),
            r"must be \[layer, head, query, key\] and not empty",
        ),
        (lambda: attention.rollout(np.ones((1, 1, 2, 3))), "as many queries as keys"),
        (lambda: attention.decoder_rollout(np.ones((1, 1, 2, 2)), np.ones((2, 1, 2, 3))), "not of one decoder"),
        (lambda: attention.to_words(np.ones((2, 2)), ["a"], ["b"]), "not of 1 queries and 1 keys"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
