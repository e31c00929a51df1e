"""Estimated time of a measurement, from the size of the system and a short probe of the machine.

Correct within a factor of two or three; the first measurements calibrate it.
"""

from __future__ import annotations

import platform

from core_models.config import ModelConfig
from core_models.resources import processors
from workbench.benchmark.workload import Shape

START_SECONDS = 8.0  # of a process: PyTorch, the system, its multiply-adds
TRAINING_SHARE, DECODING_SHARE = 0.4, 0.15  # of the multiply-adds per second of one large product
DECODED = 2 * 3  # decodings of all sentences: with and without recording, each once for warm-up and twice


def guessed_seconds(model: ModelConfig, shape: Shape, precision: str, rate: float, step_seconds: float = 2e-3) -> float:
    """Estimated seconds of a measurement.

    rate: multiply-adds per second of one large product. step_seconds: the least time of a layer's step.
    """
    d, f = model.d_model, model.ffn_dim
    encoder, decoder = model.encoder_layers * (4 * d * d + 2 * d * f), model.decoder_layers * (8 * d * d + 2 * d * f)
    output = d * shape.vocabulary
    words = (shape.warmup + shape.steps) * shape.batch_tokens
    training = 0.0 if precision == "int8" else 3 * words * (encoder + decoder + output) / (TRAINING_SHARE * rate)
    written = shape.sentences * shape.forced_length
    batches = -(-shape.sentences // shape.batch_sentences)
    decoding = max(
        written * shape.beam * (decoder + output) / (DECODING_SHARE * rate),
        batches * shape.forced_length * model.decoder_layers * step_seconds,
    )
    return START_SECONDS + training + DECODED * decoding


def seconds_of(system: str, steps: int, precision: str, rate: float) -> float:
    """`guessed_seconds` of a system of the catalogue on the shape of `workbench benchmark speed`."""
    from core_models.system_spec import describe

    return guessed_seconds(describe(system), Shape(steps=steps), precision, rate)


def machine(device: str) -> str:
    """The measuring machine; measurements of several machines do not belong in one table."""
    import torch

    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {processors()} cores"


def probe(device: str, threads: int) -> float:
    """Multiply-adds per second of one large product, measured in about a second."""
    import torch

    from workbench.benchmark.speed import matrix_rate

    if threads:
        torch.set_num_threads(threads)
    return matrix_rate(device)


def spoken(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
