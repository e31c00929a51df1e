"""Two levels, seeds and sentences: one seed is the ordinary bootstrap, enumeration and hand-computed variances agree,
and intervals hold a known truth as often as they say, or as seldom as few seeds allow."""

import itertools

import numpy as np
import pytest

from analyses import seeds, significance
from analyses.buckets import length_statistics
from analyses.scores import Statistics, extract

TRIALS = 300  # synthetic test sets for each measured coverage


def _text(errors: float, drawn: np.random.Generator) -> tuple[list[str], list[str]]:
    """A translation of 60 sentences in which a share of the words is wrong, and its reference."""
    references = [[f"w{word}" for word in drawn.integers(0, 40, drawn.integers(4, 15))] for _ in range(60)]
    spoiled = [[word if drawn.random() > errors else "x" for word in words] for words in references]
    return [" ".join(words) for words in spoiled], [" ".join(words) for words in references]


def _outputs(metric: str, *errors: float) -> list[Statistics]:
    """Outputs with ever other errors of one and the same test set."""
    return [extract(*_text(share, np.random.default_rng(7)), metric) for share in errors]


def _values(per_sentence: np.ndarray) -> Statistics:
    """A metric whose score is 100 times the mean of these values: TER of references one word long."""
    return Statistics("ter", np.stack([per_sentence, np.ones_like(per_sentence)], axis=-1), "synthetic")


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_one_seed_is_the_ordinary_bootstrap_on_the_same_draws(metric):
    base, system = _outputs(metric, 0.3, 0.25)
    one, plain = seeds.over_seeds({3: system}, 300), significance.bootstrap_interval(system, 300)
    assert (one.score, one.low, one.high) == pytest.approx((plain.score, plain.low, plain.high), abs=1e-12)
    assert np.isnan(one.spread)
    pair, paired = (
        seeds.compare_over_seeds({3: base}, {3: system}, 300),
        significance.paired_bootstrap(base, system, 300),
    )
    assert (pair.delta, pair.low, pair.high) == pytest.approx((paired.delta, paired.low, paired.high), abs=1e-5)
    assert pair.p_value == paired.p_value


def test_seeds_that_agree_give_the_interval_of_one():
    base, system = _outputs("bleu", 0.3, 0.25)
    one, three = seeds.over_seeds({1: system}, 200), seeds.over_seeds({1: system, 2: system, 3: system}, 200)
    assert (three.score, three.low, three.high) == pytest.approx((one.score, one.low, one.high))
    assert three.spread == pytest.approx(0, abs=1e-12)
    alone = seeds.compare_over_seeds({1: base}, {1: system}, 200)
    together = seeds.compare_over_seeds(dict.fromkeys((1, 2, 3), base), dict.fromkeys((1, 2, 3), system), 200)
    assert (together.delta, together.low, together.high) == pytest.approx((alone.delta, alone.low, alone.high))
    assert together.p_value == alone.p_value


def test_sentences_that_agree_leave_the_variance_of_the_mean_of_resampled_seeds():
    scores = {1: 20.0, 2: 21.0, 5: 25.0}  # mean 22, squared deviations 4 + 1 + 9; over n^2: 14 / 9
    constant = {seed: _values(np.full(8, score / 100)) for seed, score in scores.items()}
    assert seeds.resampled_means(constant, 40_000).var() == pytest.approx(14 / 9, rel=0.03)
    found = seeds.over_seeds(constant)
    assert (found.score, found.spread) == pytest.approx((22.0, np.sqrt(14 / 2)))
    assert (found.low, found.high) == pytest.approx((20.0, 25.0)), "one seed three times: 1 of 27 resamples"


def test_resamples_are_distributed_as_all_draws_of_seeds_times_all_draws_of_sentences():
    """Two seeds, three sentences: 4 * 27 equally likely outcomes, counted by hand, BLEU not being linear in them."""
    own = {seed: output.subset(np.array([0, 1, 2])) for seed, output in enumerate(_outputs("bleu", 0.1, 0.5))}
    outcomes = [
        np.mean([own[seed].score(own[seed].values[list(rows)].sum(axis=0)) for seed in drawn])
        for drawn in itertools.product((0, 1), repeat=2)
        for rows in itertools.product((0, 1, 2), repeat=3)
    ]
    found = seeds.resampled_means(own, 40_000)
    for value in np.unique(np.round(outcomes, 8)):
        share = np.mean(np.isclose(outcomes, value, atol=1e-6))
        assert np.mean(np.isclose(found, value, atol=1e-6)) == pytest.approx(share, abs=4 * np.sqrt(share / 40_000))
    assert found.var() == pytest.approx(np.var(outcomes), rel=0.03)


def _coverage(
    seed_spread: float, sentence_spread: float, number: int, trials: int = TRIALS, samples: int = 200
) -> float:
    """How often the interval holds the truth, 50, when seeds and sentences are drawn anew with these spreads."""
    drawn, held = np.random.default_rng(11), 0
    for _ in range(trials):
        sentences = drawn.normal(0, sentence_spread, 60)
        own = {
            seed: _values(0.5 + drawn.normal(0, seed_spread) + sentences + drawn.normal(0, 0.02, 60))
            for seed in range(number)
        }
        found = seeds.over_seeds(own, samples)
        held += found.low <= 50 <= found.high
    return held / trials


@pytest.mark.parametrize(
    ("seed_spread", "sentence_spread", "number", "expected"),
    [
        (0.0, 0.2, 3, 0.95),  # sentences make the spread: the nominal level, three seeds or not
        (0.02, 0.2, 10, 0.95),
        (0.2, 0.0, 2, 0.50),  # seeds make it: both of two, all of three on one side of the truth
        (0.2, 0.0, 3, 0.75),
        (0.2, 0.0, 8, seeds.seed_level_coverage(8)),
    ],
)
def test_intervals_hold_a_known_truth_as_often_as_they_say_or_few_seeds_allow(
    seed_spread, sentence_spread, number, expected
):
    deviation = np.sqrt(expected * (1 - expected) / TRIALS)
    assert _coverage(seed_spread, sentence_spread, number) == pytest.approx(expected, abs=3.5 * deviation)


def test_one_seed_says_nothing_of_the_next():
    assert _coverage(0.2, 0.02, 1) < 0.2


def test_what_seeds_allow_grows_to_the_nominal_level():
    found = [seeds.seed_level_coverage(number) for number in (1, 2, 3, 5, 10, 1000)]
    assert found[:3] == [0.0, 0.5, 0.75]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(0.95, abs=1e-3)


def test_differences_are_paired_sentence_by_sentence_and_seed_by_seed():
    drawn = np.random.default_rng(3)
    easy, luck = drawn.normal(0, 0.3, 200), drawn.normal(0, 0.1, 3)
    base = {seed: _values(0.5 + luck[seed] + easy + drawn.normal(0, 0.02, 200)) for seed in range(3)}
    better = {seed: _values(one.values[:, 0] - 0.01) for seed, one in base.items()}
    found, alone = seeds.compare_over_seeds(base, better), seeds.over_seeds(better)
    assert (found.delta, found.low, found.high) == pytest.approx((-1.0, -1.0, -1.0), abs=1e-3)
    assert alone.high - alone.low > 8
    same = seeds.compare_over_seeds(base, base)
    assert (same.delta, same.low, same.high, same.p_value) == (0, 0, 0, 1)


def test_seeds_that_only_one_of_them_has_do_not_enter_the_difference():
    base, system = _outputs("bleu", 0.3, 0.25)
    both = seeds.compare_over_seeds({1: base, 2: system}, {1: system, 3: base}, 100)
    assert both == seeds.compare_over_seeds({1: base}, {1: system}, 100)
    with pytest.raises(ValueError, match="the seeds 1 and the system 2: none in common"):
        seeds.compare_over_seeds({1: base}, {2: system})
    table = seeds.comparison_table({"base": {1: base}, "system": {1: system}, "late": {2: system}}, "base", 100)
    assert table[["system", "method", "seeds"]].values.tolist() == [["system", "paired bootstrap", 1]]


def test_resamples_without_a_score_are_left_out():
    """Length ratios of three sentences, one with an empty reference: a resample in 27 draws nothing else."""
    base, system = (length_statistics(written, [0, 2, 5]) for written in ([3, 2, 5], [4, 2, 5]))
    one = seeds.compare_over_seeds({3: base}, {3: system}, 300)
    plain = significance.paired_bootstrap(base, system, 300)
    assert (one.low, one.high) == pytest.approx((plain.low, plain.high), abs=1e-5)
    assert one.p_value == plain.p_value > 2 / 301
    three = seeds.over_seeds(dict.fromkeys((1, 2, 3), system), 300)
    assert 1 <= three.low < three.score < three.high
    nothing = length_statistics([3, 1], [0, 0])
    none = seeds.compare_over_seeds({1: nothing}, {1: nothing}, 20)
    assert np.isnan([none.delta, none.low, none.high, none.p_value]).all()


def test_outputs_of_other_sentences_or_metrics_are_refused():
    base, _ = _outputs("bleu", 0.3, 0.25)
    with pytest.raises(ValueError, match="needs the same test set"):
        seeds.over_seeds({1: base, 2: base.subset(np.arange(5))})
    with pytest.raises(ValueError, match="scored differently"):
        seeds.over_seeds({1: base, 2: _outputs("chrf", 0.3)[0]})
