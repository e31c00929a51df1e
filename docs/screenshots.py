"""The pictures of data/screenshots: pages of the app on the exhibits, in headless Chromium.

`python docs/screenshots.py [FOLDER]` makes them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from workbench.app.pages import PAGES
from workbench.benchmark.scale.app import AT_REST, browsing, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTH = 1200
MOST_HEIGHT = 1400


class Picture(NamedTuple):
    """A page by its place in the URL, with these exhibits, and what else the query says."""

    name: str
    page: str
    runs: Sequence[str]
    query: Mapping[str, object]


PICTURES = (
    Picture("beam-trees", "beam_trees", ("exhibits/transformer", "exhibits/future-cost-1"), {"sentence": 4}),
    Picture("lengths", "lengths", ("exhibits/transformer", "exhibits/pfrnn-loss", "exhibits/em-routing"), {}),
    Picture("future-cost", "future_cost", ("exhibits/future-cost-1",), {"sentence": 4}),
    Picture("attention", "attention", ("exhibits/transformer", "exhibits/rnnsearch"), {"sentence": 4}),
    Picture("layer-routing", "routing", ("exhibits/em-routing",), {"sentence": 4}),
    Picture("past-future", "past_future", ("exhibits/gdr-bow-bca",), {"sentence": 4, "translation": "Reference"}),
    Picture("document-context", "context", ("exhibits-documents/document-transformer",), {"sentence": 40}),
)


def main() -> None:
    """Make all pictures."""
    take(Path(sys.argv[1] if len(sys.argv) > 1 else "data/screenshots"))


def take(folder: Path, pictures: Sequence[Picture] = PICTURES) -> None:
    """Write FOLDER/NAME.png of every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as no_runs, serving(Path(no_runs)) as (address, _), browsing() as page:
        for picture in pictures:
            _take(page, address, picture, folder)


def _take(page: Page, address: str, picture: Picture, folder: Path) -> None:
    """Picture the page from its top, at most MOST_HEIGHT of it. Raises RuntimeError where it shows an error."""
    query = urlencode({"runs": list(picture.runs), **picture.query}, doseq=True)
    page.set_viewport_size({"width": WIDTH, "height": 1000})
    page.goto(f"{address}/{picture.page}?{query}")
    page.get_by_role("heading", name=PAGES[picture.page].title, level=1).wait_for()
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    page.wait_for_function(AT_REST)
    if page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count():
        raise RuntimeError(f"{picture.page} shows an error: {page.inner_text('[data-testid=stMain]')[:500]}")
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": min(int(height), MOST_HEIGHT)})
    page.wait_for_timeout(1000)  # charts are laid out for the window anew
    page.wait_for_function(AT_REST)
    page.screenshot(path=folder / f"{picture.name}.png")


if __name__ == "__main__":
    main()
