"""Single pages in a real browser: captions that can be read, and what a rater gets to see."""

import re

import pytest

from tests.workbench.app.browsing import ready


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.exhaustive)])
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
