"""File cache of metric statistics per segment, under the digest of everything they depend on.

Cached statistics are checked against the texts: the file has the digest of its numbers and of its key, every row must
be possible, and randomly chosen segments are computed again and must be equal. So damage, files of other texts and
numbers invented for a whole test set are detected, and the statistics are computed again. Not detected: a few segments
of many that are changed to other possible values, with a correct digest.
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
_RECOUNTED = 16  # segments that are computed again
_RECOUNTED_CHARACTERS = 8000  # no further segment after so many characters: TER of a whole document takes seconds
_checked: set[str] = set()  # digests of statistics that this process has checked
_draw = random.SystemRandom()


def content_key(hypotheses: Sequence[str], references: References, metric: str = "bleu", **options: Any) -> str:
    """The sha256 of everything that `extract` depends on: texts, metric, options, library versions."""
    digest = hashlib.sha256()
    streams = reference_streams(hypotheses, references)
    counted_by = f"{sacrebleu.__version__} {meteor.label()}" if metric in OPTIONAL else sacrebleu.__version__
    header = [STATISTICS_VERSION, counted_by, metric, sorted(options.items()), len(hypotheses), len(streams)]
    digest.update(json.dumps(header).encode())
    for stream in (hypotheses, *streams):
        digest.update(json.dumps(list(stream)).encode())
    return digest.hexdigest()


def is_cached(
    folder: Path | str, hypotheses: Sequence[str], references: References, metric: str = "bleu", **options: Any
) -> bool:
    """True if `cached_extract` has a file to read, which it checks then."""
    return (Path(folder) / f"{content_key(hypotheses, references, metric, **options)}.npz").is_file()


def cached_extract(
    folder: Path | str, hypotheses: Sequence[str], references: References, metric: str = "bleu", **options: Any
) -> Statistics:
    """`extract`, cached in `folder` under its content key; an invalid file is computed and written again."""
    return cached_extract_all({"system": folder}, {"system": hypotheses}, references, metric, **options)["system"]


def cached_extract_all(
    folders: Mapping[str, Path | str],
    systems: Mapping[str, Sequence[str]],
    references: References,
    metric: str = "bleu",
    processes: int = 1,
    **options: Any,
) -> dict[str, Statistics]:
    """`extract_all`, each system cached in its own folder; only missing systems are extracted."""
    keys = {system: content_key(lines, references, metric, **options) for system, lines in systems.items()}
    paths = {system: Path(folders[system]) / f"{key}.npz" for system, key in keys.items()}
    by_system = {}
    for system, lines in systems.items():
        values = _read(paths[system], keys[system], lines, reference_streams(lines, references), metric, options)
        if values is not None:
            signature_text = signature(reference_streams(lines, references), metric, options)
            by_system[system] = Statistics(metric, values, signature_text, dict(options))
    missing = {system: hypotheses for system, hypotheses in systems.items() if system not in by_system}
    for system, statistics in extract_all(missing, references, metric, processes, **options).items():
        with contextlib.suppress(OSError):  # a read-only folder: they are extracted again next time
            digest = np.array(_digest(keys[system], statistics.values))
            write_arrays(paths[system], values=statistics.values, digest=digest)
        by_system[system] = statistics
    return {system: by_system[system] for system in systems}


def _read(
    path: Path,
    key: str,
    hypotheses: Sequence[str],
    streams: Sequence[Sequence[str | None]],
    metric: str,
    options: Mapping[str, Any],
) -> np.ndarray | None:
    """The cached statistics; None if missing or invalid."""
    stored = read_arrays(path)
    if stored is None or not {"values", "digest"} <= set(stored):
        return None
    values, digest = stored["values"], str(stored["digest"])
    if digest != _digest(key, values) or len(values) != len(hypotheses):
        return None
    if digest not in _checked:
        rows = _drawn(hypotheses)
        recounted = extract(
            [hypotheses[row] for row in rows], [[stream[row] for row in rows] for stream in streams], metric, **options
        ).values
        same_kind = values.dtype == recounted.dtype and values.shape[1:] == recounted.shape[1:]
        if not (same_kind and _possible(metric, values) and np.array_equal(values[rows], recounted)):
            return None
        _checked.add(digest)
    return values


def _digest(key: str, values: np.ndarray) -> str:
    header = json.dumps([key, values.dtype.str, values.shape])
    return hashlib.sha256(header.encode() + np.ascontiguousarray(values).tobytes()).hexdigest()


def _drawn(hypotheses: Sequence[str]) -> list[int]:
    """Random segments to compute again, at least one."""
    rows: list[int] = []
    characters = 0
    for row in _draw.sample(range(len(hypotheses)), min(len(hypotheses), _RECOUNTED)):
        rows.append(row)
        characters += len(hypotheses[row])
        if characters > _RECOUNTED_CHARACTERS:
            break
    return rows


def _possible(metric: str, values: np.ndarray) -> bool:
    """True if every row can be the statistics of a segment: counts are not negative, matches at most the total."""
    if not np.isfinite(values).all() or (values < 0).any():
        return False
    if metric == "bleu":  # lengths of hypothesis and reference, then right n-grams and all n-grams of each order
        right, every = np.split(values[:, 2:], 2, axis=1)
        counted = np.maximum(values[:, :1] - np.arange(every.shape[1]), 0)
        return bool((right <= every).all() and np.array_equal(every, counted))
    if metric.startswith("chrf"):  # n-grams of the hypothesis, of the reference, and shared ones, of each order
        return bool((values[:, 2::3] <= np.minimum(values[:, ::3], values[:, 1::3])).all())
    return metric not in OPTIONAL or bool((values[:, 0] <= 100).all() and (values[:, 1] == 1).all())
