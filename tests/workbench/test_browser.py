"""Two walks through the app in a real browser: pages, the state in the URL, keys, a PDF that a paper can take; and
from a table of sentences through the inside of one to a bundle of figures."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlparse

import pytest

from workbench.runs import list_runs

APP = Path(__file__).resolve().parents[2] / "app.py"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


class Place(NamedTuple):
    """Where the app answers, what its server prints, and runs that it shows, with a test set they translated."""

    address: str
    log: Path
    runs: list[str]
    test: str


@contextmanager
def _serving(root: Path, log_file: Path) -> Iterator[str]:
    """The app on a port of its own, showing the runs below `root`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(APP),
        "--server.port",
        str(port),
        "--server.headless",
        "true",
    ]
    environment = {**os.environ, "WORKBENCH_RUNS": str(root), "OMP_NUM_THREADS": "1"}
    with log_file.open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
                break
            except OSError:
                assert server.poll() is None, log_file.read_text()
                assert time.monotonic() < deadline, "the app does not answer"
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=60)


@pytest.fixture(scope="module")
def demo(demo_runs, tmp_path_factory):
    """The app on the demo; what it keeps beside the runs stays its own."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copytree(demo_runs, folder / "runs", copy_function=os.link)
    with _serving(folder / "runs", folder / "log.txt") as address:
        yield Place(address, folder / "log.txt", ["demo/transformer", "demo/future-cost-2"], "test")


@pytest.fixture(scope="module")
def address(demo) -> str:
    return demo.address


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The app on trainings of a real corpus, where the checkout has some whose searches were recorded."""
    folder = tmp_path_factory.mktemp("real")
    recorded = [
        (run, test)
        for grid in sorted((APP.parent / "runs").glob("multi30k*"))
        for run in list_runs(grid)
        if run.trained
        for test in run.tests()
        if run.translations(test).has_trees
    ]
    if not recorded:
        pytest.skip("no run of Multi30k has recorded searches here; see README, Multi30k en-de")
    first, test = recorded[0]
    grid = first.folder.parent
    runs = [run for run, other in recorded if other == test and run.folder.parent == grid][:2]
    for run in runs:
        shutil.copytree(run.folder, folder / "runs" / grid.name / run.folder.name, copy_function=os.link)
    with _serving(folder / "runs", folder / "log.txt") as address:
        yield Place(address, folder / "log.txt", [f"{grid.name}/{run.folder.name}" for run in runs], test)


@pytest.fixture(params=["demo", "real"])
def place(request) -> Place:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def browser():
    if BROWSER is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no chromium or google-chrome is installed; the browser test must run here")
        pytest.skip("no chromium or google-chrome is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield running
        running.close()


def _query(page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


# A rerun may be on its way while the page still looks idle: at rest is what stays so for half a second.
AT_REST = """() => {
  const busy = document.querySelector('[data-testid=stApp]').dataset.testScriptState !== 'notRunning'
    || document.querySelector('[data-testid=stStatusWidget], [data-testid=stSkeleton]');
  if (busy) window.restingSince = null; else window.restingSince ??= performance.now();
  return !busy && performance.now() - window.restingSince > 500;
}"""


def _ready(page, heading: str) -> None:
    page.get_by_role("heading", name=heading, level=1).wait_for(timeout=60_000)
    page.evaluate("window.restingSince = null")
    page.wait_for_function(AT_REST, timeout=60_000)


def test_from_start_to_a_pdf_of_two_beam_trees(address, browser, tmp_path):
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    page.set_default_timeout(60_000)
    elsewhere: list[str] = []
    page.on(
        "request",
        lambda request: (
            elsewhere.append(request.url) if not request.url.startswith((address, "data:", "blob:")) else None
        ),
    )

    page.goto(f"{address}/?runs=demo/transformer&runs=demo/future-cost-2&runs=gone")
    _ready(page, "NMT workbench")
    assert page.get_by_text("There is no run 'gone' here").is_visible()

    _follow(page, "Compare", "Buckets")
    page.locator(".js-plotly-plot .barlayer").first.wait_for()
    assert _query(page)["runs"] == ["demo/transformer", "demo/future-cost-2"]

    _follow(page, "Inside one sentence", "Beam trees")
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for()
    page.get_by_role("heading", name="Beam trees").click()
    page.keyboard.press("n")
    page.wait_for_url("**sentence=1**")
    assert _query(page)["runs"] == ["demo/transformer", "demo/future-cost-2"]
    page.get_by_text("Side by side").wait_for()
    find = page.get_by_label("Find a sentence")
    find.press_sequentially("npn")
    assert find.input_value() == "npn"
    find.fill("")
    page.get_by_role("heading", name="Beam trees").click()
    page.keyboard.press("p")
    page.wait_for_url(lambda url: "sentence=1" not in url)
    assert _query(page).get("sentence", ["0"]) == ["0"], "typing in a text field went nowhere"
    page.keyboard.press("n")
    page.wait_for_url("**sentence=1**")
    _ready(page, "Beam trees")

    with page.expect_download() as started:
        page.get_by_role("button", name="PDF").click()
    file = tmp_path / "trees.pdf"
    started.value.save_as(file)
    assert started.value.suggested_filename == "beam-trees.pdf"
    assert file.read_bytes().startswith(b"%PDF")
    _check_pdf(file)

    page.goto(f"{address}/beam_trees?runs=demo/transformer&runs=demo/future-cost-2&sentence=1&show=Difference")
    _ready(page, "Beam trees")
    page.get_by_text("considered").first.wait_for()
    assert _query(page)["show"] == ["Difference"]
    assert elsewhere == [], "the page asks nobody but the app"
    page.close()


def test_from_a_sentence_in_a_table_to_a_bundle_of_figures(place, browser, tmp_path):
    """Compare, a row, inside its sentence, the basket: the runs and the sentence stay the same all the way."""
    page = browser.new_page(viewport={"width": 1400, "height": 1400}, accept_downloads=True)
    page.set_default_timeout(60_000)
    runs = place.runs
    page.goto(f"{place.address}/scores?{urlencode({'runs': runs, 'test': place.test}, doseq=True)}")
    _ready(page, "Scores")
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for()

    _follow(page, "Compare", "Sentences")
    box = {"x": 18, "y": 35 + 3 * 35 + 17}  # before the fourth row
    page.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(position=box)
    page.get_by_role("heading", name="Sentence 3", exact=True).wait_for()
    _ready(page, "Sentences")
    source = page.get_by_test_id("stHtml").first.inner_text().split("\n")[1]

    page.get_by_test_id("stPageLink").get_by_text("Attention").click()  # below the sentence; further by the menu
    _ready(page, "Attention")
    for title, drawn in (("Attention", ".heatmaplayer"), ("Attribution", ".barlayer"), ("What-if", "")):
        _follow(page, "Inside one sentence", title)
        assert (_query(page)["runs"], _query(page)["sentence"]) == (runs, ["3"])
        page.get_by_text(source, exact=True).first.wait_for()
        if drawn:
            page.locator(f".js-plotly-plot {drawn}").first.wait_for()
    page.locator("[data-testid=stButtonGroup] [data-variant]").filter(has_text=re.compile(r"^\s*2\s")).first.click()
    page.wait_for_url("**prefix=**")
    _ready(page, "What-if")
    clicked = _query(page)["prefix"][0]
    page.get_by_text("Struck out: only there.").wait_for()

    _follow(page, "Inside one sentence", "Beam trees")
    assert (_query(page)["runs"], _query(page)["sentence"]) == (runs, ["3"])
    page.locator(".js-plotly-plot .scatterlayer .points path").last.click(force=True)
    page.get_by_text("Prefix: ").wait_for()
    node = page.get_by_text("Prefix: ").inner_text().removeprefix("Prefix: ")
    page.get_by_test_id("stPageLink").get_by_text("What if from here").click()
    _ready(page, "What-if")
    assert (_query(page)["runs"], _query(page)["sentence"]) == (runs, ["3"])
    assert page.get_by_label("Prefix", exact=True).input_value() == node != clicked
    assert page.get_by_label("Sentence (").input_value() == "3"
    _follow(page, "Inside one sentence", "Beam trees")
    page.get_by_role("button", name="Add to basket").first.click()
    page.get_by_text("In the basket: 1").first.wait_for()

    _follow(page, "Figures", "Basket")
    assert _query(page)["runs"] == runs
    with page.expect_download() as started:
        page.get_by_role("button", name="Download bundle").click()
    started.value.save_as(tmp_path / "bundle.zip")
    names = zipfile.ZipFile(tmp_path / "bundle.zip").namelist()
    assert {Path(name).suffix for name in names} >= {".pdf", ".svg", ".png", ".csv", ".json", ".tex"}, names
    page.close()
    assert not re.search(r"Traceback|Error|Exception", place.log.read_text()), place.log.read_text()


def _follow(page, menu: str, title: str) -> None:
    """Go to a page by its link in a menu; it must not show an error."""
    page.get_by_test_id("stTopNavSection").get_by_text(menu, exact=True).click()
    page.get_by_test_id("stTopNavDropdownLink").get_by_text(title, exact=True).click()
    _ready(page, title)
    wrong = page.locator("[data-testid=stException], [data-testid=stAlertContentError]")
    assert wrong.count() == 0, wrong.all_inner_texts()


def _check_pdf(file: Path) -> None:
    """No bitmaps, and every font is embedded."""
    if not (shutil.which("pdffonts") and shutil.which("pdfimages")):
        assert os.environ.get("CI") != "true", "pdffonts and pdfimages are missing; install poppler-utils"
        return
    images = subprocess.run(
        ["pdfimages", "-list", file], capture_output=True, text=True, check=True
    ).stdout.splitlines()[2:]
    assert images == []
    fonts = subprocess.run(["pdffonts", file], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert fonts
    assert all(line.split()[-5] == "yes" for line in fonts), fonts


# Of the first chart: does the legend end above the panels and within the chart?
LEGEND_FITS = """() => {
  const chart = document.querySelector('.js-plotly-plot'), legend = chart?.querySelector('.legend')
  if (!legend || !chart._fullLayout._size) return false
  const [outer, inner] = [chart, legend].map((one) => one.getBoundingClientRect())
  return inner.bottom - outer.top <= chart._fullLayout._size.t && inner.right <= outer.right
}"""


def test_a_narrow_page_has_whole_legends_and_does_not_move_sideways(address, browser):
    page = browser.new_page(viewport={"width": 340, "height": 900})
    page.set_default_timeout(60_000)
    runs = "runs=demo/transformer&runs=demo/future-cost-2&test=test"
    for name, heading in (("lengths", "Buckets"), ("beam_trees", "Beam trees")):
        page.goto(f"{address}/{name}?{runs}")
        _ready(page, heading)
        page.wait_for_function(LEGEND_FITS)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 340
    page.close()
