"""Entropy and diversity of assignments: closed forms, the paper's printed values at the uniform start, brute force."""

import itertools

import numpy as np
import pytest

from analyses import routing

UNIFORM = np.full((1, 4, 6, 512), 1 / 512)
HAND = np.array([[[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]]])


def test_the_uniform_start_is_what_the_paper_prints():
    assert routing.entropy(UNIFORM)[0] == pytest.approx(np.log(512))
    assert round(routing.entropy(UNIFORM)[0], 2) == 6.24
    assert 0 <= routing.diversity(UNIFORM)[0] < 1e-12
    assert routing.effective_capsules(UNIFORM)[0] == pytest.approx(512)
    assert routing.entropy_as_printed(UNIFORM)[0] == pytest.approx(-np.log(512) / 512)


def test_by_hand():
    assert routing.entropy(HAND)[0] == pytest.approx(1.5 * np.log(2))  # 1.0397 nats
    cosines = [4 / 5, 3 / np.sqrt(10), 3 / np.sqrt(10)]  # of (2, 1), (1, 2) and (1, 1), quarters left out
    assert routing.diversity(HAND)[0] == pytest.approx(1 - np.mean(cosines))


def test_diversity_is_that_of_all_pairs():
    draw = np.random.default_rng(1)
    assignments = draw.dirichlet(np.ones(5), size=(3, 4, 6))
    wanted = []
    for iteration in assignments:
        cosines = [
            position[:, a] @ position[:, b] / np.linalg.norm(position[:, a]) / np.linalg.norm(position[:, b])
            for position in iteration
            for a, b in itertools.combinations(range(5), 2)
        ]
        wanted.append(1 - np.mean(cosines))
    np.testing.assert_allclose(routing.diversity(assignments), wanted, rtol=1e-12)


def test_an_output_that_gets_nothing_is_dead_and_an_input_that_chooses_has_no_entropy():
    one = np.zeros((2, 3, 2, 4))
    one[..., 0, 0] = one[..., 1, 1] = 1
    np.testing.assert_allclose(routing.entropy(one), 0, atol=1e-12)
    np.testing.assert_allclose(routing.effective_capsules(one), 1)
    np.testing.assert_allclose(routing.dead_share(one), 0.5)
    assert routing.dead_share(UNIFORM)[0] == 0
    assert np.isnan(routing.diversity(np.ones((1, 2, 3, 1)))[0])


def _assignments(seed: int, positions: int, inputs: int = 3, outputs: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), size=(2, positions, inputs))


def test_many_sentences_are_measured_as_if_their_positions_were_one_sentence():
    sentences = [_assignments(number, positions) for number, positions in enumerate((4, 1, 7))]
    whole = np.concatenate(sentences, axis=1)
    found = routing.concatenate(routing.sentence_statistics(one) for one in sentences)
    table = routing.measures(found, samples=50)
    for measure in ("entropy", "diversity", "effective_capsules", "entropy_as_printed"):
        rows = table[(table.measure == measure.removesuffix("_capsules")) & (table.layer == 0)]
        np.testing.assert_allclose(rows.value, getattr(routing, measure)(whole), rtol=1e-12)
    second = table[(table.measure == "entropy") & (table.layer == 2)]
    np.testing.assert_allclose(second.value, routing.entropy(whole[:, :, [1]]), rtol=1e-12)
    np.testing.assert_allclose(found.dead_throughout, routing.dead_share(whole))
    dead = table[table.measure == "dead"].value
    np.testing.assert_allclose(dead, np.mean([routing.dead_share(one) for one in sentences], axis=0))


def test_equation_18_as_printed_is_the_mean_cosine():
    table = routing.measures(routing.sentence_statistics(HAND), samples=50).set_index("measure").value
    assert table["diversity_as_printed"] == pytest.approx(np.mean([4 / 5, 3 / np.sqrt(10), 3 / np.sqrt(10)]))


def test_intervals_are_those_of_a_bootstrap_over_sentences():
    sentences = [_assignments(number, 2 + number % 5) for number in range(40)]
    table = routing.measures(routing.concatenate(routing.sentence_statistics(one) for one in sentences), samples=2000)
    first = table[(table.measure == "entropy") & (table.layer == 0) & (table.iteration == 1)].iloc[0]
    sums = np.array([routing.entropy(one)[0] * one.shape[1] for one in sentences])
    positions = np.array([one.shape[1] for one in sentences])
    drawn = np.random.default_rng(7).integers(40, size=(2000, 40))
    wanted = np.quantile(sums[drawn].sum(1) / positions[drawn].sum(1), [0.025, 0.975])
    np.testing.assert_allclose([first.low, first.high], wanted, atol=0.15 * (first.high - first.low))
    assert first.low < first.value < first.high


def test_differences_are_paired_over_sentences():
    """Each sentence of the second spreads over twice as many outputs as of the first: ln 2, whatever is resampled."""
    first, second = [], []
    for number in range(12):
        positions, outputs = 1 + number % 4, 2 ** (1 + number % 3)
        for of, kept in ((first, outputs), (second, 2 * outputs)):
            of.append(np.zeros((1, positions, 3, 16)))
            of[-1][..., :kept] = 1 / kept
    found = routing.differences(
        *(routing.concatenate(map(routing.sentence_statistics, of)) for of in (second, first)), samples=50
    )
    row = found.set_index("measure").loc["entropy"]
    assert (row.delta, row.low, row.high) == pytest.approx((np.log(2),) * 3)
    whole = [routing.diversity(np.concatenate(of, axis=1))[0] for of in (second, first)]
    assert found.set_index("measure").loc["diversity", "delta"] == pytest.approx(whole[0] - whole[1])
    with pytest.raises(ValueError, match="measured on different sentences"):
        routing.differences(routing.sentence_statistics(first[1]), routing.sentence_statistics(first[0]))


def test_every_sentence_counts_alike_in_the_share_of_dead_outputs():
    """Half the outputs of one long sentence are dead, and none of three short ones: an eighth on average, not most of
    a half; the interval is of resampled sentences, so it goes from none to a half in steps of an eighth."""
    long, short = np.zeros((1, 9, 3, 4)), np.full((1, 1, 3, 4), 1 / 4)
    long[..., :2] = 1 / 2
    spreads = [routing.sentence_statistics(one) for one in (long, short, short, short)]
    table = routing.measures(routing.concatenate(spreads), samples=500)
    row = table[table.measure == "dead"].iloc[0]
    assert row.value == pytest.approx(1 / 8)
    assert row.low == 0
    assert row.high in (pytest.approx(3 / 8), pytest.approx(1 / 4), pytest.approx(1 / 2))
    none = routing.concatenate(
        [routing.sentence_statistics(np.full_like(one, 1 / 4)) for one in (long, short, short, short)]
    )
    found = routing.differences(routing.concatenate(spreads), none, samples=500).set_index("measure").loc["dead"]
    assert found.delta == pytest.approx(1 / 8)
    assert found.high == row.high


def test_entropy_and_diversity_count_every_position_alike():
    """Of one sentence of nine positions and one of a single one, nine tenths of the mean are the first's."""
    first, second = _assignments(1, 9), _assignments(2, 1)
    found = routing.measures(
        routing.concatenate([routing.sentence_statistics(first), routing.sentence_statistics(second)]), samples=50
    )
    for measure, of in (("entropy", routing.entropy), ("diversity", routing.diversity)):
        rows = found[(found.measure == measure) & (found.layer == 0)]
        np.testing.assert_allclose(rows.value, 0.9 * of(first) + 0.1 * of(second), rtol=1e-12)
    others = _assignments(3, 9), _assignments(4, 1)
    spreads = [routing.concatenate(map(routing.sentence_statistics, pair)) for pair in ((first, second), others)]
    deltas = routing.differences(*spreads, samples=50).set_index("measure").delta
    for measure, of in (("entropy", routing.entropy), ("diversity", routing.diversity)):
        long, short = (of(one)[-1] - of(other)[-1] for one, other in zip((first, second), others, strict=True))
        assert deltas[measure] == pytest.approx(0.9 * long + 0.1 * short)


def test_activations_are_the_mean_lowest_and_highest_of_a_position():
    active = np.array([[0.1, 0.5, 0.2, 0.9, 0.4], [0.3, 0.3, 0.3, 0.7, 0.3]])
    table = routing.measures(routing.sentence_statistics(_assignments(1, 2), active), samples=50).set_index("measure")
    assert table.loc["activation_low", "value"] == pytest.approx(0.2)
    assert table.loc["activation_high", "value"] == pytest.approx(0.8)
    assert table.loc["activation_low", "iteration"] == 2
    one = routing.sentence_statistics(_assignments(1, 1), np.array([[0.4, 0.9]]))
    both = routing.measures(
        routing.concatenate([routing.sentence_statistics(_assignments(1, 2), active), one]), samples=50
    )
    assert both.set_index("measure").loc["activation_low", "value"] == pytest.approx((0.1 + 0.3 + 0.4) / 3)
    assert "activation_low" not in set(
        routing.measures(routing.sentence_statistics(_assignments(1, 2)), samples=50).measure
    )


def test_a_sentence_without_positions_is_refused():
    with pytest.raises(ValueError, match="at least one position"):
        routing.sentence_statistics(_assignments(1, 0))
    with pytest.raises(ValueError, match="no sentence"):
        routing.concatenate([])


def test_exchanged_votes_stay_those_of_their_output_and_position():
    votes = np.random.default_rng(3).normal(size=(6, 4, 5, 2))
    found = routing.shuffle_inputs(np.random.default_rng(1), votes)
    orders = set()
    for place, output in itertools.product(range(6), range(5)):
        was, now = (side[place, :, output].tolist() for side in (votes, found))
        assert sorted(now) == sorted(was)
        orders.add(tuple(was.index(vote) for vote in now))
    assert len(orders) > 10  # of 24, drawn for each of thirty


def test_votes_dealt_anew_stay_their_layers_own_whole_and_together():
    draw = np.random.default_rng(3)
    votes, active = draw.normal(size=(30, 4, 2, 3)), draw.uniform(size=(30, 4))
    dealt, moved = routing.shuffle_positions(np.random.default_rng(1), votes, active)
    for layer in range(4):
        before = {(active[p, layer], *votes[p, layer].ravel()) for p in range(30)}
        assert {(moved[p, layer], *dealt[p, layer].ravel()) for p in range(30)} == before
    orders = [[np.flatnonzero(active[:, layer] == one)[0] for one in moved[:, layer]] for layer in range(4)]
    assert len({tuple(order) for order in orders}) == 4  # each layer in an order of its own
