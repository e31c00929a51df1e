"""The menu: every page stands in it once, and those that show none of the chosen runs name one that they would show."""

import pytest

from tests.workbench.views.app_pages import open_page, runs_of
from workbench.app import availability
from workbench.app.pages import LAST, MENU, PAGES

GREY = {"routing": "Routing · no run", "context": "Context · no run", "content_states": "Content states · no run"}


def test_every_page_stands_in_one_menu():
    names = [page.name for section in (*MENU.values(), *LAST.values()) for page in section]
    assert sorted(names) == sorted(PAGES)


@pytest.mark.parametrize(
    ("chosen", "title"),
    [
        (["demo/future-cost-1"], "Future cost"),
        (["demo/transformer"], "Future cost · future-cost-1"),
        ([], "Future cost · future-cost-1"),
    ],
)
def test_a_page_of_a_mechanism_names_a_run_where_no_chosen_run_has_it(with_demo, chosen, title):
    runs = runs_of(with_demo, "future-cost-1", "future-cost-2", "transformer")
    titles = availability.titles(chosen, runs)
    assert titles["future_cost"] == title
    assert titles["scores"] == "Scores"
    assert {name: titles[name] for name in GREY} == GREY
    grey = availability.style(titles)
    assert 'a[href$="/routing"]' in grey
    assert ('a[href$="/future_cost"]' in grey) == (title != "Future cost")
    assert "scores" not in grey


@pytest.mark.parametrize("query", [{}, {"runs": ["demo/transformer"]}])
def test_the_menu_follows_the_selection(with_demo, query):
    at = open_page("scores", **query)
    (style,) = [element.body for element in at.get("html") if "stTopNavLinkContainer" in element.body]
    assert ('a[href$="/future_cost"]' in style) == bool(query)
    at = at.multiselect(key="runs").set_value(["demo/future-cost-2"]).run()
    (style,) = [element.body for element in at.get("html") if "stTopNavLinkContainer" in element.body]
    assert "/future_cost" not in style
