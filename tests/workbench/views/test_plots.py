"""Each family: what its marks hold for a small table worked out by hand, and that it takes the analyses' own tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analyses import beam as beam_analysis
from analyses import future_cost as future_cost_analysis
from tests.workbench.views.beam_search.test_plots import OTHER, RECORD, marks_of
from workbench.plotting.grammar import Bars, Figure, Labels, Line, Points, Rule
from workbench.plotting.matplotlib_renderer import to_matplotlib
from workbench.plotting.plotly_renderer import to_plotly
from workbench.views.ablation.figures import interval_text
from workbench.views.beam_search import difference_plots
from workbench.views.beam_search import plots as beam
from workbench.views.beam_size.plots import beam_sizes
from workbench.views.buckets import plots as lengths
from workbench.views.document_context import plots as context
from workbench.views.future_cost import plots as future_cost
from workbench.views.past_future.corpus_plots import under_translation
from workbench.views.scores import plots as scores
from workbench.views.training_curves import plots as training

pytestmark = pytest.mark.long


def test_score_dots_are_sorted_with_the_baseline_as_a_rule():
    table = pd.DataFrame(
        {
            "system": ["transformer", "gdr", "qcn"],
            "metric": "BLEU",
            "score": [44.06, 45.58, 44.91],
            "low": [43.5, 45.0, np.nan],
            "high": [44.6, 46.1, np.nan],
        }
    )
    printed = pd.DataFrame({"system": ["gdr"], "metric": ["BLEU"], "score": [45.0]})
    figure = scores.score_dots(table, printed)
    assert figure.panels[0].y.texts == ("gdr", "qcn", "transformer")
    assert marks_of(figure, Rule)[0].position == 44.06
    assert [mark.series for mark in figure.legend()] == ["reported"]
    hollow = [mark for mark in marks_of(figure, Points) if mark.style.hollow]
    assert [mark.table["score"].tolist() for mark in hollow] == [[45.0]]
    assert "gdr is best in BLEU (45.58)" in figure.summary
    chrf = table.assign(metric="chrF", score=table["score"] + 20)
    ter = table.assign(metric="TER", score=100 - table["score"])
    joined = scores.score_dots(pd.concat([table, chrf, ter], ignore_index=True)).summary
    assert joined == "gdr is best in BLEU (45.58), chrF (65.58) and TER (54.42, lower is better)."


def length_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "system": ["transformer"] * 2 + ["gdr"] * 2,
            "bucket": ["(0,10]", "(10,∞)"] * 2,
            "n": [250, 60] * 2,
            "score": [30.0, 20.0, 31.0, 22.0],
            "low": [29.0, 17.0, 30.0, 19.0],
            "high": [31.0, 23.0, 32.0, 25.0],
            "delta": [0.0, 0.0, 1.0, 2.0],
            "p_holm": [1.0, 1.0, 0.01, 0.2],
            "mean_output_length": [8.0, 20.0, 8.5, 22.0],
            "mean_reference_length": [9.0, 25.0] * 2,
            "length_ratio": [0.89, 0.8, 0.94, 0.88],
        }
    )


def test_length_buckets_with_few_sentences_are_grey():
    figure = lengths.length_scores(length_table(), "BLEU")
    strip = marks_of(figure, Bars, panel=1)
    assert [(mark.series, mark.table["n"].tolist()) for mark in strip] == [("n ≥ 100", [250]), ("n < 100", [60])]
    assert strip[0].style.colour != strip[1].style.colour
    assert figure.panels[0].x.texts == ("(0,10]", "(10,∞)")
    assert "fewer than 100 sentences are grey" in figure.caption
    assert (
        figure.summary == "BLEU is highest for gdr in (0,10] (31.00); it is lowest for transformer in (0,10] (30.00)."
    )
    drawn = {mark.style.colour: mark for mark in marks_of(figure, Line) if mark.series == "gdr"}
    grey = drawn.pop(strip[1].style.colour)
    assert grey.table["score"].tolist() == [31, 22]
    (own,) = drawn.values()
    np.testing.assert_array_equal(own.table["score"], [31, np.nan])
    assert (own.style.dash, own.style.marker, own.legend, grey.legend) == (grey.style.dash, grey.style.marker, 1, 0)


@pytest.mark.parametrize("draw", [lengths.length_scores, lengths.length_differences])
def test_beside_a_small_bucket_each_bucket_has_its_own_interval(draw):
    """A band would be grey in the readable bucket too, or end there without a width."""
    table = length_table()
    figure = draw(table)
    assert not any(mark.low for mark in marks_of(figure, Line))
    bars = {(mark.series, mark.style.colour): mark.table for mark in marks_of(figure, Points)}
    (grey,) = {mark.style.colour for mark in marks_of(figure, Bars, panel=1) if mark.series == "n < 100"}
    for system, rows in table.groupby("system"):
        own = next(part for (name, color), part in bars.items() if name == system and color != grey)
        assert (
            own[["n", "low", "high"]].to_numpy().tolist()
            == rows.loc[rows["n"] >= 100, ["n", "low", "high"]].to_numpy().tolist()
        )
        assert bars[system, grey]["n"].tolist() == [60]
    places = pd.concat(bars.values()).groupby("bucket")["place"]
    assert (places.nunique() == 2).all()


def test_only_buckets_with_few_sentences_and_their_neighbours_are_drawn_grey():
    n = [500, 90, 80, 500, 500, 500, 10]
    rows = pd.DataFrame({"system": "gdr", "bucket": list("abcdefg"), "n": n, "score": range(7)})
    table = rows.assign(low=rows["score"] - 1, high=rows["score"] + 1)
    *grey, own = marks_of(lengths.length_scores(table), Line)
    assert [mark.table["bucket"].tolist() for mark in grey] == [["a", "b", "c", "d"], ["f", "g"]]
    assert own.table["score"].dropna().tolist() == [0, 3, 4, 5]
    (only,) = marks_of(lengths.length_scores(table.assign(n=5)), Line)
    assert only.legend
    assert only.style.colour == grey[0].style.colour
    assert len({mark.style.colour for mark in marks_of(lengths.length_scores(table, minimum_n=1), Line)}) == 1


def test_more_systems_than_two_have_error_bars_side_by_side_in_each_bucket():
    two = length_table()
    three = pd.concat([two, two[:2].assign(system="third")], ignore_index=True)
    assert all(mark.low for mark in marks_of(lengths.length_scores(two, minimum_n=1), Line))
    figure = lengths.length_scores(three, minimum_n=1)
    assert not any(mark.low for mark in marks_of(figure, Line))
    bars = pd.concat([mark.table for mark in marks_of(figure, Points) if mark.low == "low" and mark.high == "high"])
    assert len(bars) == len(three)
    for place, (bucket, rows) in enumerate(bars.groupby("bucket", sort=True)):
        assert rows["place"].nunique() == 3, bucket
        assert rows["place"].between(place - 0.4, place + 0.4).all()
    (strip,) = marks_of(figure, Bars, panel=1)
    assert strip.table["place"].tolist() == [0, 1]
    differences = lengths.length_differences(three, minimum_n=1)
    (sign,) = marks_of(differences, Labels)
    assert sign.table["place"].item() in bars.loc[bars["system"] == "gdr", "place"].tolist()


def test_buckets_of_one_system_that_are_alike_have_no_order():
    table = length_table()[:2].assign(n=250, length_ratio=[1.001, 0.999])
    assert lengths.output_lengths(table).summary == (
        "Output length per reference length of transformer is 1.00 in (0,10] and (10,∞)."
    )
    told_apart = lengths.output_lengths(table.assign(length_ratio=[0.9, 1.0])).summary
    assert told_apart.endswith("is lowest in (0,10] (0.90) and highest in (10,∞) (1.00).")


def test_the_widest_beam_is_set_beside_the_best_only_if_it_is_another():
    rows = [("a", 1, 80.0), ("a", 16, 85.22), ("b", 1, 70.5), ("b", 16, 60.0)]
    table = pd.DataFrame(rows, columns=["system", "size", "bleu"]).assign(
        low=np.nan, high=np.nan, length_ratio=1.0, empty_percent=0.0, error_percent=np.nan, error_low=np.nan,
        error_high=np.nan,
    )  # fmt: skip
    assert "BLEU is highest with a beam of: a: 16 (85.22); b: 1 (70.50, with 16: 60.00)." in beam_sizes(table).summary


def test_intervals_over_as_many_seeds_each_name_the_number_once():
    assert interval_text([3, 3]).endswith("(3 seeds, dots)")
    assert interval_text([2, 3], dots=False).endswith("(2 to 3 seeds)")


def test_only_significant_differences_carry_the_sign():
    table = length_table()
    figure = lengths.length_differences(table[table["system"] == "gdr"], "BLEU", "transformer")
    stars = marks_of(figure, Labels)
    assert [mark.table["bucket"].tolist() for mark in stars] == [["(0,10]"]]
    assert marks_of(figure, Rule)[0].position == 0.0


def test_output_lengths_show_the_reference_once():
    figure = lengths.output_lengths(length_table(), minimum_n=50)
    assert [(mark.series, mark.table[mark.y].tolist()) for mark in marks_of(figure, Line)] == [
        ("reference", [9.0, 25.0]),
        ("transformer", [8.0, 20.0]),
        ("gdr", [8.5, 22.0]),
    ]


def test_training_curves_smooth_only_when_told():
    steps = np.arange(1, 41)
    values = 1.0 / steps
    table = pd.DataFrame({"run": "gdr", "step": steps, "name": "train_loss", "value": values})
    raw = training.training_curves(table)
    assert marks_of(raw, Line)[0].table["value"].tolist() == values.tolist()
    pale, smooth = marks_of(training.training_curves(table, smoothing=0.5), Line)
    assert pale.style.opacity < smooth.style.opacity
    weights = 0.5 ** np.arange(40)[::-1]  # exponential mean of all 40 values, by its definition
    assert smooth.table["smoothed"].iloc[-1] == pytest.approx((weights * values).sum() / weights.sum())
    assert "Dark: exponential mean" in training.training_curves(table, smoothing=0.5).caption
    few = training.training_curves(table[:12], smoothing=0.5)  # too few to be smoothed
    assert [mark.y for mark in marks_of(few, Line)] == ["value"]
    assert few.caption.endswith("Lines of fewer than 30 values are as logged. Losses are nats per target token.")
    with pytest.raises(ValueError, match="no run logged 'dev_los'; logged are train_loss"):
        training.training_curves(table, ["dev_los"])


def test_train_losses_beside_dev_losses_say_what_they_count():
    table = pd.DataFrame({"run": "gdr", "step": [1, 1, 1], "value": 1.0})
    named = table.assign(name=["train_main_loss", "dev_main_loss", "learning_rate"])
    both = "Those of training are with dropout and label smoothing, those of dev without."
    assert both in training.training_curves(named).caption
    assert both not in training.training_curves(named, ["dev_main_loss"]).caption
    assert "nats" not in training.training_curves(named, ["learning_rate"]).caption


def test_training_curves_that_end_alike_have_no_order():
    rows = [("a", "train_loss", 2.0), ("b", "train_loss", 1.0), ("a", "rate", 0.10001), ("b", "rate", 0.1)]
    table = pd.DataFrame(rows, columns=["run", "name", "value"]).assign(step=1)
    assert training.training_curves(table, ["train_loss", "rate"]).summary == (
        "At the end train loss is lowest in b (1), highest in a (2); rate is the same in all runs (0.1)."
    )


def test_mass_left_is_told_as_a_sum_over_words_not_as_a_share_of_them():
    row = {"sentence": 4, "source": "the dog", "words": 2, "left": 0.32, "mean": 0.16, "most": 0.3, "word": "dog"}
    assert under_translation(pd.DataFrame([row])).summary == (
        "Sentence 4 has most: 0.32, the sum of FUTURE mass over its source words, 0.16 a word on average; "
        "'dog' has 0.30."
    )


def test_future_cost_overlay_takes_the_analysis():
    tokens = ["the", "<b>", "the"]
    table = future_cost_analysis.overlay(tokens, [-0.1, -0.5, -0.2], [np.nan, -0.4, -0.6], [0.2, 0.5, 0.9])
    figure = future_cost.overlay(table)
    assert figure.panels[0].x.texts == ("the", "<b>", "the")
    assert len(figure.panels) == 2
    assert "misses the log-probability by 0.25 nats" in figure.summary
    assert len(future_cost.overlay(table.assign(gate=np.nan)).panels) == 1


def test_calibration_takes_the_analysis_and_draws_the_diagonal():
    estimated = np.log([0.1, 0.2, 0.5, 0.6, 0.8, 0.9])
    table = future_cost_analysis.calibration([estimated], [estimated - 0.5], bins=3).assign(system="future-cost-2")
    figure = future_cost.calibration(table)
    diagonal, curve = marks_of(figure, Line)
    assert (diagonal.table["mean_estimated"] == diagonal.table["mean_realised"]).all()
    np.testing.assert_allclose(curve.table["mean_realised"] - curve.table["mean_estimated"], 0.5)
    assert figure.summary == "Weighted by the steps of each bin, future-cost-2 is off by 0.50 nats."


def examples() -> list[Figure]:
    table = length_table()
    merged = beam_analysis.diff(RECORD, OTHER)
    return [
        beam.beam_tree(beam_analysis.tree(RECORD)),
        difference_plots.beam_diff(merged.nodes, ("transformer", "gdr")),
        lengths.length_scores(table),
        lengths.length_differences(table[table["system"] == "gdr"]),
        lengths.output_lengths(table),
    ]


@pytest.mark.parametrize("figure", examples(), ids=lambda figure: figure.name)
def test_every_line_of_the_screen_stands_on_paper(figure):
    screen = to_plotly(figure)
    drawn = [line for axes in to_matplotlib(figure).axes for line in axes.lines]

    def points(x, y) -> tuple[float, ...]:
        # An upright rule reaches across the panel, whatever its limits: only its place is compared.
        x, y = (np.nan_to_num(np.asarray(values, dtype=float)) for values in (x, y))
        return tuple(x) if len(x) == 2 and x[0] == x[1] else (*x, *y)

    on_paper = {points(line.get_xdata(), line.get_ydata()) for line in drawn}
    for trace in screen.data:
        level = trace.hoverinfo == "skip" and len(trace.y) == 2 and trace.y[0] == trace.y[1]
        if trace.type != "scatter" or "lines" not in (trace.mode or "") or trace.name == "band":
            continue
        if level:
            assert any(set(line.get_ydata()) == {trace.y[0]} for line in drawn)
        else:
            assert points(trace.x, trace.y) in on_paper
    assert figure.summary
    assert figure.caption


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match=r"table 'table' lacks n, score, low, high; it has system, bucket"):
        lengths.length_scores(pd.DataFrame({"system": ["a"], "bucket": ["b"]}))


def context_cells(system: str, words: int) -> pd.DataFrame:
    """Two iterations of three maps with two capsules."""
    rows = [
        {"system": system, "row": row, "iteration": iteration, "capsule": capsule, "word": word,
         "word_token": f"{system}{word}", "distance": 1, "value": 0.5, "shown": 1.0}
        for iteration in (0, 1)
        for row in (context.COUPLING, context.CORRELATION, context.WEIGHT)
        for capsule in (1, 2)
        for word in range(words)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.long
def test_maps_of_a_system_zoom_together_and_not_with_those_of_another():
    both = to_plotly(context.context_routing(pd.concat([context_cells("qcn", 3), context_cells("other", 5)])))
    followed = [axis.matches or axis.plotly_name.replace("axis", "") for axis in both.select_xaxes()]
    assert followed == ["x"] * 6 + ["x7"] * 6
    alone = to_plotly(context.context_routing(context_cells("qcn", 3)))
    assert {axis.matches or "x6" for axis in alone.select_xaxes()} == {"x6"}


def test_the_summary_of_context_curves_ends_with_each_system_where_it_ends():
    rows = [("a", 0, 1.0), ("a", 1, 2.0), ("b", 0, 3.0)]
    table = pd.DataFrame(rows, columns=["system", "iteration", "value"])
    figure = context.context_curves(table.assign(measure="used", low=np.nan, high=np.nan), ("used",))
    assert "a in iteration 1: capsules in use (2.00); b in iteration 0: capsules in use (3.00)" in figure.summary


def test_the_summary_of_context_maps_parts_the_iteration_from_the_count():
    assert context.context_routing(context_cells("qcn", 3)).summary == (
        "qcn: in iteration 1, 3 of 3 context words have their largest coupling c with capsule 1."
    )
