"""What `workbench app` serves: on the loopback address alone, to its own hosts alone, and without telemetry."""

import socket
from collections.abc import Iterator

import psutil
import pytest

from tests.workbench.app_server import UPGRADE, Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("app")) as started:
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


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 101), ("localhost", 101), ("evil.example", 403)])
def test_the_stream_is_opened_for_its_own_hosts_alone(server, host, status):
    """A foreign name that resolves to the loopback address (DNS rebinding) sends its own Host and a matching Origin."""
    place = f"{host}:{server.port}"
    assert server.status("/_stcore/stream", {**UPGRADE, "Host": place, "Origin": f"http://{place}"}) == status


def test_the_stream_is_not_opened_for_a_page_of_another_origin(server):
    place = f"127.0.0.1:{server.port}"
    assert server.status("/_stcore/stream", {**UPGRADE, "Host": place, "Origin": "http://evil.example"}) == 403


def test_names_under_which_others_open_it_are_allowed_one_by_one(tmp_path):
    with serving(tmp_path, "--allow", "lab.example") as named:
        asked = {name: f"{name}:{named.port}" for name in ("lab.example", "127.0.0.1", "evil.example")}
        status = {
            name: named.status("/_stcore/stream", {**UPGRADE, "Host": place, "Origin": f"http://{place}"})
            for name, place in asked.items()
        }
        assert status == {"lab.example": 101, "127.0.0.1": 101, "evil.example": 403}


def test_it_was_started_without_telemetry(server):
    arguments = server.process.cmdline()
    assert arguments[arguments.index("--browser.gatherUsageStats") + 1] == "false"
    assert "usage statistics" not in server.log.read_text()


def test_the_configuration_beside_the_app_says_the_same():
    """For `streamlit run app.py`, which passes no arguments."""
    import tomllib

    from workbench.cli.opening import app_file

    settings = tomllib.loads((app_file().parent / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["server"]["allowedHosts"] == ["localhost", "127.0.0.1"]
