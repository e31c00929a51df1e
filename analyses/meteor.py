"""METEOR as NLTK counts it, without WordNet: words match exactly or by their Porter stem, nothing else.

That is neither the METEOR of papers (Banerjee and Lavie 2005 had WordNet's synonyms, Meteor 1.5 paraphrases and tuned
weights) nor comparable with it; the label says so. Knows lines and references, no run. NLTK is an extra.
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
    """Stands where NLTK asks WordNet: no word has a synonym."""

    @staticmethod
    def synsets(word: str) -> list[Any]:
        return []


def label() -> str:
    """How tables and figures call it: with the version that counts, since versions differ."""
    try:
        return f"METEOR (NLTK {version('nltk')}: exact, stem)"
    except PackageNotFoundError:
        return "METEOR (NLTK: exact, stem)"


def signature(references: int, tokenize: str = "13a", lowercase: bool = False) -> str:
    """What decides about the numbers, as sacreBLEU writes it; a corpus value is the mean over segments."""
    nref = str(references) if references > 0 else "var"
    return (
        f"nrefs:{nref}|case:lc|match:exact+stem|tok:{tokenize}|alpha:0.9|beta:3|gamma:0.5|corpus:mean of segments|"
        f"nltk:{_version()}"
    )


def _version() -> str:
    _library()
    return version("nltk")


def check_options(options: Mapping[str, Any]) -> None:
    """Raises ValueError for an option that it does not take, MissingLibrary where NLTK is not there."""
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

    The summed first over the summed second is the mean over segments, of any subset and any resampling of them.
    Case never counts (`lowercase` changes nothing). tokenize: one of sacreBLEU's tokenizers. A segment without a word
    on either side scores 0.
    """
    from analyses.tokenization import tokenised

    meteor_score, stemmer = _library()
    written = tokenised(list(hypotheses), tokenize)
    wanted = [[line for line in row if line is not None] for row in zip(*streams, strict=True)]
    values = np.ones((len(written), 2))
    for row, (line, references) in enumerate(zip(written, wanted, strict=True)):
        words = [one.split() for one in tokenised(references, tokenize)]
        scored = [one for one in words if one] if line.strip() else []
        values[row, 0] = 100 * meteor_score(scored, line.split(), stemmer=stemmer, wordnet=_NoSynonyms) if scored else 0
    return values
