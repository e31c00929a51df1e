"""The app's server: Streamlit, behind a guard, in a process that has loaded what every page needs.

Streamlit would load it when the first browser asks, which then waits. Knows no page.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from starlette.types import Receive, Scope, Send
from streamlit.runtime.secrets import secrets_singleton
from streamlit.starlette import App

from workbench.app.access import QUERY, AccessError, Guard, Origin, is_loopback, origin_of
from workbench.app.admission import GUARDED, LOGIN
from workbench.store import read_only

TOKEN = "WORKBENCH_TOKEN"  # in the environment: a token of one's own choice, asked for at the loopback address too
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")
_EVERYWHERE = ("0.0.0.0", "::")  # addresses to listen at, under which nobody is asked


@dataclass(frozen=True)
class Server:
    """Where the app is served: the address it listens at, its own origins (the first is shown), the token it asks for
    ("" for none)."""

    host: str
    port: int
    origins: tuple[Origin, ...]
    token: str

    @property
    def url(self) -> str:
        """What is opened in a browser."""
        return f"{self.origins[0]}/?{QUERY}={self.token}" if self.token else str(self.origins[0])


def server(host: str, port: int, allow: Sequence[str] = (), login: bool = False) -> Server:
    """Where to serve: beyond the loopback address with a token, or Streamlit's own login. Raises AccessError."""
    named = [name for name in (host, *allow, "localhost", "127.0.0.1") if name not in _EVERYWHERE]
    origins = tuple(dict.fromkeys(origin_of(name, port) for name in named))
    token = os.environ.pop(TOKEN, "")  # nothing that is started from here needs it
    if token and not _TOKEN.fullmatch(token):
        raise AccessError(f"{TOKEN}: a token has 16 to 128 letters, digits, - or _")
    if login:
        _check_login()
    elif not token and not is_loopback(host):
        token = secrets.token_urlsafe(32)
    return Server(host, port, origins, token)


def _check_login() -> None:
    if not secrets_singleton.load_if_toml_exists() or not secrets_singleton.get("auth"):
        raise AccessError("--login needs Streamlit's own login: a section [auth] in .streamlit/secrets.toml")
    if find_spec("authlib") is None:
        raise AccessError("--login needs a library more: pip install 'streamlit[auth]'")


def settings(here: Server) -> dict[str, Any]:
    """Streamlit's settings, over those of any file: the current folder may bring one."""
    names = [origin.host.strip("[]") for origin in here.origins]
    return {
        "server.address": here.host,
        "server.port": here.port,
        "server.allowedHosts": list(dict.fromkeys(names)),
        "server.corsAllowedOrigins": [],
        "server.enableCORS": True,
        "server.enableXsrfProtection": True,
        "server.enableStaticServing": False,
        "server.fileWatcherType": "none",
        "server.headless": True,
        "server.showEmailPrompt": False,
        "browser.gatherUsageStats": False,
        "global.developmentMode": False,
        "logger.hideWelcomeMessage": True,  # it would ask the network for this machine's address
    }


class _Guarded(App):
    """The app behind its guard, errors of the server itself included."""

    def __init__(self, script: Path, here: Server, browser: bool) -> None:
        super().__init__(script, lifespan=_announced(here, browser))
        self._guard = Guard(super().__call__, here.origins, here.token, read_only.active())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)


def _announced(here: Server, browser: bool) -> Any:
    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[None]:
        print(f"The workbench is at {here.url}", flush=True)
        if not is_loopback(here.host):
            own = ", ".join(map(str, here.origins))
            print(f"It answers at {own} alone; name others by --allow", flush=True)
        if browser and not here.token:  # a browser's command line is for every user of the machine to read
            webbrowser.open(here.url)
        yield

    return lifespan


def serve(script: Path, here: Server, browser: bool, login: bool = False) -> None:
    """Serve the app until the process is told to end; `browser`: open one."""
    os.environ[GUARDED] = str(os.getpid())
    os.environ[LOGIN] = "1" if login else ""
    sys.argv = [str(script)]  # Streamlit puts the folder of what was started before all others in sys.path
    _Guarded(script, here, browser).run(config=settings(here))
