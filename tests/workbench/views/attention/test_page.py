"""Attention and Tokens: the pages show the maps and numbers of forced passes of the chosen runs."""

import numpy as np
import pytest

import core_models
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, runs_of, texts, traces
from workbench.figures.drawing import draw
from workbench.figures.request import Request

PAIR = ["demo/transformer", "demo/future-cost-2"]


@pytest.fixture
def pair(with_demo):
    return runs_of(with_demo, "transformer", "future-cost-2")


def forced(run, sentence: int, target: str):
    """The translator's own account of a reference or a typed text."""
    found = run.translations("test").test_set
    text = found.references[sentence] if target == "reference" else target
    return core_models.load(run.folder).score([found.sources[sentence]], [text], trace=["*"])[0]


def heats(chart: dict) -> list[dict]:
    return [trace for trace in chart["data"] if trace["type"] == "heatmap"]


def test_attention_of_the_runs_stands_side_by_side(pair):
    at = open_page("attention", runs=PAIR, sentence="2", translation="Reference")
    weights, alignment = charts(at)
    for run, heat in zip(pair, heats(weights), strict=True):
        wanted = forced(run, 2, "reference").trace["decoder.cross_attention"].values.mean((0, 1))
        np.testing.assert_allclose(heat["z"], wanted.T, atol=1e-5)  # the source downwards, once for both
    assert {"source", "target"} <= axis_titles(weights)
    assert weights["layout"]["yaxis2"]["showticklabels"] is False
    assert [annotation["text"] for annotation in weights["layout"]["annotations"]] == ["transformer", "future-cost-2"]
    assert all(traces(alignment, "most attended"))
    commands = [code for code in codes(at) if code.startswith("workbench figure ")]
    assert [command.split()[2] for command in commands] == ["attention", "alignment"]
    options = ("--option target=reference ", "--option links=truth ")
    assert all(
        option in command and "--sentence 2" in command for option, command in zip(options, commands, strict=True)
    )


@pytest.mark.parametrize(
    ("runs", "part", "sums"), [(1, "cross", "Rows"), (2, "cross", "Columns"), (2, "encoder", "Rows")]
)
def test_the_caption_says_what_sums_to_one(pair, runs, part, sums):
    """Of several runs the source stands downwards."""
    figure = draw("attention", Request(pair[:runs], sentence=2, options={"target": "reference", "part": part}))
    assert f"{sums} sum to one." in figure.caption
    heat = figure.panels[0].marks[0]
    np.testing.assert_allclose(heat.table.groupby(heat.y if sums == "Rows" else heat.x)[heat.value].sum(), 1, atol=1e-5)


def test_a_map_of_the_difference_stands_beside_the_maps_of_the_same_text(pair):
    at = open_page("attention", runs=PAIR, sentence="2", translation="Reference", difference="true")
    weights, alignment = charts(at)
    plain, changed, difference = (np.array(heat["z"], dtype=float) for heat in heats(weights))
    np.testing.assert_allclose(difference, changed - plain, atol=1e-6)
    assert [annotation["text"] for annotation in weights["layout"]["annotations"]][2] == "future-cost-2 − transformer"
    assert len(heats(alignment)) == 2
    assert any("--option difference=true" in code for code in codes(at))
    swapped = draw("attention", Request(pair, sentence=2, baseline=pair[1].name,
                                        options={"target": "reference", "difference": True}))  # fmt: skip
    np.testing.assert_allclose(swapped.panels[2].marks[0].cells()[0], plain - changed, atol=1e-6)


def test_the_scale_ends_at_the_largest_weight_unless_the_url_names_another_end(with_demo):
    at = open_page("attention", runs=PAIR)
    ends = [chart["layout"]["coloraxis"]["cmax"] for chart in charts(at)]
    largest = [max(float(np.max(heat["z"])) for heat in heats(chart)) for chart in charts(at)]
    assert all(top <= end < 1.1 * top for end, top in zip(ends, largest, strict=True))
    assert not any("limit=" in code for code in codes(at))
    asked = open_page("attention", runs=PAIR, limit="0.5")
    assert [chart["layout"]["coloraxis"]["cmax"] for chart in charts(asked)] == [0.5, 0.5]
    assert all("--option limit=0.5" in code for code in codes(asked) if code.startswith("workbench figure "))


@pytest.mark.slow
def test_every_layer_and_head_of_a_run_stands_in_its_tab(pair):
    at = open_page("attention", runs=PAIR, layer="Each", head="Each", part="Source → source")
    first, second, _ = charts(at)
    for run, chart in zip(pair, (first, second), strict=True):
        source = run.translations("test").test_set.sources[0]
        trace = core_models.load(run.folder).score([source], ["x"], trace=["encoder.*"])[0].trace
        wanted = trace["encoder.self_attention"].values
        for heat, one in zip(heats(chart), wanted.reshape(-1, *wanted.shape[2:]), strict=True):
            np.testing.assert_allclose(heat["z"], one, atol=1e-5)


@pytest.mark.slow
def test_gold_links_come_from_a_file(pair, tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("0-0\n" * 30, encoding="utf-8")
    at = open_page("attention", runs=PAIR)
    at.text_input(key="links").set_value(str(path)).run()
    _, alignment = charts(at)
    assert [trace["x"].tolist() for trace in traces(alignment, "gold, sure")] == [[0.0], [0.0]]
    assert any("most attended source word is a gold link" in text for text in texts(at))
    path.write_text("0-0 1-0\n" * 30, encoding="utf-8")  # another file of the same name
    at.run()
    assert [trace["y"].tolist() for trace in traces(charts(at)[1], "gold, sure")] == [[0.0, 1.0], [0.0, 1.0]]
    at.text_input(key="links").set_value(f"{path}x").run()
    assert "no such file of links" in at.error[0].value
    assert len(charts(at)) == 1


def test_a_link_cannot_make_the_page_read_a_file(with_demo, tmp_path):
    (tmp_path / "secret").write_text("word", encoding="utf-8")
    at = open_page("attention", links=str(tmp_path / "secret"))
    assert not at.error
    assert at.text_input(key="links").value == ""


def test_tokens_of_a_typed_text_have_the_translators_numbers(pair):
    typed = pair[0].translations("test").test_set.references[5]
    at = open_page("tokens", runs=PAIR, sentence="1", translation="Typed text", typed=typed)
    words, lens = charts(at)
    assert {"P(word)", "entropy (nats)", "rank"} <= axis_titles(words)
    for run, name, heat in zip(pair, ("transformer", "future-cost-2"), heats(lens), strict=True):
        wanted = forced(run, 1, typed)
        probability, entropy, rank = traces(words, name)
        np.testing.assert_allclose(probability["y"], np.exp(wanted.token_log_probs), atol=1e-5)
        np.testing.assert_allclose(entropy["y"], wanted.trace["entropy"].values, atol=1e-4)
        assert rank["y"].tolist() == wanted.trace["rank"].values.tolist()
        np.testing.assert_allclose(heat["z"], np.exp(wanted.trace["lens.log_prob"].values).T, atol=1e-5)
    assert any("okens that are the most probable ones" in text for text in texts(at))


def test_without_a_typed_text_the_page_asks_for_one(with_demo):
    at = open_page("tokens", runs=PAIR, translation="Typed text")
    assert "no text was typed" in at.error[0].value
    assert not charts(at)
