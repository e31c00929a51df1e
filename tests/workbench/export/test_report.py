"""The report opens from disk without a network, shows its figures, holds the numbers, and takes no text for markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from workbench import cli
from workbench.evaluation import scoring
from workbench.export import collection
from workbench.export.report import MOST_ROWS, default_figures, report, table_html
from workbench.figures import from_spec
from workbench.figures.request import Request
from workbench.figures.spec import Recipe
from workbench.store.runs import open_run
from workbench.store.search_settings import search_note

NASTY = "<script>alert(1)</script> & \"quoted\" 'x' <img src=http://elsewhere/x.png>"


class _Read(HTMLParser):
    """What a browser would fetch, the text that it would show, and which tags there are."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.fetched += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data):
        if self.tags[-1:] not in (["script"], ["style"]):
            self.texts.append(data)


@pytest.fixture(scope="module")
def request_(demo_runs) -> Request:
    return Request(tuple(open_run(f"demo/{name}", demo_runs) for name in ("transformer", "future-cost-2")), sentence=3)


@pytest.fixture(scope="module")
def html(request_) -> str:
    drawn, left_out = default_figures(request_)
    assert left_out == []
    return report(f"Title {NASTY}", request_.runs, "test", drawn)


def test_nothing_is_fetched_and_no_text_is_markup(html):
    read = _Read(html)
    assert read.fetched == []
    assert "img" not in read.tags
    assert read.tags.count("h1") == 1
    assert f"Title {NASTY}" in "".join(read.texts)
    assert html.count("plotly.js v") == 1, "plotly.js stands in it once"


def test_scores_with_tests_and_signatures_stand_in_it(html, request_):
    text = " ".join(_Read(html).texts)
    scores = scoring.score_table(request_.runs, "test", ("bleu", "chrf"))
    for row in scores.itertuples():
        assert f"{row.score:.2f}" in text
        assert row.signature in text
    tests = scoring.comparison_table(request_.runs, "test", "demo/transformer", metrics=("bleu", "chrf"))
    for row in tests.itertuples():
        assert f"{row.p_holm:.4f}" in text
        assert f"{row.delta:+.2f}" in text


def test_the_search_is_the_one_that_found_the_translations(copied_runs):
    runs = tuple(open_run(f"demo/{name}", copied_runs) for name in ("transformer", "future-cost-2"))
    folder = runs[0].translations_folder("test")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    meta["search"] |= {"beam": 12, "length_penalty": 1.5}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    text = " ".join(_Read(report("Search", runs, "test", [])).texts)
    assert f"beam 12, {meta['search']['penalty']} length penalty 1.5" in text
    assert search_note(runs, ["test"]) in text


def test_every_figure_has_its_table_and_its_command(html):
    text = "".join(_Read(html).texts)
    for name in ("scores", "length-scores", "training-curves", "beam-trees"):
        assert len(re.findall(rf"workbench figure {name} --run \S+transformer", text)) == 1
    assert "--sentence 3" in text
    assert html.count("<details><summary>Table (") == 4


@pytest.mark.slow
def test_it_opens_in_a_browser_without_a_network_and_draws(html, browser, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(html, encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length >= 4")
    for number in range(4):
        points = page.locator(f"#figure-{number} .plot path, #figure-{number} .scatterlayer path")
        assert points.count() > 0
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert wrong == []
    context.close()


def test_a_table_shows_texts_as_typed_and_is_cut_where_it_is_long(request_):
    import pandas as pd

    shown = table_html(pd.DataFrame({"<b>": [NASTY, None], "n": [1.0, 0.12345]}))
    assert "".join(_Read(shown).texts) == f"<b>n{NASTY}1–0.123"
    drawn, _ = default_figures(request_)
    one = drawn[0]
    mark = one.figure.panels[0].marks[-1]
    long = replace(mark, table=pd.concat([mark.table] * (MOST_ROWS + 1)))
    many = replace(one.figure, panels=(replace(one.figure.panels[0], marks=(long,)),))
    made = report("x", request_.runs, "test", [replace(one, figure=many)])
    assert f"Table ({MOST_ROWS + 1} rows; the first {MOST_ROWS})" in made


def test_what_runs_cannot_have_is_said(copied_runs, tmp_path):
    folder = copied_runs / "demo" / "transformer"
    (folder / "translations" / "test" / "trees.npy").unlink()
    (folder / "translations" / "test" / "references.txt").unlink()
    out = tmp_path / "report.html"
    told = CliRunner().invoke(cli.app, ["export", "report", str(out), "--run", str(folder), "--title", NASTY])
    assert told.exit_code == 0, told.output
    text = "".join(_Read(out.read_text(encoding="utf-8")).texts)
    for said in ("the test set test has no references; scores need them", "has no beam trees for test; record them"):
        assert said in text
    assert "left out: beam-tree: " in told.stderr


def test_the_figures_can_be_those_of_a_basket(demo_runs, tmp_path):
    path = tmp_path / "basket.json"
    wanted = Recipe(drawing="beam-tree", runs=("demo/future-cost-1",), sentence=2)
    path.write_text(json.dumps(collection.content([wanted])))
    out = tmp_path / "report.html"
    told = CliRunner().invoke(
        cli.app, ["export", "report", str(out), "--collection", str(path), *("--runs", str(demo_runs))]
    )
    assert told.exit_code == 0, told.output
    html = out.read_text(encoding="utf-8")
    assert html.count("<figure ") == 1
    assert from_spec.draw(wanted, demo_runs).command in "".join(_Read(html).texts)


def test_what_cannot_be_reported_is_one_sentence(demo_runs, tmp_path):
    run = demo_runs / "demo" / "transformer"
    for arguments, said in (
        ((tmp_path / "report.pdf", "--run", run), "a report is an .html file"),
        ((tmp_path / "report.html",), "no run is chosen"),
        ((tmp_path / "no" / "report.html", "--run", run), "there is no folder"),
        ((tmp_path / "report.html", "--collection", tmp_path / "gone.json"), "there is no figure in it"),
    ):
        told = CliRunner().invoke(cli.app, ["export", "report", *map(str, arguments)])
        assert told.exit_code == 2
        assert said in told.stderr
    assert list(tmp_path.iterdir()) == []
