"""In a real browser, on a fresh installation: every card of Start opens its page, and what plays goes to its end."""

import pytest

from tests.workbench.app.app_server import serving
from tests.workbench.app.browsing import ready
from workbench.app.pages import PAGES
from workbench.store import exhibits

CARDS = {
    "Which system is better, and where?": "scores",
    "Where do two searches part?": "beam_trees",
    "What does the routing agree on, iteration by iteration?": "routing",
    "What is translated already, and where is that wrong?": "past_future",
    "Does a system foresee its next word?": "future_cost",
    "Which earlier sentence does “it” need?": "context",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The app on a runs folder without runs, beside which the package's exhibits are shown."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(exhibits.VARIABLE)
        with serving(tmp_path_factory.mktemp("server")) as server:
            yield server.address


@pytest.mark.exhaustive
def test_every_card_opens_a_page_with_a_figure(address, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1200})
    page.set_default_timeout(60_000)
    for question, name in CARDS.items():
        page.goto(address)
        ready(page, "Look inside neural machine translation")
        page.get_by_role("button", name=question, exact=True).click()
        ready(page, PAGES[name].title)
        page.locator(".js-plotly-plot .main-svg").first.wait_for()
        wrong = page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
        assert wrong.count() == 0, (question, wrong.all_inner_texts())
    page.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("place", "title"),
    [
        ("beam_trees?runs=exhibits/transformer&runs=exhibits/future-cost-1&sentence=4", "Beam trees"),
        ("routing?runs=exhibits/em-routing&sentence=4", "Routing"),
        ("past_future?runs=exhibits/gdr-bow-bca&sentence=4", "Past and future"),
    ],
)
def test_play_goes_from_the_first_frame_to_the_last(address, browser, place, title):
    page = browser.new_page(viewport={"width": 1400, "height": 1600})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/{place}&play=true")
    ready(page, title)
    chart = page.locator(".js-plotly-plot:has(.slider-container)").first
    frame, frames = (
        chart.evaluate(f"chart => chart._fullLayout.sliders[0].{what}") for what in ("active", "steps.length")
    )
    assert frame == frames - 1 > 0, "the last frame stands at first"
    chart.locator(".updatemenu-button").first.click()
    seen = []
    for _ in range(40 + 10 * frames):
        frame = chart.evaluate("chart => chart._fullLayout.sliders[0].active")
        seen += [frame] if seen[-1:] != [frame] else []
        if len(seen) > 1 and frame == frames - 1:
            break
        page.wait_for_timeout(100)
    assert seen[-frames:] == list(range(frames))
    page.close()
