"""The validation of a training: losses on dev, and the metric of early stopping.

Processes share the work, losses and decoding. Metrics are functions of the caller. It does not know when it is due, nor
what follows from its numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor

from core_models.config import RunConfig
from core_models.system import System
from core_models.text.batch_loader import BatchLoader
from core_models.text.batches import Batch
from core_models.text.prepared import Prepared
from core_models.training.fitting_batches import FittingBatches
from core_models.training.reinforce import Reward

Score = Callable[[list[str], list[str]], float]  # (hypotheses, references) -> higher is better
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Validation:
    """Measures the system as it is on dev."""

    config: RunConfig
    accelerator: Accelerator
    prepared: Prepared
    system: System
    fitting: FittingBatches
    score: Score | None
    reward: Reward | None

    def values(self) -> dict[str, float]:
        """Loss per target token (nats, no smoothing) on dev, and the metric of early stopping.

        Each process computes its share of the batches; the sums are those of one process, to the last bit.
        """
        self.system.eval()
        training = self.config.training
        dev = BatchLoader(self.prepared.split("dev"), training.batch_tokens, seed=0, context=self.system.context)
        with torch.no_grad(), self.accelerator.autocast():
            parts = self._over_processes(range(len(dev.plan(0))), partial(self._dev_sums, dev))
        tokens = sum(count for count, _ in parts)
        values = {f"{name}_loss": sum(sums[name] for _, sums in parts) / tokens for name in parts[0][1]}
        metric = training.early_stopping.metric
        if metric != "loss":
            values[metric] = self._decode_and_score()
        self.system.train()
        return values

    def _dev_sums(self, dev: BatchLoader, numbers: Sequence[int]) -> list[tuple[int, dict[str, float]]]:
        """The target tokens of some batches and the sum of each loss term; the host waits for the device once."""
        tokens: list[int] = []
        sums: list[Tensor] = []
        names: list[str] = []
        for number in numbers:
            batch = dev.batch(0, number)
            terms = self.fitting.run([batch], self._losses, lambda: None)
            names = [*terms]
            tokens.append(batch.target_tokens)
            sums.append(torch.stack([*terms.values()]))
        rows = torch.stack(sums).tolist() if sums else []
        return [(count, dict(zip(names, row, strict=True))) for count, row in zip(tokens, rows, strict=True)]

    def _losses(self, batches: list[Batch]) -> dict[str, Tensor]:
        """The sum of each loss term over the batches, in float64."""
        sums: dict[str, Any] = {}
        for batch in batches:
            batch = batch.to(self.accelerator.device)
            forced = self.system(self.system.encode(batch), batch.target_in, batch.target_mask)
            for name, term in self.system.losses(forced, batch).items():
                sums[name] = sums.get(name, 0.0) + term.sum().double()
        return sums

    def _decode_and_score(self) -> float:
        from core_models.translator import Translator

        dev = self.prepared.test("dev")
        translator = Translator(
            self.system, self.prepared.source_vocabulary, self.prepared.target_vocabulary, self.config.search
        )
        batches = translator.batches(dev.sources, dev.documents)
        contexts, _ = translator.contexts(dev.sources, dev.documents)

        def texts(share: Sequence[list[int]]) -> list[list[str]]:
            translated = (translator.translate_rows(rows, dev.sources, dev.documents, contexts) for rows in share)
            return [[translation.text for translation in batch] for batch in translated]

        translations = zip(
            itertools.chain(*batches), itertools.chain(*self._over_processes(batches, texts)), strict=True
        )
        hypotheses, references = [text for _, text in sorted(translations)], dev.targets or []
        if self.config.training.early_stopping.metric == "adequacy":
            assert self.reward is not None  # checked by `fit`
            return math.fsum(self.reward(dev.sources, hypotheses, references)) / len(hypotheses)
        assert self.score is not None
        return self.score(hypotheses, references)

    def _over_processes(self, items: Sequence[Item], work: Callable[[Sequence[Item]], list[Result]]) -> list[Result]:
        """The results of `work` for all items, of which each process does its share; in order, on every process."""
        own, processes = self.accelerator.process_index, self.accelerator.num_processes
        shares = gather_object([work(items[own::processes])])
        return [shares[number % processes][number // processes] for number in range(len(items))]
