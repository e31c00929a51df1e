"""On-disk cache of expensive results beside a run: one file per entry, JSON or arrays.

    RESULTS/adequacy/TEST.json          named by its test set
    RESULTS/scores/routing-DIGEST.npz   named by the digest of its inputs, any number of entries

Every entry holds the version of its format and its inputs. It is valid while both are the same and the file can be
read and parsed; otherwise the result is computed again. Nothing is written to read-only runs. Knows files and digests,
not what a result means.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from core_models.files.atomic_files import write_atomic
from core_models.files.run_files import RESULT, parse_json, read_json
from workbench.evaluation.document_context import context_mechanisms
from workbench.store.runs import Run

Result = TypeVar("Result")
Inputs = Mapping[str, Any]  # what a result is computed from, as JSON: digests of weights and texts, and options
_NOT_THERE_OR_DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class ResultCache(Generic[Result]):
    """The cached results of one kind.

    Args:
        files: path in a run's results, with {} for the name of an entry: NAME.json, or NAME.npz for arrays
        dump: converts a result to the JSON object, or the named arrays, to be written
        parse: inverse of `dump`; raises ValueError, KeyError or TypeError for content that `dump` never writes
        version: to be increased when the format or the meaning of the results changes
    """

    files: str
    dump: Callable[[Result], Mapping[str, Any]]
    parse: Callable[[Mapping[str, Any]], Result]
    version: int = 1

    def cached(self, run: Run, inputs: Inputs, compute: Callable[[], Result], name: str = "") -> Result:
        """The cached result, else computed and saved.

        inputs: taken before the computation, since weights may change meanwhile. name: of the entry; by default the
        digest of its inputs.
        """
        result = self.load(run, inputs, name)
        if result is None:
            result = compute()
            self.save(run, inputs, result, name)
        return result

    def load(self, run: Run, inputs: Inputs, name: str = "") -> Result | None:
        """The cached result; None if there is none for these inputs."""
        try:
            content = _read(self.path(run, name or self._digest(inputs)))
            same = (content.get("version", 1), content["of"]) == (self.version, inputs)
            return self.parse(content) if same else None
        except _NOT_THERE_OR_DAMAGED:
            return None

    def save(self, run: Run, inputs: Inputs, result: Result, name: str = "") -> None:
        """Save a result if the folder can be written."""
        with contextlib.suppress(OSError):
            self.write(run, inputs, result, name)

    def write(self, run: Run, inputs: Inputs, result: Result, name: str = "") -> Path:
        """Save a result atomically and return its file. Raises OSError."""
        path = self.path(run, name or self._digest(inputs))
        _write(path, {"version": self.version, "of": inputs}, self.dump(result))
        return path

    def path(self, run: Run, name: str) -> Path:
        """The file of an entry, which need not exist."""
        return run.results / self.files.format(name)

    def _digest(self, inputs: Inputs) -> str:
        return digest([self.version, inputs])


def digest(value: Any) -> str:
    """A digest of 24 characters of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def of_translations(run: Run, test: str) -> dict[str, str]:
    """The inputs of a result about a run's translations: a digest of their texts."""
    from analyses import text_checks

    translations = run.translations(test)
    return {
        "texts": text_checks.digest(
            translations.test_set.sources, *translations.test_set.all_references, translations.hypotheses
        )
    }


def of_forced_references(run: Run, test: str) -> dict[str, str]:
    """The inputs of a result about forced references: weights, texts, and documents if the run reads them."""
    from analyses import text_checks

    test_set = run.translations(test).test_set
    documents = [test_set.documents] if test_set.documents is not None and context_mechanisms(run) else []
    texts = text_checks.digest(test_set.sources, *test_set.all_references, *documents)
    return {"texts": texts, "weights": run.digest}


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return read_json(path, RESULT)
    from analyses.npz_cache import read_arrays

    arrays: dict[str, Any] = read_arrays(path) or {}
    return {**arrays, "of": parse_json(str(arrays["of"])), "version": int(arrays.get("version", 1))}


def _write(path: Path, entry: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    if path.suffix == ".json":
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps({**entry, **content}, ensure_ascii=False, indent=1))
        return
    from analyses.npz_cache import write_arrays

    write_arrays(path, **{**content, "of": json.dumps(entry["of"]), "version": entry["version"]})
