"""Seeds and sentences: one seed is the ordinary bootstrap of its sentences, hand-computed intervals and Student's own
agree, and p-values and intervals never contradict each other. How often they hold a known truth: test_calibration."""

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from analyses import seeds, significance
from analyses.buckets import length_statistics
from analyses.scores import Statistics, extract

pytestmark = pytest.mark.long


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


def test_where_sentences_agree_the_interval_is_students():
    scores = {1: 20.0, 2: 21.0, 5: 25.0}
    constant = {seed: _values(np.full(8, score / 100)) for seed, score in scores.items()}
    found = seeds.over_seeds(constant)
    assert (found.score, found.spread) == pytest.approx((22.0, np.sqrt(14 / 2)))
    wanted = student.interval(0.95, 2, loc=22, scale=np.sqrt(7 / 3))
    assert (found.low, found.high) == pytest.approx(wanted)
    assert (found.seeds, found.form) == (3, "seeds and sentences")
    zero = {seed: _values(np.zeros(8)) for seed in scores}
    apart = seeds.compare_over_seeds(zero, constant)
    assert apart.p_value == pytest.approx(ttest_1samp(list(scores.values()), 0).pvalue)
    assert (apart.low, apart.high) == pytest.approx(wanted)


def test_seeds_and_sentences_add_in_quadrature():
    base = _outputs("bleu", 0.3, 0.2, 0.25)
    own = dict(enumerate(base))
    found = seeds.over_seeds(own, 500)
    low, high = significance.percentile_interval(seeds.resampled_means(own, 500))
    reach = student.ppf(0.975, 2) * np.std([one.total for one in base], ddof=1) / np.sqrt(3)
    assert found.score - found.low == pytest.approx(np.sqrt(reach**2 + (found.score - low) ** 2))
    assert found.high - found.score == pytest.approx(np.sqrt(reach**2 + (high - found.score) ** 2))


def test_resampled_means_are_means_over_all_seeds_of_the_same_sentences():
    base, system = _outputs("bleu", 0.3, 0.25)
    each = [seeds.resampled_means({1: one}, 50) for one in (base, system)]
    np.testing.assert_allclose(seeds.resampled_means({1: base, 2: system}, 50), np.mean(each, axis=0))


@pytest.mark.parametrize("number", [1, 2, 3, 6])
def test_p_is_below_a_level_exactly_where_the_interval_leaves_zero_out(number):
    draw, told = np.random.default_rng(number), set()
    for _ in range(60):
        effect = draw.normal(0, 0.06)
        base = {seed: _values(draw.normal(0.5, 0.1, 40)) for seed in range(number)}
        system = {
            seed: _values(one.values[:, 0] + effect + draw.normal(0, 0.02) + draw.normal(0, 0.1, 40))
            for seed, one in base.items()
        }
        for level in (0.5, 0.9, 0.95):
            found = seeds.compare_over_seeds(base, system, 200, level=level)
            assert (found.p_value < 1 - level) == (found.low > 0 or found.high < 0)
            told.add((level, found.p_value < 1 - level))
    assert len(told) == 6, "either outcome at every level"


def test_one_seed_says_that_its_interval_is_of_sentences():
    base, system = _outputs("bleu", 0.3, 0.25)
    assert seeds.over_seeds({3: system}, 100).form == "sentences"
    table = seeds.comparison_table({"base": {1: base}, "system": {1: system}}, "base", 100)
    assert table[["method", "form"]].values.tolist() == [["paired bootstrap", "sentences"]]
    table = seeds.comparison_table({"base": {1: base, 2: base}, "system": {1: system, 2: base}}, "base", 100)
    assert table[["method", "form"]].values.tolist() == [[seeds.METHOD, "seeds and sentences"]]


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


def test_what_a_combination_has_beyond_its_parts_is_paired_by_sentence_and_has_students_interval():
    drawn = np.random.default_rng(3)
    easy, luck = drawn.normal(0, 0.3, 200), drawn.normal(0, 0.1, 3)
    base = {seed: _values(0.5 + luck[seed] + easy) for seed in range(3)}

    def moved(*shifts: float) -> dict[int, Statistics]:
        return {seed: _values(base[seed].values[:, 0] + shift) for seed, shift in enumerate(shifts)}

    systems = {"base": base, "a": moved(0.02, 0.03, 0.01), "b": moved(0.01, 0.01, 0.01), "a+b": moved(0.05, 0.05, 0.08)}
    systems |= {"a+c": base, "b+a": {7: base[0]}}  # without a part, and without a seed in common
    (row,) = seeds.additivity_table(systems, "base").itertuples()
    assert (row.system, row.baseline, row.metric, row.seeds) == ("a+b", "base", "ter", 3)
    assert (row.gain, row.gains_of_parts) == pytest.approx((6, 3))
    expected = ttest_1samp([2, 1, 6], 0)
    interval = expected.confidence_interval(0.95)
    assert (row.delta, row.low, row.high) == pytest.approx((3, interval.low, interval.high), abs=1e-3)
    assert row.p_value == pytest.approx(expected.pvalue, abs=1e-3)


def test_a_weighted_sum_is_paired_by_sentence_and_has_students_interval():
    drawn = np.random.default_rng(3)
    easy, luck = drawn.normal(0, 0.3, 200), drawn.normal(0, 0.1, 4)
    base = {seed: _values(0.5 + luck[seed] + easy) for seed in range(4)}
    better = {seed: _values(base[seed].values[:, 0] + gain) for seed, gain in enumerate((0.02, 0.05, 0.11))}
    found, expected = seeds.weighted_sum([(2, better), (-1, base), (-1, base)]), ttest_1samp([4, 10, 22], 0)
    interval = expected.confidence_interval(0.95)
    assert found.seeds == 3, "only those that all have"
    assert (found.delta, found.low, found.high) == pytest.approx((12, interval.low, interval.high), abs=1e-3)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-3)
    with pytest.raises(ValueError, match="no seed in common"):
        seeds.weighted_sum([(1, base), (-1, {7: base[0]})])


def test_a_difference_of_gains_is_students_over_seeds_and_normal_over_sentences():
    """Two texts, whose sentences are drawn apart: of one seed the variances of the gains add."""
    drawn, plain = np.random.default_rng(3), np.zeros(400)
    gains = [drawn.normal(mean, 1, 400) for mean in (1, 3)]
    texts = [({1: _values(plain)}, {1: _values(gain)}) for gain in gains]
    found, turned = seeds.compare_gains(*texts, 2000), seeds.compare_gains(*reversed(texts), 2000)
    assert found.delta == -turned.delta == pytest.approx(100 * (gains[1].mean() - gains[0].mean()))
    assert found.score == pytest.approx(100 * gains[1].mean())
    reach = 100 * 1.96 * np.sqrt(sum(gain.var() / 400 for gain in gains))
    assert (found.low, found.high) == pytest.approx((found.delta - reach, found.delta + reach), abs=0.1 * reach)
    constant = [{1: 1.0, 2: 2.0, 3: 4.5, 9: 7.0}, {1: 3.0, 2: 3.5, 3: 8.0}]
    base = {seed: _values(np.zeros(8)) for seed in (1, 2, 3)}
    texts = [(base, {seed: _values(np.full(8, gain / 100)) for seed, gain in by_seed.items()}) for by_seed in constant]
    found, expected = seeds.compare_gains(*texts), ttest_1samp([2.0, 1.5, 3.5], 0)
    interval = expected.confidence_interval(0.95)
    assert (found.seeds, found.delta) == (3, pytest.approx(7 / 3))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    with pytest.raises(ValueError, match="no seed in common"):
        seeds.compare_gains(texts[0], ({9: base[1]}, {9: base[1]}))


def test_gain_differences_are_of_the_systems_and_seeds_that_both_texts_have():
    drawn = np.random.default_rng(8)
    first, second = (
        {system: {seed: _values(drawn.normal(size=count)) for seed in numbers}
         for system, numbers in (("plain", (1, 2, 3)), ("new", (2, 3, 4)), ("none", (7,)))}
        for count in (30, 50)
    )  # fmt: skip
    (row,) = seeds.gain_differences(first, second, "plain", 100).itertuples(index=False)
    alone = seeds.compare_gains((first["plain"], first["new"]), (second["plain"], second["new"]), 100)
    assert tuple(row) == ("new", 50, 2, alone.delta, alone.low, alone.high, alone.seed_error)
    gains = [[text["new"][seed].total - text["plain"][seed].total for seed in (2, 3)] for text in (first, second)]
    assert row.delta == pytest.approx(np.mean(gains[1]) - np.mean(gains[0]))


def test_a_combination_of_three_is_beside_the_sum_of_three_gains():
    one = {
        share: {1: statistics} for share, statistics in zip("xabc", _outputs("bleu", 0.4, 0.3, 0.25, 0.2), strict=True)
    }
    systems = {**one, "a+b+c": {1: _outputs("bleu", 0.1)[0]}}
    row = seeds.additivity_table(systems, "x", 200).iloc[0]
    total = {name: by_seed[1].total for name, by_seed in systems.items()}
    gains = [total[name] - total["x"] for name in "abc"]
    assert (row.gains_of_parts, row.delta) == pytest.approx((sum(gains), total["a+b+c"] - total["x"] - sum(gains)))
    drawn = {name: seeds.resampled_means(by_seed, 200) for name, by_seed in systems.items()}
    beyond = drawn["a+b+c"] - drawn["a"] - drawn["b"] - drawn["c"] + 2 * drawn["x"]
    assert (row.low, row.high) == pytest.approx(significance.percentile_interval(beyond), abs=1e-4)


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
    with pytest.raises(ValueError, match=r"seed 1 \d+, seed 2 5\. A paired test needs the same test set"):
        seeds.over_seeds({1: base, 2: base.subset(np.arange(5))})
    with pytest.raises(ValueError, match=r"scored differently: bleu .* for seed 1, chrf .* for seed 2"):
        seeds.over_seeds({1: base, 2: _outputs("chrf", 0.3)[0]})
