"""The demo: a small experiment of the package, trained, translated, scored and traced in a few minutes.

The same seed gives the same bytes on one machine and number of threads. Finished steps are skipped, so an interrupted
demo continues where it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from core_models.resources import data_folder, processors
from workbench.store.runs import Run, RunError, open_run

Say = Callable[[str], None]
# PAST and FUTURE layers hardly train from scratch; Zheng 2018 trains them from the finished recurrent model.
SECOND_PASS, FIRST_PASS = "past_future_layers", "rnnsearch"
LONGEST_NAME = 100  # of a run or a grid, composed of its systems; the rest of a longer one is a digest
Show = Callable[[int, int, str], None]  # (done, total, what runs)


def grid_file() -> Path:
    return data_folder() / "experiments" / "demo.yaml"


@cache
def systems(file: Path | None = None) -> tuple[str, ...]:
    """The names of its systems and runs."""
    from workbench.experiments.grid import read_experiment

    return tuple(read_experiment(file or grid_file()).systems)


def run_name(description: str) -> str:
    """The folder name of a system, valid on every file system: coverage-form=neural for coverage:form=neural."""
    name = re.sub(r"[^\w+=.-]+", "-", re.sub(r"[\s\[\]]+", "", description), flags=re.ASCII).rstrip("-.")
    return _cut(name)


def _cut(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 9]}-{digest}"


def first_pass(description: str) -> str | None:
    """The model without mechanisms from which a system with PAST and FUTURE layers begins (twice the updates).

    None for a system that trains from scratch. Raises ConfigError for an invalid description.
    """
    from core_models.config import ModelConfig
    from core_models.system_spec import describe, parts_of

    if not any(SECOND_PASS in mechanism for mechanism in describe(description).mechanisms):
        return None
    systems, settings = parts_of(description)
    bare = [system for system in systems if not describe(system).mechanisms] or [FIRST_PASS]
    model_settings = [setting for setting in settings if _key(setting) in ModelConfig.model_fields]
    return _written(bare, model_settings)


def by_recipe(description: str, file: Path | None = None) -> str:
    """A description completed with the settings of the demo's own systems.

    file: another grid that is named demo. Raises ConfigError for a system that cannot be built.
    """
    import core_models
    from core_models.settings import settings_in
    from core_models.system_spec import parts_of
    from workbench.experiments.grid import read_experiment

    demo = read_experiment(file or grid_file())
    names, settings = parts_of(description)
    recipe = settings_in(next(iter(demo.systems.values())).partition(":")[2])
    keys = {_key(setting) for setting in settings}
    complete_description = _written(names, [*(setting for setting in recipe if _key(setting) not in keys), *settings])
    core_models.build(complete_description, demo.data.pieces)
    return complete_description


def _key(setting: str) -> str:
    from core_models.config import ModelConfig

    key = setting.partition("=")[0]
    return ModelConfig.former_names.get(key, key)


def _written(names: Sequence[str], settings: Sequence[str]) -> str:
    return ":".join(filter(None, ("+".join(names), ",".join(settings))))


def grids_of(descriptions: Sequence[str], root: Path, file: Path | None = None) -> list[Path]:
    """Write grids of further systems with the demo's recipe and text, in order, as files in ROOT/demo.

    Systems that are trained in a second pass begin from runs of the first grid. descriptions: NAME, NAME:key=value,...
    or NAME+NAME of the catalogue. file: another grid that is named demo. Raises ConfigError with the nearest known name
    for an unknown one, and for a system that cannot be built.
    """
    first_passes = {description: first_pass(description) for description in descriptions}
    firsts = list(dict.fromkeys(first for first in first_passes.values() if first))
    scratch = [*(description for description, first in first_passes.items() if first is None), *firsts]
    later = [(first, [name for name in first_passes if first_passes[name] == first]) for first in firsts]
    passes: list[tuple[str | None, list[str]]] = [(None, scratch), *later]
    grids = [(first, {run_name(name): by_recipe(name, file) for name in systems}) for first, systems in passes]
    return [_write_grid(systems, first, root, file) for first, systems in grids if systems]


def _write_grid(systems: Mapping[str, str], first: str | None, root: Path, file: Path | None) -> Path:
    """Write the demo's grid with other systems (folder name -> description), which begin from `first`."""
    from core_models.settings import write_yaml
    from workbench.experiments.grid import read_experiment

    demo = read_experiment(file or grid_file())
    begins = {} if first is None else {"begin_from": f"{demo.name}/{run_name(first)}"}
    written = root / demo.name / f"{_cut(','.join(systems))}.yaml"
    written.parent.mkdir(parents=True, exist_ok=True)
    write_yaml(written, {**demo.model_dump(mode="json", exclude_defaults=True), "systems": dict(systems), **begins})
    return written


def complete(root: Path, file: Path | None = None) -> bool:
    """Return True if the demo is complete and of the present weights."""
    runs = [Run(root / "demo" / name, name) for name in systems(file)]
    traced = all(run.traced("test") for run in runs)
    return traced and not any(run.outdated("test") for run in runs)


def build(
    root: Path,
    say: Say = print,
    show: Show | None = None,
    device: str = "cpu",
    processes: int | None = None,
    file: Path | None = None,
) -> list[Run]:
    """Build the whole demo below `root` and print the scores.

    processes: that share its systems and a CPU's processors, by default as many as systems; on one processor one. Two
    steps of one thread each are faster than one step of two threads after the other. file: another grid that is named
    demo.
    """
    from workbench.evaluation.scoring import score_table
    from workbench.experiments.launcher import run_in_processes

    names = systems(file)
    if not complete(root, file):
        at_once = processes or (len(names) if processors() > 1 else 1)
        devices = [device] * min(at_once, len(names))
        run_in_processes(file or grid_file(), root, None, devices, say, show or (lambda *_: None))
    if not complete(root, file):
        raise RunError(f"another process builds the demo below {root}; start this again when it has ended")
    runs = [open_run(root / "demo" / name) for name in names]
    wide = max(map(len, names))
    for row in score_table(runs, "test").itertuples():
        say(f"{row.system:{wide}} {row.metric:5} {row.score:6.2f}  [{row.low:.2f}, {row.high:.2f}]  {row.signature}")
    return runs
