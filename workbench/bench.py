"""Measure any catalogued system on one shape: parameters, multiply-adds, training and decoding speed, peak memory.

The shape is preset small with a tied vocabulary of 8,000 and random tokens, the same batches for every system, so that
ratios between systems (and to other engines on the same batches) mean something. Multiply-adds are counted by PyTorch
on tensors without data; the ceiling of a system is what they alone would allow of the baseline's speed. Speeds are of
this machine at this moment: measure on a quiet one, compare ratios.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core_models.assembly import System

FIRST_WORD = 10  # smaller numbers may be special symbols of one engine or another


@dataclass(frozen=True)
class Shape:
    """What is measured. batch_tokens: padded target tokens of a training batch; forced_length: length of outputs."""

    vocabulary: int = 8000
    batch_tokens: int = 2048
    steps: int = 12
    warmup: int = 3
    beam: int = 5
    forced_length: int = 40
    sentences: int = 200
    batch_sentences: int = 40
    repeats: int = 2


def training_pairs(shape: Shape, seed: int = 1) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Batches of random sentence pairs, lengths 5 to 40, alike within a batch so that little is padded."""
    draw = random.Random(seed)
    for _ in range(shape.warmup + shape.steps):
        shortest = draw.randint(5, 36)
        longest = shortest + 4
        sources: list[list[int]] = []
        targets: list[list[int]] = []
        while (len(sources) + 1) * (longest + 1) <= shape.batch_tokens:
            length = draw.randint(shortest, longest)
            other = max(shortest, min(longest, length + draw.randint(-2, 2)))
            sources.append([draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(length)])
            targets.append([draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(other)])
        yield sources, targets


def decoding_batches(shape: Shape, seed: int = 2) -> list[list[list[int]]]:
    """Random sources of 5 to 40 words, sorted by length, in batches."""
    draw = random.Random(seed)
    sources = [
        [draw.randrange(FIRST_WORD, shape.vocabulary) for _ in range(draw.randint(5, 40))]
        for _ in range(shape.sentences)
    ]
    sources.sort(key=len)
    return [sources[start : start + shape.batch_sentences] for start in range(0, len(sources), shape.batch_sentences)]


def measure_training(system: System, shape: Shape, precision: str = "float32") -> dict[str, float]:
    """Target tokens and sentences a second of the median training step (forward, backward, clipping, fused AdamW)."""
    import torch

    from core_models.text.batches import collate
    from core_models.training.loop import Objective

    device = system.device
    objective = Objective(system.train(), label_smoothing=0.1)
    optimizer = torch.optim.AdamW(system.parameters(), lr=3e-4, fused=True)
    rates, sentence_rates = [], []
    for number, pair in enumerate(training_pairs(shape)):
        batch = collate(*pair).to(device)
        began = time.perf_counter()
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            terms = objective(batch)
        loss = torch.stack([term.sum() for term in terms.values()]).sum() / batch.target_tokens
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
    """Sentences and output tokens a second of beam search, outputs forced to one length; best of the repeats."""
    import torch

    from core_models.config import SearchConfig
    from core_models.search import beam_search
    from core_models.text.batches import collate

    config = SearchConfig(beam=shape.beam, length_penalty=1.0, penalty="power", max_length=shape.forced_length)
    endless = _Endless(system.eval())
    best = float("inf")
    for _ in range(shape.repeats + 1):  # the first one warms up
        began = time.perf_counter()
        for sources in decoding_batches(shape):
            batch = collate(sources).to(system.device)
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


class _Endless:
    """A system that never says </s>, so that every output is as long as it may be."""

    def __init__(self, system: System) -> None:
        self.start, self._step = system.start, system.step

    def step(self, words: Any, state: Any) -> tuple[Any, Any]:
        from core_models.text.vocabulary import EOS

        scores, state = self._step(words, state)
        scores.values[..., EOS] = -float("inf")
        return scores, state


def multiply_adds(name: str, shape: Shape) -> dict[str, float]:
    """Multiply-adds of matrix products per target token: in a training step, and in decoding (the encoder included)."""
    import torch

    from core_models.systems import build
    from core_models.text.batches import collate

    system = build(name, shape.vocabulary)
    pairs = [pair for _, pair in zip(range(4), training_pairs(shape), strict=False)]
    batches = [collate(*pair) for pair in pairs]
    system.train()

    def train() -> None:
        for batch in batches:
            forced = system(system.encode(batch), batch.target_in, batch.target_mask)
            sum(term.sum() for term in system.losses(forced, batch).values()).backward()  # type: ignore[union-attr]

    trained = _counted(train) / sum(batch.target_tokens for batch in batches)
    sources = decoding_batches(shape)[2]
    batch = collate(sources)
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


def _counted(work: Callable[[], None]) -> float:
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops() / 2


def measure(
    name: str, shape: Shape, precision: str = "float32", device: str = "cpu", threads: int = 0
) -> dict[str, Any]:
    """Everything about one system; peak memory is of this process so far: `measure_apart` compares it."""
    import torch

    from core_models.systems import build, parameters

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(1)
    system = build(name, shape.vocabulary).to(device)
    counts = parameters(system)
    found = {
        "system": name,
        "precision": precision,
        "device": device,
        "threads": torch.get_num_threads(),
        **counts,
        **multiply_adds(name, shape),
        **measure_training(system, shape, precision),
    }
    found["train_memory_bytes"] = _peak_memory(device)
    found |= measure_decoding(system, shape, precision)
    return found


def measure_apart(name: str, precision: str, device: str, threads: int, steps: int) -> dict[str, Any]:
    """Measure a system in a process of its own, so that its peak memory is its own."""
    options = ["--json", "--precision", precision, "--device", device, "--threads", str(threads), "--steps", str(steps)]
    command = [sys.executable, "-m", "workbench.cli", "bench", name, *options]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _peak_memory(device: str) -> int:
    if device.startswith("cuda"):
        import torch

        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def ratios(measured: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add each system's ratio to the first one, and the ceiling that multiply-adds set to it."""
    base = measured[0]
    for row in measured:
        for what in ("train", "decode"):
            ratio = row[f"{what}_tokens_per_second"] / base[f"{what}_tokens_per_second"]
            ceiling = base[f"{what}_multiply_adds"] / row[f"{what}_multiply_adds"]
            row |= {f"{what}_ratio": ratio, f"{what}_ceiling": ceiling, f"{what}_share_of_ceiling": ratio / ceiling}
    return list(measured)
