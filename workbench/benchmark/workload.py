"""The one piece of work that every engine is measured on: a model's shape, and random token batches.

The model is preset small, or base, with a tied vocabulary of 8,000; every engine gets the same batches, so that ratios
mean something. Imports nothing but Python's own library: peers are measured by interpreters that have no workbench.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

FIRST_WORD = 10  # smaller numbers may be special symbols of one engine or another


@dataclass(frozen=True)
class Shape:
    """What is measured. batch_tokens: padded target tokens of a training batch; forced_length: length of outputs;
    length: of all sentences, in words, where they have one."""

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


def of_length(shape: Shape, length: int) -> Shape:
    """The same work on sentences of one length, sources, targets and outputs; decoding writes about half the words."""
    written = shape.sentences * shape.forced_length / 2
    return replace(shape, length=length, forced_length=length, sentences=max(1, round(written / length)))


# By the preset that systems of the catalogue have; the shape's sizes are those of the other engines' models.
SHAPES = {"small": Shape(), "base": Shape(width=512, feed_forward=2048, layers=6, heads=8)}


def training_pairs(shape: Shape, seed: int = 1) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Batches of random sentence pairs, lengths 5 to 40 unless they have one, alike within a batch so that little is
    padded."""
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
    """Random sources of 5 to 40 words, unless they have one length, sorted by length, in batches."""
    draw = random.Random(seed)
    sources = [
        [draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(shape.length or draw.randint(5, 40))]
        for _ in range(shape.sentences)
    ]
    sources.sort(key=len)
    return [sources[start : start + shape.batch_sentences] for start in range(0, len(sources), shape.batch_sentences)]
