"""workbench train and resume."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.numbers import MaxMinutes
from workbench.cli.shared import (
    Device,
    RunPath,
    app,
    bar,
    pairs,
    refuse,
    train_report,
)
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank, world

Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        help="Training setting as key=value, e.g. max_steps=1000 (all: docs/reference/settings.md); may be repeated",
    ),
]


@app.command()
def train(
    system: Annotated[
        str,
        typer.Argument(
            help="System of the catalogue, e.g. future-cost-2:preset=small,weight=0.7, or several joined by +, e.g. "
            "pfrnn-loss+future-cost-2"
        ),
    ],
    data: Annotated[Path, typer.Option(help="Folder of prepared data (`workbench data prepare`)")],
    out: Annotated[Path, typer.Option(help="Run folder to write")],
    config: Config = None,
    search: Annotated[
        list[str] | None, typer.Option(help="Search setting as key=value, e.g. beam=5; may be repeated")
    ] = None,
    init_from: Annotated[str | None, typer.Option(help="Run, or RUN@STEP, whose weights training starts from")] = None,
    max_minutes: MaxMinutes = None,
    device: Device = "auto",
) -> None:
    """Train a system into a new run folder.

    Towards adequacy (aol; Kong 2019, not a faithful reproduction), of any system that is trained already: --init-from
    RUN --config adequacy.weight=10 --config early_stopping.metric=adequacy. The reward is source coverage.
    """
    if world() > 1:
        refuse(
            "one process begins a run: workbench train with --max-minutes 0.1, then torchrun with workbench resume OUT"
        )
    from core_models.devices import check_device
    from workbench.experiments.train import new_run
    from workbench.experiments.train import train as train_run
    from workbench.store import exhibits

    training = {"max_epochs": 10, **pairs(config, "--config")}
    if "max_steps" in training and "max_epochs" not in pairs(config, "--config"):
        del training["max_epochs"]
    if init_from:
        # Absolute, so that it is found from other folders too.
        training["init_from"] = os.path.abspath(exhibits.run_folder(Path(init_from)))
    if device != "auto":
        check_device(device)
    run = new_run(out, system, exhibits.run_folder(data), training, pairs(search, "--search"))
    with _ending_well(out), bar(f"training {run.name}") as show:
        _say_end(train_run(run, train_report(show), device, max_minutes), out)


@app.command()
def resume(
    run: RunPath,
    max_minutes: MaxMinutes = None,
    device: Device = "auto",
) -> None:
    """Go on training a run from its last state; one that had ended, where its config.yaml by now asks for more."""
    from workbench.experiments.train import finished
    from workbench.experiments.train import train as train_run
    from workbench.store.runs import open_run

    opened = open_run(run)
    nothing_left = finished(opened.folder)
    with _ending_well(opened.folder), bar(f"training {opened.name}") as show:
        _say_end(train_run(opened, train_report(show), device, max_minutes), run)
    if nothing_left and rank() == 0:
        say(
            f"{run} had ended before: raise max_steps or max_epochs in its config.yaml to train on, or the patience of "
            "early_stopping where that ended it"
        )


@contextmanager
def _ending_well(run: Path) -> Iterator[None]:
    """Report how training can be resumed after Ctrl-C or a request to end."""
    from workbench.experiments.train import interrupted_by_terminate

    try:
        with interrupted_by_terminate():
            yield
    except KeyboardInterrupt:
        from core_models.training.progress import read_progress

        if rank() == 0:
            saved = read_progress(run / "state")
            step = f"step {saved.step} was saved last" if saved else "no step was saved yet"
            say(f"{run}: {step}; go on with it: {_resuming(run)}", err=True)
        raise


def _say_end(progress: Any, run: Path) -> None:
    if rank() != 0:  # of several processes one speaks
        return
    say(
        f"step {progress.step}, epoch {progress.epoch}, {progress.seconds:.0f} s, best at step {progress.best_step}"
        + (f" ({progress.reason})" if progress.finished else f"; not finished: {_resuming(run)}")
    )
    if progress.unmatched:
        say(f"not matched by init_from, freshly initialized: {', '.join(progress.unmatched)}")


def _resuming(run: Path) -> str:
    return shlex.join(["workbench", "resume", str(run)])
