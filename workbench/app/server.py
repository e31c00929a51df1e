"""The app's server: Streamlit, behind a guard, in a process that has loaded what every page needs.

Streamlit would load it when the first browser asks, which then waits. `workbench app` starts it with settings of its
own, `streamlit run app.py` with what Streamlit was told. Knows no page.
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

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.secrets import secrets_singleton

# Loaded ahead, so that the first browser need not wait.
import workbench.app.components.empty_states
import workbench.app.health
import workbench.app.sidebar
import workbench.evaluation.run_table
import workbench.experiments.demo  # noqa: F401
from workbench.app.access import QUERY, AccessError, Guard, Origin, is_loopback, origin_of
from workbench.app.admission import GUARDED, LOGIN
from workbench.store import read_only

TOKEN = "WORKBENCH_TOKEN"  # in the environment: a token of one's own choice, asked for at the loopback address too
SCRIPT = Path(__file__).resolve().parent / "script" / "router.py"
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


def configured() -> Server:
    """Where `streamlit run` serves by its own settings. Ends the process where the token in the environment is none."""
    try:
        return server(st.get_option("server.address") or "0.0.0.0", st.get_option("server.port"))
    except AccessError as error:
        raise SystemExit(f"workbench: {error}") from None


def guarded(here: Server, browser: bool = False, login: bool = False) -> dict[str, Any]:
    """What `st.App` needs besides the script, so that nobody gets past the guard; `browser`: open one."""
    os.environ[GUARDED] = str(os.getpid())
    os.environ[LOGIN] = "1" if login else ""
    guard = Middleware(
        Guard, origins=here.origins, token=here.token, read_only=read_only.active(), local=is_loopback(here.host)
    )
    return {"middleware": [guard], "lifespan": _announced(here, browser)}


def _announced(here: Server, browser: bool) -> Any:
    @asynccontextmanager
    async def lifespan(app: st.App) -> AsyncIterator[None]:
        print(f"The workbench is at {here.url}", flush=True)
        if not is_loopback(here.host):
            own = ", ".join(map(str, here.origins))
            print(f"It answers at {own} alone; name others by --allow", flush=True)
        if browser and not here.token:  # a browser's command line is for every user of the machine to read
            webbrowser.open(here.url)
        yield

    return lifespan


def serve(launcher: Path, here: Server, browser: bool, login: bool = False) -> None:
    """Serve the app until the process is told to end. Beside the launcher, app.py, lie Streamlit's other settings."""
    sys.argv = [str(launcher)]  # Streamlit puts the folder of what was started before all others in sys.path
    st.App(SCRIPT, **guarded(here, browser, login)).run(config=settings(here))
