"""Quality and search errors of a run by beam size, measured once: RESULTS/beam_sizes/TEST.json.

Quality is measured on the whole test set with the run's own search. Search errors are counted on short sentences
without length penalty, so that beam search and exact search optimize the same score, with the same context, whose
translations are those of the widest beam. Does not import torch itself.
"""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyses.text_checks import digest
from core_models.files.atomic_files import write_atomic
from core_models.files.run_files import RESULT, read_json
from workbench.evaluation.document_context import as_arguments, read_before
from workbench.evaluation.translate import Step
from workbench.store.runs import Run, RunError
from workbench.store.translations import TestSet

if TYPE_CHECKING:
    import pandas as pd

    from core_models.translator import Translator

SIZES = (1, 2, 4, 8, 16, 32, 64)


def measure(
    run: Run,
    test_set: TestSet,
    sizes: Sequence[int] = SIZES,
    short_words: int = 8,
    most_short: int = 50,
    most_nodes: int = 5000,
    length_penalty: float | None = None,
    device: str = "cpu",
    step: Step | None = None,
) -> Path:
    """Translate a test set with every beam size, search its short sentences exactly, and write the result.

    short_words: most words of a sentence for exact search; most_short: at most so many sentences, the first ones;
    most_nodes: most nodes that one exact search expands. Returns the path. Raises RunError without references.
    """
    if test_set.references is None:
        raise RunError(f"{run.name}: the test set {test_set.name!r} has no references; a curve of BLEU needs them")
    if not sizes or min(sizes) < 1:
        raise RunError(f"beam sizes {', '.join(map(str, sizes))}: give numbers from 1, such as 1,2,4,8")
    import core_models
    from analyses import beam_sizes

    weights = run.digest  # before they are read: training may continue meanwhile
    translator = core_models.load(run.reference, device)
    requested = sorted(set(sizes))
    outputs, seconds = {}, {}
    for number, size in enumerate(requested):
        start = time.perf_counter()
        hypotheses = translator.translate(
            test_set.sources, test_set.documents, n_best=1, beam=size, length_penalty=length_penalty
        )
        outputs[size], seconds[size] = (
            [hypothesis.text for hypothesis in hypotheses],
            round(time.perf_counter() - start, 3),
        )
        if step is not None:
            step(number + 1, len(requested) + 1)
    short = [row for row, line in enumerate(test_set.sources) if len(line.split()) <= short_words][:most_short]
    table = beam_sizes.quality(outputs, test_set.references)
    errors, counts = _search_errors(translator, test_set, short, outputs[requested[-1]], requested, most_nodes)
    table = table.assign(seconds=list(seconds.values())).merge(errors.drop(columns="n"), on="size")
    penalty = translator.search.length_penalty if length_penalty is None else length_penalty
    settings = {"length_penalty": penalty, "short_words": short_words, "most_nodes": most_nodes, **counts}
    path = run.results / "beam_sizes" / f"{test_set.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(table.to_json(orient="records", double_precision=12))
    texts = digest(test_set.sources, *test_set.all_references, test_set.documents or [])
    record = {"test": test_set.name, "weights": weights, "texts": texts, **settings, "sizes": rows}
    write_atomic(path, json.dumps(record, indent=1))
    if step is not None:
        step(len(requested) + 1, len(requested) + 1)
    return path


def store_sizes(runs: Sequence[Run], test: str, sizes: Sequence[int] = (1, 2, 4, 8, 16)) -> None:
    """`measure` runs on one of their test sets."""
    for run in runs:
        measure(run, run.translations(test).test_set, sizes)


def _search_errors(
    translator: Translator,
    test_set: TestSet,
    rows: Sequence[int],
    written: Sequence[str],
    sizes: Sequence[int],
    most_nodes: int,
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Search errors by beam size in some sentences of a test set, and counts of the exact searches.

    written: translations of all lines, read as context by all searches.
    """
    from analyses import beam_sizes

    sources = [test_set.sources[row] for row in rows]
    before = [read_before(translator.context, test_set, row, written) for row in rows]
    search: dict[str, Any] = {"n_best": 1, "length_penalty": 0.0, **as_arguments(*before)}
    log_probs: dict[int, list[float]] = {}
    for size in sizes:
        beams = translator.translate(sources, beam=size, **search) if sources else []
        log_probs[size] = [hypothesis.log_prob if hypothesis.finished else -math.inf for hypothesis in beams]
    best, decided, empty = [], [], 0
    for row, (source, context) in enumerate(zip(sources, before, strict=True)):
        bound = max(log_probs[size][row] for size in sizes)
        exact = translator.exact(
            source,
            bound - beam_sizes.NOISE_NATS,  # so that it names the best itself
            most_nodes,
            None if context is None else context.sources,
            None if context is None else context.outputs,
        )
        best.append(max(bound, exact.log_prob))
        decided.append(exact.decided)
        empty += exact.decided and exact.words == []
    counts = {"short": len(sources), "decided": sum(decided), "best_is_empty": empty}
    return beam_sizes.search_errors(log_probs, best, decided), counts


def read(run: Run, test: str) -> dict[str, Any]:
    """Read the result, with `sizes` as a list of rows; raises RunError with the command that measures it."""
    path = run.results / "beam_sizes" / f"{test}.json"
    command = f"workbench beam-sweep {run.typed} --test {shlex.quote(test)}"
    if not path.is_file():
        raise RunError(f"{run.name}: no beam sizes were tried on {test!r} yet; try them: {command}")
    try:
        result = read_json(path, RESULT)
        if not (isinstance(result, dict) and isinstance(result["sizes"], list) and result["sizes"]):
            raise ValueError("no sizes")
    except (ValueError, KeyError) as error:
        raise RunError(f"{path}: not readable ({error}); measure again: {command}") from None
    if not run.is_of(result.get("weights")):
        raise RunError(f"{run.name}: beam sizes on {test!r} are of other weights than it has now; try them: {command}")
    return result


def read_all(runs: Sequence[Run], test: str) -> dict[str, dict[str, Any]]:
    """`read` of every run by name; raises RunError if the versions of the test set differ."""
    results = {run.name: read(run, test) for run in runs}
    if len({result.get("texts") for result in results.values()}) > 1:
        typed = " ".join(run.typed for run in runs)
        raise RunError(
            f"{', '.join(results)} tried beam sizes on different versions of {test!r}; measure all of them again: "
            f"workbench beam-sweep {typed} --test {shlex.quote(test)}"
        )
    return results


def is_measured(run: Run, test: str) -> bool:
    """Return True if there is a result."""
    return (run.results / "beam_sizes" / f"{test}.json").is_file()
