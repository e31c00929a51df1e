"""What the documentation promises for a notebook is run as it stands there; a figure displays the numbers of its
table."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.docs.pages import python_blocks
from tests.paths import ROOT
from workbench import notebook
from workbench.evaluation import scoring
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError

PAGES = ("README.md", "docs/how-to/notebooks.md")
DRAWN = """[...document.querySelectorAll(".js-plotly-plot")].filter((chart) => [...chart.querySelectorAll("text")].some(
    (text) => text.textContent == "transformer")).length"""  # charts of a page that name the run


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_the_documentation_run(page, demo_runs, tmp_path, monkeypatch):
    (tmp_path / "runs").symlink_to(demo_runs)
    monkeypatch.chdir(tmp_path)
    found = python_blocks((ROOT / page).read_text(encoding="utf-8"))
    assert found
    known: dict = {}
    for block in found:
        exec(compile(block, page, "exec"), known)
    saved = re.findall(r'\.save\("([^"]+)"', "".join(found))
    assert saved or page == "README.md"
    assert all((tmp_path / name).stat().st_size for name in saved)


@pytest.fixture(scope="module")
def runs(demo_runs):
    return notebook.runs(demo_runs / "demo" / "*")


def test_a_pattern_finds_runs_and_the_baseline_comes_first(runs, demo_runs):
    assert [run.name for run in runs] == ["transformer", "future-cost-1", "future-cost-2"]
    one = demo_runs / "demo" / "future-cost-2"
    assert [run.name for run in notebook.runs(one, demo_runs / "demo" / "trans*")] == ["future-cost-2", "transformer"]
    with pytest.raises(RunError, match=r"no run matches .*/gone\*; a run is a folder with a config.yaml"):
        notebook.runs(demo_runs / "gone*")


def test_a_figure_is_that_of_the_pages(runs):
    shown = notebook.figure("length-differences", runs, baseline="future-cost-1", scheme="width:5")
    same = draw("length-differences", Request(runs, baseline="future-cost-1", options={"scheme": "width:5"}))
    assert shown.table.equals(same.table)
    assert "future-cost-1" in shown.caption


def test_a_notebook_displays_the_table(runs, monkeypatch):
    import plotly.io

    shown = notebook.figure("scores", runs, metrics="bleu")
    for renderer, kind in (("plotly_mimetype", "application/vnd.plotly.v1+json"), ("", "text/html")):
        monkeypatch.setattr(plotly.io.renderers, "_default_renderers", [])
        plotly.io.renderers.default = renderer
        bundle = shown._repr_mimebundle_()
        assert kind in bundle
        assert bundle["text/plain"] == shown.figure.summary
    points = [trace for trace in shown.plotly.data if trace.mode == "markers"]
    drawn = shown.table[shown.table["mark"] == "points"]
    np.testing.assert_array_equal(np.concatenate([trace.x for trace in points]), drawn["score"].to_numpy(float))
    assert json.loads(shown.plotly.to_json())["data"]
    assert not re.search(r"<(script|link)[^>]+(src|href)=", bundle["text/html"]), "it needs no network"


@pytest.mark.slow
def test_two_charts_draw_in_a_page_of_their_own_without_a_network(runs, browser, tmp_path):
    """As a notebook keeps them: no kernel runs; the second chart finds the library of the first, or brings its own."""
    charts = [notebook.figure(name, runs)._repr_html_() for name in ("scores", "training-curves")]
    assert max(map(len, charts)) < 3_000_000
    for number, parts in enumerate((charts, charts[1:])):
        file = tmp_path / f"{number}.html"
        file.write_text("<!DOCTYPE html><meta charset=utf-8>" + "".join(parts), encoding="utf-8")
        page = browser.new_page()
        fetched: list[str] = []
        page.on("request", lambda request, fetched=fetched: fetched.append(request.url))
        page.goto(file.as_uri(), wait_until="commit", timeout=90_000)
        page.wait_for_function(f"{DRAWN} == {len(parts)}", timeout=90_000)
        assert [url for url in fetched if not url.startswith(("file:", "blob:", "data:"))] == []
        page.close()


def test_an_error_is_its_sentence(demo_runs):
    with pytest.raises(RunError) as refused:
        notebook.runs(demo_runs / "gone*")
    assert refused.value._render_traceback_() == [f"RunError: {refused.value}"]


def test_scores_and_tests_are_those_of_evaluation(runs):
    scores = notebook.scores(runs, metrics=["chrf"], preset="default")
    assert scores.equals(scoring.score_table(runs, "test", ["chrf"]))
    tests = notebook.compare(runs, method="sign")
    assert tests.equals(scoring.comparison_table(runs, "test", "transformer", "sign"))


def test_metrics_may_be_a_text_and_count_once(runs):
    once = notebook.compare(runs, metrics=["bleu", "chrf"])
    assert once.equals(notebook.compare(runs, metrics="bleu, chrf,bleu"))
    with pytest.raises(RunError, match="there is no metric 'bleau'; did you mean 'bleu'"):
        notebook.scores(runs, metrics="bleau")


def test_a_test_that_is_none_is_refused(runs):
    with pytest.raises(RunError, match="there is no test 'bootstraps' of a difference; did you mean 'bootstrap'"):
        notebook.compare(runs, method="bootstraps")
