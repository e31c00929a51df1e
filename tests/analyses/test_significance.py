"""The tests agree with sacreBLEU's own, to the last digit, and with cases worked by hand."""

import itertools
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from analyses import scores, significance
from analyses.buckets import length_statistics
from tests.analyses.corpora import noisy_copy, reference_lines

pytestmark = pytest.mark.long

REFERENCES = reference_lines(70)
BASELINE = noisy_copy(REFERENCES, 3, 0.40)
SYSTEM = noisy_copy(REFERENCES, 4, 0.37)
JUDGES = {"bleu": ("BLEU", BLEU), "chrf": ("chrF2", CHRF), "ter": ("TER", TER)}


def both(metric):
    return [scores.extract(lines, REFERENCES, metric) for lines in (BASELINE, SYSTEM)]


def sacrebleu_result(metric, kind, samples, seed, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", str(seed))
    name, judge = JUDGES[metric]
    test = PairedTest([("b", BASELINE), ("s", SYSTEM)], {name: judge()}, [REFERENCES], kind, samples)
    return test()[1][name]


@pytest.mark.parametrize("seed", [12345, 7])
@pytest.mark.parametrize("metric", JUDGES)
def test_paired_bootstrap_is_sacrebleus(metric, seed, monkeypatch):
    of_baseline, of_system = sacrebleu_result(metric, "bs", 300, seed, monkeypatch)
    monkeypatch.setattr(significance, "_BLOCK_CELLS", 70 * 37)  # several blocks, one stream of random numbers
    ours = significance.paired_bootstrap(*both(metric), samples=300, seed=seed, rule="sacrebleu")
    assert ours.p_value == pytest.approx(of_system.p_value, abs=1e-12)
    assert ours.method == "paired bootstrap as in sacreBLEU"
    assert ours.delta == pytest.approx(of_system.score - of_baseline.score, abs=1e-12)
    statistics = both(metric)
    sums = significance.resampled_together(statistics, 300, seed)
    for one, of_one, theirs in zip(statistics, sums, (of_baseline, of_system), strict=True):
        resampled = np.sort(one.scores(of_one.astype(np.float32)))
        low, high = significance.sacrebleu_interval(resampled)
        assert float(resampled.mean()) == pytest.approx(float(theirs.mean), abs=1e-12)
        assert (high - low) / 2 == pytest.approx(float(theirs.ci), abs=1e-12)


@pytest.mark.parametrize("metric", JUDGES)
def test_approximate_randomization_is_sacrebleus_but_for_ties(metric, monkeypatch):
    """A negative rounding counts no shuffle that ties with the difference, as sacreBLEU counts none."""
    _, of_system = sacrebleu_result(metric, "ar", 500, 11, monkeypatch)
    monkeypatch.setattr(significance, "_BLOCK_CELLS", 70 * 70)
    assert significance.approximate_randomization(*both(metric), trials=500, seed=11).p_value >= of_system.p_value
    monkeypatch.setattr(significance, "_TIE", -1e-11)
    ours = significance.approximate_randomization(*both(metric), trials=500, seed=11)
    assert ours.p_value == pytest.approx(of_system.p_value, abs=1e-12)


@pytest.mark.parametrize("metric", JUDGES)
@pytest.mark.parametrize("differing", [1, 3, 5])
def test_randomization_of_few_differing_segments_has_the_exact_p_value(metric, differing):
    """All of 2^k swaps of k equally changed segments but two are less extreme: 2 / 2^k, ties included."""
    references = [f"a{number} b{number} c{number} d{number} e{number} f{number}" for number in range(60)]
    worse = [line.rsplit(" ", 1)[0] + " x" if number < differing else line for number, line in enumerate(references)]
    ours = significance.approximate_randomization(
        scores.extract(worse, references, metric), scores.extract(references, references, metric), trials=4000
    )
    exact = 2 / 2**differing
    assert ours.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000) + 1e-3)


@pytest.mark.parametrize("kind", ["bs", "ar"])
@pytest.mark.parametrize("metric", JUDGES)
def test_other_draws_give_sacrebleus_p_value_within_three_standard_errors(metric, kind, monkeypatch):
    _, theirs = sacrebleu_result(metric, kind, 500, 12345, monkeypatch)
    bootstrap = partial(significance.paired_bootstrap, rule="sacrebleu")
    test = bootstrap if kind == "bs" else significance.approximate_randomization
    for seed in (1, 2, 3):
        ours = test(*both(metric), 2000, seed=seed)
        pooled = (500 * theirs.p_value + 2000 * ours.p_value) / 2500
        assert 0.005 < pooled < 0.995, "a difference whose p-value can be estimated"
        error = np.sqrt(pooled * (1 - pooled) * (1 / 500 + 1 / 2000))
        assert 0 < abs(ours.p_value - theirs.p_value) < 3 * error


def test_given_indices_replace_the_random_draw():
    baseline, system = both("bleu")
    rows = np.random.default_rng(12345).choice(70, size=(200, 70))
    assert significance.paired_bootstrap(baseline, system, indices=rows) == significance.paired_bootstrap(
        baseline, system, samples=200
    )


@pytest.mark.parametrize(("cells", "drawn"), [(4_000_000, 32_000), (70 * 37, 70 * 8), (4_000_000, 1)])
def test_systems_and_metrics_that_share_a_draw_get_what_each_gets_alone(cells, drawn, monkeypatch):
    monkeypatch.setattr(significance, "_BLOCK_CELLS", cells)
    monkeypatch.setattr(significance, "_DRAWN_TOGETHER", drawn)
    (baseline, system), (of_chrf, _) = both("bleu"), both("chrf")
    systems = {"system": system, "again": baseline}
    together = significance.paired_bootstraps(baseline, systems, samples=100, seed=3)
    assert together == {
        name: significance.paired_bootstrap(baseline, one, samples=100, seed=3) for name, one in systems.items()
    }
    found = significance.bootstrap_intervals({**systems, "chrf": of_chrf}, samples=100, seed=3)
    for name, one in {**systems, "chrf": of_chrf}.items():
        assert found[name] == significance.bootstrap_interval(one, samples=100, seed=3)
    rows = np.random.default_rng(3).choice(70, size=(100, 70))
    sums = significance.resampled_together([system, of_chrf], indices=rows)
    np.testing.assert_array_equal(sums[0], system.values[rows].sum(axis=1))
    np.testing.assert_array_equal(sums[1], of_chrf.values[rows].sum(axis=1))


def test_memory_of_resampling_does_not_grow_with_the_number_of_resamples():
    """At 20,000 segments a count for each segment of 1,000 resamples would be 160 MB."""
    values = np.ones((20_000, 10))
    peaks = []
    for samples in (200, 1000):
        tracemalloc.start()
        significance.resampled_sums(values, samples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.05 * peaks[0]
    assert peaks[1] < 40e6


def test_resampled_sums_add_the_drawn_segments():
    values = np.array([[1, 10], [2, 20], [4, 40]])
    sums = significance.resampled_sums(values, indices=np.array([[0, 0, 0], [0, 1, 2], [2, 2, 1]]))
    np.testing.assert_array_equal(sums, [[3, 30], [7, 70], [10, 100]])


@pytest.mark.parametrize("wrong", [3, -1])
def test_an_index_beyond_the_segments_is_refused_and_counts_for_no_other_resample(wrong):
    with pytest.raises(ValueError, match="from 0 to 2"):
        significance.resampled_sums(np.ones((3, 2)), indices=np.array([[0, wrong, 1], [0, 1, 2]]))


def test_equal_outputs_are_never_significant():
    statistics, _ = both("bleu")
    for test in (
        significance.paired_bootstrap,
        significance.approximate_randomization,
        significance.sign_test,
    ):
        result = test(statistics, statistics)
        assert (result.delta, result.p_value) == (0.0, 1.0)


def test_sign_test_worked_by_hand():
    """Five sentences of four words against themselves: the baseline misses three, the system another one."""
    references = [f"{letter}1 {letter}2 {letter}3 {letter}4" for letter in "vwxyz"]
    wrong = "q q q q"
    baseline = [wrong, wrong, wrong, references[3], references[4]]
    system = [*references[:4], wrong]
    result = significance.sign_test(
        scores.extract(baseline, references, tokenize="none"), scores.extract(system, references, tokenize="none")
    )
    assert (result.better, result.worse, result.equal) == (3, 1, 1)
    # Two-sided binomial, 3 of 4 heads: 2 * (4 + 1) / 16.
    assert result.p_value == pytest.approx(0.625)


def test_sign_test_of_ter_counts_fewer_edits_as_better():
    references = ["a b", "c d", "e f"]
    result = significance.sign_test(
        scores.extract(["a x", "c d", "x x"], references, "ter"),
        scores.extract(["a b", "c x", "e f"], references, "ter"),
    )
    assert (result.better, result.worse, result.equal) == (2, 1, 0)


def test_sign_test_replaces_one_sentence_at_a_time():
    """Against the definition: corpus BLEU of the baseline with one line exchanged."""
    judge = BLEU()
    before = judge.corpus_score(BASELINE, [REFERENCES]).score
    after = [
        judge.corpus_score([*BASELINE[:i], SYSTEM[i], *BASELINE[i + 1 :]], [REFERENCES]).score
        for i in range(len(BASELINE))
    ]
    result = significance.sign_test(*both("bleu"))
    assert result.better == sum(score > before + 1e-11 for score in after)
    assert result.worse == sum(score < before - 1e-11 for score in after)


def test_holm_worked_by_hand():
    """0.01 * 4, 0.02 * 3, then 0.03 * 2 raised to it, then 0.5; a NaN is no test."""
    adjusted = significance.holm([0.03, 0.01, np.nan, 0.5, 0.02])
    np.testing.assert_allclose(adjusted, [0.06, 0.04, np.nan, 0.5, 0.06])
    np.testing.assert_allclose(significance.holm([0.9, 0.8]), [1.0, 1.0])


@pytest.mark.parametrize("samples", [7, 39, 40, 79, 300, 1000])
def test_the_bootstraps_p_is_below_a_level_exactly_where_the_interval_leaves_zero_out(samples):
    """At every level, for differences on either side of zero, far from it and about it, with ties at zero."""
    draw, told = np.random.default_rng(samples), set()
    for centre in (0, *np.linspace(-2.5, 2.5, 60), -4, 9):
        differences = np.round(draw.normal(centre, 1, samples), 2)
        p_value = significance.bootstrap_p(differences)
        for alpha in (0.01, 0.05, 0.1, 0.32, 0.5):
            low, high = significance.percentile_interval(differences, 1 - alpha)
            if alpha > 2 / (samples + 1):  # fewer resamples cannot say
                assert (p_value < alpha) == (low > 0 or high < 0)
                told.add((alpha, p_value < alpha))
        assert 2 / (samples + 1) <= p_value <= 1
    assert {(0.5, True), (0.5, False)} <= told


def test_the_bootstraps_p_worked_by_hand():
    """Nine resamples, two of them not above zero: 2 * 3 / 10. None below: 2 / 10, for nine cannot say less."""
    assert significance.bootstrap_p(np.array([-1, 0, 1, 2, 3, 4, 5, 6, 7.0])) == pytest.approx(0.6)
    assert significance.bootstrap_p(np.arange(1.0, 10)) == pytest.approx(0.2)
    assert significance.bootstrap_p(-np.arange(1.0, 10)) == pytest.approx(0.2)
    assert significance.bootstrap_p(np.zeros(9)) == 1


def test_interval_covers_and_cuts_both_ends():
    statistics, _ = both("bleu")
    narrow = significance.bootstrap_interval(statistics, samples=400, level=0.5)
    wide = significance.bootstrap_interval(statistics, samples=400, level=0.99)
    assert wide.low < narrow.low < statistics.total < narrow.high < wide.high
    assert significance.percentile_interval(np.arange(1000.0)) == (24.0, 975.0), "2 * 25 / 1001 < 0.05"
    assert significance.percentile_interval(np.arange(999.0)) == (23.0, 975.0), "2 * 25 / 1000 is not"
    assert significance.percentile_interval(np.arange(1000.0), level=0.9) == (49.0, 950.0)
    assert significance.percentile_interval(np.arange(9.0)) == (0.0, 8.0)
    assert significance.sacrebleu_interval(np.arange(1000.0)) == (25.0, 974.0)


def test_resamples_without_a_score_are_left_out():
    """Three sentences, one with an empty reference: of all 27 resamples that which draws it alone has no ratio."""
    baseline, system = (length_statistics(written, [0, 2, 5]) for written in ([3, 2, 5], [4, 2, 5]))
    rows = np.array(list(itertools.product(range(3), repeat=3)))
    found = significance.paired_bootstrap(baseline, system, indices=rows)
    with_ratio = significance.paired_bootstrap(baseline, system, indices=rows[1:])
    assert found == replace(with_ratio, p_value=found.p_value, samples=27)
    assert found.p_value == with_ratio.p_value > 1 / 27, "what exceeds, of the 26 that can"
    alone = significance.bootstrap_interval(system, samples=200)
    assert 1 <= alone.low < alone.mean < alone.high
    assert significance.percentile_interval(np.array([np.nan, 3, 1, np.nan])) == (1, 3)


def test_what_has_no_score_is_no_test():
    """Not even of an output against itself: p is NaN, which Holm's correction leaves out."""
    nothing = length_statistics([3, 1], [0, 0])
    for other in (nothing, length_statistics([2, 1], [0, 0])):
        found = significance.paired_bootstrap(nothing, other, samples=20)
        assert np.isnan([found.delta, found.p_value, found.low, found.high]).all()
        assert np.isnan(significance.approximate_randomization(nothing, other, trials=20).p_value)


def test_unlike_statistics_are_refused():
    with pytest.raises(ValueError, match="scored differently"):
        significance.paired_bootstrap(
            scores.extract(BASELINE, REFERENCES), scores.extract(SYSTEM, REFERENCES, lowercase=True)
        )
    with pytest.raises(ValueError, match="same test set"):
        significance.sign_test(scores.extract(BASELINE[:5], REFERENCES[:5]), scores.extract(SYSTEM, REFERENCES))
    with pytest.raises(ValueError, match="5, 70 segments cannot share resamples"):
        significance.resampled_together([both("bleu")[0].subset(np.arange(5)), both("bleu")[1]])


def test_ratios_of_sums_have_the_intervals_of_shares():
    """Column by column that of `Shares`; a denominator of no sentence leaves nothing to draw."""
    drawn = np.random.default_rng(4)
    below = drawn.integers(0, 3, (40, 3)).astype(float)
    below[:, 2] = 0
    above = below * drawn.random((40, 3))
    found = significance.ratio_intervals(above, below, 200, 7)
    for column in (0, 1):
        shares = scores.Shares("share", np.column_stack([above[:, column], below[:, column]]), "")
        one = significance.bootstrap_interval(shares, 200, 7)
        np.testing.assert_allclose(found[column], (one.low, one.high))
    assert np.isnan(found[2]).all()
    mean = significance.mean_interval(above[:, 0], 200, 7)
    resampled = significance.resampled_sums(above[:, :1], 200, 7)[:, 0] / 40
    np.testing.assert_allclose(mean, significance.percentile_interval(resampled))
