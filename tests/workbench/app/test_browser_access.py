"""The guarded app in a real browser: opened by its token, used as ever (stream, upload, download), framed by nobody."""

import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from urllib.parse import urlparse

import pytest

from tests.paths import ROOT
from tests.workbench.app.app_server import Server, serving, streamlit_serving
from tests.workbench.app.browsing import query, ready


@pytest.fixture(scope="module")
def server(demo_runs, tmp_path_factory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    shutil.copytree(demo_runs, folder / "runs", copy_function=os.link)
    with serving(folder, "--host", "0.0.0.0") as started:
        yield started


@pytest.fixture
def page(browser, server) -> Iterator:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def _printed(server: Server) -> str:
    (url,) = re.findall(r"The workbench is at (\S+)", server.log.read_text())
    return url.replace("localhost", "127.0.0.1")


@pytest.mark.exhaustive
def test_the_printed_address_opens_it_and_what_pages_do_still_works(page, server):
    refused = page.goto(server.address)
    assert refused.status == 403
    page.goto(_printed(server))
    ready(page, "Look inside neural machine translation")
    assert "token" not in page.url, "nor is it in the history, a bookmark or what is copied from there"

    page.goto(f"{server.address}/sentences?runs=demo/transformer&runs=demo/future-cost-2")
    ready(page, "Sentences")
    count = len((server.log.parent / "runs/demo/transformer/translations/test/sources.txt").read_text().splitlines())
    page.get_by_role("button", name="Add labels or scores").click()
    labels = "kind\n" + "".join(f"{'even' if number % 2 else 'odd'}\n" for number in range(count))
    page.locator("input[type=file]").last.set_input_files(
        {"name": "kind.tsv", "mimeType": "text/tab-separated-values", "buffer": labels.encode()}
    )
    ready(page, "Sentences")
    assert list((server.log.parent / "runs/annotations").rglob("kind*")), "an upload arrives"

    page.goto(f"{server.address}/beam_trees?runs=demo/transformer&sentence=1")
    ready(page, "Beam trees")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as started:
        page.get_by_role("button", name="PDF").click()
    assert started.value.path().read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_the_stream_is_opened_again_after_it_was_cut(page, server):
    page.goto(_printed(server))
    ready(page, "Look inside neural machine translation")
    page.goto(f"{server.address}/sentences?runs=demo/transformer")
    ready(page, "Sentences")
    page.context.set_offline(True)
    page.wait_for_timeout(500)
    page.context.set_offline(False)
    page.get_by_role("button", name="Next").click()
    page.wait_for_url("**sentence=1**")
    ready(page, "Sentences")
    assert query(page)["sentence"] == ["1"]


@pytest.fixture
def elsewhere(server, tmp_path) -> Iterator[str]:
    """A page of another origin on the same machine, which shows the app in a frame and asks it for more."""
    (tmp_path / "index.html").write_text(
        f"<iframe src='{server.address}/'></iframe><script>"
        f"const stream = new WebSocket('{server.address.replace('http', 'ws')}/_stcore/stream');"
        "stream.onopen = () => document.title = 'open'; stream.onerror = () => document.title = 'refused';</script>"
    )

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, *arguments):
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}/"
        other.shutdown()


@pytest.mark.slow
def test_a_page_elsewhere_on_this_machine_neither_frames_it_nor_opens_its_stream(page, server, elsewhere):
    page.goto(_printed(server))
    ready(page, "Look inside neural machine translation")
    page.goto(elsewhere)
    page.wait_for_function("document.title === 'refused' || document.title === 'open'")
    assert page.title() == "refused"
    (frame,) = page.frames[1:]
    assert urlparse(frame.url).scheme == "chrome-error", "the browser shows its own page in place of ours"


@pytest.mark.parametrize(
    ("script", "shown", "menus"),
    [("app.py", "Build the demo", 5), ("workbench/app/script/router.py", "Nothing guards this server", 0)],
)
@pytest.mark.slow
def test_streamlit_run_opens_the_app_and_shows_nothing_of_the_script_alone(browser, tmp_path, script, shown, menus):
    with streamlit_serving(tmp_path, script=ROOT / script) as here:
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(here.address)
        page.get_by_text(shown).first.wait_for()
        assert page.get_by_test_id("stTopNavSection").count() == menus
        page.close()
