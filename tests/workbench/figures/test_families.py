"""Each family: what its marks hold for a small table worked out by hand, and that it takes the analyses' own tables."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from analyses import beam as beam_analysis
from analyses import future_cost as future_cost_analysis
from workbench.figures import beam, beam_difference, beam_layout, future_cost, lengths, scores, training
from workbench.figures.grammar import Bars, Figure, Labels, Line, Points, Rule, Segments
from workbench.figures.matplotlib_renderer import to_matplotlib
from workbench.figures.plotly_renderer import to_plotly

# Two first words; "a" is pruned, "the cat </s>" wins, "the <b>" is kept and finishes later.
RECORD = {
    "step": [1, 1, 2, 2, 2, 3],
    "parent": [-1, -1, 0, 0, 0, 3],
    "word": ["the", "a", "</s>", "<b>", "rare", "</s>"],
    "log_prob": list(np.log([0.6, 0.3, 0.5, 0.4, 0.001, 0.9])),
    "score": [-0.51, -1.2, -1.2, -1.43, -7.4, -1.53],
    "normalised": [-0.51, -1.2, -0.6, -0.71, -3.7, -0.51],
    "rank": [0, 1, 0, 1, 2, 0],
    "fate": ["kept", "pruned", "finished", "kept", "pruned", "finished"],
    "best": 5,
}
OTHER = {**RECORD, "word": ["the", "a", "</s>", "cat", "rare", "</s>"]}
OTHER["fate"] = ["kept", "pruned", "pruned", "kept", "pruned", "finished"]


def marks_of(figure: Figure, kind: type, panel: int = 0) -> list:
    return [mark for mark in figure.panels[panel].marks if isinstance(mark, kind)]


def series_rows(figure: Figure, kind: type) -> dict[str, int]:
    return {mark.series: len(mark.table) for mark in marks_of(figure, kind)}


def words(figure: Figure) -> list[str]:
    return sorted(text for mark in marks_of(figure, Labels) for text in mark.table["text"])


def test_beam_tree_draws_the_analysis_and_hides_the_unlikely():
    figure = beam.beam_tree(beam_analysis.tree(RECORD))
    assert series_rows(figure, Points) == {"pruned": 1, "finished": 1, "best path": 3}
    assert words(figure) == ["</s> −0.51", "</s> −0.60", "<b>", "a", "the"]
    assert "1 nodes are not drawn" in figure.caption
    assert figure.summary.startswith("The best path reads 'the <b> </s>'")
    best = next(mark for mark in marks_of(figure, Points) if mark.series == "best path")
    assert best.table["y"].nunique() == 1


def test_beam_tree_edges_meet_their_nodes():
    figure = beam.beam_tree(beam_analysis.tree(RECORD), minimum_probability=0.0)
    nodes = pd.concat([mark.table for mark in marks_of(figure, Points)])
    ends = pd.concat([mark.table for mark in marks_of(figure, Segments)])
    reached = set(zip(ends["step_end"], ends["y_end"], strict=True))
    assert set(zip(nodes["step"].astype(float), nodes["y"].astype(float), strict=True)) <= reached


def test_beam_tree_draws_one_trace_for_each_class_however_many_nodes():
    rng = np.random.default_rng(0)
    count = 300
    record = {
        "step": [1] * count,
        "parent": [-1] * count,
        "word": ["w"] * count,
        "log_prob": list(np.log(rng.uniform(0.02, 1.0, count))),
        "score": [-1.0] * count,
        "normalised": [-1.0] * count,
        "rank": list(range(count)),
        "fate": ["pruned"] * count,
        "best": 0,
    }
    assert len(to_plotly(beam.beam_tree(beam_analysis.tree(record))).data) <= 12
    capped = beam.beam_tree(beam_analysis.tree(record), node_cap=40)
    assert sum(series_rows(capped, Points).values()) == 40
    assert "best path" in series_rows(capped, Points)


def test_beam_tree_without_pruned_keeps_the_rest():
    figure = beam.beam_tree(beam_analysis.tree(RECORD), pruned=False)
    assert series_rows(figure, Points) == {"finished": 1, "best path": 3}


def _extents(figure: Figure, align: str, panel: int = 0) -> list[tuple[float, float, float]]:
    """Lane, left and right end in steps of every word, a character as wide as the figure takes it to be on paper."""
    low, high = figure.panels[panel].x.range
    found = []
    for mark in marks_of(figure, Labels, panel):
        width = beam_layout.CHARACTER_POINTS * mark.font_points / 7.0 * (high - low) / beam_layout.PAGE_POINTS
        for row in mark.table.to_dict("records") if mark.align == align else ():
            length = len(row["text"]) * width
            left = row["step"] - length / 2 if align == "above" else row["step"]
            found.append((row["y"], left, left + length))
    return sorted(found)


def _long(steps: int) -> pd.DataFrame:
    """A search of so many steps, of which every fifth branches off; words of nine characters."""
    record = {
        "step": [],
        "parent": [],
        "word": [],
        "log_prob": [],
        "score": [],
        "normalised": [],
        "rank": [],
        "fate": [],
    }
    before = -1
    for step in range(1, steps + 1):
        for rank in range(2 if step % 5 == 0 else 1):
            last = step == steps
            values = (step, before, f"word-{step:04}", -0.1, -0.1, -0.1, rank, "finished" if last else "kept")
            for column, value in zip(record, values, strict=True):
                record[column].append(value)
        before = len(record["step"]) - (2 if step % 5 == 0 else 1)
    return beam_analysis.tree({**record, "best": len(record["step"]) - 1 - (steps % 5 == 0)})


@pytest.mark.parametrize("steps", [6, 12, 40, 90])
def test_words_of_a_long_tree_do_not_stand_on_each_other_and_none_is_cut_off_or_left_out(steps):
    figure = beam.beam_tree(_long(steps))
    for number, panel in enumerate(figure.panels):
        nodes = pd.concat([mark.table for mark in marks_of(figure, Points, number)])
        inner, leaves = _extents(figure, "above", number), _extents(figure, "right", number)
        for (lane, _, end), (other, begin, _) in pairwise(sorted(inner + leaves)):
            assert lane != other or begin >= end - 1e-9
        assert max(end for _, _, end in leaves) <= panel.x.range[1]
        assert len(inner) + len(leaves) == len(nodes)
    assert (len(figure.panels) > 1) == (steps > 12)
    assert figure.panels[-1].x.positions[-1] == steps


def test_a_row_begins_with_the_words_that_it_goes_on_from_and_all_rows_have_one_scale():
    figure = beam.beam_tree(_long(40))
    drawn = [pd.concat([mark.table for mark in marks_of(figure, Points, n)]) for n in range(len(figure.panels))]
    for above, below in pairwise(drawn):
        last = above["step"].max()
        went_on = below.loc[below["step"] == last + 1, "parent"]
        assert set(below.loc[below["step"] <= last, "id"]) == set(went_on) <= set(above["id"])
    assert set(pd.concat(drawn)["id"]) == set(range(48))
    assert len({round(panel.x.range[1] - panel.x.range[0], 9) for panel in figure.panels}) == 1


def _random_search(steps: int, beam_size: int, seed: int) -> pd.DataFrame:
    """A search that keeps the best of random candidates; one hypothesis finishes at the end."""
    rng = np.random.default_rng(seed)
    rows, kept = [], [(-1, 0.0)]
    for step in range(1, steps + 1):
        gains = np.log(rng.uniform(0.05, 1.0, (len(kept), 4)))
        candidates = [(one, score + gain, gain) for (one, score), own in zip(kept, gains, strict=True) for gain in own]
        candidates.sort(key=lambda one: -one[1])
        begin, kept = len(rows), []
        for rank, (parent, score, gain) in enumerate(candidates[: 2 * beam_size]):
            fate = "pruned" if rank >= beam_size else "finished" if step == steps else "kept"
            rows.append((step, parent, f"w{rng.integers(1000)}", gain, score, score, rank, fate))
            kept += [(begin + rank, score)] if fate == "kept" else []
    names = ("step", "parent", "word", "log_prob", "score", "normalised", "rank", "fate")
    record = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return beam_analysis.tree({**record, "best": record["fate"].index("finished")})


@pytest.mark.parametrize("seed", range(4))
def test_no_edge_of_a_beam_tree_crosses_another_nor_runs_over_a_node(seed):
    tree = _random_search(12, 5, seed)
    figure = beam.beam_tree(tree, minimum_probability=0.0)
    for number in range(len(figure.panels)):
        # Edges to several children have the piece before they part in common.
        pieces = pd.concat([mark.table for mark in marks_of(figure, Segments, number)]).drop_duplicates(
            ["step", "y", "step_end", "y_end"]
        )
        lying = pieces[pieces["y"] == pieces["y_end"]]
        upright = pieces[pieces["step"] == pieces["step_end"]]
        for edge in upright.itertuples():
            crossed = lying[(lying["y"] > edge.y) & (lying["y"] < edge.y_end)]
            assert not ((crossed["step"] < edge.step) & (edge.step < crossed["step_end"])).any()
        for lane, own in lying.groupby("y"):
            ends = sorted(zip(own["step"], own["step_end"], strict=True))
            assert all(begin >= end - 1e-9 for (_, end), (begin, _) in pairwise(ends)), lane
        nodes = pd.concat([mark.table for mark in marks_of(figure, Points, number)])
        assert not nodes.duplicated(["step", "y"]).any()
        assert nodes.loc[nodes["on_best"], "y"].unique().tolist() == [0.0]
        assert nodes["y"].max() < tree[tree["id"].isin(nodes["id"])]["y"].nunique()


def test_beam_window_outside_the_search_is_refused():
    with pytest.raises(ValueError, match="the search has 3 steps"):
        beam.beam_tree(beam_analysis.tree(RECORD), steps=(7, 9))


def test_two_trees_share_their_steps():
    tree = beam_analysis.tree(RECORD)
    figure = beam.beam_trees_side_by_side(tree, beam_analysis.tree(OTHER), ("transformer", "gdr"))
    assert [panel.title for panel in figure.panels] == ["transformer", "gdr"]
    assert figure.panels[0].x == figure.panels[1].x


def test_a_system_that_has_ended_takes_no_place_on_later_rows():
    figure = beam.beam_trees_side_by_side(_long(40), _long(12), ("long", "short"))
    assert [panel.title for panel in figure.panels] == [
        "long, steps 1 to 10",
        "short, steps 1 to 10",
        "long, steps 11 to 20",
        "short, steps 11 to 20",
        "long, steps 21 to 30",
        "long, steps 31 to 40",
    ]


def test_beam_diff_sorts_every_prefix_into_one_class():
    merged = beam_analysis.diff(RECORD, OTHER)
    figure = beam_difference.beam_diff(merged.nodes, ("transformer", "gdr"), divergence_step=merged.divergence_step)
    outer = {mark.series: len(mark.table) for mark in marks_of(figure, Points) if mark.legend}
    # A alone: "the <b>", "the <b> </s>"; B alone: "the cat", "the cat </s>"; "the </s>" finished in A, pruned in B.
    assert outer == {
        "both": 3,
        "transformer only": 2,
        "gdr only": 2,
        "kept by transformer, pruned by gdr": 1,
    }
    assert marks_of(figure, Rule)[0].position == 1.5
    assert "the cat </s>" in figure.table["prefix"].tolist()


def test_beam_diff_hides_what_no_search_kept_what_is_unlikely_and_what_lies_outside_the_window():
    nodes = beam_analysis.diff(RECORD, OTHER).nodes
    alive = nodes[nodes.fate_a.isin(["kept", "finished"]) | nodes.fate_b.isin(["kept", "finished"])]
    best = nodes[nodes.best_a | nodes.best_b]

    def drawn(**options):
        return set(beam_difference.beam_diff(nodes, **options).table.query("mark == 'points'")["prefix"])

    def named(rows):
        return {" ".join(prefix) for prefix in rows.prefix}

    assert drawn() == named(nodes)
    assert drawn(pruned=False) == named(alive) | named(best)
    assert drawn(steps=(1, 1)) == named(nodes[nodes.step == 1])
    assert drawn(minimum_probability=1.1) == named(best)
    with pytest.raises(ValueError, match="the searches have 3 steps"):
        beam_difference.beam_diff(nodes, steps=(7, 9))


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
    assert [mark.series for mark in figure.legend()] == ["printed"]
    hollow = [mark for mark in marks_of(figure, Points) if mark.style.hollow]
    assert [mark.table["score"].tolist() for mark in hollow] == [[45.0]]
    assert "gdr is highest in BLEU (45.58)" in figure.summary


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
    drawn = {mark.style.colour: mark for mark in marks_of(figure, Line) if mark.series == "gdr"}
    grey = drawn.pop(strip[1].style.colour)
    assert grey.table[["score", "low", "high"]].to_numpy().tolist() == [[31, 30, 32], [22, 19, 25]]
    (own,) = drawn.values()
    np.testing.assert_array_equal(own.table[["score", "low", "high"]], [[31, 30, 32], [np.nan] * 3])
    assert (own.style.dash, own.style.marker, own.legend, grey.legend) == (grey.style.dash, grey.style.marker, 1, 0)


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
    with pytest.raises(ValueError, match="no run logged 'dev_los'; logged are train_loss"):
        training.training_curves(table, ["dev_los"])


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
    table = future_cost_analysis.calibration(estimated, estimated - 0.5, bins=3).assign(system="future-cost-2")
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
        beam_difference.beam_diff(merged.nodes, ("transformer", "gdr")),
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
