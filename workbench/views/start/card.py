"""A card of the page Start. Imports no figure and no page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Card:
    """A question and the figure that answers it. runs: names; choices: of the page's controls, by their keys."""

    question: str
    page: str
    figure: str
    runs: list[str]
    test: str
    sentence: int = 0
    choices: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
