"""`workbench app` or `streamlit run` in a process of its own, for tests that ask it over HTTP."""

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.paths import ROOT
from workbench.jobs import safe_path
from workbench.store import exhibits

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

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def own(self) -> dict[str, str]:
        """What a browser sends that opens a stream from the app's own page."""
        return {**UPGRADE, "Host": f"127.0.0.1:{self.port}", "Origin": self.address}

    def ask(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> "Answer":
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            found = connection.getresponse()
            text = found.read().decode() if found.status != 101 else ""  # an open stream has no end
            return Answer(found.status, dict(found.getheaders()), text)
        finally:
            connection.close()

    def status(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> int:
        return self.ask(path, headers, method).status


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def serving(folder: Path, *options: str, token: str = "") -> Iterator[Server]:
    """The app on the runs below `folder`, started from there; `token` is one of our own choice."""
    port = free_port()
    words = [*safe_path.module("workbench.cli", "app"), "--runs", folder / "runs", "--port", str(port), *options]
    with _started(words, folder, port, token) as server:
        yield server


@contextmanager
def streamlit_serving(folder: Path, *options: str, token: str = "", script: Path = ROOT / "app.py") -> Iterator[Server]:
    """The same by Streamlit's own command."""
    port = free_port()
    words = [*safe_path.module("streamlit", "run"), script, "--server.port", str(port), *options]
    with _started(words, folder, port, token) as server:
        yield server


@contextmanager
def _started(words: Sequence[str | Path], folder: Path, port: int, token: str) -> Iterator[Server]:
    (folder / "runs").mkdir(exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("STREAMLIT_", "WORKBENCH_"))}
    environment |= {
        "WORKBENCH_RUNS": str(folder / "runs"),
        exhibits.VARIABLE: os.environ.get(exhibits.VARIABLE, ""),
    }
    if token:
        environment["WORKBENCH_TOKEN"] = token
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env=environment)
    started = Server(psutil.Process(process.pid), port, folder / "log")
    try:
        until = time.monotonic() + 120
        while True:
            assert process.poll() is None, started.log.read_text()
            assert time.monotonic() < until, started.log.read_text()
            try:
                if started.status("/_stcore/health") in (200, 403):  # 403 where it asks for a token
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
