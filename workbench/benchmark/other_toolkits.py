"""Other engines on the same shape and the same batches: Hugging Face transformers (Marian) and CTranslate2.

Run as a program by an interpreter that has the engine: `python other_toolkits.py ENGINE WORK THREADS DEVICE PRESET`
prints JSON. All models have random weights: only time is compared.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # beside this file, without the package: see the module's docstring
    # Not this file's own folder, whose modules would hide those of Python and of the engines; under Python's safe path
    # it is missing, and the first entry is another folder.
    sys.path[: 0 if sys.flags.safe_path else 1] = [str(Path(__file__).resolve().parents[2])]

from workbench.benchmark.workload import SHAPES, Shape, decoding_batches, training_pairs

ENGINES = {
    "marian": ("train", "decode"),
    "marian-bfloat16": ("train",),
    "ctranslate2-float32": ("decode",),
    "ctranslate2-int8": ("decode",),
}
NEEDED = ("torch", "transformers", "ctranslate2")  # packages of the interpreter
EOS, UNKNOWN = 1, 2
RATES = {"train": "train_tokens_per_second", "decode": "decode_sentences_per_second"}


def measure_peer(engine: str, work: str, threads: int, device: str, shape: Shape) -> dict[str, Any]:
    """Target tokens per second of the median training step, or sentences per second of the best decoding."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(1)
    rate = _train(engine, device, shape) if work == "train" else _decode(engine, threads, device, shape)
    return {"engine": engine, RATES[work]: rate}


def _marian(shape: Shape) -> Any:
    """A Marian model; by its convention the last piece is padding, and the decoder begins with it."""
    from transformers import MarianConfig, MarianMTModel

    padding = shape.vocabulary - 1
    return MarianMTModel(
        MarianConfig(
            vocab_size=shape.vocabulary,
            d_model=shape.width,
            encoder_layers=shape.layers,
            decoder_layers=shape.layers,
            encoder_attention_heads=shape.heads,
            decoder_attention_heads=shape.heads,
            encoder_ffn_dim=shape.feed_forward,
            decoder_ffn_dim=shape.feed_forward,
            dropout=shape.dropout,
            attention_dropout=shape.dropout,
            activation_function="relu",
            max_position_embeddings=128,
            share_encoder_decoder_embeddings=True,
            init_std=0.05,
            pad_token_id=padding,
            decoder_start_token_id=padding,
            eos_token_id=EOS,
            bos_token_id=None,
            forced_eos_token_id=None,
        )
    )


def _train(engine: str, device: str, shape: Shape) -> float:
    import torch

    model = _marian(shape).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    padding, rates = shape.vocabulary - 1, []
    for number, (sources, targets) in enumerate(training_pairs(shape)):
        began = time.perf_counter()
        source = _padded([[*sentence, EOS] for sentence in sources], padding).to(device)
        labels = _padded([[*sentence, EOS] for sentence in targets], -100).to(device)
        words = _padded([[padding, *sentence] for sentence in targets], padding).to(device)
        with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=engine.endswith("bfloat16")):
            output = model(input_ids=source, attention_mask=(source != padding).long(), decoder_input_ids=words)
        loss = torch.nn.functional.cross_entropy(
            output.logits.float().flatten(0, 1), labels.flatten(), label_smoothing=shape.label_smoothing
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        if number >= shape.warmup:
            rates.append(sum(len(sentence) + 1 for sentence in targets) / (time.perf_counter() - began))
    return statistics.median(rates)


def _decode(engine: str, threads: int, device: str, shape: Shape) -> float:
    if engine == "marian":
        translate = _marian_search(device, shape)
    else:
        translate = _ctranslate2_search(engine, threads, device, shape)
    best = float("inf")
    for _ in range(shape.repeats + 1):  # the first one warms up
        began = time.perf_counter()
        for sources in decoding_batches(shape):
            translate(sources)
        best = min(best, time.perf_counter() - began)
    return shape.sentences / best


def _marian_search(device: str, shape: Shape) -> Callable[[list[list[int]]], Any]:
    import torch

    model, padding = _marian(shape).to(device).eval(), shape.vocabulary - 1

    def translate(sources: list[list[int]]) -> Any:
        source = _padded([[*sentence, EOS] for sentence in sources], padding).to(device)
        with torch.inference_mode():
            return model.generate(
                source,
                attention_mask=(source != padding).long(),
                num_beams=shape.beam,
                min_new_tokens=shape.forced_length,
                max_new_tokens=shape.forced_length,
                do_sample=False,
                early_stopping=True,
                use_cache=True,
            )

    return translate


def _ctranslate2_search(engine: str, threads: int, device: str, shape: Shape) -> Callable[[list[list[int]]], Any]:
    import ctranslate2
    from ctranslate2.converters.transformers import MarianMTLoader

    quantization = engine.removeprefix("ctranslate2-")
    spec = MarianMTLoader().get_model_spec(_marian(shape).eval())
    pieces = [f"piece-{number}" for number in range(shape.vocabulary - 1)]
    pieces[EOS], pieces[UNKNOWN] = "</s>", "<unk>"
    spec.register_source_vocabulary(list(pieces))
    spec.register_target_vocabulary(list(pieces))
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = spec.config.eos_token = "</s>"
    spec.config.unk_token = "<unk>"
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder = tempfile.TemporaryDirectory()
    spec.save(folder.name)
    translator = ctranslate2.Translator(
        folder.name, device=device.partition(":")[0], compute_type=quantization, intra_threads=threads, inter_threads=1
    )

    def translate(sources: list[list[int]]) -> Any:
        assert folder is not None  # keeps the model's files as long as this function
        return translator.translate_batch(
            [[pieces[word] for word in sentence] for sentence in sources],
            beam_size=shape.beam,
            min_decoding_length=shape.forced_length,
            max_decoding_length=shape.forced_length,
            return_scores=True,
        )

    return translate


def _padded(rows: list[list[int]], value: int) -> Any:
    import torch

    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    print(json.dumps(measure_peer(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], SHAPES[sys.argv[5]])))
