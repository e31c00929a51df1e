"""Time of the app on a large test set in a real browser: first page, changes of page, order and filter of Sentences.

The runs are made-up outside runs. Times are measured in the browser from a click to a page at rest, i.e. its script
has ended and nothing on it waits. Knows the app by its URLs and page contents.
"""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from workbench.app.url_state import MOST_RUNS
from workbench.benchmark.scale.stages import ScaleError, resident_megabytes
from workbench.jobs import safe_path
from workbench.store.runs import Run, open_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEST = "large"
PAGES = {  # titles, as links and headings, and the menu that holds them
    "Runs": "Workbench",
    "Test sets": "Workbench",
    "Scores": "Compare",
    "Buckets": "Compare",
    "Sentences": "Compare",
    "Beam trees": "Search",
    "Training curves": "Workbench",
}
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
_PATIENCE_SECONDS = 600
# Seconds from the first click or key to rest, which is 0.2 s without work after a run.
_WATCH = """() => {
  const busy = () => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState !== 'notRunning'
    || document.querySelector('[data-testid=stSkeleton], [data-testid=stSpinner]');
  let began = null, ran = false, ended = null;
  const start = () => { began ??= performance.now(); };
  for (const kind of ['click', 'keydown']) document.addEventListener(kind, start, {capture: true, once: true});
  const seen = new MutationObserver(() => { if (began !== null) ran = true; });
  seen.observe(document.body, {attributes: true, subtree: true, attributeFilter: ["data-test-script-state"]});
  window.atRest = new Promise((done, fail) => {
    const look = () => {
      const now = performance.now();
      if (began !== null && busy()) { ran = true; ended = null; }
      else if (ran) ended ??= now;
      if (ended !== null && now - ended > 200) { seen.disconnect(); done((ended - began) / 1000); }
      else if (began !== null && now - began > 300000) fail(new Error("the page does not come to rest"));
      else setTimeout(look, 4);
    };
    look();
  });
}"""
# The page is completely drawn and nothing on it waits.
AT_REST = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
  && document.querySelector('h1') && !document.querySelector('[data-testid=stSkeleton], [data-testid=stSpinner]')"""


def make_runs(root: Path, segments: int, systems: int, processes: int, seed: int = 1) -> list[Run]:
    """Write outside runs with made-up translations below `root`, with extracted statistics of BLEU and chrF."""
    from core_models.config import CONFIG
    from core_models.settings import write_yaml
    from workbench.benchmark.scale.test_set import made_up_texts
    from workbench.evaluation import scoring
    from workbench.store.runs import OutsideConfig
    from workbench.store.translation_writer import write_hypotheses
    from workbench.store.translations import TestSet

    references, written = made_up_texts(segments, systems, seed)
    test = TestSet(TEST, references[::-1], references, None)
    runs = []
    for name, lines in written.items():
        folder = root / "large" / name
        folder.mkdir(parents=True)
        write_yaml(folder / CONFIG, OutsideConfig(name=name).model_dump())
        run = open_run(folder)
        write_hypotheses(run, test, lines, "made up")
        runs.append(run)
    opened = {run.name: run.translations(TEST) for run in runs}
    for metric, needed in (("bleu", runs), ("chrf", runs[:MOST_RUNS])):  # of all on the page Runs, of those shown
        scoring.statistics_of_all(needed, {run.name: opened[run.name] for run in needed}, metric, processes)
    return runs


@contextmanager
def serving(root: Path, threads: int = 1) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve the app on the runs below `root` at a free port; yields its URL and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = safe_path.module("workbench.cli", "app", "--runs", str(root), "--port", str(port))
    environment = safe_path.environment(OMP_NUM_THREADS=str(threads))
    environment.pop("DISPLAY", None)
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not _answers(f"http://127.0.0.1:{port}/_stcore/health"):
            if server.poll() is not None or time.monotonic() > until:
                raise ScaleError("the app does not start; try `workbench app` and read what it says")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.terminate()
        server.wait(timeout=30)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def browsing() -> Iterator[Page]:
    """Open a page in a browser; raises ScaleError without a browser or Playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise ScaleError("playwright is not installed; install it: pip install 'nmt-workbench[dev]'") from None
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if executable is None:
        raise ScaleError("neither chromium nor google-chrome is installed; install one of them")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(_FLAGS))
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(1000 * _PATIENCE_SECONDS)
        yield page
        browser.close()


def measure_app(
    segments: int, systems: int, rounds: int = 10, processes: int = 1, threads: int = 1
) -> list[dict[str, Any]]:
    """One row per stage: stage, seconds (median), longest, n, and server_mb, the server's memory after it."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        runs = make_runs(Path(folder), segments, systems, processes)
        query = urlencode({"runs": [f"large/{run.name}" for run in runs[:MOST_RUNS]], "test": TEST}, doseq=True)
        first = [_first_page(Path(folder), query, threads) for _ in range(rounds - 1)]
        with serving(Path(folder), threads) as (address, server), browsing() as page:

            def note(stage: str, seconds: list[float]) -> None:
                rows.append({
                    "stage": stage, "seconds": statistics.median(seconds), "longest": max(seconds), "n": len(seconds),
                    "server_mb": resident_megabytes(server.pid),
                })  # fmt: skip

            note("first page", [*first, _opened(page, f"{address}/?{query}")])
            for title in PAGES:
                note(f"{title}, for the first time", [_visit(page, title)])
            visits: dict[str, list[float]] = {title: [] for title in PAGES}
            for _ in range(rounds):
                for title in PAGES:
                    visits[title].append(_visit(page, title))
            for title, seconds in visits.items():
                note(f"{title}, again", seconds)
            _visit(page, "Sentences")
            note("Sentences: another order", [_sort(page, number) for number in range(rounds)])
            note("Sentences: a filter", [_filter(page, number) for number in range(rounds)])
            note("Sentences: next sentence", [_timed(page, lambda: _press(page, "Next")) for _ in range(rounds)])
    return rows


def _first_page(root: Path, query: str, threads: int) -> float:
    """Seconds to the first page with a new server and browser."""
    with serving(root, threads) as (address, _), browsing() as page:
        return _opened(page, f"{address}/?{query}")


def _opened(page: Page, address: str) -> float:
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_function(AT_REST)
    return time.perf_counter() - began


def _timed(page: Page, act: Callable[[], None]) -> float:
    """Seconds from the click or key of `act` until the page is at rest."""
    page.evaluate(_WATCH)
    act()
    return float(page.evaluate("window.atRest"))


def _visit(page: Page, title: str) -> float:
    page.get_by_test_id("stTopNavSection").get_by_text(PAGES[title], exact=True).click()
    link = page.get_by_test_id("stTopNavDropdownLink").get_by_text(title, exact=True)
    link.wait_for()
    seconds = _timed(page, link.click)
    page.get_by_role("heading", name=title, level=1).wait_for()
    return seconds


def _press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).first.click()


def _sort(page: Page, number: int) -> float:
    """Sort by another column than before and return the seconds."""
    page.get_by_label("Sort by").click()
    options = page.get_by_role("option")
    options.first.wait_for()
    return _timed(page, options.nth(1 + number % 2).click)


def _filter(page: Page, number: int) -> float:
    """Filter by a new text and return the seconds."""
    box = page.get_by_label("Contains")
    box.fill("etaoin"[number % 6] + "shrdl"[number % 5])  # pairs of letters, each in many words
    return _timed(page, lambda: box.press("Enter"))
