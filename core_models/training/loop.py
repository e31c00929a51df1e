"""The training loop, resumable at every state it saves.

Accelerate handles device, precision and processes. This module handles the plan of the data, the position in it, and
the normalization of the weighted loss by target tokens (or sentences) of the global batch, over all ranks and all
accumulated batches. All processes decide from the same numbers; clocks decide when a call ends, never what is trained.
Everything of a step is logged before its state is saved; lines of later steps than the last state's go on resume.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, gather_object
from torch import Tensor, nn

from core_models.checkpoint import weights_of
from core_models.config import RunConfig
from core_models.system import System
from core_models.text.batch_loader import BatchLoader
from core_models.text.batches import Batch
from core_models.text.prepared import Prepared
from core_models.training.fitting_batches import FittingBatches
from core_models.training.gradient_check import UnreadUpdate, Update
from core_models.training.log import TrainingLog, Window
from core_models.training.loss_module import total_loss
from core_models.training.memory_probe import limit_of_memory
from core_models.training.precision import planned_steps
from core_models.training.prefetch import prefetched
from core_models.training.progress import Progress, latest_state
from core_models.training.reinforce import Reward, SampledTranslations, SelfCriticalSampler
from core_models.training.saving import Saved, Saving
from core_models.training.schedule import learning_rate
from core_models.training.state import random_states
from core_models.training.threads import ThreadsByLoad
from core_models.training.validation import Score, Validation

SKIPPED_IN_A_ROW = 10
Report = Callable[[Progress, int, dict[str, float]], None]  # (progress, steps in all, latest values)


class TrainingError(RuntimeError):
    """Training cannot go on; the message says why and what to change."""


@dataclass
class Loop:
    """The training of one run: `run` continues from `progress` to the end, or until time is up."""

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
    reward: Reward | None = None
    sampler: SelfCriticalSampler | None = None
    _began: float = field(init=False)
    _window: Window = field(init=False)
    _threads: ThreadsByLoad = field(init=False)
    _fitting: FittingBatches = field(init=False)
    _validation: Validation = field(init=False)
    _saving: Saving = field(init=False)
    _is_saving: bool = field(default=False, init=False)  # files that no process has heard of yet
    _unread: list[UnreadUpdate] = field(default_factory=list, init=False)
    _learning_rate: float = field(default=0.0, init=False)  # of the last step

    def __post_init__(self) -> None:
        self._fitting = FittingBatches(self._say_cut)
        self._saving = Saving(self.accelerator.device)
        self._validation = Validation(
            self.config, self.accelerator, self.prepared, self.system, self._fitting, self.score, self.reward
        )

    @property
    def total_steps(self) -> int:
        """The updates of the whole training, as far as they are known by now."""
        return self._total_steps_after(self.progress.step, self.progress.batch)

    def _total_steps_after(self, steps: int, batches: int) -> int:
        """The updates of the whole training, once `steps` are done, `batches` of them in this epoch.

        An estimate before the last epoch, since epochs differ a little in their number of batches; exact at the end.
        """
        training, epoch = self.config.training, self.progress.epoch
        if not (training.max_epochs and steps and epoch + batches):
            return planned_steps(self.loader, training)
        epochs = epoch + batches / len(self.loader.plan(epoch))
        in_all = round(steps * training.max_epochs / epochs)
        return min(in_all, training.max_steps or in_all)

    def groups(self) -> Iterator[list[Batch]]:
        """Yield the batches of each step from the current position, epoch by epoch; the caller advances it."""
        training, progress = self.config.training, self.progress
        while training.max_epochs is None or progress.epoch < training.max_epochs:
            batches = prefetched(self.loader.epoch(progress.epoch, start=progress.batch), self.accelerator.device)
            while group := list(itertools.islice(batches, training.accumulate)):
                yield group
            progress.epoch, progress.batch = progress.epoch + 1, 0
            progress.batches = len(self.loader.plan(progress.epoch))

    def step(self, group: list[Batch]) -> UnreadUpdate:
        """One update, skipped on the device if a loss or the gradient is not finite; the same on every process."""
        training, number = self.config.training, self.progress.step + 1
        counts = self._summed(sum(batch.target_tokens for batch in group), sum(batch.real_sentences for batch in group))
        normalizer = counts[0 if training.loss_normalization == "tokens" else 1]
        forget = partial(self.optimizer.zero_grad, set_to_none=True)
        sums, samples = self._fitting.run(group, partial(self._gradients, normalizer=normalizer), forget)
        norm = self.accelerator.clip_grad_norm_(self.objective.parameters(), training.max_grad_norm or math.inf)
        in_all = self._total_steps_after(number, self.progress.batch + len(group))
        rate = learning_rate(number, training, in_all, self.progress.reductions)
        for parameters_group in self.optimizer.param_groups:
            parameters_group["lr"] = rate
        losses = self.accelerator.gather(torch.stack([*sums.values()])[None])  # [processes, terms]
        rewards = {} if self.sampler is None else self.sampler.mean_rewards(samples, float(counts[1]))
        update = UnreadUpdate(number, [*sums], losses, counts[0], norm, rate, rewards)
        self.optimizer.found_inf = update.skip  # type: ignore[attr-defined]  # read by fused AdamW, as GradScaler's
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return update

    def _gradients(self, group: list[Batch], normalizer: Tensor) -> tuple[dict[str, Tensor], list[SampledTranslations]]:
        """Add the gradients of the batches' losses divided by `normalizer`; returns the sum of each loss term."""
        sums: dict[str, Tensor] = {}
        samples: list[SampledTranslations] = []
        for number, batch in enumerate(group):
            last, batch = number == len(group) - 1, batch.to(self.accelerator.device)
            if self.sampler is not None:
                samples.append(self.sampler.draw(batch))
            with nullcontext() if last else self.accelerator.no_sync(self.objective):
                terms = self.objective(batch, *samples[-1:])
                loss = total_loss(terms)
                loss = loss / normalizer.to(loss.dtype)
                self.accelerator.backward(loss * self.accelerator.num_processes)  # DDP takes the mean over ranks
            for name, term in terms.items():
                sums[name] = sums.get(name, term.new_zeros(())) + term.detach().sum()
        return sums, samples

    def _fit_batches(self) -> None:
        """Cut batches to what fits into the GPU of every process, before the first step."""
        objective = self.accelerator.unwrap_model(self.objective)
        given = self.optimizer, self.loader, self.progress.epoch, self.accelerator.device
        with self.accelerator.autocast():
            own, cause = limit_of_memory(objective, *given)
        words = min(gather_object([own]))
        if words < math.inf:
            self._fitting.cut_to(words)
            self._log_cut(int(words), cause or "on another process")

    def _say_cut(self, words: int, cause: str) -> None:
        """Log that batches are cut; several processes cannot, since each waits for the gradients of the others."""
        if self.accelerator.num_processes > 1:
            raise TrainingError(
                f"{self.folder}: out of memory ({cause}); {self._last_state()}. Halve batch_tokens and double "
                "accumulate in config.yaml (of this epoch some sentences are then read twice, others not), then go on: "
                f"workbench resume {self.folder}"
            )
        self._log_cut(words, cause)

    def _log_cut(self, words: int, cause: str) -> None:
        logging.getLogger(__name__).warning(
            "%s: out of memory at step %d (%s); batches are cut to %d padded words; gradients are those of whole ones",
            *(self.folder, self.progress.step + 1, cause, words),
        )
        self.write("out_of_memory", words=words, why=cause)

    def validate(self) -> dict[str, float]:
        """The losses on dev, and the metric of early stopping."""
        return self._validation.values()

    def after_validation(self, values: dict[str, float]) -> tuple[bool, bool]:
        """Count validations without gain. Returns whether these weights are the best, and whether to stop early."""
        training, progress = self.config.training, self.progress
        metric = training.early_stopping.metric
        score = values[metric] if metric != "loss" else -values["main_loss"]
        best = progress.best is None or score > progress.best
        if best:
            progress.best, progress.best_step = score, progress.step
            progress.validations_without_gain = progress.plateau_waits = 0
        else:
            progress.validations_without_gain += 1
            progress.plateau_waits += 1
            if training.schedule == "plateau" and progress.plateau_waits > training.plateau_patience:
                progress.reductions, progress.plateau_waits = progress.reductions + 1, 0
        return best, progress.validations_without_gain >= training.early_stopping.patience

    def save(self, best: bool, checkpoint: bool) -> None:
        """Write the run's weights if they are the best, a checkpoint if it is due and, last, the state.

        On a GPU that goes on in the background; the next save waits for it first.
        """
        random = random_states(self.accelerator)
        self._finish_saving()
        if self.accelerator.is_main_process:
            saved = Saved(weights_of(self.system), self.optimizer.state_dict(), random, self.progress)
            self._saving.begin(
                saved, lambda copied: copied.write(self.folder, self.config.training, best=best, checkpoint=checkpoint)
            )
        self._is_saving = True
        if not self._saving.in_background:
            self._finish_saving()

    def _finish_saving(self) -> None:
        """Wait for the files of the last save; if they could not be written, every process raises an error."""
        if self._is_saving:
            self._is_saving, problem = False, self._saving.problem()
            if self._any(problem is not None):
                raise self._stopped(problem) from problem

    def write(self, event: str, **values: object) -> None:
        """Log an event of the latest step."""
        self._write_at(self.progress.step, event, values)

    def _write_at(self, step: int, event: str, values: Mapping[str, object]) -> None:
        if self.log is not None:
            try:
                self.log.write(event, step, epoch=self.progress.epoch, **values)
            except OSError as error:
                raise self._stopped(error) from error

    def _stopped(self, problem: OSError | None) -> TrainingError:
        why = f"{problem.filename}: {problem.strerror}" if problem else "the first process could not save"
        return TrainingError(
            f"{why}. Training stopped at step {self.progress.step}; {self._last_state()}. Make room, then go on: "
            f"workbench resume {self.folder}"
        )

    def _last_state(self) -> str:
        self._saving.wait()
        state = latest_state(self.folder / "state")
        return f"{state} is whole and nothing before it is lost" if state else "no state was saved before"

    def _diverged(self, why: str) -> TrainingError:
        self.write("diverged", why=why)
        return TrainingError(
            f"{self.folder}: training has diverged: {why} at step {self.progress.step}, which is not saved; "
            f"{self._last_state()}. Lower learning_rate, lengthen warmup or take precision float32 in config.yaml, "
            f"then go on: workbench resume {self.folder}"
        )

    def _check_weights(self) -> None:
        """Raise TrainingError, on every process, if weights are no longer finite."""
        names, weights = zip(*self.system.named_parameters(), strict=True)
        finite = torch.stack([weight.isfinite().all() for weight in weights]).tolist()
        broken = [name for name, is_finite in zip(names, finite, strict=True) if not is_finite]
        if self._any(bool(broken)):
            raise self._diverged(f"{broken[0] if broken else 'a weight of another process'} is not finite")

    def run(self, minutes: float | None) -> Progress:
        """Train to the end, or for `minutes` and then save a state; returns the progress."""
        self._began = time.perf_counter() - self.progress.seconds
        self._window = Window(self.progress.window)
        self._threads = ThreadsByLoad(self.accelerator.device, self.accelerator.num_processes)
        deadline = math.inf if minutes is None else time.perf_counter() + 60 * minutes
        groups, late = self.groups(), False
        self.system.train()
        try:
            if self._ended():  # the configuration has fewer steps than when this state was saved
                self._settle(late)
            else:
                self._fit_batches()
            while not (self.progress.finished or late):
                self._train(next(groups))
                late = minutes is not None and self._time_is_checked() and self._any(time.perf_counter() > deadline)
                self._settle(late)
        finally:
            self._threads.restore()
            if (problem := self._saving.close()) is not None:  # beside the error that ends the training
                logging.getLogger(__name__).warning("%s", self._stopped(problem))
        return self.progress

    def _train(self, group: list[Batch]) -> None:
        progress = self.progress
        self._unread.append(self.step(group))
        progress.step, progress.batch = progress.step + 1, progress.batch + len(group)
        progress.seconds = time.perf_counter() - self._began
        logging_due = self._every(self.config.training.log_every)
        if logging_due or self.accelerator.device.type == "cpu":
            self._read_updates()
        if not logging_due:
            return
        if (threads := self._threads.adapt()) is not None:
            self.write("threads", threads=threads)
        latest = self._window.take()
        if latest:
            latest["learning_rate"] = self._learning_rate
            self.write("train", seconds=round(progress.seconds, 3), tokens=progress.tokens, **latest)
            if self.report is not None and self.accelerator.is_main_process:
                self.report(progress, self.total_steps, latest)

    def _read_updates(self) -> None:
        """Count the steps since the last call; until then a GPU goes on without waiting for the host."""
        unread, self._unread = self._unread, []
        for update in UnreadUpdate.read(unread):
            self.progress.tokens += int(update.tokens)
            self._learning_rate = update.learning_rate
            self._count_skipped(update)
            if not update.problem:
                self._window.add(update)

    def _count_skipped(self, update: Update) -> None:
        progress, why = self.progress, update.problem
        progress.skipped = progress.skipped + 1 if why else 0
        if not why:
            return
        logging.getLogger(__name__).warning("%s: step %d is skipped: %s", self.folder, update.step, why)
        losses = {f"{name}_loss": str(value) for name, value in update.losses.items()}
        values = {"why": why, "processes": update.broken, "gradient_norm": str(update.gradient_norm), **losses}
        self._write_at(update.step, "skipped", values)
        if progress.skipped >= SKIPPED_IN_A_ROW:
            raise TrainingError(
                f"{self.folder}: {SKIPPED_IN_A_ROW} steps in a row were skipped, because a loss or the gradient was "
                f"not finite (at step {update.step}: {why}); lower learning_rate, lengthen warmup or take precision "
                f"float32 in config.yaml, then go on from the last state: workbench resume {self.folder}"
            )

    def _settle(self, late: bool) -> None:
        """Validate, finish and save a state if due after a step.

        Everything of a step is logged before its state is saved; nothing is saved if weights or losses on dev are not
        finite.
        """
        training, progress = self.config.training, self.progress
        ended, keep = self._ended(), self._every(training.keep_every)
        due, best, enough = ended or self._every(training.validate_every), False, False
        saving = due or late or keep or self._every(training.save_every)
        if saving:
            self._read_updates()
            self._check_weights()
        if due:
            with self._window.paused():
                values = self._of_main_process(self.validate())
            if broken := [name for name, value in values.items() if not math.isfinite(value)]:
                raise self._diverged(f"{broken[0]} on dev is not finite")
            best, enough = self.after_validation(values)
            self.write("valid", seconds=round(progress.seconds, 3), tokens=progress.tokens, **values)
        if ended or enough:
            progress.finished, progress.reason = True, "early stopping" if enough else "all steps done"
            if progress.batch >= len(self.loader.plan(progress.epoch)):
                progress.epoch, progress.batch, progress.batches = progress.epoch + 1, 0, 0
        if saving:
            # Out of time before any validation: save weights anyway, so that the run can be used.
            with self._window.paused():
                self.save(best=best or (late and progress.best is None), checkpoint=due or keep)
        if progress.finished or late:
            self._finish_saving()
        if progress.finished:
            self.write("end", **progress.ending())

    def _ended(self) -> bool:
        """True after the last step, so that its state is that of a finished run."""
        training, progress = self.config.training, self.progress
        if training.max_steps and progress.step >= training.max_steps:
            return True
        if training.max_epochs is None or progress.epoch < training.max_epochs - 1:
            return False
        return progress.epoch >= training.max_epochs or progress.batch >= len(self.loader.plan(progress.epoch))

    def _every(self, steps: int | None) -> bool:
        return bool(steps) and self.progress.step % (steps or 1) == 0

    def _any(self, flag: bool) -> bool:
        """True if the flag is set on any process; a process must never stop alone, as others would wait for it."""
        return flag if self.accelerator.num_processes == 1 else bool(self._summed(flag)[0] > 0)

    def _time_is_checked(self) -> bool:
        """True if the time is looked at after this step: several processes would wait for each other every time."""
        return self.accelerator.num_processes == 1 or self._every(self.config.training.log_every)

    def _summed(self, *counts: float) -> Tensor:
        """The sums of these numbers over all processes, float64, on the device; the host does not wait for them."""
        device = self.accelerator.device
        own = torch.stack([torch.full((), count, dtype=torch.float64, device=device) for count in counts])
        return self.accelerator.reduce(own)

    def _of_main_process(self, values: dict[str, float]) -> dict[str, float]:
        """The main process's numbers, shared because other processors may round a loss differently."""
        shared = torch.tensor([*values.values()], dtype=torch.float64, device=self.accelerator.device)
        return dict(zip(values, broadcast(shared).tolist(), strict=True))
