"""Scores of stored n-best lists by every head of their run: RESULTS/rescoring/TEST.npz.

The file has one row per hypothesis with its BLEU statistics, so that any weights can be tried without the model.
Imports no figure code; torch is imported by the measurement.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
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

AT_ONCE = 50  # sentences per batch
N_BEST = 12  # size in the proposed command: the beam of Zheng 2018


def lists_of(run: Run, test: str) -> list[list[dict[str, Any]]]:
    """Translation and other hypotheses of each sentence, as text and tokens.

    Raises RunError, with the command that stores n-best lists, if there are none.
    """
    run.require_model()
    details = run.translations(test).details
    texts = run.translations(test).hypotheses
    lists = [
        [{"text": text, "tokens": detail["tokens"]}, *detail["n_best"]]
        for text, detail in zip(texts, details, strict=True)
    ]
    if max(map(len, lists), default=0) < 2 or not all(
        "tokens" in hypothesis for hypotheses in lists for hypothesis in hypotheses
    ):
        raise RunError(
            f"{run.name} has no n-best lists of {test!r}; translate it with some: {to_make(run.typed, test)}"
        )
    return lists


def to_make(typed: str, test: str) -> str:
    """Command that stores n-best lists."""
    return f"workbench translate {typed} --test {shlex.quote(test)} --beam {N_BEST} --n-best {N_BEST}"


def has_lists(run: Run, test: str) -> bool:
    """Return True if there are n-best lists to score."""
    try:
        return bool(lists_of(run, test))
    except RunError:
        return False


def measure(run: Run, test: str, device: str = "cpu", step: Step | None = None) -> Path:
    """Score every hypothesis of the stored lists with the run's heads and write the table; returns its path.

    Context translations are the stored ones. Raises RunError without lists or references.
    """
    from analyses.reranking import Lists
    from analyses.scores import extract, preset

    inputs = _inputs(run, test)  # before anything is read: training may continue meanwhile
    lists, text = lists_of(run, test), run.translations(test).test_set
    if text.references is None:
        raise RunError(f"{run.name}: the test set {test!r} has no references; BLEU needs them")
    scores = list(_parts(run, test, lists, device, step))
    names = list(scores[0])
    starts = np.cumsum([0, *map(len, lists)])
    hypotheses = [hypothesis["text"] for hypotheses_of_list in lists for hypothesis in hypotheses_of_list]
    repeated = [
        [line for line, hypotheses_of_list in zip(lines, lists, strict=True) for _ in hypotheses_of_list]
        for lines in text.all_references
    ]
    counts = extract(hypotheses, repeated, "bleu", **preset("default").options("bleu"))
    values = np.array([[scores_of_hypothesis[name] for name in names] for scores_of_hypothesis in scores])
    return CACHE.write(run, inputs, Lists(tuple(names), values, starts, counts), test)


def store_lists(runs: Sequence[Run], test: str) -> None:
    """`measure` the n-best lists of those runs that have some."""
    for run in runs:
        if has_lists(run, test):
            measure(run, test)


def _parts(run: Run, test: str, lists: list[list[dict[str, Any]]], device: str, step: Step | None) -> list[Parts]:
    """Scores of every hypothesis by part, in the order of the lists."""
    import core_models
    from core_models.n_best_scoring import parts_of
    from core_models.translator import Translation

    translator: Translator = core_models.load(run.reference, device)
    translations = run.translations(test)

    def translation(hypothesis: dict[str, Any]) -> Translation:
        finished = hypothesis["tokens"][-1:] == ["</s>"]
        return Translation(hypothesis["text"], hypothesis["tokens"], [], np.nan, np.nan, [], finished, [])

    scores: list[Parts] = []
    for begin in range(0, len(lists), AT_ONCE):
        chunk = lists[begin : begin + AT_ONCE]
        best = [translation(hypotheses[0]) for hypotheses in chunk]
        for hypothesis, hypotheses in zip(best, chunk, strict=True):
            hypothesis.n_best = [translation(other) for other in hypotheses[1:]]
        rows = range(begin, begin + len(chunk))
        before = context_arguments(translator.context, translations.test_set, rows, translations.hypotheses)
        for part_scores in parts_of(translator, [translations.test_set.sources[row] for row in rows], best, **before):
            scores += part_scores
        if step is not None:
            step(min(begin + AT_ONCE, len(lists)), len(lists))
    return scores


def read(run: Run, test: str) -> Lists:
    """Read the scored lists of a test set; raises RunError with the command that makes or updates them."""
    command = f"workbench rerank {run.typed} --test {shlex.quote(test)}"
    if not CACHE.path(run, test).is_file():
        raise RunError(f"{run.name}: no n-best lists of {test!r} were scored yet; score them: {command}")
    lists = CACHE.load(run, _inputs(run, test), test)
    if lists is None:
        raise RunError(
            f"{run.name}: what was scored is damaged, or are other lists of {test!r}, or other weights; again: "
            + command
        )
    return lists


def is_measured(run: Run, test: str) -> bool:
    """Return True if the current lists are scored."""
    try:
        return len(read(run, test)) > 0
    except (RunError, OSError):
        return False


def _inputs(run: Run, test: str) -> dict[str, str]:
    """Digests of the inputs of the scores: model weights, lists, and texts of the test set."""
    from analyses import text_checks

    translations = run.translations(test)
    details = digest_of(translations.folder / "details.jsonl") if not translations.outside else ""
    text = translations.test_set
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
