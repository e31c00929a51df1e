"""Atomic writing of a run's translations of a test set (the files: translations.py)."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core_models.files.atomic_folders import atomic_replace_folder, mend, others, remove
from core_models.files.run_files import RECORD, read_json
from core_models.text.parallel import write_lines
from workbench.store.file_digests import stamp_of
from workbench.store.runs import Run
from workbench.store.translations import OUTDATED_TRACES, TestSet, Translations, read_records, reference_file

if TYPE_CHECKING:
    from core_models.translator import Translation

_PATIENCE = 600.0  # seconds: translations of a large test set are long in writing
_OURS = re.compile(
    r"(meta\.json|sources\.txt|references(\.\d+)?\.txt|documents\.txt|hypotheses\.txt|details\.jsonl|truth\.jsonl|"
    r"trees\.(jsonl|npy))"
)


def write_translations(
    run: Run,
    test_set: TestSet,
    translations: Sequence[Translation],
    search: Mapping[str, Any],
    seconds: float,
    truth: Path | None = None,
    made_by: Mapping[str, Any] | None = None,
) -> Translations:
    """Write translations of a test set atomically into the run and remove traces of earlier translations.

    made_by: digest and stamp of the weights that made them (`Run.made_by`).
    """
    meta = {
        "test": test_set.name,
        "sentences": len(translations),
        "search": dict(search),
        "seconds": round(seconds, 3),
        "output_tokens": sum(len(translation.tokens) for translation in translations),
        **(made_by or {}),
    }
    with _replacing(run, test_set, [translation.text for translation in translations], meta) as part:
        _write_jsonl(part / "details.jsonl", (detail(translation) for translation in translations))
        if truth is not None:
            shutil.copyfile(truth, part / "truth.jsonl")
        if translations and all(translation.tree is not None for translation in translations):
            starts = _write_jsonl(part / "trees.jsonl", (translation.tree for translation in translations))
            np.save(part / "trees.npy", np.array(starts, dtype=np.int64), allow_pickle=False)
    return _without_outdated_traces(run, test_set.name)


def write_hypotheses(run: Run, test_set: TestSet, lines: Sequence[str], origin: str) -> Translations:
    """Write translations that were made elsewhere into an outside run; `origin` names the file they came from."""
    meta = {"test": test_set.name, "sentences": len(lines), "from": origin}
    with _replacing(run, test_set, lines, meta, by="runs import-translations"):
        pass
    return _without_outdated_traces(run, test_set.name)


@contextlib.contextmanager
def _replacing(
    run: Run, test_set: TestSet, hypotheses: Sequence[str], meta: Mapping[str, Any], by: str = "translate"
) -> Iterator[Path]:
    """Yield a new folder with the texts, to be filled by the caller; it then replaces earlier translations."""
    final = run.results / "translations" / test_set.name
    with atomic_replace_folder(final, by, foreign_to_translations, _PATIENCE) as part:
        write_lines(part / "sources.txt", test_set.sources)
        write_lines(part / "hypotheses.txt", map(one_line, hypotheses))
        for number, lines in enumerate(test_set.all_references, start=1):
            write_lines(part / reference_file(number), lines)
        if test_set.documents is not None:
            write_lines(part / "documents.txt", test_set.documents)
        yield part
        _write_meta(part, meta)
        outdated = _outdated_traces(run, part, final)
        if outdated:
            _write_meta(part, {**meta, **outdated})


def _write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def foreign_to_translations(folder: Path) -> str | None:
    """The first entry of a translations folder that does not belong there, or None."""
    return others(folder, lambda name: _OURS.fullmatch(name) is not None)


def _outdated_traces(run: Run, part: Path, final: Path) -> dict[str, Any]:
    """The stamp of the existing traces if they belong to other translations: these traces are outdated now."""
    index = mend(run.results / "traces" / final.name) / "index.json"
    if not index.is_file():
        return {}
    before = _meta(final).get(OUTDATED_TRACES)  # outdated before, and the process was killed before it removed them
    stamp = stamp_of(index)
    return {OUTDATED_TRACES: stamp} if before == stamp or _forced(final) != _forced(part) else {}


def _without_outdated_traces(run: Run, test: str) -> Translations:
    """Open the translations and remove traces of earlier ones."""
    translations = Translations(run.results / "translations" / test, run.typed)
    if translations.outdates(run.results / "traces" / test):
        remove(run.results / "traces" / test)
    return translations


def _forced(folder: Path) -> tuple[object, list[object]]:
    """The weights and the pieces of each translation, on which traces depend."""
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):  # damaged: as those of other weights
        return _meta(folder).get("weights"), [record["tokens"] for record in read_records(folder / "details.jsonl")]
    return None, []


def _meta(folder: Path) -> dict[str, Any]:
    """The meta.json of a translations folder; empty if it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        meta = read_json(folder / "meta.json", RECORD)
        return meta if isinstance(meta, dict) else {}
    return {}


def one_line(text: str) -> str:
    """A translation as one line of a file."""
    return text.replace("\n", " ").replace("\r", " ")


def detail(translation: Translation) -> dict[str, Any]:
    """The record of a translation in details.jsonl."""
    return {
        "tokens": translation.tokens,
        "source_tokens": translation.source_tokens,
        "score": translation.score,
        "log_prob": translation.log_prob,
        "token_log_probs": translation.token_log_probs,
        "finished": translation.finished,
        "n_best": [
            {"text": other.text, "tokens": other.tokens, "score": other.score, "log_prob": other.log_prob}
            for other in translation.n_best
        ],
    }


def _write_jsonl(path: Path, records: Iterable[Any]) -> list[int]:
    """Write one record per line; returns the byte offset of each, and the end."""
    starts = [0]
    with path.open("wb") as file:
        for record in records:
            starts.append(starts[-1] + file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n"))
    return starts
