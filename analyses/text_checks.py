"""What is odd about the lines of a test set or of a system's output: empty ones, characters nobody sees, lengths.

Nothing is corrected: a finding says where to look. Knows lines, not the files they came from.
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
# Controls (a tab is none), invisible formats and marks of direction, line ends of other tools, what stands for a
# character that was lost, private use.
_ODD = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffd\ue000-\uf8ff]"
)
_SPACES = re.compile(r"^\s|\s$|\s\s")
LONGEST_WORD = 100  # characters; an output that repeats itself without a space, or a URL
MOST_RATIO, FEWEST_CHARACTERS = 3.0, 20  # a side this many times as long as the other, where the longer one counts


def line_checks(lines: Sequence[str], spaced: bool = True) -> pd.DataFrame:
    """What is odd, a row a finding: sentence (from 0), finding, detail. spaced: do spaces part the words?"""
    rows = [(number, *found) for number, line in enumerate(lines) for found in _findings(line, spaced)]
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


def pair_checks(sources: Sequence[str], outputs: Sequence[str], usual: float | None = None) -> pd.DataFrame:
    """What is odd about an output beside its source: sentence, finding, detail.

    usual: characters of an output for each of its source; by default those of the whole text.
    """
    lengths = np.array([(len(source), len(output)) for source, output in zip(sources, outputs, strict=True)])
    usual = usual or (lengths[:, 1].sum() / max(1, lengths[:, 0].sum()) if len(lengths) else 1.0)
    rows = []
    for number, (source, output) in enumerate(zip(sources, outputs, strict=True)):
        if source and source == output:
            rows.append((number, COPY, ""))
        expected = len(source) * usual
        low, high = sorted((expected, float(len(output))))
        if low > 0 and high >= FEWEST_CHARACTERS and high > MOST_RATIO * low:
            rows.append((number, RATIO, f"{len(output)} characters where {expected:.0f} are usual"))
    return pd.DataFrame(rows, columns=["sentence", "finding", "detail"])


def summary(lines: Sequence[str]) -> dict[str, float]:
    """words and characters (means), longest (words), repeated (lines that were there before), empty, odd."""
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
    """Twelve signs of the sha256 of texts, to tell versions of a test set apart."""
    found = hashlib.sha256()
    for side in sides:
        found.update("\n".join(side).encode() + b"\0")
    return found.hexdigest()[:12]
