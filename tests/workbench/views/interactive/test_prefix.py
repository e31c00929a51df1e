"""Forced prefixes on Translate: every run's search is the translator's; pieces, alternatives, nodes make prefixes."""

import math

import numpy as np
import pytest

import core_models
from analyses import aligner as aligners
from analyses import attention, beam
from analyses.attention import text_of
from tests.workbench.views.app_pages import charts, open_page, runs_of, showing_piece_marks, texts
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.views.beam_search import node_selection
from workbench.views.interactive import prefix_constrained

PAIR = ["demo/transformer", "demo/future-cost-2"]
PREFIX = "die Frau"


@pytest.fixture
def pair(with_demo):
    return runs_of(with_demo, "transformer", "future-cost-2")


def searched(run, prefix: str = "", sentence: int = 2):
    """The translator's own search."""
    source = run.translations("test").test_set.sources[sentence]
    given = [prefix] if prefix else None
    search = {"beam": 3, "length_penalty": 0.6, "record": True}
    return source, core_models.load(run.folder).translate([source], prefix=given, **search)[0]


def results(at):
    return next(frame.value for frame in at.dataframe if "log_prob_change" in frame.value)


def pills(at, key: str):
    return next(element for element in at.pills if element.key == key)


def test_every_run_goes_on_from_the_prefix(pair):
    at = open_page("translate", runs=PAIR, sentence="2", prefix=PREFIX, beam="3")
    table = results(at)
    assert table["system"].tolist() == ["transformer", "future-cost-2"]
    for run, row in zip(pair, table.itertuples(), strict=True):
        (source, free), (_, forced) = searched(run), searched(run, PREFIX)
        assert row.text == forced.text
        assert row.text.startswith(PREFIX)
        assert (row.score, row.log_prob) == pytest.approx((forced.score, forced.log_prob), abs=1e-4)
        assert row.log_prob_change == pytest.approx(forced.log_prob - free.log_prob, abs=1e-4)
        names = ["decoder.cross_attention", "future_cost.log_prob"]
        (trace,) = core_models.load(run.folder).trace([source], [forced.tokens], names)
        mean = trace["decoder.cross_attention"].values.mean((0, 1))
        words, kept = attention.to_words(mean, forced.tokens, forced.source_tokens), forced.tokens[-1] == "</s>"
        looked_at = set(words[: len(words) - kept, :-1].argmax(axis=1).tolist())
        assert row.coverage == pytest.approx(100 * len(looked_at) / (words.shape[1] - 1))
        if "future_cost.log_prob" in trace:
            assert row.future_cost == pytest.approx(float(trace["future_cost.log_prob"].values.sum()), abs=1e-3)
        else:
            assert math.isnan(row.future_cost)
    assert any("Underlined: not in the unconstrained translation" in caption.value for caption in at.caption)
    assert any("attends most" in caption.value for caption in at.caption)


def test_alternatives_are_what_the_system_thinks_of_each_next_piece(pair):
    for run in pair:
        source, forced = searched(run, PREFIX)
        table = prefix_constrained.alternatives(run, PREFIX, forced)
        steps = prefix_constrained.forced_steps(run, PREFIX)
        assert len(table) == 6, "twice the beam"
        assert table["probability"].is_monotonic_decreasing
        assert table.loc[table["taken"], "piece"].tolist() == [forced.tokens[steps]]
        translator = core_models.load(run.folder)
        for row in table.itertuples():
            pieces = [*forced.tokens[:steps], row.piece]
            (trace,) = translator.trace([source], [pieces], ["log_prob"])
            assert row.log_prob == pytest.approx(float(trace["log_prob"].values[steps]), abs=1e-4)


def test_a_click_on_a_piece_or_an_alternative_makes_the_prefix(pair):
    at = open_page("translate", runs=PAIR, sentence="2", beam="3", inside="Next subword")
    assert not showing_piece_marks(at)
    assert not at.text_input(key="prefix").value
    _, free = searched(pair[1])
    pills(at, "pieces-future-cost-2").set_value(1).run()
    prefix = at.text_input(key="prefix").value
    assert prefix == text_of(free.tokens[:2])
    assert at.query_params["prefix"] in (prefix, [prefix])
    _, forced = searched(pair[0], prefix)
    table = prefix_constrained.alternatives(pair[0], prefix, forced)
    able = table[table["prefix"] != ""]
    pills(at, "next").set_value(1).run()
    assert at.text_input(key="prefix").value == able["prefix"].iloc[1]
    assert results(at)["text"].str.startswith(able["prefix"].iloc[1]).all()


def test_equal_pieces_are_told_apart(with_demo):
    """Streamlit knows an option by its label: two equal ones would be one."""
    at = open_page("translate", runs=PAIR[:1], sentence="2", prefix="die die die", beam="3")
    options = pills(at, "pieces-transformer").options
    assert len(set(options)) == len(options)
    pills(at, "pieces-transformer").set_value(1).run()
    assert at.text_input(key="prefix").value == "die die"


def test_the_source_can_be_typed_and_coverage_come_from_the_aligner(pair):
    source = "the cat sleeps ."
    at = open_page("translate", runs=PAIR[:1], source=source, prefix="die", coverage="Frozen aligner")
    assert source in texts(at)
    (row,) = results(at).itertuples()
    assert 0.0 <= row.coverage <= 100.0
    assert any("frozen aligner" in caption.value for caption in at.caption)


def test_coverage_by_an_aligner_is_the_share_of_linked_source_words():
    found = aligners.train([["a", "b"], ["a"], ["b"]], [["x", "y"], ["x"], ["y"]])
    assert prefix_constrained.aligned_coverage(found, "a b", "x") == 0.5
    assert prefix_constrained.aligned_coverage(found, "a b", "y x") == 1.0
    assert math.isnan(prefix_constrained.aligned_coverage(found, "", "x"))


def test_a_source_or_a_prefix_without_end_is_refused(with_demo):
    at = open_page("translate", runs=PAIR[:1], prefix="wort " * 200)
    assert "200 words" in at.error[0].value


@pytest.mark.parametrize("name", ["beam-tree", "beam-trees", "beam-diff"])
def test_every_node_of_a_tree_knows_its_prefix(pair, name):
    options = {"minimum_probability": 0.0, "node_cap": 10_000, "steps": "all", "pruned": True}
    runs = tuple(pair[:1] if name == "beam-tree" else pair)
    figure = draw(name, Request(runs, sentence=4, options=options))
    wanted = {text_of(prefix) for run in runs for prefix in beam.tree(run.translations("test").tree(4))["prefix"]} - {
        ""
    }
    assert set(node_selection.nodes(figure)["prefix"]) == wanted
    marks = [mark for panel in figure.panels for mark in panel.marks]
    for row in node_selection.nodes(figure).itertuples():
        assert marks[row.curve].table["step"].iloc[row.point] == row.step


@pytest.mark.slow
def test_a_node_leads_to_the_page_with_everything_kept(pair):
    at = open_page("beam_trees", runs=PAIR, sentence="4")
    box = at.selectbox(key="node-beam-trees")
    assert not at.get("page_link")
    prefix = box.options[3]
    box.set_value(prefix).run()
    (link,) = at.get("page_link")
    assert link.proto.page == "translate"
    own = _query(link.proto.query_string)
    assert "runs" not in own  # what all pages share is in the URL already: Streamlit would write it twice
    opened = open_page("translate", runs=PAIR, sentence="4", **own)
    assert opened.text_input(key="prefix").value == prefix
    assert opened.sidebar.multiselect(key="runs").value == PAIR
    assert opened.sidebar.number_input(key="sentence").value == 4


def _query(text: str) -> dict[str, list[str]]:
    from urllib.parse import parse_qs

    return parse_qs(text)


def test_a_click_on_a_node_chooses_it(pair):
    at = open_page("beam_trees", runs=PAIR[:1], sentence="4")
    figure = draw("beam-tree", Request((pair[0],), sentence=4, options=_options(at)))
    node = node_selection.nodes(figure).iloc[2]
    points = [{"curve_number": int(node.curve), "point_index": int(node.point)}]
    chart = at.get("plotly_chart")[0]
    at.session_state[chart.key] = {"selection": {"points": points}}
    at.run()
    assert at.selectbox(key="node-beam-tree").value == node.prefix


def _options(at) -> dict:
    return {
        "steps": list(at.slider(key="steps").value),
        "minimum_probability": at.select_slider(key="probability").value,
        "node_cap": at.slider(key="nodes").value,
        "pruned": at.toggle(key="pruned").value,
    }


@pytest.mark.slow
def test_a_node_of_the_live_tree_makes_the_prefix(with_demo):
    at = open_page("translate", runs=PAIR[:1], source="the cat sleeps .")
    box = at.selectbox(key="node-live")
    prefix = box.options[-1]
    box.set_value(prefix).run()
    assert f"Prefix: {prefix}" in texts(at)
    at.button(key="force").click().run()
    assert at.text_input(key="prefix").value == prefix
    assert at.text_area(key="source").value == "the cat sleeps ."
    assert results(at)["text"].str.startswith(prefix).all()
    assert np.size(charts(at)) == 1


@pytest.mark.slow
def test_a_link_to_the_former_page_leads_to_this_one_at_its_query(with_demo):
    query = {"runs": PAIR, "sentence": "2", "prefix": PREFIX, "beam": "3", "penalty": "1.0", "with": "future-cost-2"}
    query |= {"source": "the cat sleeps .", "coverage": "Frozen aligner"}
    former, here = open_page("what_if", **query), open_page("translate", **query)
    assert former.query_params == here.query_params
    assert [title.value for title in former.title] == ["Translate"]
    assert texts(former) == texts(here)
    assert results(former).equals(results(here))
    assert former.selectbox(key="with").value == here.selectbox(key="with").value == "demo/future-cost-2"
    assert former.sidebar.multiselect(key="runs").value == PAIR
