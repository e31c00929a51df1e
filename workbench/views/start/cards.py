"""Cards of the page Start: questions, each with a figure of the runs at hand and a link to the page that answers it.

Cards and their pictures are cached beside the runs, so that the first page of the app is there at once.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from workbench.evaluation.result_cache import ResultCache
from workbench.figures.request import looks
from workbench.plotting import theme
from workbench.store.provenance import digests
from workbench.store.runs import Run
from workbench.views.start.card import Card

_MATPLOTLIB = threading.Lock()  # which is not thread-safe


CARDS: ResultCache[list[Card]] = ResultCache(
    "scores/cards-{}.json",
    lambda cards: {"cards": [asdict(card) for card in cards]},
    lambda content: [Card(**record) for record in content["cards"]],
    version=2,
)
PICTURES: ResultCache[bytes] = ResultCache(
    "scores/card-{}.npz",
    lambda png: {"png": np.frombuffer(png, dtype=np.uint8)},
    lambda arrays: np.asarray(arrays["png"]).astype(np.uint8, casting="safe").tobytes(),
    version=3,
)


def of_runs(runs: Sequence[Run], test: str) -> dict[str, Any]:
    """What a result on runs depends on: their files and names, in order."""
    return {"test": test, "runs": [[run.name, digests(run, test)] for run in runs]}


def in_order(runs: Iterable[Run], baseline: str) -> list[Run]:
    """Runs as cards and findings take them: the baseline first, then by name."""
    return sorted(runs, key=lambda run: (run.name != baseline, run.name))


def cards(runs: Sequence[Run], test: str) -> list[Card]:
    """A card for each question that these runs answer, the baseline first; cached beside the baseline."""

    def compute() -> list[Card]:
        from workbench.views.start.questions import cards_of  # takes pandas

        return cards_of(runs, test)

    return CARDS.cached(runs[0], of_runs(runs, test), compute)


def picture(card: Card, runs: Mapping[str, Run]) -> bytes:
    """The figure of a card, as a PNG of the width of a paper's column; cached beside its last run. runs: by name.

    An exhibit is in several runs folders, which may give it different lines.
    """
    shown = [runs[name] for name in card.runs]
    drawn = {name: value for name, value in asdict(card).items() if name != "question"}
    inputs = {"card": drawn, **of_runs(shown, card.test)}
    styles = looks(shown)
    if styles != theme.run_styles(card.runs):  # the pictures that come with the exhibits are drawn in the latter
        inputs["styles"] = {name: asdict(style) for name, style in styles.items()}
    return PICTURES.cached(shown[-1], inputs, lambda: _draw(card, shown))


def _draw(card: Card, runs: Sequence[Run]) -> bytes:
    from workbench.export.files import save
    from workbench.figures.drawing import draw
    from workbench.figures.request import Request

    figure = draw(card.figure, Request(tuple(runs), card.test, card.sentence, options=card.options))
    with _MATPLOTLIB, tempfile.TemporaryDirectory() as folder:
        return save(figure, Path(folder) / "card.png", "column").read_bytes()
