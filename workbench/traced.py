"""Of which translations the traces of a test set are: a digest of the pieces of each forced sentence, beside them.

Traces say how many pieces were forced, not which. Knows digests, no run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

_FILE = "forced.json"


def write_forced(folder: Path, pieces: Mapping[int, Sequence[str]]) -> None:
    """Note which pieces were forced, by sentence, in an unfinished folder of traces."""
    noted = {str(sentence): _digest(own) for sentence, own in pieces.items()}
    (folder / _FILE).write_text(json.dumps(noted), encoding="utf-8")


def forced_as(folder: Path, pieces: Mapping[int, Sequence[str]]) -> bool:
    """Are traces in a folder of these sentences, piece by piece? Not where nobody noted it."""
    try:
        noted = json.loads((folder / _FILE).read_bytes())
        return all(noted[str(sentence)] == _digest(own) for sentence, own in pieces.items())
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def _digest(pieces: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(pieces)).encode()).hexdigest()[:16]
