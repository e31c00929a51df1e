"""Access control of the app's server: its own origins only, and a token if it has one. Knows ASGI, no page.

A foreign page in the same browser is refused by its origin, a foreign name that resolves to this server (DNS rebinding)
by the requested host; no page may embed the app in a frame.
"""

from __future__ import annotations

import hmac
import html
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
QUERY = "token"  # of the URL that is printed at start
_READING = ("GET", "HEAD", "OPTIONS")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class AccessError(ValueError):
    """An unusable name or token; the message says which and what to do."""


@dataclass(frozen=True)
class Origin:
    """Scheme, host and port, as a browser sends them."""

    scheme: str
    host: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """The valid Host headers: the scheme's default port may be left out."""
        with_port = f"{self.host}:{self.port}"
        return (self.host, with_port) if self.port == _DEFAULT_PORTS[self.scheme] else (with_port,)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.hosts[0]}"


def origin_of(name: str, port: int) -> Origin:
    """The origin of NAME (at this server's port), NAME:PORT, or https://NAME (of a proxy). Raises AccessError."""
    try:
        plain = f"[{ipaddress.IPv6Address(name)}]"
    except ValueError:
        plain = name
    has_scheme = "://" in plain
    try:
        parts = urlsplit((plain if has_scheme else f"http://{plain}").lower())
        own_port = parts.port or (_DEFAULT_PORTS[parts.scheme] if has_scheme else port)
    except (ValueError, KeyError):
        parts, own_port = urlsplit(""), 0
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if not host or parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc or "*" in host:
        raise AccessError(f"{name!r} names no host; write NAME, NAME:PORT or, of a proxy, https://NAME, each by itself")
    return Origin(parts.scheme, host, own_port)


def is_loopback(host: str) -> bool:
    """Return True for an address that only this machine reaches."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


class Guard:
    """An ASGI application that passes permitted HTTP and WebSocket requests to another."""

    def __init__(
        self, app: ASGIApp, origins: Iterable[Origin], token: str = "", read_only: bool = False, local: bool = False
    ) -> None:
        """Guard an application; local: answer at loopback addresses only, wherever the server listens."""
        self._app = app
        self._origins = tuple(origins)
        self._token = token
        self._read_only = read_only
        self._local = local
        self._cookie = f"workbench-token-{self._origins[0].port}"  # a browser's cookies belong to a host, not to a port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = self._answer(scope, Headers(scope=scope))
            await (response or self._app)(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket" and self._answer(scope, Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: status 403
        else:
            await self._app(scope, receive, send)

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """The response in place of the app's; None for a request that the app may answer."""
        origins = self._requested_origins(headers, scope["type"] == "websocket")
        if not origins:
            own_origins = ", ".join(map(str, self._origins))
            return _refused(
                f"This server answers at {own_origins} alone; name others: workbench app --allow NAME[:PORT]"
            )
        if self._local and not is_loopback((scope.get("server") or [""])[0]):
            return _refused("This server is for its own machine alone; start it by: workbench app --host ADDRESS")
        if self._read_only and scope["type"] == "http" and scope["method"] not in _READING:
            return _refused("This server takes nothing in: it was started with --read-only.")
        if not self._token or self._same(cookie_parser(headers.get("cookie", "")).get(self._cookie, "")):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["type"] == "http" and self._same(dict(query).get(QUERY, "")):
            rest = [(name, value) for name, value in query if name != QUERY]
            return self._opened(scope["path"], rest, secure=all(origin.scheme == "https" for origin in origins))
        return _refused("Open this server by the URL with a token that it printed when it was started.")

    def _requested_origins(self, headers: Headers, origin_needed: bool) -> list[Origin]:
        """The server's own origins that match a request's Host, and its Origin if it has one."""
        hosts, origins = [host.lower() for host in headers.getlist("host")], headers.getlist("origin")
        requested = [origin for origin in self._origins if hosts in [[allowed] for allowed in origin.hosts]]
        return [origin for origin in requested if origins == [str(origin)] or not (origins or origin_needed)]

    def _same(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    def _opened(self, path: str, query: list[tuple[str, str]], secure: bool) -> Response:
        """Set the token as a cookie and redirect to the URL without it, from this origin so that the cookie is sent."""
        address = "/" + quote(path.lstrip("/")) + (f"?{urlencode(query)}" if query else "")
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}"><title>…</title>'
        response = HTMLResponse(page, headers={"Cache-Control": "no-store"})
        response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", secure=secure)
        return response


def _refused(why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=403)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending
