"""Who may ask the app's server: its own origins alone, and with a token, where it has one. Knows ASGI, no page.

A page of somebody else in the same browser is refused by its origin, a foreign name that leads here (DNS rebinding) by
the host it asks for, and nobody may show the app in a frame.
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
    """A name or a token that cannot be used; the message says which and what to do."""


@dataclass(frozen=True)
class Origin:
    """Scheme, host and port, as a browser tells them."""

    scheme: str
    host: str
    port: int

    @property
    def hosts(self) -> tuple[str, ...]:
        """What stands in a request's Host: the port may be left out where it is the scheme's own."""
        with_port = f"{self.host}:{self.port}"
        return (self.host, with_port) if self.port == _DEFAULT_PORTS[self.scheme] else (with_port,)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.hosts[0]}"


def origin_of(name: str, port: int) -> Origin:
    """NAME is at this server's port, NAME:PORT at another, https://NAME that of a proxy. Raises AccessError."""
    try:
        plain = f"[{ipaddress.IPv6Address(name)}]"
    except ValueError:
        plain = name
    whole = "://" in plain
    try:
        parts = urlsplit((plain if whole else f"http://{plain}").lower())
        own = parts.port or (_DEFAULT_PORTS[parts.scheme] if whole else port)
    except (ValueError, KeyError):
        parts, own = urlsplit(""), 0
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    if not host or parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc or "*" in host:
        raise AccessError(f"{name!r} names no host; write NAME, NAME:PORT or, of a proxy, https://NAME, each by itself")
    return Origin(parts.scheme, host, own)


def is_loopback(host: str) -> bool:
    """Is it an address that only this machine reaches?"""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower() == "localhost"
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


class Guard:
    """An ASGI application that lets the right requests through to another: HTTP and WebSocket alike."""

    def __init__(
        self, app: ASGIApp, origins: Iterable[Origin], token: str = "", read_only: bool = False, local: bool = False
    ) -> None:
        """local: it answers at loopback addresses alone, wherever the server listens."""
        self._app = app
        self._origins = tuple(origins)
        self._token = token
        self._read_only = read_only
        self._local = local
        self._cookie = f"workbench-token-{self._origins[0].port}"  # a browser's cookies are of a host, not of a port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            response = self._answer(scope, Headers(scope=scope))
            await (response or self._app)(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket" and self._answer(scope, Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: status 403
        else:
            await self._app(scope, receive, send)

    def _answer(self, scope: Scope, headers: Headers) -> Response | None:
        """What is answered in place of the app; None for what the app may answer."""
        asked = self._asked(headers, scope["type"] == "websocket")
        if not asked:
            own = ", ".join(map(str, self._origins))
            return _refused(f"This server answers at {own} alone; name others: workbench app --allow NAME[:PORT]")
        if self._local and not is_loopback((scope.get("server") or [""])[0]):
            return _refused("This server is for its own machine alone; start it by: workbench app --host ADDRESS")
        if self._read_only and scope["type"] == "http" and scope["method"] not in _READING:
            return _refused("This server takes nothing in: it was started with --read-only.")
        if not self._token or self._same(cookie_parser(headers.get("cookie", "")).get(self._cookie, "")):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["type"] == "http" and self._same(dict(query).get(QUERY, "")):
            others = [(name, value) for name, value in query if name != QUERY]
            return self._opened(scope["path"], others, secure=all(one.scheme == "https" for one in asked))
        return _refused("Open this server by the URL with a token that it printed when it was started.")

    def _asked(self, headers: Headers, origin_needed: bool) -> list[Origin]:
        """Which of the own origins a request is for, and comes from where it says from where; none for others."""
        hosts, origins = [host.lower() for host in headers.getlist("host")], headers.getlist("origin")
        asked = [one for one in self._origins if hosts in [[own] for own in one.hosts]]
        return [one for one in asked if origins == [str(one)] or not (origins or origin_needed)]

    def _same(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token.encode())

    def _opened(self, path: str, query: list[tuple[str, str]], secure: bool) -> Response:
        """The token becomes a cookie, and the browser asks again without it: from here, so that the cookie is sent."""
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
