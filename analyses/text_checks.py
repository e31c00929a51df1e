"""Data issues in the lines of a test set or of a system's output: empty lines, invisible characters, lengths.

Nothing is corrected: a finding says where to look.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

EMPTY, ODD, DECOMPOSED, LONG, SPACES = "empty", "odd characters", "not composed (NFC)", "long word", "spaces"
COPY, RATIO = "copy of the source", "length"
# Control characters except tab, invisible formatting and direction marks, line separators of other tools, replacement
# characters, private use.
_ODD = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffd\ue000-\uf8ff]"
)
_SPACES = re.compile(r"^\s|\s$|\s\s")
LONGEST_WORD = 100  # characters; an output that repeats itself without a space, or a URL
MOST_RATIO, FEWEST_CHARACTERS = 3.0, 20  # maximal ratio of the lengths; of pairs whose longer side has this many


def line_checks(lines: Sequence[str], spaced: bool = True) -> pd.DataFrame:
    """Issues of lines, one row per finding: sentence (from 0), finding, detail. spaced: do spaces separate words?"""
    rows = [(number, *finding) for number, line in enumerate(lines) for finding in _findings(line, spaced)]
    return pd.DataFrame(rows, columns=["sentence", "finding", "detail"])


def _findings(line: str, spaced: bool) -> Iterator[tuple[str, str]]:
    if not line.strip():
        yield EMPTY, ""
        return
    if odd := _ODD.findall(line):
        yield ODD, ", ".join(f"U+{ord(sign):04X}" for sign in sorted(set(odd)))
    if not unicodedata.is_normalized("NFC", line):
        yield DECOMPOSED, ""
    if spaced and (longest := max(map(len, line.split()))) > LONGEST_WORD:
        yield LONG, f"{longest} characters"
    if _SPACES.search(line):
        yield SPACES, "at an end, or several together"


def pair_checks(sources: Sequence[str], outputs: Sequence[str], expected_ratio: float | None = None) -> pd.DataFrame:
    """Issues of outputs compared with their sources, one row per finding: sentence, finding, detail.

    expected_ratio: output characters per source character; default: the ratio of the whole text.
    """
    lengths = np.array([(len(source), len(output)) for source, output in zip(sources, outputs, strict=True)])
    expected_ratio = expected_ratio or (lengths[:, 1].sum() / max(1, lengths[:, 0].sum()) if len(lengths) else 1.0)
    rows = []
    for number, (source, output) in enumerate(zip(sources, outputs, strict=True)):
        if source and source == output:
            rows.append((number, COPY, ""))
        expected = len(source) * expected_ratio
        low, high = sorted((expected, float(len(output))))
        if low > 0 and high >= FEWEST_CHARACTERS and high > MOST_RATIO * low:
            rows.append((number, RATIO, f"{len(output)} characters where {expected:.0f} are usual"))
    return pd.DataFrame(rows, columns=["sentence", "finding", "detail"])


def summary(lines: Sequence[str]) -> dict[str, float]:
    """Counts of a text: words and characters (means), longest (words), repeated (duplicate lines), empty, odd."""
    words = [len(line.split()) for line in lines]
    return {
        "words": float(np.mean(words)) if words else float("nan"),
        "characters": float(np.mean([len(line) for line in lines])) if lines else float("nan"),
        "longest": max(words, default=0),
        "repeated": len(lines) - len(set(lines)),
        "empty": sum(not line.strip() for line in lines),
        "odd": sum(bool(_ODD.search(line)) for line in lines),
    }


def digest(*sides: Sequence[str]) -> str:
    """Twelve hexadecimal digits of the sha256 of texts, to distinguish versions of a test set."""
    hasher = hashlib.sha256()
    for side in sides:
        hasher.update("\n".join(side).encode() + b"\0")
    return hasher.hexdigest()[:12]
