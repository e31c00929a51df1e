"""Digests of what a run is now, and the commit of this code: what a figure or a result says of its origin."""

from __future__ import annotations

import hashlib
import subprocess
from functools import lru_cache
from pathlib import Path

from core_models.config import CONFIG
from workbench.store.file_digests import digest_of
from workbench.store.runs import Run


def digests(run: Run, test: str) -> dict[str, str]:
    """What a run is now: digests of its model (configuration and weights), its translations of a test set, its log."""
    parts = {
        "model": (run.folder / CONFIG, run.weights),
        "translations": (run.translations_folder(test) / "hypotheses.txt",),
        "training log": (run.folder / "training.jsonl",),
    }
    found = {part: [digest_of(path) for path in paths if path.is_file()] for part, paths in parts.items()}
    return {part: hashlib.sha256("".join(each).encode()).hexdigest()[:16] for part, each in found.items() if each}


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit of the checkout that this code stands in, "-dirty" where files were changed since; "" elsewhere."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return ""
    asked = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):  # no git here, or one that refuses a folder of another user
        return ""
