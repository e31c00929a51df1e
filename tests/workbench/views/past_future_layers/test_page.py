"""The page Content states: its figures are of the runs that have layers; coverage is of all of them."""

import shutil

import pytest

from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, texts
from tests.workbench.views.past_future_layers.test_figures import covering_run


@pytest.fixture
def both(layered_run, with_demo):
    shutil.copytree(layered_run.folder, with_demo / "demo" / "pfrnn-loss")
    return {"runs": ["demo/transformer", "demo/pfrnn-loss"]}


def drawn(at) -> list[str]:
    return [code.split()[2] for code in codes(at) if code.startswith("workbench figure ")]


def test_a_sentence_shows_what_the_states_do(both):
    at = open_page("content_states", **both, sentence="2", translation="Reference")
    assert drawn(at) == ["content-states"]
    assert axis_titles(charts(at)[0]) == {"length", "target"}
    assert {"PAST", "FUTURE"} <= {trace.get("name") for trace in charts(at)[0]["data"]}
    at.toggle(key="content-rest").set_value(True).run()
    assert drawn(at) == ["content-states"] * 2
    assert {"share", "cosine", "nats", "rank", "distance", "target"} <= axis_titles(charts(at)[1])
    assert {"PAST", "FUTURE", "PAST + FUTURE", "system"} <= {trace.get("name") for trace in charts(at)[1]["data"]}
    assert any("Without PAST and FUTURE layers: transformer" in one.value.replace("\\", "") for one in at.caption)


def test_a_test_set_and_coverage(both):
    at = open_page("content_states", **both, content="Test set", **{"content-sentences": "20"})
    assert drawn(at) == ["content-course"]
    assert not at.error
    maps = open_page("content_states", **both, content="Coverage", sentence="2", translation="Reference")
    assert drawn(maps) == ["coverage-map"]
    assert len([trace for trace in charts(maps)[0]["data"] if trace["type"] == "heatmap"]) == 2
    assert not maps.error


@pytest.mark.slow
def test_a_unit_of_neural_coverage_is_chosen(both, with_demo):
    covering_run(with_demo / "demo" / "data", with_demo / "demo" / "neural", "neural,units=3")
    at = open_page("content_states", runs=["demo/pfrnn-loss", "demo/neural"], content="Coverage", sentence="2")
    assert at.selectbox(key="content-unit").options == ["mean", "1", "2", "3"]
    assert any("mean of 3 units" in one.value for one in at.caption)
    at.selectbox(key="content-unit").select("2").run()
    assert any("unit 2" in one.value for one in at.caption)
    assert not at.error


def test_without_such_a_run_the_page_says_how_to_train_one(with_demo):
    at = open_page("content_states", runs=["demo/transformer"])
    assert any("None of the chosen runs has PAST or FUTURE layers" in text for text in texts(at))
    assert any("They hardly train from scratch" in text for text in texts(at))
    trained = next(code for code in codes(at) if "workbench demo pfrnn-loss" in code).splitlines()[1]
    assert trained.startswith("workbench train pfrnn-loss ")
    assert trained.endswith(" --init-from RNNSEARCH_RUN")


def test_the_truth_is_there_for_runs_without_masses(both):
    at = open_page("past_future", **both, **{"past-future": "Against the truth", "forced-sentences": "20"})
    assert drawn(at) == ["past-future-truth"]
    assert not at.error
