"""Inference on one batch, without gradients: beam search, sampling, exact search, forced decoding with traces.

Works on tensors and piece numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from core_models.config import SearchConfig, TestLoss
from core_models.decoding import Ensemble, Exact, Hypothesis, SearchResult, beam_search, exact_search, mixture, sample
from core_models.decoding.compiled_step import CompiledStep
from core_models.decoding.length_limits import output_limits
from core_models.decoding.quantization import quantized
from core_models.inspection import logit_lens
from core_models.settings import ConfigError
from core_models.system import System
from core_models.text.batches import Batch, context_lengths
from core_models.text.buckets import filled
from core_models.traces import Trace, TraceWriter


class Inference:
    """One system, or several as an ensemble; batches are moved to their device."""

    def __init__(self, systems: Sequence[System]) -> None:
        self.systems = systems

    @property
    def device(self) -> torch.device:
        return self.systems[0].device

    def search(
        self, batch: Batch, prefixes: Sequence[Sequence[int]] | None, config: SearchConfig, record: bool
    ) -> list[SearchResult]:
        """Beam search; prefixes: the pieces that each output begins with. record: keep the search tree."""
        sentences = len(batch)
        if config.compile:
            positions = min(system.config.learned_positions for system in self.systems)
            batch = filled(batch, config.batch_tokens // config.beam, positions)
        batch = batch.to(self.device)
        limits, forced = self._limits(batch, config), None
        limits[sentences:] = 1  # those that fill the batch up
        if prefixes is not None:
            longest = max(map(len, prefixes), default=0)
            if longest + 1 > self._target_room:
                raise ConfigError(
                    f"a prefix of {longest} pieces, and </s>, does not fit the {self._target_room} target positions "
                    "of this model; shorten it or train with larger max_positions"
                )
            rows = [*prefixes, *[()] * (len(batch) - sentences)]
            forced = torch.tensor(
                [[*row, *[-1] * (longest - len(row))] for row in rows], dtype=torch.long, device=self.device
            )
            limits = torch.maximum(limits, torch.tensor([len(row) + 1 for row in rows], device=self.device))
        lower = torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16")
        with torch.inference_mode(), lower:
            model, encoded = self._encoded(batch, config.test_loss, config.precision)
            searched = CompiledStep(model, self.device) if config.compile else model
            return beam_search(searched, encoded, limits, config, forced, record)[:sentences]

    def sample(
        self,
        batch: Batch,
        config: SearchConfig,
        samples: int,
        temperature: float,
        top: int | None,
        generator: torch.Generator,
    ) -> list[list[Hypothesis]]:
        """Sample `samples` translations of each sentence."""
        batch = batch.to(self.device)
        limits = self._limits(batch, config)
        with torch.inference_mode():
            return sample(*self._encoded(batch, config.test_loss), limits, samples, temperature, top, generator)

    def exact(self, batch: Batch, config: SearchConfig, bound: float, most_nodes: int) -> Exact:
        """Exact search for the only sentence of a batch, see `core_models.decoding.exact_search`."""
        batch = batch.to(self.device)
        limit = int(self._limits(batch, config)[0])
        with torch.inference_mode():
            return exact_search(*self._encoded(batch, config.test_loss), limit, bound, most_nodes, self.device)

    def force(
        self, batch: Batch, ends: Sequence[int | None], arrays: Sequence[str], test_loss: TestLoss = "as_built"
    ) -> tuple[list[list[float]], list[Trace]]:
        """Token log-probabilities (nats, with </s>) of each sentence's target, and the requested arrays of its trace.

        arrays: names or patterns; ends: the number of tokens in each trace, None for all tokens of the target.
        """
        batch = batch.to(self.device)
        writer = TraceWriter(arrays)
        with torch.inference_mode():
            values = [_forced(system, batch, writer if arrays else None) for system in self._with_test_loss(test_loss)]
            log_probs = mixture(values)
        lengths = {"source": batch.source_mask.sum(1).tolist(), "target": batch.target_mask.sum(1).tolist()}
        target_log_probs = [row[:length] for row, length in zip(log_probs.tolist(), lengths["target"], strict=True)]
        trace_ends = [length if end is None else end for end, length in zip(ends, lengths["target"], strict=True)]
        return target_log_probs, writer.sentences({**lengths, "target": trace_ends, **context_lengths(batch)})

    def _limits(self, batch: Batch, config: SearchConfig) -> Tensor:
        return output_limits(batch.source_mask, config, self._target_room)

    @property
    def _target_room(self) -> float:
        return min(system.backbone.target_room for system in self.systems)

    @cached_property
    def _quantized(self) -> list[System]:
        return [quantized(system) for system in self.systems]

    def _with_test_loss(self, test_loss: TestLoss, precision: str = "full") -> list[System]:
        systems = self._quantized if precision == "int8" else self.systems
        return [system.with_test_loss(test_loss) for system in systems]

    def _encoded(self, batch: Batch, test_loss: TestLoss, precision: str = "full") -> tuple[Any, Any]:
        """The system or ensemble to be searched, and the encoded batch."""
        systems = self._with_test_loss(test_loss, precision)
        if len(systems) == 1:
            return systems[0], systems[0].encode(batch)
        return Ensemble(systems), [system.encode(batch) for system in systems]


def _forced(system: System, batch: Batch, writer: TraceWriter | None) -> torch.Tensor:
    """Log-probabilities of the targets [S, T]; records those of every prediction (NAME.log_prob) and the logit lens."""
    forced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    values = system.token_log_probs(forced, batch.target)
    if writer is not None:
        for name, value in values.items():
            writer.record("log_prob" if name == "main" else f"{name}.log_prob", ("target",), value)
        logit_lens.record(system, forced, batch.target, writer)
    return values["main"]
