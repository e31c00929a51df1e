"""What the options of a request say: a name, a number, yes or no, which translation is forced. No drawing of its own.

From the command line options come as text, from a page as they are; what cannot be read is a RunError that says what
may be written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    pass

SPOKEN = {"own": "the own output", "reference": "the reference", "typed": "a typed text"}


def choice(request: Request, name: str, known: Collection[str]) -> str:
    """One of the names that are known, the first unless told."""
    chosen = str(request.options.get(name, next(iter(known))))
    if chosen not in known:
        raise RunError(f"{name} {chosen!r}: choose {', '.join(known)}")
    return chosen


def whole_number(
    request: Request, name: str, first: int, last: int | None, otherwise: str, usual: int | None = None
) -> int | None:
    """A number from `first` to `last` (None: without end); None where the option is the word `otherwise`, as it is
    unless told, or unless a `usual` number is given."""
    asked = request.options.get(name, otherwise if usual is None else usual)
    if asked == otherwise:
        return None
    text = str(asked)
    if not text.isdecimal() or int(text) < first or (last is not None and int(text) > last):
        bound = "" if last is None else f" to {last}"
        raise RunError(f"{name} {asked!r}: write {otherwise}, or a number from {first}{bound}")
    return int(text)


def sentence_count(request: Request, usual: int) -> int | None:
    """How many sentences of the test set a figure is of, the first ones; None for all."""
    return whole_number(request, "sentences", 1, None, "all", usual)


def is_on(request: Request, name: str, usual: bool = False) -> bool:
    """Is an option set that is yes or no?"""
    return request.options.get(name, usual) in (True, "true")


def number_of(request: Request, name: str, usual: float) -> float:
    """A number, `usual` unless told."""
    asked = request.options.get(name, usual)
    try:
        return float(asked)
    except (TypeError, ValueError):
        raise RunError(f"{name} {asked!r}: write a number") from None


def limit(request: Request) -> float:
    """The weight that has the last shade: 1, unless told."""
    found = number_of(request, "limit", 1.0)
    if not 0 < found <= 1:
        raise RunError(f"limit {found}: write a weight above 0, up to 1")
    return found


def forced(request: Request) -> tuple[str, str]:
    """Which translation is forced (`inside.TARGETS`), and the text where it is a typed one."""
    return str(request.options.get("target", "own")), str(request.options.get("text", ""))


def spoken(request: Request) -> str:
    """Which translation is forced, in words."""
    return SPOKEN[forced(request)[0]]


# Which attention: its array, and what its keys and queries are called.
PARTS = {
    "cross": ("decoder.cross_attention", ("source", "target"), "decoder's attention to the source"),
    "encoder": ("encoder.self_attention", ("source attended to", "source"), "encoder's self-attention"),
    "decoder": ("decoder.self_attention", ("target read so far", "target"), "decoder's self-attention"),
}


MOST_CELLS = 150_000  # of all maps of a figure
