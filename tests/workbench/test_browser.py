"""One walk through the app in a real browser: pages, the state in the URL, keys, and a PDF that a paper can take."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

APP = Path(__file__).resolve().parents[2] / "app.py"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def address(demo_runs):
    """Where the app answers, on a port of its own, showing the demo."""
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
    server = subprocess.Popen(command, env={**os.environ, "WORKBENCH_RUNS": str(demo_runs), "OMP_NUM_THREADS": "1"})
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5)
                break
            except OSError:
                assert server.poll() is None, "the app ended while starting"
                assert time.monotonic() < deadline, "the app does not answer"
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


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


def _ready(page, heading: str) -> None:
    page.get_by_role("heading", name=heading, level=1).wait_for(timeout=60_000)
    page.wait_for_function(
        "!document.querySelector('[data-testid=stStatusWidget], [data-testid=stSkeleton]')", timeout=60_000
    )


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

    page.get_by_role("link", name="Buckets").click()
    _ready(page, "Buckets")
    page.locator(".js-plotly-plot .barlayer").first.wait_for()
    assert _query(page)["runs"] == ["demo/transformer", "demo/future-cost-2"]

    page.get_by_role("link", name="Beam trees").click()
    _ready(page, "Beam trees")
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for()
    page.get_by_role("heading", name="Beam trees").click()
    page.keyboard.press("n")
    page.wait_for_url("**sentence=1**")
    assert _query(page)["runs"] == ["demo/transformer", "demo/future-cost-2"]
    page.get_by_text("Side by side").wait_for()

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
