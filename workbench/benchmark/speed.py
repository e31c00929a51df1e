"""Measurement of a catalogue system: parameters, multiply-adds, training and decoding speed, peak memory.

PyTorch counts the multiply-adds that the system really computes; they bound the speed that a mechanism can keep.
Speeds are of this machine at this moment.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.benchmark.workload import FIRST_WORD, Conditions, Shape, decoding_batches, training_pairs

if TYPE_CHECKING:
    from core_models.system import System
    from core_models.text.batches import Batch


def in_context(system: System, sources: list[list[int]], targets: list[list[int]] | None = None) -> Batch:
    """A batch as the system reads it, with neighbours of about the same length as context.

    All systems get the same sentences; context sentences are added to the token budget.
    """
    from core_models.text.batches import collate
    from core_models.text.documents import prepend_context

    use = system.context

    def before(lines: list[list[int]]) -> list[list[list[int]]]:
        return [[lines[(row - 1 - k) % len(lines)] for k in range(use.sentences)] for row in range(len(lines))]

    if not use.sentences:
        return collate(sources, targets)
    contexts = before(sources)
    if use.joined:
        return collate([prepend_context(*both) for both in zip(sources, contexts, strict=True)], targets)
    return collate(sources, targets, contexts, outputs=contexts if use.outputs else None)


def measure_training(
    system: System, shape: Shape, precision: str = "float32", compile_routing: bool = False
) -> dict[str, float]:
    """Target tokens and sentences per second of the median training step (forward, backward, clipping, fused AdamW)."""
    import torch

    from core_models.training.compilation import compile_parts
    from core_models.training.loss_module import Objective, total_loss

    device = system.device
    if compile_routing:
        compile_parts(system, "routing")
    objective = Objective(system.train(), shape.label_smoothing)
    optimizer = torch.optim.AdamW(system.parameters(), lr=3e-4, fused=True)
    rates, sentence_rates = [], []
    for number, pair in enumerate(training_pairs(shape)):
        batch = in_context(system, *pair).to(device)
        began = time.perf_counter()
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            terms = objective(batch)
        loss = total_loss(terms) / batch.target_tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(system.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        if number >= shape.warmup:
            seconds = time.perf_counter() - began
            rates.append(batch.target_tokens / seconds)
            sentence_rates.append(len(batch) / seconds)
    return {
        "train_tokens_per_second": statistics.median(rates),
        "train_sentences_per_second": statistics.median(sentence_rates),
    }


def measure_decoding(
    system: System, shape: Shape, precision: str = "float32", record: bool = False
) -> dict[str, float]:
    """Sentences and output tokens per second of beam search with outputs of one length; best of the repeats."""
    import torch

    from core_models.config import SearchConfig
    from core_models.decoding import beam_search

    config = SearchConfig(beam=shape.beam, length_penalty=1.0, penalty="power", max_length=shape.forced_length)
    endless = Endless(system.eval())
    best = float("inf")
    for _ in range(shape.repeats + 1):  # the first one warms up
        began = time.perf_counter()
        for sources in decoding_batches(shape):
            batch = in_context(system, sources).to(system.device)
            limits = torch.full((len(sources),), shape.forced_length, device=system.device)
            with (
                torch.inference_mode(),
                torch.autocast(system.device.type, torch.bfloat16, enabled=precision == "bfloat16"),
            ):
                beam_search(endless, system.encode(batch), limits, config, record=record)
        best = min(best, time.perf_counter() - began)
    return {
        "decode_sentences_per_second": shape.sentences / best,
        "decode_tokens_per_second": shape.sentences * shape.forced_length / best,
    }


class Endless:
    """A system that never predicts </s>, so that every output has the maximal length."""

    def __init__(self, system: System) -> None:
        self.start, self._step = system.start, system.step

    def step(self, words: Any, state: Any) -> tuple[Any, Any]:
        from core_models.text.vocabulary import EOS

        scores, state = self._step(words, state)
        scores.values[..., EOS] = -float("inf")
        return scores, state


def multiply_adds(name: str, shape: Shape) -> dict[str, float]:
    """Multiply-adds of matrix products per target token, in a training step and in decoding (with the encoder)."""
    import torch

    from core_models.system_builder import build

    system = build(name, shape.vocabulary)
    pairs = [pair for _, pair in zip(range(4), training_pairs(shape), strict=False)]
    batches = [in_context(system, *pair) for pair in pairs]
    system.train()

    def train() -> None:
        for batch in batches:
            forced = system(system.encode(batch), batch.target_in, batch.target_mask)
            sum(term.sum() for term in system.losses(forced, batch, summed=True).values()).backward()  # type: ignore[union-attr]

    trained = _counted(train) / sum(batch.target_tokens for batch in batches)
    batches_to_decode = decoding_batches(shape)
    sources = batches_to_decode[len(batches_to_decode) // 2]
    batch = in_context(system, sources)
    system.eval()

    def decode() -> None:
        with torch.no_grad():
            state = system.start(system.encode(batch))
            parents = torch.zeros(len(sources), shape.beam, dtype=torch.long)
            state = state.select(None, parents)
            words = torch.full_like(parents, FIRST_WORD)
            for _ in range(shape.forced_length):
                _, state = system.step(words, state)

    decoded = _counted(decode) / (len(sources) * shape.forced_length)
    return {"train_multiply_adds": trained, "decode_multiply_adds": decoded}


def matrix_rate(device: str, precision: str = "float32") -> float:
    """Multiply-adds per second of a large square product, the best of a few: an upper bound of the chip."""
    import torch

    size = 8192 if device.startswith("cuda") else 1536
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    left, right = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))
    best = float("inf")
    for _ in range(5):  # the first one warms up
        began = time.perf_counter()
        (left @ right)[0, 0].item()  # waits for the device
        best = min(best, time.perf_counter() - began)
    return size**3 / best


def _counted(work: Callable[[], None]) -> float:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops() / 2


def measure(name: str, shape: Shape, conditions: Conditions) -> dict[str, Any]:
    """All measurements of one system. Peak memory is of this process so far, so measure in a process of its own.

    Decoding alone has no search that records.
    train_matrix_share: multiply-adds of training per second over those of one large product.
    """
    import torch

    from core_models.decoding.quantization import quantized
    from core_models.system_builder import build, parameters

    precision, device = conditions.precision, conditions.device
    if conditions.threads:
        torch.set_num_threads(conditions.threads)
    torch.manual_seed(1)
    system = build(name, shape.vocabulary).to(device)
    counts = parameters(system)
    record = {
        "system": name,
        "precision": precision,
        "device": device,
        "threads": torch.get_num_threads(),
        **({} if shape.length is None else {"length": shape.length}),
        **counts,
    }
    if precision == "int8":
        system = quantized(system)
    elif not conditions.decoding_only:
        record |= measure_training(system, shape, precision, conditions.compile_routing)
        record["train_memory_bytes"] = _peak_memory(device)
    record |= measure_decoding(system, shape, precision)
    if not conditions.decoding_only:
        recorded = measure_decoding(system, shape, precision, record=True)
        plain, recording = (decoded["decode_sentences_per_second"] for decoded in (record, recorded))
        record["decode_recording_ratio"] = recording / plain
    record |= multiply_adds(name, shape)  # last, since counting would add to the memory of training
    if "train_tokens_per_second" in record:
        done = record["train_multiply_adds"] * record["train_tokens_per_second"]
        record["train_matrix_share"] = done / matrix_rate(device, precision)
    return record


def _peak_memory(device: str) -> int:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
