"""In a real browser: hovering over words and selecting them by a click in the text or on a figure."""

import os
import shutil

import pytest

from tests.workbench.app.app_server import serving
from tests.workbench.app.browsing import comes_to, query, ready

URL = "attention?runs=demo/transformer&runs=demo/future-cost-2&sentence=1"


@pytest.fixture(scope="module")
def address(demo_runs, tmp_path_factory):
    """The app on the demo; what it keeps beside the runs stays its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copytree(demo_runs, folder / "runs", copy_function=os.link)
    with serving(folder) as server:
        yield server.address


def selected(page) -> dict[str, list[str]]:
    return {key: value for key, value in query(page).items() if key.endswith("-word")}


def lit(page) -> list[str]:
    """The selected words in the text."""
    return page.locator(".word[aria-pressed=true]").all_inner_texts()


@pytest.mark.exhaustive
def test_a_word_is_selected_in_the_text_and_on_a_map_and_goes_with_the_reader(address, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1200})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/{URL}")
    ready(page, "Attention")
    source = page.locator(".line").first.locator(".word")
    words = source.all_inner_texts()
    frames = page.locator(".js-plotly-plot .shapelayer path")
    assert frames.count() == 0

    source.nth(1).click()
    comes_to(page, "Attention", lambda: selected(page), {"source-word": ["1"]})
    assert lit(page) == [words[1]]
    assert frames.count() >= 2, "a row of each map"

    box = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    page.mouse.click(box["x"] + 3, box["y"] + 3)  # the first word of either side
    comes_to(page, "Attention", lambda: selected(page), {"source-word": ["0"], "target-word": ["0"]})
    assert lit(page)[0] == words[0]

    page.goto(page.url)
    ready(page, "Attention")
    assert lit(page)[0] == words[0], "the URL has the selection"
    page.get_by_role("button", name="Clear selection").click()
    comes_to(page, "Attention", lambda: selected(page), {})
    page.close()


@pytest.mark.slow
def test_hovering_over_a_word_shades_the_words_that_belong_to_it(address, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1200})
    page.goto(f"{address}/{URL}")
    ready(page, "Attention")
    source, reference = (page.locator(".line").nth(number).locator(".word") for number in (0, 1))

    def shaded(words) -> list[int]:
        """Positions of the words with a background that can be seen."""
        colors = words.evaluate_all("words => words.map((word) => getComputedStyle(word).backgroundColor)")
        return [place for place, color in enumerate(colors) if not color.endswith((", 0)", "transparent"))]

    page.get_by_role("button", name="Gold alignment", exact=True).click()
    assert shaded(source) == []
    reference.first.hover()
    linked = shaded(source)
    assert 1 <= len(linked) < source.count(), "the words that the reference's first word translates"
    source.nth(linked[0]).hover()
    assert 0 in shaded(reference), "and back"
    page.get_by_role("heading", name="Attention", level=1).hover()
    assert shaded(source) == [], "nothing stays shaded"
    page.close()
