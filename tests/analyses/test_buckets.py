"""Buckets are what their labels say; a bucket's row is the score and bootstrap of that subset alone."""

import time

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from analyses import buckets, scores, seeds, significance
from analyses.power import least_at_level
from analyses.scores import Shares
from tests.analyses.corpora import noisy_copy, reference_lines

REFERENCES = reference_lines(80)
LENGTHS = np.array([len(line.split()) for line in REFERENCES])
OUTPUTS = {"new": noisy_copy(REFERENCES, 5, 0.2), "old": noisy_copy(REFERENCES, 6, 0.35), "same": REFERENCES}


@pytest.fixture(scope="module")
def statistics():
    return {name: scores.extract(lines, REFERENCES) for name, lines in OUTPUTS.items()}


def test_edges_belong_to_the_lower_bucket():
    assert buckets.by_length([1, 10, 11, 20, 50, 51, 400, 0], (10, 20, 30, 40, 50)).tolist() == [0, 0, 1, 1, 4, 5, 5, 0]
    made = buckets.preset([1, 60], "tens")
    assert made.labels == ["(0,10]", "(10,20]", "(20,30]", "(30,40]", "(40,50]", "(50,∞)"]
    assert made.bounds[0] == (0, 10)
    assert made.bounds[-1] == (50, np.inf)
    assert len(buckets.preset([1], "tens")) == 6


def test_former_names_of_presets_still_work():
    for former, name in buckets.FORMER_PRESETS.items():
        assert buckets.preset([1, 60], former).labels == buckets.preset([1, 60], name).labels
    for former, name in scores.FORMER_PRESETS.items():
        assert scores.preset(former) is scores.PRESETS[name]


def test_every_length_lies_within_its_bounds():
    lengths = np.random.default_rng(0).integers(1, 70, 500)
    for made in (
        buckets.preset(lengths, "short"),
        buckets.equal_width(lengths, 10),
        buckets.quantiles(lengths, 5),
        buckets.from_edges(lengths, (3, 4.5, 60)),
    ):
        low, high = np.array(made.bounds)[made.numbers].T
        assert ((low < lengths) & (lengths <= high)).all()


def test_equal_width_and_quantiles_cut_where_expected():
    assert buckets.equal_width([3, 30, 31], 10).edges == (10, 20, 30)
    assert buckets.equal_width([3, 30], 10).edges == (10, 20)
    counts = np.bincount(buckets.quantiles(np.arange(1, 101), 4).numbers)
    assert counts.tolist() == [25, 25, 25, 25]
    assert buckets.quantiles([7] * 50, 4).edges == ()


def test_rows_are_sacrebleu_on_the_subset(statistics):
    made = buckets.preset(LENGTHS, "tens")
    table = buckets.scores(statistics, made, samples=50)
    assert len(table) == 3 * 6
    assert table.groupby("system").n.sum().eq(80).all()
    for row in table[table.n > 0].itertuples():
        rows = np.flatnonzero((row.low_edge < LENGTHS) & (row.high_edge >= LENGTHS))
        mine, gold = [OUTPUTS[row.system][i] for i in rows], [REFERENCES[i] for i in rows]
        assert row.n == len(rows)
        assert row.score == BLEU().corpus_score(mine, [gold]).score
        interval = significance.bootstrap_interval(statistics[row.system].subset(rows), samples=50)
        assert (row.low, row.high) == (interval.low, interval.high)
    empty = table[table.n == 0]
    assert len(empty)
    assert empty[["score", "low", "high", "length_ratio"]].isna().all(axis=None)


def test_lengths_are_the_given_ones_or_bleus_own(statistics):
    made = buckets.from_edges(LENGTHS, (15,))
    reference = np.arange(80)
    table = buckets.scores(
        statistics, made, samples=5, extra={"old": 2 * reference}, reference_lengths=reference, baseline="old"
    )
    assert list(table.system) == ["old", "old", "new", "new", "same", "same"]
    assert table.length_ratio[:2].tolist() == [2.0, 2.0]
    assert table.mean_reference_length[1] == reference[LENGTHS > 15].mean()
    own = buckets.scores({"same": statistics["same"]}, made, samples=5)
    assert own.length_ratio.tolist() == [1.0, 1.0]
    assert (own.mean_output_length * own.n).sum() == BLEU().corpus_score(REFERENCES, [REFERENCES]).sys_len


def test_paired_differences_are_the_subsets_tests_under_one_correction(statistics):
    made = buckets.preset(LENGTHS, "tens")
    table = buckets.paired_differences(statistics, made, "old", samples=60)
    assert set(table.system) == {"new", "same"}
    for row in table[table.n > 0].itertuples():
        rows = np.flatnonzero((row.low_edge < LENGTHS) & (row.high_edge >= LENGTHS))
        alone = significance.paired_bootstrap(
            statistics["old"].subset(rows), statistics[row.system].subset(rows), samples=60
        )
        assert (row.delta, row.low, row.high, row.p_value) == (alone.delta, alone.low, alone.high, alone.p_value)
    np.testing.assert_array_equal(table.p_holm, significance.holm(table.p_value))


def test_differences_over_seeds_are_the_subsets_own_and_the_last_rows_hold_for_all():
    new, old = ({seed: scores.extract(noisy_copy(REFERENCES, seed + shift, share), REFERENCES) for seed in (1, 2, 3)}
                for shift, share in ((0, 0.2), (10, 0.35)))  # fmt: skip
    made = buckets.from_edges(LENGTHS, (10, 15, 500))
    table = buckets.differences_over_seeds({"old": old, "new": new}, made, "old", samples=60)
    of_all = [buckets.LEAST, buckets.LEAST_BUT_ONE, buckets.LEAST_BUT_TWO, buckets.LAST_LESS_FIRST]
    assert list(table.bucket) == ["(0,10]", "(10,15]", "(15,500]", *of_all]
    of_group, pairs = table.iloc[:3], []
    for row in of_group.itertuples():
        rows = np.flatnonzero((row.low_edge < LENGTHS) & (row.high_edge >= LENGTHS))
        pairs.append([{seed: one.subset(rows) for seed, one in of.items()} for of in (old, new)])
        alone = seeds.compare_over_seeds(*pairs[-1], 60)
        assert (row.n, row.delta, row.low, row.high) == (len(rows), alone.delta, alone.low, alone.high)
    halves, thirds = (
        [seeds.compare_over_seeds(*pair, 60, level=1 - 0.05 / parts) for pair in pairs] for parts in (2, 3)
    )
    highs = sorted(one.high for one in thirds)
    least, but_one, but_two, beyond = table.iloc[3:].itertuples()
    assert (least.n, least.seeds) == (but_one.n, but_one.seeds) == (80, 3)
    assert (least.delta, least.low, least.high) == (of_group.delta.min(), of_group.low.min(), highs[0])
    assert (but_one.delta, but_one.high) == (of_group.delta.median(), highs[1])
    assert but_one.low == sorted(one.low for one in halves)[1]
    assert (but_two.delta, but_two.low, but_two.high) == (
        of_group.delta.max(),
        max(one.low for one in thirds),
        highs[2],
    )
    assert least.high > of_group.high.min()
    assert beyond.delta == pytest.approx(of_group.delta.iloc[2] - of_group.delta.iloc[0])
    assert buckets.differences_over_seeds({"old": old, "new": {9: new[1]}}, made, "old").empty


def test_the_least_difference_at_another_level_is_that_of_its_groups_there():
    """Widened by itself it would stay with the group that is lowest at 95 %. Percentiles are taken for normal ends."""
    new, old = ({seed: scores.extract(noisy_copy(REFERENCES, seed + shift, share), REFERENCES) for seed in (1, 2, 3)}
                for shift, share in ((0, 0.2), (10, 0.35)))  # fmt: skip
    made = buckets.from_edges(LENGTHS, (10, 15, 500))
    table = buckets.differences_over_seeds({"old": old, "new": new}, made, "old", samples=2000)
    at_99 = buckets.differences_over_seeds({"old": old, "new": new}, made, "old", samples=2000, level=0.99)
    columns = ["delta", "low", "high", "seed_error"]
    groups = [tuple(row) for row in table.iloc[:3][columns].itertuples(index=False)]
    for left_out, wanted in enumerate(at_99[at_99.bucket.isin(buckets.LEAST_ROWS)].itertuples()):
        found = least_at_level(groups, left_out, 3, 0.99)
        assert found == pytest.approx((wanted.low, wanted.high), abs=0.06 * (wanted.high - wanted.low))


@pytest.mark.slow
def test_better_in_all_buckets_but_one_is_claimed_no_more_often_than_the_level_says():
    """Two of four buckets have no true difference: the interval may begin above 0 in one case of forty."""
    drawn, claimed, draws = np.random.default_rng(5), 0, 100
    made = buckets.Buckets((), np.repeat(np.arange(4), 50), ("a", "b", "c", "d"))
    for _ in range(draws):
        right = (drawn.random((2, 200)) < [[0.5], [0.5]]).astype(int)
        right[1, 100:] = 1  # the new system is always right in two buckets
        old, new = ({1: Shares("right", np.column_stack([row, np.ones_like(row)]), "")} for row in right)
        table = buckets.differences_over_seeds({"old": old, "new": new}, made, "old", samples=100)
        claimed += (table.loc[table.bucket == buckets.LEAST_BUT_ONE, "low"] > 0).sum()
    assert claimed <= draws * 0.05


def test_a_bucket_without_a_score_is_no_test_of_the_family():
    """References of nothing have no length ratio: Holm's correction is over the other two buckets."""
    made = buckets.by_label(["a", "a", "b", "b", "none"])
    ratios = {
        name: buckets.length_statistics(written, [4, 6, 5, 5, 0])
        for name, written in (("old", [4, 6, 5, 5, 1]), ("new", [5, 6, 4, 6, 2]))
    }
    table = buckets.paired_differences(ratios, made, "old", samples=100).set_index("bucket")
    assert table.loc["none", ["delta", "low", "high", "p_value", "p_holm"]].isna().all()
    others = table.loc[["a", "b"]]
    np.testing.assert_array_equal(others.p_holm, significance.holm(others.p_value))
    assert others.p_holm.min() > others.p_value.min()


def test_one_segment_alone_has_no_interval_and_no_p(statistics):
    """All its resamples are the same; p of the other buckets is corrected without it."""
    made = buckets.by_label(["alone", *["many"] * (len(LENGTHS) - 1)])
    table = buckets.paired_differences(statistics, made, "old", samples=50).set_index("bucket")
    assert table.loc["alone", ["low", "high", "p_value", "p_holm"]].isna().all(axis=None)
    assert table.delta.notna().all()
    assert table.loc["many", ["low", "high", "p_value"]].notna().all(axis=None)
    bands = buckets.scores(statistics, made, samples=50).set_index("bucket").loc["alone"]
    assert bands[["low", "high"]].isna().all(axis=None)


@pytest.mark.timing
def test_bands_of_a_whole_test_set_are_quick():
    """Six buckets, three systems, 3,003 segments, 1,000 resamples: a second at most, and room for a busy machine."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 60, 3003)
    totals = np.maximum(lengths[:, None] - np.arange(4), 0)
    systems = {
        name: scores.Statistics(
            "bleu", np.hstack([lengths[:, None], lengths[:, None], draw.binomial(totals, p), totals]), ""
        )
        for name, p in (("one", 0.4), ("two", 0.5), ("three", 0.6))
    }
    made = buckets.preset(lengths, "tens")
    began = time.process_time()
    table = buckets.scores(systems, made, samples=1000)
    assert time.process_time() - began < 3
    assert len(table) == 18
    assert (table.low < table.score).all()
    assert (table.score < table.high).all()


def test_wrong_input_is_named(statistics):
    with pytest.raises(ValueError, match="must ascend"):
        buckets.by_length([1], (10, 10))
    with pytest.raises(ValueError, match="Unknown bucket preset 'gdrr'"):
        buckets.preset([1], "gdrr")
    with pytest.raises(ValueError, match="80 segments but the buckets were made for 2"):
        buckets.scores(statistics, buckets.preset([1, 2], "tens"))
    with pytest.raises(ValueError, match="baseline 'older'"):
        buckets.paired_differences(statistics, buckets.preset(LENGTHS, "tens"), "older")


def test_labels_make_buckets_the_most_frequent_first():
    made = buckets.by_label(["b", "a", "a", "", "c", "b", "d"])
    assert made.labels == ["a", "b", "(none)", "c", "d"]
    assert [made.rows(bucket).tolist() for bucket in range(len(made))] == [[1, 2], [0, 5], [3], [4], [6]]
    fewer = buckets.by_label(["b", "a", "a", "", "c", "b", "d"], most=3)
    assert fewer.labels == ["a", "b", "(other)"]
    assert fewer.rows(2).tolist() == [3, 4, 6]


def test_frequencies_make_buckets_from_a_low_edge_to_below_a_high_one():
    made = buckets.by_frequency([0, 1, 4, 5, 999, 1000])
    assert made.labels == ["0", "1–4", "5–9", "10–99", "100–999", "≥1000"]
    assert made.numbers.tolist() == [0, 1, 1, 2, 4, 5]


def test_lengths_are_statistics_too():
    ratio = buckets.length_statistics([8, 6, 0], [10, 5, 5])
    assert ratio.total == 14 / 20
    assert buckets.length_statistics([8, 6, 1], [10, 5, 5], "output-length").total == 5
    part = buckets.scores({"s": ratio}, buckets.by_label(["x", "y", "y"]), samples=20, reference_lengths=[10, 5, 5])
    assert part.score.tolist() == [6 / 10, 8 / 10]
    assert np.isnan(part.low_edge).all()
    with pytest.raises(ValueError, match="Unknown length metric 'bleu'"):
        buckets.length_statistics([1], [1], "bleu")
