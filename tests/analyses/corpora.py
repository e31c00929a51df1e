"""Small seeded corpora for the tests of the analyses: references and noisy copies of them."""

from __future__ import annotations

import random

WORDS = ["the", "a", "Cat", "dog", "house", ",", ".", "river", "walks", "sees", "«", "quickly"]
WORDS += ["not", "3,5", "don't", "because", "green", "(old)", "tree-top", "Straße", "7"]


def reference_lines(segments: int, seed: int = 1, longest: int = 30) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(segments)]


def noisy_copy(lines: list[str], seed: int, noise: float) -> list[str]:
    """Each word is dropped, replaced or doubled with probability `noise`; some lines come out empty."""
    draw = random.Random(seed)
    copied = []
    for line in lines:
        words: list[str] = []
        for word in line.split():
            change = draw.choice(("drop", "replace", "double")) if draw.random() < noise else "keep"
            words += {"drop": [], "replace": [draw.choice(WORDS)], "double": [word, word], "keep": [word]}[change]
        copied.append(" ".join(words))
    return copied
