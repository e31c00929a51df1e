"""What `workbench app` serves: on the loopback address alone, to its own hosts alone, and without telemetry."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@dataclass(frozen=True)
class Server:
    process: psutil.Process
    port: int
    log: Path

    def status(self, path: str, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def _serving(folder: Path, *options: str) -> Iterator[Server]:
    port = _free_port()
    (folder / "runs").mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("STREAMLIT_", "WORKBENCH_"))}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench.cli", "app", "--runs", folder / "runs", "--port", str(port), *options],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    started = Server(psutil.Process(process.pid), port, folder / "log")
    try:
        until = time.monotonic() + 120
        while True:
            assert process.poll() is None, started.log.read_text()
            assert time.monotonic() < until, started.log.read_text()
            try:
                if started.status("/_stcore/health", {}) == 200:
                    break
            except OSError:
                time.sleep(0.1)
        yield started
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with _serving(tmp_path_factory.mktemp("app")) as started:
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
    with _serving(tmp_path, "--allow", "lab.example") as named:
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
