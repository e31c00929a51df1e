"""METEOR as NLTK counts it, without WordNet: words match exactly or by their Porter stem, nothing else.

Not comparable with the METEOR of papers (Banerjee and Lavie 2005 use WordNet's synonyms, Meteor 1.5 paraphrases and
tuned weights); the label says so. Works on lines and references. NLTK is an optional dependency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

NAME = "meteor"
INSTALL = "pip install 'nmt-workbench[meteor]'"
_OPTIONS = ("tokenize", "lowercase")


class MissingLibrary(ValueError):
    """NLTK is not installed; the message says how to."""


class _NoSynonyms:
    """Replacement of WordNet for NLTK: no word has a synonym."""

    @staticmethod
    def synsets(word: str) -> list[Any]:
        return []


def label() -> str:
    """The metric's name in tables and figures, with NLTK's version, since versions differ."""
    try:
        return f"METEOR (NLTK {version('nltk')}: exact, stem)"
    except PackageNotFoundError:
        return "METEOR (NLTK: exact, stem)"


def signature(references: int, tokenize: str = "13a", lowercase: bool = False) -> str:
    """The signature in sacreBLEU's format; a corpus value is the mean over segments."""
    nref = str(references) if references > 0 else "var"
    return (
        f"nrefs:{nref}|case:lc|match:exact+stem|tok:{tokenize}|alpha:0.9|beta:3|gamma:0.5|corpus:mean of segments|"
        f"nltk:{_version()}"
    )


def _version() -> str:
    _library()
    return version("nltk")


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ValueError for an unknown option, MissingLibrary if NLTK is not installed."""
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise ValueError(f"METEOR does not take the option {unknown[0]!r}; it takes {', '.join(_OPTIONS)}.")
    _library()


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any]:
    """NLTK's function and its stemmer."""
    try:
        from nltk.stem.porter import PorterStemmer
        from nltk.translate.meteor_score import meteor_score
    except ImportError:
        raise MissingLibrary(f"METEOR is counted by NLTK, which is not installed; install it: {INSTALL}") from None
    return meteor_score, PorterStemmer()


def segment_values(
    hypotheses: Sequence[str], streams: Sequence[Sequence[str | None]], tokenize: str = "13a", lowercase: bool = False
) -> np.ndarray:
    """Statistics [segments, 2] as float64: 100 times the segment's METEOR against its best reference, and 1.

    The ratio of their sums is the mean over segments, of any subset and any resample. Case never counts (`lowercase`
    changes nothing). tokenize: one of sacreBLEU's tokenizers. A segment without words on either side scores 0.
    """
    from analyses.tokenization import tokenized

    meteor_score, stemmer = _library()
    written = tokenized(list(hypotheses), tokenize)
    references_by_segment = [[line for line in row if line is not None] for row in zip(*streams, strict=True)]
    values = np.ones((len(written), 2))
    for row, (line, references) in enumerate(zip(written, references_by_segment, strict=True)):
        words = [reference.split() for reference in tokenized(references, tokenize)]
        scored = [reference for reference in words if reference] if line.strip() else []
        values[row, 0] = 100 * meteor_score(scored, line.split(), stemmer=stemmer, wordnet=_NoSynonyms) if scored else 0
    return values
