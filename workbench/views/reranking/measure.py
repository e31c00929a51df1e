"""Stored n-best lists scored by every head of the run that found them: RESULTS/rescoring/TEST.npz.

What is kept is a table, a row a hypothesis, with the statistics of BLEU beside it: any weights can then be tried
without a model. Knows runs and their translations, no figure; torch comes with the measurement.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.npz_cache import read_arrays, write_arrays
from core_models.files.run_files import parse_json
from workbench.evaluation.document_context import beside, readers
from workbench.evaluation.translate import Step
from workbench.store.file_digests import digest_of
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from analyses.reranking import Lists
    from core_models.n_best_scoring import Parts
    from core_models.translator import Translator

AT_ONCE = 50  # sentences whose lists are forced together
N_BEST = 12  # proposed: the beam of Zheng 2018


def lists_of(run: Run, test: str) -> list[list[dict[str, Any]]]:
    """Of each sentence its translation and the others of its n-best list: text and tokens. Raises RunError with the
    command that makes lists where there are none."""
    run.require_model()
    details = run.translations(test).details
    texts = run.translations(test).hypotheses
    every = [
        [{"text": text, "tokens": detail["tokens"]}, *detail["n_best"]]
        for text, detail in zip(texts, details, strict=True)
    ]
    if max(map(len, every), default=0) < 2 or not all("tokens" in one for found in every for one in found):
        raise RunError(
            f"{run.name} has no n-best lists of {test!r}; translate it with some: {to_make(run.typed, test)}"
        )
    return every


def to_make(typed: str, test: str) -> str:
    """The command that stores n-best lists."""
    return f"workbench translate {typed} --test {shlex.quote(test)} --beam {N_BEST} --n-best {N_BEST}"


def has_lists(run: Run, test: str) -> bool:
    """Are there lists that could be scored?"""
    try:
        return bool(lists_of(run, test))
    except RunError:
        return False


def measure(run: Run, test: str, device: str = "cpu", step: Step | None = None) -> Path:
    """Score every hypothesis of the stored lists with the run's own heads and keep the table; returns its path.

    Raises RunError without lists or references. The translations of the sentences before are the stored ones.
    """
    from analyses.scores import extract, preset

    of = _of(run, test)  # before anything is read: training may go on meanwhile
    every, text = lists_of(run, test), run.translations(test).test_set
    if text.references is None:
        raise RunError(f"{run.name}: the test set {test!r} has no references; BLEU needs them")
    found = list(_forced(run, test, every, device, step))
    names = list(found[0])
    starts = np.cumsum([0, *map(len, every)])
    hypotheses = [one["text"] for own in every for one in own]
    repeated = [[line for line, own in zip(lines, every, strict=True) for _ in own] for lines in text.all_references]
    counts = extract(hypotheses, repeated, "bleu", **preset("default").options("bleu"))
    values = np.array([[parts[name] for name in names] for parts in found])
    path = _path(run, test)
    write_arrays(
        path, of=np.array(json.dumps(of)), parts=np.array(names), values=values, starts=starts,
        bleu=counts.values, signature=np.array(counts.signature),
    )  # fmt: skip
    return path


def _forced(run: Run, test: str, every: list[list[dict[str, Any]]], device: str, step: Step | None) -> list[Parts]:
    """What every part says of every hypothesis, in the order of the lists."""
    import core_models
    from core_models.n_best_scoring import parts_of
    from core_models.translator import Translation

    translator: Translator = core_models.load(run.reference, device)
    opened = run.translations(test)

    def translation(one: dict[str, Any]) -> Translation:
        finished = one["tokens"][-1:] == ["</s>"]
        return Translation(one["text"], one["tokens"], [], np.nan, np.nan, [], finished, [])

    found: list[Parts] = []
    for begin in range(0, len(every), AT_ONCE):
        chunk = every[begin : begin + AT_ONCE]
        best = [translation(own[0]) for own in chunk]
        for one, own in zip(best, chunk, strict=True):
            one.n_best = [translation(other) for other in own[1:]]
        rows = range(begin, begin + len(chunk))
        before = beside(translator.context, opened.test_set, rows, opened.hypotheses)
        for parts in parts_of(translator, [opened.test_set.sources[row] for row in rows], best, **before):
            found += parts
        if step is not None:
            step(min(begin + AT_ONCE, len(every)), len(every))
    return found


def read(run: Run, test: str) -> Lists:
    """The table of a test set; raises RunError with the command that makes it, also where it is of other lists."""
    from analyses.reranking import Lists
    from analyses.scores import Statistics, preset

    command = f"workbench rerank {run.typed} --test {shlex.quote(test)}"
    found = read_arrays(_path(run, test))
    if found is None:
        raise RunError(f"{run.name}: no n-best lists of {test!r} were scored yet; score them: {command}")
    if parse_json(str(found["of"])) != _of(run, test):
        raise RunError(f"{run.name}: what was scored are other lists of {test!r}, or other weights; again: {command}")
    statistics = Statistics("bleu", found["bleu"], str(found["signature"]), preset("default").options("bleu"))
    return Lists(tuple(map(str, found["parts"])), found["values"], found["starts"], statistics)


def is_measured(run: Run, test: str) -> bool:
    """Is there a table of the lists as they are?"""
    try:
        return len(read(run, test)) > 0
    except (RunError, OSError):
        return False


def _of(run: Run, test: str) -> dict[str, str]:
    """What a table depends on: the weights, and the lists with what they are counted against."""
    from analyses import text_checks

    opened = run.translations(test)
    details = digest_of(opened.folder / "details.jsonl") if not opened.outside else ""
    text = opened.test_set
    documents = [text.documents] if text.documents is not None and readers(run) else []
    texts = text_checks.digest(text.sources, *text.all_references, *documents)
    return {"weights": run.digest, "lists": details, "texts": texts}


def _path(run: Run, test: str) -> Path:
    return run.results / "rescoring" / f"{test}.npz"
