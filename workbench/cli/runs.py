"""workbench runs list and average."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import RunPath, RunsRoot, print_aligned, refuse, runs_app
from workbench.cli.terminal import say


@runs_app.command("list")
def runs_list(root: RunsRoot = Path("runs")) -> None:
    """List the runs below a folder, broken ones with their reason."""
    from workbench.store.runs import list_runs

    runs = list_runs(root)
    if not runs:
        say(
            f"there is no run below {root}; make one (workbench demo --runs {shlex.quote(str(root))}), or name another "
            "folder",
            err=True,
        )
    rows = []
    for run in runs:
        if run.problem:
            rows.append([run.name, f"broken: {run.problem}"])
        else:
            state = "outside" if run.outside else "trained" if run.trained else "not trained"
            rows.append([run.name, run.system, state, f"tests: {', '.join(run.tests()) or 'none'}"])
    print_aligned(rows)


@runs_app.command("average")
def runs_average(
    run: RunPath,
    last: Annotated[int, typer.Option(help="Number of the latest checkpoints to average")] = 5,
    use: Annotated[bool, typer.Option(help="Make the average the run's weights too")] = False,
) -> None:
    """Average the last checkpoints of a run into RUN@average-N."""
    import shutil

    from core_models.checkpoint import average as average_checkpoints
    from core_models.config import WEIGHTS
    from core_models.files.atomic_files import atomic_replace
    from core_models.training.progress import is_step
    from workbench.store.runs import open_run

    if last < 1:
        refuse(f"--last {last}: at least one checkpoint makes an average")
    folder = open_run(run).folder
    steps = {path: path.stem.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*.safetensors")}
    checkpoints = sorted((path for path in steps if is_step(steps[path])), key=lambda path: int(steps[path]))[-last:]
    path = folder / "checkpoints" / f"average-{len(checkpoints)}.safetensors"
    average_checkpoints(checkpoints, path)
    if use:
        with atomic_replace(folder / WEIGHTS) as unfinished:
            shutil.copyfile(path, unfinished)
    fewer = f"; {last} were asked for, and no more are there" if len(checkpoints) < last else ""
    say(f"{path}: mean of {', '.join(checkpoint.stem for checkpoint in checkpoints)}{fewer}")
