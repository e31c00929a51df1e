"""The demo: a small experiment that is shipped, trained, translated, scored and traced in a few minutes.

The same seed gives the same bytes on one machine and number of threads. What is done already is passed over, so an
interrupted demo goes on where it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from core_models.resources import data_folder
from workbench.store.runs import Run, RunError, open_run

Say = Callable[[str], None]
# PAST and FUTURE layers hardly train from scratch; Zheng 2018 trains them from the finished recurrent model.
SECOND_PASS, FIRST_PASS = "past_future_layers", "rnnsearch"
LONGEST_NAME = 100  # of a run or a grid, made of what its systems are; the rest of a longer one is a digest
Show = Callable[[int, int, str], None]  # (how much is done, of how much, what is being done)


def grid_file() -> Path:
    return data_folder() / "experiments" / "demo.yaml"


@cache
def systems(file: Path | None = None) -> tuple[str, ...]:
    """The names of its systems, which are those of its runs."""
    from workbench.experiments.grid import read_experiment

    return tuple(read_experiment(file or grid_file()).systems)


def run_name(description: str) -> str:
    """The name of a system's folder, which every file system takes: coverage-form=neural of coverage:form=neural."""
    name = re.sub(r"[^\w+=.-]+", "-", re.sub(r"[\s\[\]]+", "", description), flags=re.ASCII).rstrip("-.")
    return _cut(name)


def _cut(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 9]}-{digest}"


def first_pass(description: str) -> str | None:
    """What a system with PAST and FUTURE layers begins from, seeing twice the updates: the model without mechanisms.

    None for one that trains from scratch. Raises ConfigError for what is no description.
    """
    from core_models.config import ModelConfig
    from core_models.system_spec import describe, parts_of

    if not any(SECOND_PASS in mechanism for mechanism in describe(description).mechanisms):
        return None
    systems, settings = parts_of(description)
    bare = [system for system in systems if not describe(system).mechanisms] or [FIRST_PASS]
    kept = [setting for setting in settings if _key(setting) in ModelConfig.model_fields]
    return _written(bare, kept)


def by_recipe(description: str, file: Path | None = None) -> str:
    """A description with the settings of the demo's own systems that it does not set itself.

    file: another grid that is named demo. Raises ConfigError for what cannot be built.
    """
    import core_models
    from core_models.settings import settings_in
    from core_models.system_spec import parts_of
    from workbench.experiments.grid import read_experiment

    demo = read_experiment(file or grid_file())
    names, settings = parts_of(description)
    recipe = settings_in(next(iter(demo.systems.values())).partition(":")[2])
    own = {_key(setting) for setting in settings}
    whole = _written(names, [*(setting for setting in recipe if _key(setting) not in own), *settings])
    core_models.build(whole, demo.data.pieces)
    return whole


def _key(setting: str) -> str:
    from core_models.config import ModelConfig

    key = setting.partition("=")[0]
    return ModelConfig.former_names.get(key, key)


def _written(names: Sequence[str], settings: Sequence[str]) -> str:
    return ":".join(filter(None, ("+".join(names), ",".join(settings))))


def grids_of(descriptions: Sequence[str], root: Path, file: Path | None = None) -> list[Path]:
    """Grids of any systems beside the demo's own, by its recipe and on its text, in order: files in ROOT/demo. Those
    that are trained in a second pass begin from what the first grid makes.

    descriptions: NAME, NAME:key=value,... or NAME+NAME of the catalogue. file: another grid that is named demo. Raises
    ConfigError with the nearest known name for one that is none, and for what cannot be built.
    """
    before = {description: first_pass(description) for description in descriptions}
    firsts = list(dict.fromkeys(first for first in before.values() if first))
    scratch = [*(description for description, first in before.items() if first is None), *firsts]
    later = [(first, [one for one in before if before[one] == first]) for first in firsts]
    passes: list[tuple[str | None, list[str]]] = [(None, scratch), *later]
    wanted = [(first, {run_name(one): by_recipe(one, file) for one in systems}) for first, systems in passes]
    return [_write_grid(systems, first, root, file) for first, systems in wanted if systems]


def _write_grid(systems: Mapping[str, str], first: str | None, root: Path, file: Path | None) -> Path:
    """The demo's grid with other systems, descriptions by the names of their folders; they begin from `first`."""
    from core_models.settings import write_yaml
    from workbench.experiments.grid import read_experiment

    own = read_experiment(file or grid_file())
    begins = {} if first is None else {"begin_from": f"{own.name}/{run_name(first)}"}
    written = root / own.name / f"{_cut(','.join(systems))}.yaml"
    written.parent.mkdir(parents=True, exist_ok=True)
    write_yaml(written, {**own.model_dump(mode="json", exclude_defaults=True), "systems": dict(systems), **begins})
    return written


def complete(root: Path, file: Path | None = None) -> bool:
    """Is the demo there, whole, and of the weights that are there?"""
    runs = [Run(root / "demo" / name, name) for name in systems(file)]
    traced = all(run.traced("test") for run in runs)
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
    from workbench.evaluation.scoring import score_table
    from workbench.experiments.launcher import run_in_processes

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
