"""A real browser and what tests do with it: wait until a page is at rest, follow its menus."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlparse

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


class Place(NamedTuple):
    """Where the app answers, what its server prints, and runs that it shows, with a test set they translated."""

    address: str
    log: Path
    runs: list[str]
    test: str


def query(page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


# A rerun may be on its way while the page still looks idle: at rest is what stays so for half a second.
AT_REST = """() => {
  const busy = document.querySelector('[data-testid=stApp]').dataset.testScriptState !== 'notRunning'
    || document.querySelector('[data-testid=stStatusWidget], [data-testid=stSkeleton]');
  if (busy) window.restingSince = null; else window.restingSince ??= performance.now();
  return !busy && performance.now() - window.restingSince > 500;
}"""


def ready(page, heading: str) -> None:
    page.get_by_role("heading", name=heading, level=1).wait_for(timeout=60_000)
    page.evaluate("window.restingSince = null")
    page.wait_for_function(AT_REST, timeout=60_000)


def comes_to(page, heading: str, shown: Callable[[], object], wanted: object) -> None:
    """What a page shows becomes what is wanted, however long the server takes, and stays so."""
    deadline = time.monotonic() + 60
    while shown() != wanted and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    ready(page, heading)
    assert shown() == wanted


def follow(page, menu: str, title: str) -> None:
    """Go to a page by its link in a menu; it must not show an error."""
    page.get_by_test_id("stTopNavSection").get_by_text(menu, exact=True).click()
    page.get_by_test_id("stTopNavDropdownLink").get_by_text(title, exact=True).click()
    ready(page, title)
    wrong = page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
    assert wrong.count() == 0, wrong.all_inner_texts()
