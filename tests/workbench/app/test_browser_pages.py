"""Single pages in a real browser: captions that can be read, and what a rater gets to see."""

import re

import pytest

from tests.kinds import sampled
from tests.workbench.app.browsing import ready
from workbench.store import rating_studies


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.exhaustive)])
@pytest.mark.slow
def test_captions_are_large_and_dark_enough_to_be_read(browser, address, scheme):
    """14 pixels and a contrast of 4.5, which WCAG asks of text."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000}, color_scheme=scheme)
    page.goto(f"{address}/scores")
    ready(page, "Scores")
    size, color, opacity, ground = page.get_by_test_id("stCaptionContainer").first.evaluate(
        """element => {
          const text = element.querySelector('p') ?? element;
          let opacity = 1;
          for (let part = text; part; part = part.parentElement) opacity *= getComputedStyle(part).opacity;
          const ground = getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor;
          return [getComputedStyle(text).fontSize, getComputedStyle(text).color, opacity, ground];
        }"""
    )
    text, below = ([int(number) for number in re.findall(r"\d+", value)[:3]] for value in (color, ground))
    mixed = [opacity * over + (1 - opacity) * under for over, under in zip(text, below, strict=True)]
    brighter, darker = sorted((_luminance(mixed), _luminance(below)), reverse=True)
    assert size == "14px"
    assert (brighter + 0.05) / (darker + 0.05) >= 4.5
    page.close()


def _luminance(color: list[float]) -> float:
    """Relative luminance of an sRGB color of 0 to 255 (WCAG 2.2)."""
    shares = [value / 255 for value in color]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.slow
def test_the_menu_of_somebody_who_rates_names_no_run(address, study, browser):
    """On other pages it names a run that a page would show."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    for path, heading, link in (
        ("scores?runs=demo/transformer", "Scores", "Future cost · future-cost-1"),
        ("rating?rater=ann", "Human rating", "Future cost"),
    ):
        page.goto(f"{address}/{path}")
        ready(page, heading)
        page.get_by_test_id("stTopNavSection").get_by_text("Mechanisms", exact=True).click()
        page.get_by_test_id("stTopNavDropdownLink").get_by_text(link, exact=True).wait_for()
    assert not any(name.rpartition("/")[2] in page.locator("body").inner_text() for name in study.systems)
    page.close()


@pytest.mark.parametrize("width", sampled([1280, 400]))
@pytest.mark.slow
def test_words_are_marked_by_clicks_and_keys(address, study, browser, width):
    """Each click gives a word the next mark; the marks are stored with the form and shown again."""
    rater = f"bea-{width}"
    page = browser.new_page(viewport={"width": width, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/rating?rater={rater}")
    ready(page, "Human rating")
    source = page.get_by_role("group", name="source").first
    words = source.get_by_role("button")
    item = study.items[0]
    assert words.all_inner_texts() == item.words
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width

    words.nth(0).click()
    for key in ("ArrowRight", "Enter", "Space", "ArrowRight", *["Space"] * 3):
        page.keyboard.press(key)
    shown = ["true", "true", "false"]
    assert [words.nth(place).get_attribute("aria-pressed") for place in range(3)] == shown
    assert "under-translated" in words.nth(0).get_attribute("aria-label")
    save = page.get_by_role("button", name="Save and next")
    save.click()
    page.get_by_text("Give every translation a quality").wait_for()
    ready(page, "Human rating")
    assert [words.nth(place).get_attribute("aria-pressed") for place in range(3)] == shown
    qualities = page.get_by_test_id("stButtonGroup").get_by_text("4", exact=True)
    for quality in qualities.all():
        quality.click()
    save.click()
    page.get_by_text("Sentence 2 of 30").wait_for()
    assert rating_studies.marks(study, rater)[item.sentence]["A"] == rating_studies.Mark(4, over=(1,), under=(0,))

    page.get_by_role("button", name="Back", exact=True).click()
    page.get_by_text("Sentence 1 of 30, rated").wait_for()
    ready(page, "Human rating")
    assert [words.nth(place).get_attribute("aria-pressed") for place in range(3)] == shown
    page.close()


@pytest.mark.slow
def test_a_submitted_form_takes_no_clicks(address, study, browser):
    """A click on a word of the sentence that was just submitted would be lost without a sign."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(f"{address}/rating?rater=cleo")
    ready(page, "Human rating")
    for quality in page.get_by_test_id("stButtonGroup").get_by_text("4", exact=True).all():
        quality.click()
    words = page.get_by_role("group", name="source").first.get_by_role("button")
    words.first.evaluate(
        """word => {
          const save = [...document.querySelectorAll("button")].find((button) => button.innerText === "Save and next")
          save.click()
          window.takesClicks = !word.closest(".marks").inert
        }"""
    )
    assert not page.evaluate("window.takesClicks")
    page.get_by_text("Sentence 2 of 30").wait_for()
    words.first.click()
    assert words.first.get_attribute("aria-pressed") == "true"
    page.close()
