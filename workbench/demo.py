"""The demo: a small experiment that is shipped, trained, translated, scored and traced in a few minutes.

The same seed gives the same bytes on one machine and number of threads. What is done already is passed over, so an
interrupted demo goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from analyses.lines import digest
from core_models.resources import data_folder
from workbench.runs import Run, RunError, open_run

Say = Callable[[str], None]
# PAST and FUTURE layers hardly train from scratch; Zheng 2018 trains them from the finished recurrent model.
SECOND_PASS, FIRST_PASS = "past_future_layers", "rnnsearch"
LONGEST_NAME = 100  # of a grid made of the names of its systems; another is named by their digest
Show = Callable[[int, int, str], None]  # (how much is done, of how much, what is being done)


def grid_file() -> Path:
    return data_folder() / "experiments" / "demo.yaml"


@cache
def systems(file: Path | None = None) -> tuple[str, ...]:
    """The names of its systems, which are those of its runs."""
    from workbench.experiments.grid import read_experiment

    return tuple(read_experiment(file or grid_file()).systems)


def in_second_pass(name: str) -> bool:
    """Does a system begin from FIRST_PASS, seeing twice the updates? Raises ConfigError for an unknown name."""
    from core_models.systems import describe

    return any(SECOND_PASS in mechanism for mechanism in describe(name).mechanisms)


def grids_of(names: Sequence[str], root: Path, file: Path | None = None) -> list[Path]:
    """Grids of any systems of the catalogue beside the demo's own, by its recipe and on its text, in order: files in
    ROOT/demo. Those that are trained in a second pass begin from what the first grid makes.

    file: another grid that is named demo. Raises ConfigError with the nearest known name for one that is none.
    """
    from core_models.settings import write_yaml
    from workbench.experiments.grid import read_experiment

    own = read_experiment(file or grid_file())
    recipe = next(iter(own.systems.values())).partition(":")[2]
    later = [name for name in names if in_second_pass(name)]
    passes: list[tuple[list[str], dict[str, str]]] = [
        ([*(name for name in names if name not in later), *([FIRST_PASS] if later else [])], {}),
        (later, {"begin_from": f"{own.name}/{FIRST_PASS}"}),
    ]
    grids = []
    for systems, begins in passes:
        if wanted := {name: f"{name}:{recipe}" for name in systems}:
            name = "+".join(wanted)
            written = root / own.name / f"{name if len(name) <= LONGEST_NAME else digest([*wanted])}.yaml"
            written.parent.mkdir(parents=True, exist_ok=True)
            write_yaml(written, {**own.model_dump(mode="json", exclude_defaults=True), "systems": wanted, **begins})
            grids.append(written)
    return grids


def complete(root: Path, file: Path | None = None) -> bool:
    """Is the demo there, whole, and of the weights that are there?"""
    runs = [Run(root / "demo" / name, name) for name in systems(file)]
    traced = all((run.results / "traces" / "test" / "index.json").is_file() for run in runs)
    return traced and not any(run.outdated("test") for run in runs)


def build(
    root: Path,
    say: Say = print,
    show: Show | None = None,
    device: str = "cpu",
    processes: int = 1,
    file: Path | None = None,
) -> list[Run]:
    """Build the whole demo below `root` and say the scores.

    processes: that share its systems, and on a CPU the processors. file: another grid that is named demo.
    """
    from workbench.evaluation import score_table
    from workbench.experiments.launching import run_in_processes

    names = systems(file)
    if not complete(root, file):
        devices = [device] * min(processes, len(names))
        run_in_processes(file or grid_file(), root, None, devices, say, show or (lambda *_: None))
    if not complete(root, file):
        raise RunError(f"another process builds the demo below {root}; start this again when it has ended")
    runs = [open_run(root / "demo" / name) for name in names]
    wide = max(map(len, names))
    for row in score_table(runs, "test").itertuples():
        say(f"{row.system:{wide}} {row.metric:5} {row.score:6.2f}  [{row.low:.2f}, {row.high:.2f}]  {row.signature}")
    return runs
