"""Plugins of other installed packages, by entry points of the groups `nmt_workbench.KIND`.

A plugin that cannot be imported, or whose name is taken, is recorded with its problem and skipped.
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
    """A plugin: its kind (mechanisms, figures, …), its name, and the package with its version.

    problem: why it cannot be used, or "".
    """

    kind: str
    name: str
    package: str
    problem: str = ""


_JOINED: dict[str, list[Plugged]] = {}


@cache
def installed() -> list[EntryPoint]:
    """The entry points of all our groups, cached, as reading all packages takes time."""
    points = entry_points()
    ours = [group for group in points.groups if group.startswith(f"{GROUP}.")]
    return [point for group in ours for point in points.select(group=group)]


def join(kind: str, known: dict[str, Any], suits: Callable[[Any], str]) -> list[Plugged]:
    """Add the plugins of a kind to `known`, once per process; returns a record of each.

    suits: returns why a value is not of this kind, or "".
    """
    with _LOCK:
        if kind not in _JOINED:
            parts = _JOINED[kind] = []  # set first: a plugin may read the catalogue while it is imported
            for point in installed():
                if point.group == f"{GROUP}.{kind}":
                    parts.append(_plug(point, kind, known, suits))
        return list(_JOINED[kind])


def _plug(point: EntryPoint, kind: str, known: dict[str, Any], suits: Callable[[Any], str]) -> Plugged:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
    part = Plugged(kind, point.name, package)
    if point.name in known:
        return replace(part, problem=f"the name {point.name!r} is taken; give the entry point another name")
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # a foreign module may do anything while it is imported
        return replace(part, problem=f"{point.value} cannot be imported: {type(error).__name__}: {error}")
    if wrong := suits(value):
        return replace(part, problem=f"{point.value} {wrong}")
    known[point.name] = value
    return part


def joined() -> list[Plugged]:
    """The plugins of all kinds so far, usable or not."""
    return [part for parts in _JOINED.values() for part in parts]


def brought_by(kind: str, name: str) -> str:
    """The package of the plugin with this kind and name; "" for a part of the workbench."""
    return next((part.package for part in _JOINED.get(kind, ()) if part.name == name and not part.problem), "")


def class_of(base: type) -> Callable[[Any], str]:
    """A `suits` function that accepts subclasses of `base`."""
    return lambda value: "" if isinstance(value, type) and issubclass(value, base) else f"is no {base.__name__} class"


def function(value: Any) -> str:
    """A `suits` function that accepts callables."""
    return "" if callable(value) else "is no function"
