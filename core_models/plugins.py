"""Parts that other installed packages bring, by entry points of the groups `nmt_workbench.KIND`.

A part that cannot be imported, or whose name is taken, is kept with its problem and stops nothing. Knows
importlib.metadata, and nothing of what the parts are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

GROUP = "nmt_workbench"
_LOCK = threading.RLock()


@dataclass(frozen=True)
class Plugged:
    """A part of another package: its kind (mechanisms, figures, …), its name, and the package with its version.

    `problem` says why it cannot be used, if it cannot.
    """

    kind: str
    name: str
    package: str
    problem: str = ""


_JOINED: dict[str, list[Plugged]] = {}


@cache
def installed() -> list[EntryPoint]:
    """The entry points of all our groups, as they were when first asked: reading all packages takes its time."""
    found = entry_points()
    ours = [group for group in found.groups if group.startswith(f"{GROUP}.")]
    return [point for group in ours for point in found.select(group=group)]


def join(kind: str, known: dict[str, Any], suits: Callable[[Any], str]) -> list[Plugged]:
    """Put what installed packages offer of a kind into `known`, once in a process; returns a line for each part.

    suits: says of a value why it is none of this kind, or nothing.
    """
    with _LOCK:
        if kind not in _JOINED:
            parts = _JOINED[kind] = []  # kept first: a part that asks for the catalogue while it is imported gets one
            for point in installed():
                if point.group == f"{GROUP}.{kind}":
                    parts.append(_plug(point, kind, known, suits))
        return list(_JOINED[kind])


def _plug(point: EntryPoint, kind: str, known: dict[str, Any], suits: Callable[[Any], str]) -> Plugged:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
    found = Plugged(kind, point.name, package)
    if point.name in known:
        return replace(found, problem=f"the name {point.name!r} is taken; give the entry point another name")
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # whatever a foreign module does while it is imported
        return replace(found, problem=f"{point.value} cannot be imported: {type(error).__name__}: {error}")
    if wrong := suits(value):
        return replace(found, problem=f"{point.value} {wrong}")
    known[point.name] = value
    return found


def joined() -> list[Plugged]:
    """The parts of all kinds that have joined so far, and those that could not."""
    return [part for parts in _JOINED.values() for part in parts]


def brought_by(kind: str, name: str) -> str:
    """The package whose part of a kind bears this name; "" where it is the workbench's own."""
    return next((part.package for part in _JOINED.get(kind, ()) if part.name == name and not part.problem), "")


def class_of(base: type) -> Callable[[Any], str]:
    """Suits a subclass of `base`."""
    return lambda value: "" if isinstance(value, type) and issubclass(value, base) else f"is no {base.__name__} class"


def function(value: Any) -> str:
    """Suits what can be called."""
    return "" if callable(value) else "is no function"
