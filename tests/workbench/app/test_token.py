"""Where others can reach the app it asks for the token that it printed: over HTTP, for the stream, and nowhere kept."""

import re
import socket
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from tests.workbench.app.app_server import UPGRADE, Server, serving
from workbench import cli
from workbench.app import access
from workbench.app import server as serving_module

PATHS = ("/", "/scores", "/_stcore/health", "/_stcore/host-config", "/media/none", "/static/none.js")
OWN = "a-token-of-ones-own-choice"


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("app"), "--host", "0.0.0.0", "--allow", "lab.example") as started:
        yield started


@pytest.fixture(scope="module")
def token(server) -> str:
    (found,) = re.findall(r"\?token=(\S+)", server.log.read_text())
    return found


def _cookie(server: Server, token: str) -> str:
    return server.ask(f"/?token={token}").headers["set-cookie"].partition(";")[0]


def test_without_the_token_nothing_is_answered(server, token):
    wrong = ("", "x", token[:-1], token + "x", token.swapcase(), "%C3%A9", "%00", "%FF")
    for path in PATHS:
        assert server.status(path) == 403
        for one in wrong:
            assert server.status(f"{path}?token={one}") == 403
            assert server.status(path, {"Cookie": f"workbench-token-{server.port}={one}"}) == 403
    assert server.status("/_stcore/stream", server.own) == 403
    assert server.status(f"/_stcore/stream?token={token}", server.own) == 403, "a stream is opened by the cookie alone"
    assert "printed when it was started" in server.ask("/").text


def test_the_token_becomes_a_cookie_that_opens_everything(server, token):
    answer = server.ask(f"/scores?runs=a&token={token}&runs=b")
    _, *attributes = answer.headers["set-cookie"].split("; ")
    assert {one.lower() for one in attributes} >= {"httponly", "samesite=strict"}
    assert token not in answer.text
    assert 'url=/scores?runs=a&amp;runs=b"' in answer.text
    cookie = {"Cookie": _cookie(server, token)}
    assert [server.status(path, cookie) for path in ("/", "/scores", "/_stcore/health")] == [200] * 3
    assert server.status("/_stcore/stream", {**server.own, **cookie}) == 101


def test_the_token_opens_nothing_for_a_foreign_host_or_page(server, token):
    cookie = {"Cookie": _cookie(server, token)}
    for headers in ({"Host": f"evil.example:{server.port}"}, {"Origin": "http://evil.example"}):
        assert server.status(f"/?token={token}", headers) == 403
        assert server.status("/", {**cookie, **headers}) == 403
        assert server.status("/_stcore/stream", {**UPGRADE, **server.own, **cookie, **headers}) == 403


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "/%5c%5cevil.example", '/"><script>'])
def test_the_way_back_leads_nowhere_else(server, token, path):
    text = server.ask(f"{path}?token={token}").text
    (url,) = re.findall(r'content="0; url=([^"]*)"', text)
    assert re.match(r"/(?![/\\])", url), url
    assert "<script>" not in text


@pytest.mark.slow
def test_the_token_is_printed_once_at_the_start_and_new_each_time(server, token, tmp_path):
    assert len(token) >= 32
    assert server.log.read_text().count(token) == 1
    assert f"http://lab.example:{server.port}/?token=" in server.log.read_text()
    assert not any(token in part for part in server.process.cmdline())
    assert not any(token in value for value in server.process.environ().values())
    with serving(tmp_path, "--host", "0.0.0.0") as again:
        assert token not in again.log.read_text()


@pytest.mark.slow
def test_a_token_of_ones_own_is_asked_for_at_the_loopback_address_too(tmp_path, monkeypatch):
    with serving(tmp_path, token=OWN) as server:
        assert server.status("/") == 403
        assert server.status("/", {"Cookie": _cookie(server, OWN)}) == 200
    monkeypatch.setenv(serving_module.TOKEN, "short")
    told = CliRunner().invoke(cli.app, ["app", "--runs", str(tmp_path)])
    assert isinstance(told.exception, access.AccessError)


@pytest.mark.parametrize(
    ("host", "asked"),
    [("127.0.0.1", False), ("127.0.0.2", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("::", True),
     ("192.0.2.7", True), ("lab.example", True), ("::ffff:192.0.2.7", True)],
)  # fmt: skip
def test_a_token_is_asked_for_wherever_others_reach_it(host, asked):
    assert bool(serving_module.server(host, 8501).token) == asked


def test_login_is_refused_where_it_is_not_configured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    told = CliRunner().invoke(cli.app, ["app", "--runs", str(tmp_path), "--host", socket.gethostname(), "--login"])
    assert isinstance(told.exception, access.AccessError)
    assert "[auth]" in str(told.exception)
