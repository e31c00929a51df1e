"""The app's server: Streamlit behind a guard, in a process that has imported everything pages need.

Otherwise Streamlit would import it at the first request. `workbench app` starts the server with its own settings,
`streamlit run app.py` with those of Streamlit. Knows no page.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import threading
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

# Imported in advance, so that the first browser need not wait.
import workbench.app.health
import workbench.evaluation.run_table
import workbench.experiments.demo  # noqa: F401
from workbench.app.access import QUERY, AccessError, Guard, Origin, is_loopback, origin_of
from workbench.app.admission import GUARDED, LOGIN
from workbench.store import read_only

TOKEN = "WORKBENCH_TOKEN"  # environment variable: a chosen token, required at the loopback address too
SCRIPT = Path(__file__).resolve().parent / "script" / "router.py"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")
_EVERYWHERE = ("0.0.0.0", "::")  # addresses to listen at, which no browser requests


@dataclass(frozen=True)
class Server:
    """Address of the server, its own origins (the first is shown), and its token ("" for none)."""

    host: str
    port: int
    origins: tuple[Origin, ...]
    token: str

    @property
    def url(self) -> str:
        """The URL to open in a browser."""
        return f"{self.origins[0]}/?{QUERY}={self.token}" if self.token else str(self.origins[0])


def server(host: str, port: int, allow: Sequence[str] = (), login: bool = False) -> Server:
    """The server's settings: beyond the loopback address with a token or Streamlit's own login. Raises AccessError."""
    names = [name for name in (host, *allow, "localhost", "127.0.0.1") if name not in _EVERYWHERE]
    origins = tuple(dict.fromkeys(origin_of(name, port) for name in names))
    token = os.environ.pop(TOKEN, "")  # child processes must not inherit it
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


def settings(site: Server) -> dict[str, Any]:
    """Streamlit's settings, which override those of a file, since the current folder may have one."""
    names = [origin.host.strip("[]") for origin in site.origins]
    return {
        "server.address": site.host,
        "server.port": site.port,
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
        "logger.hideWelcomeMessage": True,  # which would look this machine's address up on the network
    }


def configured() -> Server:
    """The server of `streamlit run` by its own settings. Ends the process for an invalid token in the environment."""
    try:
        return server(st.get_option("server.address") or "0.0.0.0", st.get_option("server.port"))
    except AccessError as error:
        raise SystemExit(f"workbench: {error}") from None


def guarded(site: Server, browser: bool = False, login: bool = False) -> dict[str, Any]:
    """Arguments of `st.App` that put the guard before the script; `browser`: open one."""
    os.environ[GUARDED] = str(os.getpid())
    os.environ[LOGIN] = "1" if login else ""
    guard = Middleware(
        Guard, origins=site.origins, token=site.token, read_only=read_only.active(), local=is_loopback(site.host)
    )
    return {"middleware": [guard], "lifespan": _announced(site, browser)}


def _announced(site: Server, browser: bool) -> Any:
    @asynccontextmanager
    async def lifespan(app: st.App) -> AsyncIterator[None]:
        _import_cached_functions()
        print(f"The workbench is at {site.url}", flush=True)
        if not is_loopback(site.host):
            own_origins = ", ".join(map(str, site.origins))
            print(f"It answers at {own_origins} alone; name others by --allow", flush=True)
        threading.Thread(target=import_libraries, name="imports", daemon=True).start()
        if browser and not site.token:  # every user of the machine can read a browser's command line
            webbrowser.open(site.url)
        yield

    return lifespan


def _import_cached_functions() -> None:
    """Import what has cached functions and is on every page; before the server runs Streamlit warns of such functions.

    Imported in advance too.
    """
    import workbench.app.components.empty_states
    import workbench.app.sidebar  # noqa: F401


def import_libraries() -> None:
    """Import the libraries that draw and translate, which take seconds, before a page needs them."""
    import workbench.app.components.figure_view  # noqa: F401
    from core_models import Translator  # noqa: F401
    from workbench.figures import registry

    registry.load()


def serve(launcher: Path, site: Server, browser: bool, login: bool = False) -> None:
    """Serve the app until the process ends. Streamlit's other settings lie beside the launcher, app.py."""
    sys.argv = [str(launcher)]  # Streamlit puts the folder of the started script first in sys.path
    st.App(SCRIPT, **guarded(site, browser, login)).run(config=settings(site))
