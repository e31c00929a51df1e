"""Digests of the forced pieces of each sentence, stored beside traces, to match traces with translations.

Traces say how many pieces were forced, not which. Before forcing translations, ask here for stored traces.
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
    """Write the digest of each sentence's forced pieces into an unfinished folder of traces."""
    noted = {str(sentence): _digest(sentence_pieces) for sentence, sentence_pieces in pieces.items()}
    (folder / _FILE).write_text(json.dumps(noted), encoding="utf-8")


def matches_tokens(folder: Path, pieces: Mapping[int, Sequence[str]]) -> bool:
    """Return True if the traces in a folder were forced with exactly these pieces; False without digests."""
    try:
        noted = read_json(folder / _FILE, RESULT)
        return all(noted[str(sentence)] == _digest(sentence_pieces) for sentence, sentence_pieces in pieces.items())
    except (OSError, ValueError, LookupError, TypeError):
        return False


def stored_traces(run: Run, test: str, names: Iterable[str], pieces: Mapping[int, Sequence[str]]) -> TraceStore | None:
    """The run's stored traces if they can be used instead of forcing, else None.

    They must be readable, of the present weights, and have these arrays of all these sentences, piece by piece.
    """
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
