"""Sentences of captions and summaries about several systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def enumeration(names: Sequence[str]) -> str:
    """Names as in a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def by_system(texts: Mapping[str, str]) -> str:
    """What is said of each system, systems of whom the same is said together: "a and b: one; c: another"."""
    systems: dict[str, list[str]] = {}
    for system, text in texts.items():
        systems.setdefault(text, []).append(system)
    if len(systems) == 1 and len(texts) > 1:
        return next(iter(systems))
    return "; ".join(f"{enumeration(names)}: {text}" for text, names in systems.items())
