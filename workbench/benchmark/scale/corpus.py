"""Time and memory for a corpus of millions of sentence pairs: opening, planning an epoch, iterating, seeking.

The files are those of `core_models.text.mmap_arrays` with a real index (lengths and offsets) and sparse token files:
they have their true size but take no room on the disk. Knows nothing of models.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from core_models.resources import allocator_settings
from core_models.text.batch_loader import BatchLoader
from core_models.text.mmap_arrays import SIDES, BinaryText
from workbench.benchmark.scale.stages import Stages, measure_apart

_LONGEST = 256  # pieces, the default of `prepare`
_SETTLING = 100  # batches until the caches of libraries are filled


def write_corpus(folder: Path, pairs: int, seed: int = 1) -> None:
    """Write pairs of 1 to 256 pieces, 29 on average: an index of 10 bytes per sentence, and sparse token files."""
    draw = np.random.default_rng(seed)
    means = 14 * draw.standard_gamma(2.0, pairs, dtype=np.float32)
    for side in SIDES:
        varied = means * draw.normal(1, 0.1, pairs).astype(np.float32)
        lengths = np.clip(1 + varied, 1, _LONGEST).astype(np.uint16)
        offsets = np.zeros(pairs + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        np.save(folder / f"{side}.lengths.npy", lengths)
        np.save(folder / f"{side}.token_offsets.npy", offsets)
        tokens = folder / f"{side}.tokens.npy"
        np.lib.format.open_memmap(tokens, mode="w+", dtype=np.uint16, shape=(int(offsets[-1]),))


def measure(folder: str, token_budget: int, batches: int) -> list[dict[str, Any]]:
    """Measure all stages of work with the corpus in `folder` in this process, one row each."""
    stages = Stages()
    with stages.stage("open, read one pair"):
        text = BinaryText(folder)
        text.source(0), text.target(len(text) - 1)
    loader = BatchLoader(text, token_budget)
    with stages.stage(f"plan an epoch of {len(text):,} pairs"):
        number = len(loader.plan(0))
    settling = min(_SETTLING, number // 2)
    iterated = loader.epoch(0)
    for _ in islice(iterated, settling):
        pass
    measured = min(batches, number - settling)
    for part in (1, 2):
        with stages.stage(f"iterate, half {part} of {measured:,} of {number:,} batches"):
            for _ in islice(iterated, measured // 2):
                pass
    for start in (0, number // 2, number - 1):
        with stages.stage(f"seek batch {start:,} and read it"):
            next(loader.epoch(0, start))
    return stages.rows


def measure_corpus(
    pairs: int, token_budget: int = 4096, batches: int = 3000, folder: Path | None = None, threads: int = 1
) -> list[dict[str, Any]]:
    """Write a corpus below `folder` (the system's temporary folder if None), measure, and remove it.

    It is measured in a process with the memory settings of training.
    """
    with tempfile.TemporaryDirectory(dir=folder) as corpus_folder:
        write_corpus(Path(corpus_folder), pairs)
        arguments = {"folder": corpus_folder, "token_budget": token_budget, "batches": batches}
        return measure_apart(__name__, allocator_settings(), threads, **arguments)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
