"""In a real browser: a model of Hugging Face, opened by command, goes through the pages that look into a model."""

import shutil

import pytest
from typer.testing import CliRunner

from tests.workbench.app.app_server import serving
from tests.workbench.app.browsing import comes_to, ready
from workbench import cli
from workbench.app.pages import PAGES

pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")
pytestmark = pytest.mark.long

WITH_FIGURES = ("beam_trees", "attention")  # of the search and of a trace; test_foreign_run_pages.py opens all pages


@pytest.fixture
def address(demo_runs, tmp_path):
    """The app on the demo's Transformer and on the same model opened from its export."""
    runs, model = tmp_path / "runs", tmp_path / "model"
    shutil.copytree(demo_runs / "demo", runs / "demo")
    for words in (
        ["export", "huggingface", str(runs / "demo" / "transformer"), "--out", str(model)],
        ["open", "hf", str(model), "--as", "theirs", "--runs", str(runs), "--data", str(runs / "demo" / "data")],
        ["translate", str(runs / "theirs"), "--test", "test", "--save-beams"],
    ):
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0, (words, done.output)
    with serving(tmp_path) as server:
        yield server.address


@pytest.mark.slow
def test_a_foreign_run_is_listed_translates_and_is_looked_into(address, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1400})
    page.set_default_timeout(60_000)

    def visit(name: str, runs: str) -> None:
        page.goto(f"{address}/{name}?{runs}&test=test&sentence=1")
        ready(page, PAGES[name].title)
        wrong = page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
        assert wrong.count() == 0, (name, wrong.all_inner_texts())

    page.goto(f"{address}/runs")
    ready(page, PAGES["runs"].title)
    for name in WITH_FIGURES:
        visit(name, "runs=demo/transformer&runs=theirs")
        page.locator(".js-plotly-plot .main-svg").first.wait_for()
    visit("translate", "runs=theirs")
    source = page.get_by_role("textbox").first
    main = page.get_by_test_id("stMain")
    before = main.inner_text()
    source.fill("the")
    source.press("Control+Enter")
    comes_to(page, PAGES["translate"].title, lambda: main.inner_text() != before, True)
    page.close()
