"""Beam trees and their differences: what is drawn is the analysis, and no word or edge stands on another."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from analyses import beam as beam_analysis
from workbench.plotting.grammar import Figure, Labels, Points, Rule, Segments
from workbench.plotting.plotly_renderer import to_plotly
from workbench.views.beam_search import difference_plots, tree_layout
from workbench.views.beam_search import plots as beam

pytestmark = pytest.mark.long

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


def test_the_summary_of_a_window_says_the_whole_translation_and_where_the_window_ends():
    whole, window = (beam.beam_tree(_long(6), steps=steps).summary for steps in (None, (1, 3)))
    assert whole.split(";")[0] == window.split(";")[0]
    assert window.endswith("are drawn up to step 3 of 6.")
    assert whole.endswith("are drawn.")


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
        width = tree_layout.CHARACTER_POINTS * mark.font_points / 7.0 * (high - low) / tree_layout.PAGE_POINTS
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
            above, below = sorted((edge.y, edge.y_end))
            crossed = lying[(lying["y"] > above) & (lying["y"] < below)]
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
    figure = difference_plots.beam_diff(merged.nodes, ("transformer", "gdr"), divergence_step=merged.divergence_step)
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
        return set(difference_plots.beam_diff(nodes, **options).table.query("mark == 'points'")["prefix"])

    def named(rows):
        return {" ".join(prefix) for prefix in rows.prefix}

    assert drawn() == named(nodes)
    assert drawn(pruned=False) == named(alive) | named(best)
    assert drawn(steps=(1, 1)) == named(nodes[nodes.step == 1])
    assert drawn(minimum_probability=1.1) == named(best)
    with pytest.raises(ValueError, match="the searches have 3 steps"):
        difference_plots.beam_diff(nodes, steps=(7, 9))
