"""Creation and training of runs, shared by the CLI, the demo and experiments."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import RunConfig, SearchConfig, TrainingConfig
from core_models.settings import ConfigError, parse
from core_models.training.progress import read_progress
from workbench.store.runs import Run, RunError, open_run

if TYPE_CHECKING:
    from core_models.training.progress import Progress
    from workbench.evaluation.adequacy import Reward

Report = Callable[["Progress", int, dict[str, float]], None]


def new_run(
    folder: Path,
    system: str,
    data: Path,
    training: Mapping[str, Any],
    search: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
) -> Run:
    """Create a run of a catalogue system on prepared data; refuses a folder that is a run already.

    model: fields that override those of the catalogue's configuration.
    """
    from core_models.checkpoint import begin_run, initialize_from
    from core_models.system_builder import build
    from core_models.text.prepared import Prepared

    if (folder / "config.yaml").is_file():
        raise RunError(
            f"{folder}: a run is here already; go on with it (workbench resume {shlex.quote(str(folder))}) or choose "
            "another folder"
        )
    prepared = Prepared.open(data)
    config = run_config(folder, system, data, training, search, model)
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    built = build(config.model, *map(len, vocabularies))  # refuses a model that cannot be built or begun from
    if config.training.init_from is not None:
        initialize_from(built, config.training.init_from, vocabularies, config.training.init_params)
    begin_run(folder, config, *vocabularies)
    return Run(folder, folder.name)


def run_config(
    folder: Path,
    system: str,
    data: Path,
    training: Mapping[str, Any],
    search: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The configuration of a run in `folder`, which need not exist: see `new_run`."""
    from core_models.config import ModelConfig
    from core_models.system_spec import describe
    from core_models.text.prepared import Prepared

    described = describe(system)
    if not Prepared.open(data).joint and described.tie_embeddings == "all":
        described = described.model_copy(update={"tie_embeddings": "target"})
    if model:
        described = parse(ModelConfig, {**described.model_dump(), **ModelConfig.by_current_names(model)}, where=system)
    return RunConfig(
        name=folder.name,
        system=system,
        data=os.path.relpath(data.resolve(), folder.resolve()),
        model=described,
        training=parse(TrainingConfig, training, "training"),
        search=parse(SearchConfig, search or {}, "search"),
    )


def train(run: Run, report: Report | None = None, device: str = "auto", minutes: float | None = None) -> Progress:
    """Train or resume a run; BLEU or chrF for early stopping, and the reward, come from `analyses`."""
    from core_models.training.fit import fit

    return fit(
        run.folder,
        score=score_function(run.config.training.early_stopping.metric),
        report=report,
        device=device,
        minutes=minutes,
        reward=reward_function(run),
    )


@contextmanager
def interrupted_by_terminate() -> Iterator[None]:
    """Treat SIGTERM (a cancelled job, a shutdown) like Ctrl-C inside the context."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def score_function(metric: str) -> Callable[[list[str], list[str]], float] | None:
    """The corpus score that early stopping watches; None for the loss and the reward."""
    if metric in ("loss", "adequacy"):
        return None

    def score(hypotheses: list[str], references: list[str]) -> float:
        from analyses.scores import extract

        return extract(hypotheses, references, metric).total

    return score


def reward_function(run: Run) -> Reward | None:
    """The adequacy reward of a run that is trained towards it, or whose early stopping watches it; else None.

    It is measured by the frozen aligner of the run's training text.
    """
    training = run.config.training
    if not training.adequacy.weight and training.early_stopping.metric != "adequacy":
        return None
    from workbench.evaluation.adequacy import aligner_of, reward

    aligner, _ = aligner_of([run], "dev")
    return reward(aligner)


def finished(folder: Path) -> bool:
    """Return True if training has ended (not been interrupted), and its configuration allows no more updates.

    This is read from the last state, which a process killed before it logged the end has too; without states, from the
    log.
    """
    if not (folder / "weights.safetensors").is_file():
        return False
    run = open_run(folder)
    try:
        last = read_progress(folder / "state")
    except ConfigError as error:
        raise RunError(f"{error}; move the folder of this state away to go on from the one before it") from None
    if last is None:
        return any(event.get("event") == "end" for event in run.events())
    more = run.config.training.can_continue(last.step, last.epoch, last.validations_without_gain)
    return last.finished and not more
