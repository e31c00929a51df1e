"""Results that take long to compute, kept beside a run: one file an entry, JSON or arrays.

    RESULTS/adequacy/TEST.json          named, of a test set: whoever knows its name finds it
    RESULTS/scores/routing-DIGEST.npz   as many as were asked for, each named by the digest of what it was computed from

Every entry says the version of its form and what it was computed from. It counts only as long as both are the same, and
as it can be read, whole and possible; else it is computed again. Where runs are for reading only nothing is kept. Knows
files and digests, not what a result means.
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
    """The results of one kind.

    Args:
        files: where they lie in a run's results, {} for the name of an entry: NAME.json, or NAME.npz for arrays
        dump: a result as the JSON object, or the arrays by their names, that is written
        parse: the result of what was written; raises ValueError, KeyError or TypeError for what `dump` never makes
        version: raise it when the form or the meaning of the results changes
    """

    files: str
    dump: Callable[[Result], Mapping[str, Any]]
    parse: Callable[[Mapping[str, Any]], Result]
    version: int = 1

    def cached(self, run: Run, inputs: Inputs, compute: Callable[[], Result], name: str = "") -> Result:
        """The result that was kept, else computed and kept now.

        inputs: as they were before anything was computed: weights may change meanwhile. name: of the entry; without one
        it is named by its inputs.
        """
        result = self.load(run, inputs, name)
        if result is None:
            result = compute()
            self.save(run, inputs, result, name)
        return result

    def load(self, run: Run, inputs: Inputs, name: str = "") -> Result | None:
        """The result that was kept; None where there is none of these inputs."""
        try:
            content = _read(self.path(run, name or self._digest(inputs)))
            same = (content.get("version", 1), content["of"]) == (self.version, inputs)
            return self.parse(content) if same else None
        except _NOT_THERE_OR_DAMAGED:
            return None

    def save(self, run: Run, inputs: Inputs, result: Result, name: str = "") -> None:
        """Keep a result, if anything can be written there."""
        with contextlib.suppress(OSError):
            self.write(run, inputs, result, name)

    def write(self, run: Run, inputs: Inputs, result: Result, name: str = "") -> Path:
        """Keep a result, whole or not at all; returns its file. Raises OSError."""
        path = self.path(run, name or self._digest(inputs))
        _write(path, {"version": self.version, "of": inputs}, self.dump(result))
        return path

    def path(self, run: Run, name: str) -> Path:
        """The file of an entry, there or not."""
        return run.results / self.files.format(name)

    def _digest(self, inputs: Inputs) -> str:
        return digest([self.version, inputs])


def digest(value: Any) -> str:
    """24 signs that tell JSON values apart, such as texts."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def of_translations(run: Run, test: str) -> dict[str, str]:
    """The inputs of what is said of a run's translations: their texts."""
    from analyses import text_checks

    found = run.translations(test)
    return {"texts": text_checks.digest(found.test_set.sources, *found.test_set.all_references, found.hypotheses)}


def of_forced_references(run: Run, test: str) -> dict[str, str]:
    """The inputs of what is said of forced references: weights and texts, and the documents if the run reads these."""
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
