"""What reaches a terminal: control characters in names and texts are shown, as \\x1b, and not obeyed."""

from __future__ import annotations

import logging
import re
import sys

import typer

# C0 without tab and the end of a line, DEL, C1, marks and overrides of direction, separators of lines and paragraphs,
# and halves of pairs, by which Python keeps the bytes of a name that is no UTF-8.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BREAKS = re.compile("[\t\n]")


def printable(text: str) -> str:
    """The text with its control characters as escapes; it may have several lines."""
    return _CONTROL.sub(_escape, text)


def printable_cell(text: str) -> str:
    """The text on one line, its control characters as escapes."""
    return _BREAKS.sub(_escape, printable(text))


def say(text: object = "", err: bool = False, nl: bool = True) -> None:
    """Print a text. Into a file or a pipe data go as they are; what is said beside them (err) is always readable."""
    readable = err or sys.stdout.isatty()
    typer.echo(printable(str(text)) if readable else str(text), err=err, nl=nl)


class _Printable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def warn_readably() -> None:
    """Let warnings of the log, which nobody else has asked for, be readable too."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Printable())


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
