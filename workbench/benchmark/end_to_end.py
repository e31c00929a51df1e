"""End-to-end benchmark of a trained run and of the same weights in CTranslate2, from text to text: time and BLEU.

Output lengths are free, and segmentation counts. Both search with the same beam and the `power` penalty.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from workbench.store.runs import Run, RunError

BATCH_TOKENS = 4096  # CTranslate2's batch size; on CPUs it hardly matters


def measure_trained(run: Run, test: str, threads: int, quantizations: tuple[str, ...], rounds: int) -> list[Any]:
    """One row per engine: median seconds, BLEU, and the number of translations equal to the workbench's."""
    import statistics

    from workbench.export.ctranslate2 import check_quantization

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
    search = run.config.search

    def ours(lines: list[str], precision: str = "full") -> list[str]:
        return [translation.text for translation in translator.translate(lines, penalty="power", precision=precision)]

    with tempfile.TemporaryDirectory() as folder:
        engines: dict[str, Callable[[list[str]], list[str]]] = {"workbench": ours}
        if "int8" in quantizations:
            engines["workbench-int8"] = partial(ours, precision="int8")
        for quantization in quantizations:
            out = Path(folder) / quantization
            engines[f"ctranslate2-{quantization}"] = _exported(run, out, quantization, threads, search)
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
            "same": sum(pair[0] == pair[1] for pair in zip(outputs[name], outputs["workbench"], strict=True)),
        }
        for name in engines
    ]


def _exported(run: Run, out: Path, quantization: str, threads: int, search: Any) -> Callable[[list[str]], list[str]]:
    import ctranslate2
    import sentencepiece

    from workbench.export.ctranslate2 import export_ctranslate2

    export_ctranslate2(run, out, quantization)
    source, target = (sentencepiece.SentencePieceProcessor(str(out / f"{side}.model")) for side in ("source", "target"))
    translator = ctranslate2.Translator(str(out), device="cpu", compute_type=quantization, intra_threads=threads)

    def translate(lines: list[str]) -> list[str]:
        results = translator.translate_batch(
            source.encode(lines, out_type=str),
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
            beam_size=search.beam,
            length_penalty=search.length_penalty,
            patience=2,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=search.max_length,
            min_decoding_length=0,
            suppress_sequences=[["<pad>"], ["<s>"]],
        )
        return target.decode([result.hypotheses[0] for result in results])

    return translate
