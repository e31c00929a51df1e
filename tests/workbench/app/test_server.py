"""What both doors of the app serve: on the loopback address alone, to its own hosts alone, and without telemetry."""

import asyncio
import re
import socket
from collections.abc import Iterator

import psutil
import pytest
from starlette.responses import PlainTextResponse
from typer.testing import CliRunner

from tests.workbench.app.app_server import UPGRADE, Server, serving, streamlit_serving
from workbench import cli
from workbench.app import access
from workbench.app import server as serving_module


@pytest.fixture(scope="module", params=[serving, streamlit_serving], ids=["workbench app", "streamlit run app.py"])
def server(request, tmp_path_factory) -> Iterator[Server]:
    with request.param(tmp_path_factory.mktemp("app")) as started:
        yield started


def test_it_listens_on_the_loopback_address_alone(server):
    family = [server.process, *server.process.children(recursive=True)]
    listening = [
        one.laddr for process in family for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN
    ]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", server.port)]


def test_an_address_beside_it_finds_nobody(server):
    with socket.socket() as other:
        other.settimeout(5)
        with pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", server.port))


def test_its_start_says_nothing_of_cached_functions(server):
    assert "No runtime found" not in server.log.read_text()


PATHS = ("/", "/scores", "/_stcore/health", "/_stcore/host-config", "/media/none", "/nothing/here.js")


@pytest.mark.parametrize("path", [*PATHS, "/_stcore/stream"])
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "user@localhost", "0.0.0.0"])
def test_foreign_hosts_are_refused_whatever_they_ask_for(server, path, host):
    """A foreign name that resolves to the loopback address (DNS rebinding) sends its own Host and a matching Origin."""
    place = f"{host}:{server.port}"
    headers = UPGRADE if path.endswith("stream") else {}
    for origin in ({}, {"Origin": f"http://{place}"}, {"Origin": server.address}):
        assert server.status(path, {**headers, "Host": place, **origin}) == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost"])
def test_its_own_hosts_are_answered(server, host):
    place = f"{host}:{server.port}"
    assert server.status("/", {"Host": place}) == 200
    assert server.status("/_stcore/stream", {**UPGRADE, "Host": place, "Origin": f"http://{place.lower()}"}) == 101


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://127.0.0.1", "http://127.0.0.1:1", "http://localhost:PORT", "https://127.0.0.1:PORT",
     "http://localhost:3000", "null", "", "http://127.0.0.1:PORT.evil.example", None],
)  # fmt: skip
def test_the_stream_is_opened_from_the_very_origin_alone(server, origin):
    """No other port, name or scheme of this machine: another program's page is another origin. None: it says none."""
    headers = {name: value for name, value in server.own.items() if name != "Origin"}
    if origin is not None:
        headers["Origin"] = origin.replace("PORT", str(server.port))
    assert server.status("/_stcore/stream", headers) == 403
    assert server.status("/_stcore/stream", server.own) == 101


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_a_request_that_a_page_of_another_origin_makes_is_refused(server, method):
    for path in ("/", "/_stcore/upload_file/session/file"):
        assert server.status(path, {"Origin": f"http://localhost:{server.port}1"}, method) == 403


@pytest.mark.parametrize("headers", [{}, {"Host": "evil.example"}])
@pytest.mark.parametrize("path", PATHS)
def test_no_answer_may_be_framed_or_guessed_at(server, path, headers):
    found = {name.lower(): value for name, value in server.ask(path, headers).headers.items()}
    assert {name: found.get(name.lower()) for name in access.HEADERS} == access.HEADERS


@pytest.mark.slow
def test_names_under_which_others_open_it_are_allowed_one_by_one(tmp_path):
    """A name at its own port; a tunnel's end at another port; a proxy with a certificate."""
    allowed = ("--allow", "lab.example", "--allow", "localhost:9000", "--allow", "https://proxy.example")
    with serving(tmp_path, *allowed) as named:
        own = f"http://lab.example:{named.port}"
        expected = {
            own: 101, "http://localhost:9000": 101, "https://proxy.example": 101, named.address: 101,
            f"http://evil.example:{named.port}": 403, "http://lab.example": 403, "http://localhost:9001": 403,
            "http://proxy.example": 403, f"https://proxy.example:{named.port}": 403,
        }  # fmt: skip
        status = {
            origin: named.status("/_stcore/stream", {**UPGRADE, "Host": origin.partition("//")[2], "Origin": origin})
            for origin in expected
        }
        assert status == expected


@pytest.mark.parametrize("name", ["*", "*.example", "a/b", "http://", "", "ftp://a", "a:b", "user@a", "a?b"])
def test_a_name_that_is_none_is_refused_at_the_start(tmp_path, name):
    told = CliRunner().invoke(cli.app, ["app", "--runs", str(tmp_path), "--allow", name])
    assert isinstance(told.exception, access.AccessError)
    assert "names no host" in str(told.exception)


def test_a_folder_that_is_not_there_is_said_at_the_start(tmp_path):
    for folder, said in ((tmp_path / "none", True), (tmp_path, False)):
        told = CliRunner().invoke(cli.app, ["app", "--runs", str(folder), "--allow", "*"])
        assert (f"there is no folder {folder} yet" in told.stderr) == said


def _listening(server: Server) -> list[str]:
    return [one.laddr.ip for one in server.process.net_connections("inet") if one.status == psutil.CONN_LISTEN]


@pytest.mark.parametrize("start", [serving, streamlit_serving])
@pytest.mark.slow
def test_a_configuration_in_the_current_folder_does_not_open_it(tmp_path, start):
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(
        '[server]\naddress = "0.0.0.0"\nenableCORS = false\nenableXsrfProtection = false\nallowedHosts = ["*"]\n'
        'corsAllowedOrigins = ["http://evil.example"]\n[browser]\ngatherUsageStats = true\n'
    )
    with start(tmp_path) as here:
        answer = here.ask("/", {"Host": "evil.example"})
        assert answer.status == 403
        assert "Access-Control-Allow-Origin" not in here.ask("/_stcore/health").headers
        assert _listening(here) == ["127.0.0.1"]
        assert "usage statistics" not in here.log.read_text()


def test_streamlit_run_that_is_told_to_be_open_is_guarded_all_the_same(tmp_path):
    """Others reach it, and need the token that it printed; a foreign page is refused with it too."""
    told = ["--server.address=0.0.0.0", "--server.enableCORS=false", "--server.allowedHosts=*"]
    with streamlit_serving(tmp_path, *told, "--server.enableXsrfProtection=false") as here:
        assert _listening(here) == ["0.0.0.0"]
        assert here.status("/") == here.status("/_stcore/stream", here.own) == 403
        (token,) = re.findall(r"\?token=(\S+)", here.log.read_text())
        cookie = {"Cookie": here.ask(f"/?token={token}").headers["set-cookie"].partition(";")[0]}
        assert here.status("/_stcore/stream", {**here.own, **cookie}) == 101
        for foreign in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{here.port}"}):
            assert here.status("/_stcore/stream", {**here.own, **cookie, **foreign}) == 403
            assert here.status("/", {**cookie, **foreign}) == 403


def test_a_token_that_is_none_ends_streamlit_run(tmp_path):
    with pytest.raises(AssertionError, match="a token has 16"), streamlit_serving(tmp_path, token="short"):
        pass


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 200), ("::1", 200), ("192.0.2.7", 403), ("::", 403)])
def test_an_app_for_this_machine_alone_answers_at_no_other_address(address, status):
    """Another ASGI server may listen where Streamlit's settings do not say."""
    told = []

    async def send(message):
        told.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"localhost:1")]}
    guard = access.Guard(PlainTextResponse(""), [access.origin_of("localhost", 1)], local=True)
    asyncio.run(guard({**scope, "server": (address, 1)}, None, send))
    assert told[0]["status"] == status


def test_it_is_started_without_telemetry():
    assert serving_module.settings(serving_module.server("127.0.0.1", 8501))["browser.gatherUsageStats"] is False


def test_the_configuration_beside_the_app_says_the_same():
    """For `streamlit run app.py`, which passes no arguments."""
    import tomllib

    from workbench.cli.serve_app import app_file

    settings = tomllib.loads((app_file().parent / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["server"]["allowedHosts"] == ["localhost", "127.0.0.1"]
