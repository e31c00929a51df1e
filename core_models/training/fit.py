"""Train a run folder: set up configuration, data, system, optimizer and state, and run the training loop."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Sequence
from pathlib import Path

import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list

from core_models.checkpoint import CheckpointError, initialize_from, other_vocabulary
from core_models.config import TRAINING_LOG, RunConfig, TrainingConfig, read_config
from core_models.devices import check_device, resolved
from core_models.resources import commit
from core_models.settings import ConfigError
from core_models.system import System
from core_models.system_builder import build, parameters
from core_models.text.batch_loader import BatchLoader
from core_models.text.prepared import Prepared
from core_models.text.vocabulary import Vocabulary
from core_models.training.checks import check_context, check_decoding, check_dev, check_sampling
from core_models.training.compilation import compile_parts
from core_models.training.events import read_events
from core_models.training.lock import training_lock
from core_models.training.log import TrainingLog
from core_models.training.loop import Loop, Report, TrainingError
from core_models.training.loss_module import Objective
from core_models.training.precision import Precision, TimedPrecision, allow_tf32, timed_precision
from core_models.training.progress import Progress, latest_state, read_progress
from core_models.training.reinforce import Reward, SelfCriticalSampler
from core_models.training.state import load_state
from core_models.training.validation import Score


def fit(
    folder: str | Path,
    score: Score | None = None,
    report: Report | None = None,
    device: str = "auto",
    minutes: float | None = None,
    reward: Reward | None = None,
) -> Progress:
    """Train the run in `folder` (created by `begin_run`), or continue from its last state.

    score(hypotheses, references) is called if early stopping monitors BLEU or chrF; reward(sources, hypotheses,
    references) if it monitors adequacy, or training optimizes it; report after every logged step; device "auto" is the
    best available; minutes limits this call, after which the run can be resumed. Returns the progress of training.

    A finished run continues if its configuration now allows more (max_steps, max_epochs, patience), as if it had from
    the start; differences from that are logged with a warning: see `_unlike_from_the_start`. Raises ConfigError for
    invalid settings, TextError for texts without the context that is read, CheckpointError for a broken state or
    another vocabulary, TrainingError also if another process trains the run.
    """
    folder = Path(folder)
    config = read_config(folder)
    training = config.training
    if device != "auto":
        check_device(device)
    minutes = training.max_minutes if minutes is None else minutes
    if minutes is not None and minutes <= 0:
        raise ConfigError(f"max_minutes: {minutes:g} leaves no time to train; give more, or leave it out")
    processes = _processes(device)
    torch.manual_seed(training.seed)
    prepared = Prepared.open(config.data_folder(folder))
    system = build(config.model, len(prepared.source_vocabulary), len(prepared.target_vocabulary))
    if training.precision == "float64":
        system.double()
    vocabularies = _vocabularies(folder, prepared)
    system.to(processes.device)
    check_decoding(config, system, score, reward)
    check_sampling(training, vocabularies)
    check_context(training, system, prepared)
    check_dev(config, system, prepared, vocabularies)
    freeze(system, training.trainable_params)
    with training_lock(folder, processes), allow_tf32(processes.device, training.tf32):
        timed = _precision(folder, training, system, prepared, vocabularies, processes)
        loop, going_on = _prepared_loop(
            folder, config, device, timed.precision, prepared, system, vocabularies, score, report, reward
        )
        try:
            if not loop.progress.finished:
                _write_start(loop, timed, going_on)
                return loop.run(minutes)
            if loop.log is not None and not loop.log.ended:  # killed between the last state and the last line
                loop.write("end", **loop.progress.ending())
            return loop.progress
        finally:
            if loop.log is not None:
                loop.log.close()


def precision_of_new(config: RunConfig, folder: Path, device: str = "auto") -> TimedPrecision:
    """The precision that `auto` stands for in a training that is not begun; folder: of its run, which need not exist.

    For several runs that are to be trained in one precision.
    """
    if device != "auto":
        check_device(device)
    prepared = Prepared.open(config.data_folder(folder))
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    system = build(config.model, *map(len, vocabularies)).to(resolved(device))
    loader = _loader(config.training, system, prepared, vocabularies)
    with allow_tf32(system.device, config.training.tf32):
        return timed_precision(system, config.training, loader, _optimizer)


def _precision(
    folder: Path,
    training: TrainingConfig,
    system: System,
    prepared: Prepared,
    vocabularies: tuple[Vocabulary, Vocabulary],
    processes: PartialState,
) -> TimedPrecision:
    """The precision of this training, the same on every process: as configured, as in its last state, or timed."""
    if training.precision != "auto":
        return TimedPrecision(training.precision, {})
    earlier = read_progress(folder / "state")
    if earlier is not None:  # states of earlier versions name none: `auto` was float32
        return TimedPrecision(earlier.precision or "float32", {})
    timed: list[TimedPrecision | None] = [None]
    if processes.is_main_process:
        timed[0] = timed_precision(system, training, _loader(training, system, prepared, vocabularies), _optimizer)
    decided = broadcast_object_list(timed)[0]
    assert isinstance(decided, TimedPrecision)
    return decided


def _loader(
    training: TrainingConfig,
    system: System,
    prepared: Prepared,
    vocabularies: tuple[Vocabulary, Vocabulary],
    rank: int = 0,
    processes: int = 1,
) -> BatchLoader:
    return BatchLoader(
        prepared.split("train"),
        training.batch_tokens,
        training.seed,
        rank,
        processes,
        vocabularies=vocabularies,
        sampling_alpha=training.subword_alpha,
        context=system.context,
        count_context=training.count_context,
        buckets=training.compile is True,
        room=system.config.room,
    )


def _prepared_loop(
    folder: Path,
    config: RunConfig,
    device: str,
    precision: Precision,
    prepared: Prepared,
    system: System,
    vocabularies: tuple[Vocabulary, Vocabulary],
    score: Score | None,
    report: Report | None,
    reward: Reward | None,
) -> tuple[Loop, bool]:
    """The training loop at the run's last state, and whether a finished run is continued."""
    training = config.training
    accelerator = Accelerator(cpu=_on_cpu(device), mixed_precision="bf16" if precision == "bfloat16" else "no")
    optimizer = _optimizer(system, training)
    progress, going_on = _progress(folder, training, accelerator, system, vocabularies, optimizer)
    for mechanism in system.named_mechanisms.values():
        mechanism.begin_training()
    progress.precision = precision
    _check_text(folder, progress, prepared)
    loader = _loader(training, system, prepared, vocabularies, accelerator.process_index, accelerator.num_processes)
    if progress.batch > len(loader.text):
        raise CheckpointError(
            f"{folder}: its state is {progress.batch} batches into an epoch of {len(loader.text)} sentences; move the "
            "state's folder away to go on from the one before it"
        )
    main = accelerator.is_main_process
    if progress.replan(len(loader.plan(progress.epoch))) and main:
        logging.getLogger(__name__).warning(
            "%s: the batches have changed; training goes on at batch %d of %d, so some sentences of this epoch are "
            "read twice and others not at all",
            *(folder, progress.batch, progress.batches),
        )
    if training.compile:
        compile_parts(system, training.compile)
    weight = training.adequacy.weight
    objective = accelerator.prepare_model(Objective(system, training.label_smoothing, weight))
    sampler = None
    if weight and reward is not None:
        sampler = SelfCriticalSampler(
            system, loader.text, vocabularies[1], config.search, reward, training.adequacy.samples, accelerator
        )
    log = TrainingLog(folder, progress.step, training.tensorboard, going_on) if main else None
    loop = Loop(
        folder=folder,
        config=config,
        accelerator=accelerator,
        prepared=prepared,
        system=system,
        objective=objective,
        optimizer=optimizer,
        loader=loader,
        progress=progress,
        log=log,
        score=score,
        report=report,
        reward=reward,
        sampler=sampler,
    )
    return loop, going_on


def _progress(
    folder: Path,
    training: TrainingConfig,
    accelerator: Accelerator,
    system: System,
    vocabularies: tuple[Vocabulary, Vocabulary],
    optimizer: torch.optim.Optimizer,
) -> tuple[Progress, bool]:
    """Load the progress, weights and optimizer of the run; also returns whether a finished run is continued.

    A new run takes its weights from `init_from`, if given.
    """
    rank, processes = accelerator.process_index, accelerator.num_processes
    progress, state = Progress(processes=processes), latest_state(folder / "state")
    if state is not None:
        progress = load_state(state, system, optimizer, rank)
    elif any(event["event"] == "end" for event in read_events(folder / TRAINING_LOG)):
        raise CheckpointError(
            f"{folder}: its training has ended and no state of it is left to go on from; to train its weights further, "
            f"begin a new run: --init-from {folder}"
        )
    elif training.init_from is not None:
        progress.unmatched = initialize_from(system, training.init_from, vocabularies, training.init_params)
    _check_same_state(accelerator, folder, progress.step)
    if progress.watch(training.early_stopping.metric) and accelerator.is_main_process:
        logging.getLogger(__name__).warning(
            "%s: early_stopping.metric has changed; the next validation counts as the best so far", folder
        )
    going_on = progress.reopen(training)
    if state is None or progress.processes != processes:
        torch.manual_seed(training.seed + progress.step + rank)
        progress.adopt(processes)
    return progress, going_on


def freeze(system: System, train: Sequence[str]) -> None:
    """Let only the parameters train whose names match one of the patterns, all if there are none.

    Raises ConfigError for a pattern that matches no parameter.
    """
    names = [name for name, _ in system.named_parameters()]
    for pattern in train:
        if not fnmatch.filter(names, pattern):
            heads = sorted({".".join(name.split(".")[:2]) for name in names})
            raise ConfigError(
                f"training.trainable_params: no parameter is named like {pattern!r}; there are: {', '.join(heads)}"
            )
    for name, parameter in system.named_parameters():
        if train and not any(fnmatch.fnmatchcase(name, pattern) for pattern in train):
            parameter.requires_grad_(False)


def _vocabularies(folder: Path, prepared: Prepared) -> tuple[Vocabulary, Vocabulary]:
    """The vocabularies of the prepared text; raises CheckpointError if the run was begun with others."""
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    if side := other_vocabulary(folder, vocabularies):
        raise CheckpointError(
            f"{folder}: its {side} vocabulary is not the one of {prepared.folder}, which was prepared again since; "
            "prepare it as it was, or train a new run"
        )
    return vocabularies


def _check_text(folder: Path, progress: Progress, prepared: Prepared) -> None:
    """Note the text that a run trains on; raises CheckpointError if its state is of another."""
    if progress.text not in ("", prepared.splits_digest):
        raise CheckpointError(
            f"{folder}: it was trained on another text than {prepared.folder} has, which was prepared again since; "
            "prepare it as it was, or train a new run, which may begin from this one (init_from)"
        )
    progress.text = prepared.splits_digest


def _unlike_from_the_start(progress: Progress, training: TrainingConfig) -> list[str]:
    """Differences of a continued finished run from one that was configured for as many steps from the start."""
    differences = []
    if progress.step % training.validate_every:
        differences.append(
            f"its validation at step {progress.step}, which is no multiple of validate_every, still counts"
        )
    if training.schedule == "cosine":
        differences.append(f"its learning rate fell towards the end at step {progress.step}, and rises again")
    return differences


def _warn_of_what_is_kept(loop: Loop) -> None:
    training = loop.config.training
    if training.adequacy.weight and training.early_stopping.metric == "loss" and loop.log is not None:
        logging.getLogger(__name__).warning(
            "%s: the weights of the lowest loss on dev are kept, which training towards adequacy does not lower; watch "
            "adequacy, bleu or chrf: early_stopping.metric",
            loop.folder,
        )


def _write_start(loop: Loop, timed: TimedPrecision, going_on: bool) -> None:
    _warn_of_what_is_kept(loop)
    unlike = _unlike_from_the_start(loop.progress, loop.config.training) if going_on else []
    if unlike and loop.log is not None:
        logging.getLogger(__name__).warning(
            "%s: trained beyond its end; unlike a training of as many steps from the start, %s",
            loop.folder,
            "; ".join(unlike),
        )
    loop.write(
        "start",
        steps=loop.total_steps,
        device=str(loop.accelerator.device),
        processes=loop.accelerator.num_processes,
        threads=torch.get_num_threads(),
        precision=timed.precision,
        tf32=torch.get_float32_matmul_precision() == "high",
        **({"step_seconds": timed.seconds} if timed.seconds else {}),
        torch=torch.__version__,
        commit=commit(),
        **parameters(loop.system),
        unmatched=loop.progress.unmatched,
        **({"beyond_its_end": unlike} if going_on else {}),
    )


def _check_same_state(accelerator: Accelerator, folder: Path, step: int) -> None:
    steps = accelerator.gather(torch.tensor([step], device=accelerator.device)).tolist()
    if len(set(steps)) > 1:
        raise TrainingError(
            f"{folder}: the processes find states of different steps there ({', '.join(map(str, steps))}); put the "
            "run on a disk that all machines share"
        )


def _processes(device: str) -> PartialState:
    """The processes that train together, and this one's device."""
    # Accelerate stores the first call's device and precision for the process; a second fit may use others.
    if not torch.distributed.is_initialized():
        AcceleratorState._reset_state(reset_partial_state=True)
        if device.startswith("cuda:"):  # Accelerate takes the process's current card
            torch.cuda.set_device(device)
    return PartialState(cpu=_on_cpu(device))


def _on_cpu(device: str) -> bool:
    # Accelerate runs several processes on CPUs only with cpu=True; by default it would use Apple's GPU, which has no
    # float64, in which tokens are counted.
    return device == "cpu" or (device == "auto" and not torch.cuda.is_available())


def _optimizer(system: System, training: TrainingConfig) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        [(name, parameter) for name, parameter in system.named_parameters() if parameter.requires_grad],
        lr=training.learning_rate,
        betas=training.betas,
        eps=1e-9,
        weight_decay=training.weight_decay,
        fused=True,
    )
