"""The common workload of all engines: a model's shape, and random token batches.

The model is preset small or base with a tied vocabulary of 8,000; every engine gets the same batches, so that ratios
are meaningful. Imports only Python's standard library: other engines run in interpreters without the workbench.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

FIRST_WORD = 10  # smaller numbers may be special symbols of an engine


@dataclass(frozen=True)
class Shape:
    """Sizes of the model and the workload.

    batch_tokens: padded target tokens of a training batch. forced_length: length of outputs. length: of all sentences
    in words, None for the mix of lengths.
    """

    vocabulary: int = 8000
    width: int = 256
    feed_forward: int = 1024
    layers: int = 3
    heads: int = 4
    dropout: float = 0.1
    label_smoothing: float = 0.1
    batch_tokens: int = 2048
    steps: int = 12
    warmup: int = 3
    beam: int = 5
    forced_length: int = 40
    sentences: int = 200
    batch_sentences: int = 40
    repeats: int = 2
    length: int | None = None


@dataclass(frozen=True)
class Conditions:
    """What an engine is measured under; threads: 0 for its own choice."""

    precision: str = "float32"
    device: str = "cpu"
    threads: int = 0
    compile_routing: bool = False
    decoding_only: bool = False


def of_length(shape: Shape, length: int) -> Shape:
    """The workload with one length for sources, targets and outputs; decoding writes about half as many words."""
    written = shape.sentences * shape.forced_length / 2
    return replace(shape, length=length, forced_length=length, sentences=max(1, round(written / length)))


# By preset of the catalogue; the other engines' models have the sizes of the shape.
SHAPES = {"small": Shape(), "base": Shape(width=512, feed_forward=2048, layers=6, heads=8)}


def training_pairs(shape: Shape, seed: int = 1) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Batches of random sentence pairs with 5 to 40 words, or of the shape's one length.

    Lengths within a batch are similar, so that there is little padding.
    """
    draw = random.Random(seed)
    for _ in range(shape.warmup + shape.steps):
        shortest = draw.randint(5, 36) if shape.length is None else shape.length
        longest = shortest + 4 if shape.length is None else shape.length
        sources: list[list[int]] = []
        targets: list[list[int]] = []
        while not sources or (len(sources) + 1) * (longest + 1) <= shape.batch_tokens:
            length = draw.randint(shortest, longest)
            other = max(shortest, min(longest, length + draw.randint(-2, 2)))
            sources.append([draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(length)])
            targets.append([draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(other)])
        yield sources, targets


def decoding_batches(shape: Shape, seed: int = 2) -> list[list[list[int]]]:
    """Batches of random sources with 5 to 40 words, or of the shape's one length, sorted by length."""
    draw = random.Random(seed)
    sources = [
        [draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(shape.length or draw.randint(5, 40))]
        for _ in range(shape.sentences)
    ]
    sources.sort(key=len)
    return [sources[start : start + shape.batch_sentences] for start in range(0, len(sources), shape.batch_sentences)]
