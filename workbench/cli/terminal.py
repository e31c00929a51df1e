r"""Safe output to a terminal: control characters in names and texts are shown as escapes such as \x1b."""

from __future__ import annotations

import logging
import re
import sys

import typer

# C0 without tab and line feed, DEL, C1, direction marks and overrides, line and paragraph separators, and lone
# surrogates, by which Python represents the bytes of a name that is not UTF-8.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BREAKS = re.compile("[\t\n]")


def printable(text: str) -> str:
    """The text with its control characters as escapes; it may have several lines."""
    return _CONTROL.sub(_escape, text)


def printable_cell(text: str) -> str:
    """The text on one line, its control characters as escapes."""
    return _BREAKS.sub(_escape, printable(text))


def say(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print a text. Data to a file or pipe stay unchanged; messages (err) always have their escapes."""
    readable = err or sys.stdout.isatty()
    typer.echo(printable(str(text)) if readable else str(text), err=err, nl=nl)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def warn_readably() -> None:
    """Escape control characters in log warnings too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Printable())


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
