"""Writes the translations of a test set beside a run, whole or not at all (the files: translations.py)."""

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
    test: TestSet,
    found: Sequence[Translation],
    search: Mapping[str, Any],
    seconds: float,
    truth: Path | None = None,
    made_by: Mapping[str, Any] | None = None,
) -> Translations:
    """Put translations of a test set beside the run, whole or not at all; traces of other ones go.

    made_by: what is kept of the weights that made them (`Run.made_by`).
    """
    meta = {
        "test": test.name,
        "sentences": len(found),
        "search": dict(search),
        "seconds": round(seconds, 3),
        "output_tokens": sum(len(translation.tokens) for translation in found),
        **(made_by or {}),
    }
    with _replacing(run, test, [translation.text for translation in found], meta) as part:
        _write_jsonl(part / "details.jsonl", (_detail(translation) for translation in found))
        if truth is not None:
            shutil.copyfile(truth, part / "truth.jsonl")
        if found and all(translation.tree is not None for translation in found):
            starts = _write_jsonl(part / "trees.jsonl", (translation.tree for translation in found))
            np.save(part / "trees.npy", np.array(starts, dtype=np.int64), allow_pickle=False)
    return _without_outdated_traces(run, test.name)


def write_hypotheses(run: Run, test: TestSet, lines: Sequence[str], origin: str) -> Translations:
    """Put translations that were made elsewhere beside an outside run; `origin` is what they came from."""
    meta = {"test": test.name, "sentences": len(lines), "from": origin}
    with _replacing(run, test, lines, meta, by="runs import-translations"):
        pass
    return _without_outdated_traces(run, test.name)


@contextlib.contextmanager
def _replacing(
    run: Run, test: TestSet, hypotheses: Sequence[str], meta: Mapping[str, Any], by: str = "translate"
) -> Iterator[Path]:
    """A folder with the texts, to which the rest is added; then it takes the place of earlier translations."""
    final = run.results / "translations" / test.name
    with atomic_replace_folder(final, by, foreign_to_translations, _PATIENCE) as part:
        write_lines(part / "sources.txt", test.sources)
        write_lines(part / "hypotheses.txt", map(one_line, hypotheses))
        for number, lines in enumerate(test.all_references, start=1):
            write_lines(part / reference_file(number), lines)
        if test.documents is not None:
            write_lines(part / "documents.txt", test.documents)
        yield part
        _write_meta(part, meta)
        outdated = _outdated_traces(run, part, final)
        if outdated:
            _write_meta(part, {**meta, **outdated})


def _write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def foreign_to_translations(folder: Path) -> str | None:
    """The first thing in a folder of translations that is not of them."""
    return others(folder, lambda name: _OURS.fullmatch(name) is not None)


def _outdated_traces(run: Run, part: Path, final: Path) -> dict[str, Any]:
    """The stamp of the traces that are there, where they are of other translations: from now on they are none."""
    index = mend(run.results / "traces" / final.name) / "index.json"
    if not index.is_file():
        return {}
    before = _meta(final).get(OUTDATED_TRACES)  # they were already, and somebody was killed before they went
    stamp = stamp_of(index)
    return {OUTDATED_TRACES: stamp} if before == stamp or _forced(final) != _forced(part) else {}


def _without_outdated_traces(run: Run, test: str) -> Translations:
    """The translations; traces of other ones go."""
    found = Translations(run.results / "translations" / test, run.typed)
    if found.outdates(run.results / "traces" / test):
        remove(run.results / "traces" / test)
    return found


def _forced(folder: Path) -> tuple[object, list[object]]:
    """What traces of translations depend on: the weights, and each translation piece by piece."""
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):  # damaged: as those of other weights
        return _meta(folder).get("weights"), [record["tokens"] for record in read_records(folder / "details.jsonl")]
    return None, []


def _meta(folder: Path) -> dict[str, Any]:
    """What is known of the translations in a folder; nothing of damaged ones."""
    with contextlib.suppress(OSError, ValueError):
        found = read_json(folder / "meta.json", RECORD)
        return found if isinstance(found, dict) else {}
    return {}


def one_line(text: str) -> str:
    """A translation as one line of a file."""
    return text.replace("\n", " ").replace("\r", " ")


def _detail(translation: Translation) -> dict[str, Any]:
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
    """Write a record a line; returns where each begins, and the end."""
    starts = [0]
    with path.open("wb") as file:
        for record in records:
            starts.append(starts[-1] + file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n"))
    return starts
