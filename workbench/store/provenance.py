"""Origin of figures and results: digests of a run's files, and the commit of this code."""

from __future__ import annotations

import hashlib
import subprocess
from functools import lru_cache
from pathlib import Path

from core_models.config import CONFIG
from workbench.store.file_digests import digest_of
from workbench.store.runs import Run


def digests(run: Run, test: str) -> dict[str, str]:
    """Digests of a run's model (configuration and weights), its translations of a test set and its training log."""
    parts = {
        "model": (run.folder / CONFIG, run.weights),
        "translations": (run.translations_folder(test) / "hypotheses.txt",),
        "training log": (run.folder / "training.jsonl",),
    }
    file_digests = {part: [digest_of(path) for path in paths if path.is_file()] for part, paths in parts.items()}
    return {
        part: hashlib.sha256("".join(values).encode()).hexdigest()[:16]
        for part, values in file_digests.items()
        if values
    }


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit of this checkout, with "-dirty" if files have changed since; "" outside of a checkout."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):  # no git here, or one that refuses a folder of another user
        return ""
