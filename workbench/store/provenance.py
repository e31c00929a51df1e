"""Origin of figures and results: digests of a run's files."""

from __future__ import annotations

import hashlib

from core_models.config import CONFIG
from workbench.store.file_digests import digest_of
from workbench.store.runs import Run


def digests(run: Run, test: str) -> dict[str, str]:
    """Digests of a run's model (configuration and weights), its translations of a test set and its training log."""
    parts = {
        "model": (run.folder / CONFIG, run.weights),
        "translations": (run.translations_folder(test) / "hypotheses.txt",),
        "training log": (run.log,),
    }
    file_digests = {part: [digest_of(path) for path in paths if path.is_file()] for part, paths in parts.items()}
    return {
        part: hashlib.sha256("".join(values).encode()).hexdigest()[:16]
        for part, values in file_digests.items()
        if values
    }
