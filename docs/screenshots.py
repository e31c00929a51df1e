"""The pictures of data/screenshots: pages of the app on the demo's runs, in headless Chromium.

`python docs/screenshots.py [RUNS] [FOLDER]` makes those whose runs are there and names the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from workbench.app.pages import PAGES
from workbench.benchmark.scale.app import AT_REST, browsing, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

DEMO = ("transformer", "future-cost-1", "future-cost-2")
SENTENCE = 7
WIDTH = 1200
MOST_HEIGHT = 1400


class Picture(NamedTuple):
    """A page by its place in the URL, with these runs of the demo."""

    name: str
    page: str
    runs: Sequence[str]


PICTURES = (
    Picture("beam-trees", "beam_trees", DEMO),
    Picture("lengths", "lengths", DEMO),
    Picture("future-cost", "future_cost", DEMO),
    Picture("attention", "attention", DEMO),
    Picture("layer-routing", "routing", ("em-routing",)),
    Picture("past-future", "past_future", ("gdr-bow-bca",)),
    Picture("document-context", "context", ("han-encoder",)),
)


def main() -> None:
    """Make the pictures that can be made."""
    runs, folder, *_ = [*sys.argv[1:], *("runs", "data/screenshots")[len(sys.argv) - 1 :]]
    missing = take(Path(runs), Path(folder))
    if missing:
        print(f"not made: {', '.join(missing)}; train their runs: workbench demo em-routing gdr-bow-bca han-encoder")


def take(root: Path, folder: Path) -> list[str]:
    """Write FOLDER/NAME.png of every picture whose runs lie in ROOT/demo; the names of the others."""
    able = [picture for picture in PICTURES if all((root / "demo" / run).is_dir() for run in picture.runs)]
    folder.mkdir(parents=True, exist_ok=True)
    with serving(root) as (address, _), browsing() as page:
        for picture in able:
            _take(page, address, picture, folder)
    return [picture.name for picture in PICTURES if picture not in able]


def _take(page: Page, address: str, picture: Picture, folder: Path) -> None:
    """Picture the page from its top, at most MOST_HEIGHT of it. Raises RuntimeError where it shows an error."""
    query = urlencode({"runs": [f"demo/{run}" for run in picture.runs], "sentence": SENTENCE}, doseq=True)
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
