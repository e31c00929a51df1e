"""Segment statistics of metrics kept in files, each under the digest of all that they depend on.

What is read again is held to the texts: the file says the digest of its numbers and of its key; every row must be a
possible one; and some segments, which nobody can know before, are counted again from the texts and must be the same.
So damage, a file of other texts and numbers that were made up for a whole test set are found and counted again. Not
found is who changes a few segments of many, within what is possible, and puts the right digest on them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu

from analyses import meteor
from analyses.npz_cache import read_arrays, write_arrays
from analyses.scores import OPTIONAL, References, Statistics, extract, extract_all, reference_streams, signature

# Part of every key: raise it when the meaning of the stored arrays changes.
STATISTICS_VERSION = 1
_RECOUNTED = 16  # segments that are counted again
_RECOUNTED_CHARACTERS = 8000  # after so many characters no further one is: TER of a whole document takes seconds
_checked: set[str] = set()  # digests of numbers that were held to their texts by this process
_draw = random.SystemRandom()


def content_key(hypotheses: Sequence[str], references: References, metric: str = "bleu", **options: Any) -> str:
    """The sha256 of everything that `extract` depends on: texts, metric, options, the version of what counts."""
    digest = hashlib.sha256()
    streams = reference_streams(hypotheses, references)
    counted_by = f"{sacrebleu.__version__} {meteor.label()}" if metric in OPTIONAL else sacrebleu.__version__
    header = [STATISTICS_VERSION, counted_by, metric, sorted(options.items()), len(hypotheses), len(streams)]
    digest.update(json.dumps(header).encode())
    for stream in (hypotheses, *streams):
        digest.update(json.dumps(list(stream)).encode())
    return digest.hexdigest()


def cached_extract(
    folder: Path | str, hypotheses: Sequence[str], references: References, metric: str = "bleu", **options: Any
) -> Statistics:
    """`extract`, kept in `folder` under its content key; a file that does not hold is counted and written again."""
    return cached_extract_all({"system": folder}, {"system": hypotheses}, references, metric, **options)["system"]


def cached_extract_all(
    folders: Mapping[str, Path | str],
    systems: Mapping[str, Sequence[str]],
    references: References,
    metric: str = "bleu",
    processes: int = 1,
    **options: Any,
) -> dict[str, Statistics]:
    """`extract_all`, each system's kept in its own folder; only those that are not there yet are extracted."""
    keys = {system: content_key(lines, references, metric, **options) for system, lines in systems.items()}
    paths = {system: Path(folders[system]) / f"{key}.npz" for system, key in keys.items()}
    found = {}
    for system, lines in systems.items():
        values = _read(paths[system], keys[system], lines, reference_streams(lines, references), metric, options)
        if values is not None:
            named = signature(reference_streams(lines, references), metric, options)
            found[system] = Statistics(metric, values, named, dict(options))
    missing = {system: hypotheses for system, hypotheses in systems.items() if system not in found}
    for system, statistics in extract_all(missing, references, metric, processes, **options).items():
        with contextlib.suppress(OSError):  # a folder that is for reading only: they are extracted again the next time
            digest = np.array(_digest(keys[system], statistics.values))
            write_arrays(paths[system], values=statistics.values, digest=digest)
        found[system] = statistics
    return {system: found[system] for system in systems}


def _read(
    path: Path,
    key: str,
    hypotheses: Sequence[str],
    streams: Sequence[Sequence[str | None]],
    metric: str,
    options: Mapping[str, Any],
) -> np.ndarray | None:
    """Stored statistics; None where there are none, or none that hold."""
    stored = read_arrays(path)
    if stored is None or not {"values", "digest"} <= set(stored):
        return None
    values, digest = stored["values"], str(stored["digest"])
    if digest != _digest(key, values) or len(values) != len(hypotheses):
        return None
    if digest not in _checked:
        rows = _drawn(hypotheses)
        again = extract(
            [hypotheses[row] for row in rows], [[stream[row] for row in rows] for stream in streams], metric, **options
        ).values
        same_kind = values.dtype == again.dtype and values.shape[1:] == again.shape[1:]
        if not (same_kind and _possible(metric, values) and np.array_equal(values[rows], again)):
            return None
        _checked.add(digest)
    return values


def _digest(key: str, values: np.ndarray) -> str:
    header = json.dumps([key, values.dtype.str, values.shape])
    return hashlib.sha256(header.encode() + np.ascontiguousarray(values).tobytes()).hexdigest()


def _drawn(hypotheses: Sequence[str]) -> list[int]:
    """Segments to count again: one or more."""
    rows: list[int] = []
    characters = 0
    for row in _draw.sample(range(len(hypotheses)), min(len(hypotheses), _RECOUNTED)):
        rows.append(row)
        characters += len(hypotheses[row])
        if characters > _RECOUNTED_CHARACTERS:
            break
    return rows


def _possible(metric: str, values: np.ndarray) -> bool:
    """Can every row be the statistics of a segment? Counts are never negative, and what is right is part of them."""
    if not np.isfinite(values).all() or (values < 0).any():
        return False
    if metric == "bleu":  # lengths of hypothesis and reference, then right n-grams and all n-grams of each order
        right, every = np.split(values[:, 2:], 2, axis=1)
        counted = np.maximum(values[:, :1] - np.arange(every.shape[1]), 0)
        return bool((right <= every).all() and np.array_equal(every, counted))
    if metric.startswith("chrf"):  # n-grams of the hypothesis, of the reference, and shared ones, of each order
        return bool((values[:, 2::3] <= np.minimum(values[:, ::3], values[:, 1::3])).all())
    return metric not in OPTIONAL or bool((values[:, 0] <= 100).all() and (values[:, 1] == 1).all())
