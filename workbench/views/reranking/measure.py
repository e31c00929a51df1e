"""Stored n-best lists scored by every head of the run that found them: RESULTS/rescoring/TEST.npz.

What is kept is a table, a row a hypothesis, with the statistics of BLEU beside it: any weights can then be tried
without a model. Knows runs and their translations, no figure; torch comes with the measurement.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.npz_cache import checked_numbers
from workbench.evaluation.document_context import context_arguments, context_mechanisms
from workbench.evaluation.result_cache import ResultCache
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
    from analyses.reranking import Lists
    from analyses.scores import extract, preset

    inputs = _inputs(run, test)  # before anything is read: training may go on meanwhile
    every, text = lists_of(run, test), run.translations(test).test_set
    if text.references is None:
        raise RunError(f"{run.name}: the test set {test!r} has no references; BLEU needs them")
    found = list(_parts(run, test, every, device, step))
    names = list(found[0])
    starts = np.cumsum([0, *map(len, every)])
    hypotheses = [one["text"] for own in every for one in own]
    repeated = [[line for line, own in zip(lines, every, strict=True) for _ in own] for lines in text.all_references]
    counts = extract(hypotheses, repeated, "bleu", **preset("default").options("bleu"))
    values = np.array([[parts[name] for name in names] for parts in found])
    return CACHE.write(run, inputs, Lists(tuple(names), values, starts, counts), test)


def _parts(run: Run, test: str, every: list[list[dict[str, Any]]], device: str, step: Step | None) -> list[Parts]:
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
        before = context_arguments(translator.context, opened.test_set, rows, opened.hypotheses)
        for parts in parts_of(translator, [opened.test_set.sources[row] for row in rows], best, **before):
            found += parts
        if step is not None:
            step(min(begin + AT_ONCE, len(every)), len(every))
    return found


def read(run: Run, test: str) -> Lists:
    """The table of a test set; raises RunError with the command that makes it, also where it is of other lists."""
    command = f"workbench rerank {run.typed} --test {shlex.quote(test)}"
    if not CACHE.path(run, test).is_file():
        raise RunError(f"{run.name}: no n-best lists of {test!r} were scored yet; score them: {command}")
    found = CACHE.load(run, _inputs(run, test), test)
    if found is None:
        raise RunError(
            f"{run.name}: what was scored is damaged, or are other lists of {test!r}, or other weights; again: "
            + command
        )
    return found


def is_measured(run: Run, test: str) -> bool:
    """Is there a table of the lists as they are?"""
    try:
        return len(read(run, test)) > 0
    except (RunError, OSError):
        return False


def _inputs(run: Run, test: str) -> dict[str, str]:
    """What a table is computed from: the weights, and the lists with what they are counted against."""
    from analyses import text_checks

    opened = run.translations(test)
    details = digest_of(opened.folder / "details.jsonl") if not opened.outside else ""
    text = opened.test_set
    documents = [text.documents] if text.documents is not None and context_mechanisms(run) else []
    texts = text_checks.digest(text.sources, *text.all_references, *documents)
    return {"weights": run.digest, "lists": details, "texts": texts}


def _dump(lists: Lists) -> dict[str, Any]:
    counts = lists.statistics
    numbers = {"values": lists.values, "starts": lists.starts, "bleu": counts.values}
    return {"parts": np.array(lists.parts), **numbers, "signature": np.array(counts.signature)}


def _parse(arrays: Mapping[str, Any]) -> Lists:
    from analyses.reranking import Lists
    from analyses.scores import Statistics, preset

    numbers = checked_numbers(arrays, {"values": "HP", "starts": "S", "bleu": "HC"})
    parts, starts = tuple(map(str, arrays["parts"])), numbers["starts"]
    hypotheses, columns = numbers["values"].shape
    if len(parts) != columns or starts[0] != 0 or starts[-1] != hypotheses or (np.diff(starts) < 1).any():
        raise ValueError("lists and their hypotheses do not fit")
    if arrays["signature"].ndim:
        raise ValueError("several signatures")
    statistics = Statistics("bleu", numbers["bleu"], str(arrays["signature"]), preset("default").options("bleu"))
    return Lists(parts, numbers["values"], starts, statistics)


CACHE = ResultCache("rescoring/{}.npz", _dump, _parse)
