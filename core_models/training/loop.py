"""The training loop: batches in, a trained run folder out, resumable at any validation.

Accelerate carries device, precision and processes. Ours are the plan of the data, the position in it, and the one
number that the whole weighted loss is divided by: target tokens (or sentences) of the global batch, over all ranks
and all accumulated batches. Knows no metric: early stopping on a score calls the function it was handed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from core_models.assembly import System
from core_models.checkpoint import write_weights
from core_models.config import WEIGHTS, ConfigError, RunConfig
from core_models.text.batches import Batch, BatchLoader
from core_models.text.binary import Prepared
from core_models.training.log import TrainingLog
from core_models.training.schedule import learning_rate
from core_models.training.state import Progress, save_state

SKIPPED_IN_A_ROW = 10
Score = Callable[[list[str], list[str]], float]  # (hypotheses, references) -> higher is better
Report = Callable[[Progress, int, dict[str, float]], None]  # (where we are, steps in all, latest values)


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


class Objective(nn.Module):
    """A batch to its loss terms, in one forward call, as DistributedDataParallel needs it."""

    def __init__(self, system: System, label_smoothing: float) -> None:
        super().__init__()
        self.system, self.label_smoothing = system, label_smoothing

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        forced = self.system(self.system.encode(batch), batch.target_in, batch.target_mask)
        return self.system.losses(forced, batch, self.label_smoothing)


@dataclass
class Loop:
    """One run's training: `run` goes from where `progress` stands to the end, or to where time is up."""

    folder: Path
    config: RunConfig
    accelerator: Accelerator
    prepared: Prepared
    system: System
    objective: nn.Module
    optimizer: torch.optim.Optimizer
    loader: BatchLoader
    progress: Progress
    log: TrainingLog | None
    score: Score | None
    report: Report | None

    @property
    def total_steps(self) -> int:
        training = self.config.training
        per_epoch = math.ceil(len(self.loader.plan(self.progress.epoch)) / training.accumulate)
        by_epochs = per_epoch * training.max_epochs if training.max_epochs else math.inf
        return int(min(by_epochs, training.max_steps or math.inf))

    def groups(self) -> Iterator[list[Batch]]:
        """Batches that make up one step, from the position on, epoch after epoch."""
        training, progress = self.config.training, self.progress
        while training.max_epochs is None or progress.epoch < training.max_epochs:
            group: list[Batch] = []
            for batch in self.loader.epoch(progress.epoch, start=progress.batch):
                group.append(batch)
                if len(group) == training.accumulate:
                    yield group
                    progress.batch += len(group)
                    group = []
            if group:
                yield group
            progress.epoch, progress.batch = progress.epoch + 1, 0

    def step(self, group: list[Batch]) -> dict[str, float]:
        """One update. Returns sums over the global batch: losses by term, tokens, and the gradient's norm."""
        training = self.config.training
        counts = torch.tensor([sum(b.target_tokens for b in group), sum(len(b) for b in group)], dtype=torch.float64)
        tokens, sentences = self.accelerator.reduce(counts.to(self.accelerator.device)).tolist()
        normaliser = tokens if training.normalise == "tokens" else sentences
        sums: dict[str, Tensor] = {}
        for number, batch in enumerate(group):
            last = number == len(group) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.objective):
                terms = self.objective(batch.to(self.accelerator.device))
                loss = torch.stack([term.sum() for term in terms.values()]).sum() / normaliser
                self.accelerator.backward(loss * self.accelerator.num_processes)  # DDP takes the mean over ranks
            for name, term in terms.items():
                sums[name] = sums.get(name, term.new_zeros(())) + term.detach().sum()
        norm = self.accelerator.clip_grad_norm_(self.objective.parameters(), training.clip or math.inf)
        rate = learning_rate(self.progress.step + 1, training, self.total_steps, self.progress.reductions)
        for parameters_group in self.optimizer.param_groups:
            parameters_group["lr"] = rate
        values = self.accelerator.reduce(torch.stack([*sums.values()])).tolist()
        if math.isfinite(float(norm)):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {
            **dict(zip(sums, values, strict=True)),
            "tokens": tokens,
            "gradient_norm": float(norm),
            "learning_rate": rate,
        }

    def validate(self) -> dict[str, float]:
        """Loss per target token (nats, no smoothing) on dev, and the score handed in, if early stopping asks for it."""
        self.system.eval()
        sums: dict[str, float] = {}
        tokens = 0
        dev = BatchLoader(
            self.prepared.split("dev"),
            self.config.training.batch_tokens,
            seed=0,
            context_sentences=self.config.training.context_sentences,
        )
        with torch.no_grad(), self.accelerator.autocast():
            for batch in dev.epoch(0):
                batch = batch.to(self.accelerator.device)
                forced = self.system(self.system.encode(batch), batch.target_in, batch.target_mask)
                for name, term in self.system.losses(forced, batch).items():
                    sums[name] = sums.get(name, 0.0) + float(term.sum())
                tokens += batch.target_tokens
        values = {f"{name}_loss": total / tokens for name, total in sums.items()}
        metric = self.config.training.early_stopping.metric
        if metric != "loss":
            values[metric] = self._decode_and_score(metric)
        self.system.train()
        return values

    def _decode_and_score(self, metric: str) -> float:
        from core_models.translator import Translator

        if self.score is None:
            raise ConfigError(f"early_stopping.metric: {metric} needs a score function handed to fit(score=...)")
        dev = self.prepared.test("dev")
        translator = Translator(
            self.system, self.prepared.source_vocabulary, self.prepared.target_vocabulary, self.config.search
        )
        found = translator.translate(dev.sources, documents=dev.documents)
        return self.score([translation.text for translation in found], dev.targets or [])

    def after_validation(self, values: dict[str, float]) -> bool:
        """Keep the best weights, count validations without gain; True when training should stop."""
        training, progress = self.config.training, self.progress
        metric = training.early_stopping.metric
        score = values[metric] if metric != "loss" else -values["main_loss"]
        if progress.best is None or score > progress.best:
            progress.best, progress.best_step, progress.validations_without_gain, progress.plateau_waits = (
                score,
                progress.step,
                0,
                0,
            )
            if self.accelerator.is_main_process:
                write_weights(self.folder / WEIGHTS, self.system)
        else:
            progress.validations_without_gain += 1
            progress.plateau_waits += 1
            if training.schedule == "plateau" and progress.plateau_waits > training.plateau_patience:
                progress.reductions, progress.plateau_waits = progress.reductions + 1, 0
        return progress.validations_without_gain >= training.early_stopping.patience

    def keep_checkpoint(self) -> None:
        training, step = self.config.training, self.progress.step
        folder = self.folder / "checkpoints"
        if training.keep_last or (training.keep_every and step % training.keep_every == 0):
            write_weights(folder / f"step-{step:06d}.safetensors", self.system)
        steps = sorted(int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.safetensors"))
        for old in steps[: max(0, len(steps) - training.keep_last)]:
            if not (training.keep_every and old % training.keep_every == 0):
                (folder / f"step-{old:06d}.safetensors").unlink()

    def save(self) -> None:
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            save_state(self.folder / "state", self.system, self.optimizer, self.progress)

    def write(self, event: str, **values: object) -> None:
        if self.log is not None:
            self.log.write(event, self.progress.step, epoch=self.progress.epoch, **values)

    def run(self, minutes: float | None) -> Progress:
        training, progress = self.config.training, self.progress
        began, before = time.perf_counter(), progress.seconds
        skipped, window, validated = 0, _Window(), progress.step
        stop = ""
        self.system.train()
        for group in self.groups():
            if stop or (training.max_steps and progress.step >= training.max_steps):
                break
            values = self.step(group)
            progress.step += 1
            progress.tokens += int(values["tokens"])
            progress.seconds = before + time.perf_counter() - began
            skipped = self._count_skipped(values, skipped)
            window.add(values)
            if progress.step % training.log_every == 0:
                latest = window.close()
                self.write("train", seconds=round(progress.seconds, 3), tokens=progress.tokens, **latest)
                if self.report is not None and self.accelerator.is_main_process:
                    self.report(progress, self.total_steps, latest)
            ended = bool(training.max_steps and progress.step >= training.max_steps)
            late = bool(minutes and time.perf_counter() - began > minutes * 60)
            if progress.step % training.validate_every == 0 or ended or late:
                stop = "early stopping" if self._validate_and_save(group) else "out of time" if late else ""
                validated = progress.step
                if late:
                    return progress
        if validated != progress.step:
            self._validate_and_save([])
        progress.finished, progress.reason = True, stop or "all steps done"
        self.save()
        self.write("end", reason=progress.reason, best_step=progress.best_step, seconds=round(progress.seconds, 3))
        return progress

    def _validate_and_save(self, group: list[Batch]) -> bool:
        values = self.validate()
        enough = self.after_validation(values)
        self.write("valid", seconds=round(self.progress.seconds, 3), tokens=self.progress.tokens, **values)
        if self.accelerator.is_main_process:
            self.keep_checkpoint()
        self.progress.batch += len(group)  # a state stands behind the batches it has used
        self.save()
        self.progress.batch -= len(group)
        return enough

    def _count_skipped(self, values: dict[str, float], skipped: int) -> int:
        if math.isfinite(values["gradient_norm"]):
            return 0
        self.write("skipped", gradient_norm=str(values["gradient_norm"]))
        if skipped + 1 >= SKIPPED_IN_A_ROW:
            raise TrainingError(
                f"{self.folder}: {SKIPPED_IN_A_ROW} steps in a row had a gradient that is not finite (last at step "
                f"{self.progress.step}); lower the learning rate, warm up longer, or train in float32"
            )
        return skipped + 1


class _Window:
    """Means per token and speed since the last line of the log."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._began = time.perf_counter()

    def add(self, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._sums["steps"] = self._sums.get("steps", 0) + 1
        self._latest = values

    def close(self) -> dict[str, float]:
        tokens, steps = self._sums.pop("tokens"), self._sums.pop("steps")
        norm, _ = self._sums.pop("gradient_norm"), self._sums.pop("learning_rate")
        latest = {f"{name}_loss": total / tokens for name, total in self._sums.items()}
        latest |= {
            "gradient_norm": norm / steps,
            "learning_rate": self._latest["learning_rate"],
            "tokens_per_second": tokens / (time.perf_counter() - self._began),
        }
        self.__init__()  # type: ignore[misc]
        return latest
