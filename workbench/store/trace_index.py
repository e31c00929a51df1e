"""Of which translations the traces of a test set are: a digest of the pieces of each forced sentence, beside them.

Traces say how many pieces were forced, not which. Whoever would force translations asks here for what is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from core_models.files.run_files import RESULT, read_json
from core_models.traces import TraceError, TraceStore
from workbench.store.runs import Run, RunError

_FILE = "forced.json"


def write_token_digests(folder: Path, pieces: Mapping[int, Sequence[str]]) -> None:
    """Note which pieces were forced, by sentence, in an unfinished folder of traces."""
    noted = {str(sentence): _digest(own) for sentence, own in pieces.items()}
    (folder / _FILE).write_text(json.dumps(noted), encoding="utf-8")


def matches_tokens(folder: Path, pieces: Mapping[int, Sequence[str]]) -> bool:
    """Are traces in a folder of these sentences, piece by piece? Not where nobody noted it."""
    try:
        noted = read_json(folder / _FILE, RESULT)
        return all(noted[str(sentence)] == _digest(own) for sentence, own in pieces.items())
    except (OSError, ValueError, LookupError, TypeError):
        return False


def stored_traces(run: Run, test: str, names: Iterable[str], pieces: Mapping[int, Sequence[str]]) -> TraceStore | None:
    """The run's own stored trace, if it can be read, has these arrays of all these sentences, piece by piece, and is
    not of earlier weights."""
    try:
        store = run.traces(test)
    except (RunError, TraceError):
        return None
    if not set(names) <= set(store.names) or not set(pieces) <= set(store):
        return None
    older = (store.folder / "index.json").stat().st_mtime < run.weights.stat().st_mtime
    return None if older or not matches_tokens(store.folder, pieces) else store


def _digest(pieces: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(pieces)).encode()).hexdigest()[:16]
