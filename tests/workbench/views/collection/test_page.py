"""Basket: what was put aside on a page is there after a reload, as it will look on paper, and comes in one download."""

from __future__ import annotations

import shutil

import pytest

from tests.workbench.views.app_pages import codes, open_page, texts
from workbench.app.frame import Frame, escape_markdown
from workbench.app.url_state import ViewState
from workbench.export import collection
from workbench.figures.drawing import draw
from workbench.figures.from_spec import DrawnFigure, request_of
from workbench.figures.spec import Recipe
from workbench.store.runs import list_runs
from workbench.views.collection.controls import report_scope

BLEU = Recipe(drawing="scores", runs=("demo/transformer",), options={"metrics": ["bleu"]})
TER = Recipe(drawing="scores", runs=("demo/future-cost-1",), options={"metrics": ["ter"]}, width="page")


@pytest.fixture
def path(with_demo):
    return collection.file_of(with_demo)


def _metrics(at) -> list[str]:
    """What the figures of the page show, in their order."""
    said = [caption.value.rpartition(escape_markdown("metrics: ")) for caption in at.caption]
    return [metric for _, found, metric in said if found]


def _downloads(at) -> dict[str, bool]:
    """The downloads of the page, and which of them can be had."""
    return {button.proto.label: not button.proto.disabled for button in at.get("download_button")}


def test_an_empty_basket_says_how_figures_get_in(with_demo):
    at = open_page("basket")
    assert any("The figure collection is empty" in text for text in texts(at))
    assert not at.get("download_button")


@pytest.mark.slow
def test_every_figure_can_be_put_in_as_it_is_shown(path):
    wanted = {"runs": ["demo/transformer", "demo/future-cost-2"], "sentence": "5"}
    at = open_page("beam_trees", **wanted)
    at.button(key="basket-beam-trees-").click().run()
    (found,) = collection.read(path)
    assert (found.drawing, found.runs, found.sentence, found.width) == ("beam-trees", tuple(wanted["runs"]), 5, "")
    at.segmented_control(key="width-beam-trees--page").set_value("column").run()
    at.button(key="basket-beam-trees-").click().run()
    assert [one.width for one in collection.read(path)] == ["", "column"]
    at.segmented_control(key="font-beam-trees-").set_value("times").run()
    assert any(code.startswith("workbench figure") and "--width column --font times" in code for code in codes(at))
    at.button(key="basket-beam-trees-").click().run()
    recipes = collection.read(path)
    assert [one.font for one in recipes] == ["sans", "sans", "times"]
    collection.remove(path, recipes[-1])
    at = open_page("scores", runs=wanted["runs"], metrics=["TER"])
    at.button(key="basket-scores-").click().run()
    at.button(key="basket-scores-").click().run()
    (*_, last) = collection.read(path)
    assert len(collection.read(path)) == 3, "the same figure again is no other"
    assert last.options == {"metrics": ["ter"]}


@pytest.mark.slow
def test_figures_are_shown_as_on_paper_in_their_order(path):
    for recipe in (TER, BLEU):
        collection.add(path, recipe)
    at = open_page("basket")
    assert _metrics(at) == ["ter", "bleu"]
    assert len(at.image) == 6
    assert any(escape_markdown("demo/future-cost-1") in caption.value for caption in at.caption)
    assert sum(code.startswith("workbench figure ") for code in codes(at)) == 2
    assert _downloads(at) == {"Download bundle": True, "Download report": True}
    assert at.button(key=f"Up-{TER.key}").disabled
    at.button(key=f"Down-{TER.key}").click().run()
    assert collection.read(path) == [BLEU, TER]
    assert _metrics(at) == ["bleu", "ter"]
    at.button(key=f"remove-{BLEU.key}").click().run()
    assert collection.read(path) == [TER]
    at.segmented_control(key=f"width-{TER.key}").set_value("column").run()
    assert [one.width for one in collection.read(path)] == ["column"]
    (narrow,) = collection.read(path)
    at.segmented_control(key=f"font-{narrow.key}").set_value("computer-modern").run()
    assert collection.read(path) == [narrow.model_copy(update={"font": "computer-modern"})]
    assert not at.exception


def test_the_report_is_of_the_figures_where_no_chosen_run_has_translated_anything(with_demo):
    by_name = {run.name: run for run in list_runs(with_demo)}
    request = request_of(BLEU, with_demo)
    drawn = [DrawnFigure(BLEU, request, draw(BLEU.drawing, request))]
    runs = (by_name["demo/future-cost-2"],)
    chosen = Frame(with_demo, runs, (), ViewState(("demo/future-cost-2",), "test"))
    assert report_scope(drawn, chosen) == (runs, "test")
    nothing = Frame(with_demo, runs, (), ViewState(("demo/future-cost-2",), ""))
    found, test = report_scope(drawn, nothing)
    assert ([run.name for run in found], test) == (["demo/transformer"], "test")


def test_a_figure_that_cannot_be_drawn_any_more_says_why_and_keeps_the_bundle_back(path, with_demo):
    for recipe in (TER, BLEU):
        collection.add(path, recipe)
    shutil.rmtree(with_demo / "demo" / "future-cost-1")
    at = open_page("basket")
    assert any(escape_markdown("there is no run 'demo/future-cost-1' below") in error.value for error in at.error)
    assert len(at.image) == 3
    assert _downloads(at)["Download bundle"] is False
    at.button(key=f"remove-{TER.key}").click().run()
    assert not at.error
    assert _downloads(at)["Download bundle"] is True


@pytest.mark.slow
def test_a_broken_basket_is_a_sentence_on_both_pages(path):
    path.write_text("{")
    at = open_page("basket")
    assert any(escape_markdown("not a figure collection") in error.value for error in at.error)
    at = open_page("scores")
    at.button(key="basket-scores-").click().run()
    assert any(escape_markdown("not a figure collection") in error.value for error in at.error)
    assert path.read_text() == "{"
