"""End-to-end benchmark of a trained run and of the same weights in CTranslate2, from text to text: time and BLEU.

Output lengths are free, and segmentation counts. Both search with the same beam and the `power` penalty.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from core_models.translator import Translator
    from workbench.export.ctranslate2_search import CTranslate2Search


def measure_trained(run: Run, test: str, threads: int, quantizations: tuple[str, ...], rounds: int) -> list[Any]:
    """One row per engine: median seconds, BLEU, number of translations equal to the workbench's, and the others."""
    import statistics

    from workbench.export.ctranslate2 import check_quantization
    from workbench.export.ctranslate2_search import CTranslate2Search

    for quantization in quantizations:  # first, since a missing package would otherwise be noticed after long work
        check_quantization(quantization)
    import torch

    from analyses import scores
    from core_models.translator import load
    from workbench.evaluation.translate import test_set

    if threads:
        torch.set_num_threads(threads)
    prepared_set, _ = test_set(run, test)
    if prepared_set.references is None:
        raise RunError(f"{run.name}: the test set {test!r} has no references; BLEU needs them")
    translator = load(run.reference)

    def ours(lines: list[str], precision: str = "full") -> list[str]:
        return [translation.text for translation in translator.translate(lines, penalty="power", precision=precision)]

    engines: dict[str, Callable[[list[str]], list[str]]] = {"workbench": ours}
    if "int8" in quantizations:
        engines["workbench-int8"] = partial(ours, precision="int8")
    for quantization in quantizations:
        opened = CTranslate2Search(run, run.config.search.changed({"penalty": "power"}), threads, quantization)
        engines[f"ctranslate2-{quantization}"] = partial(_texts, opened, translator)
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    outputs: dict[str, list[str]] = {}
    for _ in range(rounds):
        for name, translate in engines.items():
            began = time.perf_counter()
            outputs[name] = translate(prepared_set.sources)
            seconds[name].append(time.perf_counter() - began)
    return [
        {
            "engine": name,
            "seconds": statistics.median(seconds[name]),
            "sentences_per_second": len(prepared_set.sources) / statistics.median(seconds[name]),
            "bleu": scores.extract(outputs[name], prepared_set.references).total,
            "same": len(outputs[name]) - len(_others(outputs[name], outputs["workbench"])),
            "others": " ".join(map(str, _others(outputs[name], outputs["workbench"]))),
        }
        for name in engines
    ]


def _texts(opened: CTranslate2Search, translator: Translator, lines: list[str]) -> list[str]:
    """The translations alone: CTranslate2's time does not include our log-probabilities."""
    best = [hypotheses[0] for hypotheses in opened.hypotheses(translator.source_vocabulary, lines)]
    return [translator.hypothesis_decoder.given([], tokens).text for tokens in best]


def _others(lines: list[str], ours: list[str]) -> list[int]:
    """The numbers of the sentences, from 0, that were translated otherwise."""
    return [number for number, (line, own) in enumerate(zip(lines, ours, strict=True)) if line != own]
