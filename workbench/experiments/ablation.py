"""Effect of one option on scores and speed: systems that differ in this option alone, and systems without it.

Scores come from runs, from the result files of an experiment, or from a table of `workbench benchmark speed`. The
option can be one of a mechanism, the model or training. Knows settings and scores, no figure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import ModelConfig, TrainingConfig
from core_models.resources import data_folder
from core_models.settings import nearest, parse
from workbench.experiments.grid import BOOKKEEPING, read_experiment
from workbench.store.runs import Run, RunError, short_names

if TYPE_CHECKING:
    import pandas as pd

Settings = Mapping[str, Any]
_FALLBACKS = {"capsules": "d_model"}  # the option whose value counts if another is not set
_FORMER_NAMES = {**ModelConfig.former_names, **TrainingConfig.former_names}  # in figures that were kept
# Settings that do not define a system, or are shown elsewhere.
_NOT_COMPARED = {"mechanisms", "preset", "seed", *BOOKKEEPING}
SENTENCES = "sentences"  # a setting of experiments on a controlled text
_RATIOS = {"train_ratio": "training", "decode_ratio": "decoding"}
_MEMORY = "train_memory_bytes"


@dataclass(frozen=True)
class Scored:
    """Systems with their settings and scores. scores: system, score, low, high, seeds; by_seed: system, seed, score."""

    settings: Mapping[str, Settings]
    scores: pd.DataFrame
    by_seed: pd.DataFrame
    description: str


def settings_of(model: ModelConfig, training: Settings | None = None, resolved: bool = True) -> dict[str, Any]:
    """All settings of a system as a flat mapping with defaults, named KIND.OPTION if two parts share an option's name.

    resolved: an option that is not set gets the value of its fallback option.
    """
    from core_models.system_catalogue import MECHANISMS, plugged_in

    plugged_in()
    settings = {**(training or {}), **{key: value for key, value in model.model_dump().items() if key != "mechanisms"}}
    for entry in model.mechanisms:
        for kind, set_options in entry.items():
            options = parse(MECHANISMS[kind].Options, set_options or {}, where=f"mechanisms.{kind}").model_dump()
            settings |= {f"{kind}.{name}" if name in settings else name: value for name, value in options.items()}
    if resolved:
        settings |= {
            name: settings[other] for name, other in _FALLBACKS.items() if name in settings and settings[name] is None
        }
    return {**settings, "mechanisms": tuple(kind for entry in model.mechanisms for kind in entry)}


def of_description(system: str, training: Settings | None = None, resolved: bool = True) -> dict[str, Any]:
    """The settings of a system of the catalogue, NAME or NAME:key=value,…; raises ConfigError."""
    from core_models.system_spec import describe

    return settings_of(describe(system), training, resolved)


def option_grid(settings: Mapping[str, Settings], option: str) -> dict[str, tuple[str, Any]]:
    """The series and the value of each system that differs from another in this option alone.

    Raises RunError if no system has the option, or no two differ in it alone.
    """
    with_option = {name: system_settings for name, system_settings in settings.items() if option in system_settings}
    if not with_option and option in _FORMER_NAMES:
        return option_grid(settings, _FORMER_NAMES[option])
    if not with_option:
        known = varied_options(settings)
        hint = nearest(option, known) if known else "no two of them differ in one option alone"
        raise RunError(f"none of these systems has an option {option!r}; {hint}")
    groups = [
        names for names in _alike_but_for(option, with_option).values() if _values(names, with_option, option) > 1
    ]
    if not groups:
        raise RunError(
            f"no two of these systems differ in {option} alone; {nearest(option, varied_options(settings) or ['none'])}"
        )
    labels = _labels([_without(option, with_option[names[0]]) for names in groups])
    return {
        name: (label, with_option[name][option]) for names, label in zip(groups, labels, strict=True) for name in names
    }


def varied_options(settings: Mapping[str, Settings]) -> list[str]:
    """The options in which at least two otherwise identical systems differ."""
    varied = []
    for option in dict.fromkeys(
        name for system_settings in settings.values() for name in system_settings if name not in _NOT_COMPARED
    ):
        with_option = {name: system_settings for name, system_settings in settings.items() if option in system_settings}
        if any(_values(names, with_option, option) > 1 for names in _alike_but_for(option, with_option).values()):
            varied.append(option)
    return varied


def varied_options_of(mechanisms: Collection[str], settings: Mapping[str, Settings]) -> list[str]:
    """The options in which at least two otherwise identical systems with one of these mechanisms differ."""
    return varied_options({name: one for name, one in settings.items() if set(mechanisms) & set(one["mechanisms"])})


def _alike_but_for(option: str, settings: Mapping[str, Settings]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, system_settings in settings.items():
        rest = {
            key: value
            for key, value in _without(option, system_settings).items()
            if key not in _NOT_COMPARED - {"mechanisms"}
        }
        groups.setdefault(json.dumps(rest, sort_keys=True, default=str), []).append(name)
    return groups


def differing(settings: Sequence[Settings]) -> list[str]:
    """The settings in which these differ, of those that all of them have."""
    shared = set.intersection(*map(set, settings)) - _NOT_COMPARED
    return [name for name in settings[0] if name in shared and len({str(one[name]) for one in settings}) > 1]


def _without(option: str, settings: Settings) -> Settings:
    """The settings of a system without an option, and without options of the same name and value in mechanisms."""
    value = settings.get(option)
    return {k: v for k, v in settings.items() if k != option and not (k.endswith(f".{option}") and v == value)}


def _values(names: Sequence[str], settings: Mapping[str, Settings], option: str) -> int:
    return len({str(settings[name][option]) for name in names})


def _labels(groups: Sequence[Settings]) -> list[str]:
    """A label for each group: its system or mechanisms, and the settings in which groups of the same mechanisms differ.

    The system is named if exactly one of the catalogue has these mechanisms.
    """
    labels = []
    for settings in groups:
        same_mechanisms = [other for other in groups if other["mechanisms"] == settings["mechanisms"]]
        differing = [
            key
            for key in settings
            if key not in _NOT_COMPARED and len({str(other.get(key)) for other in same_mechanisms}) > 1
        ]
        labels.append(", ".join([_system_label(settings), *(f"{key}={settings[key]}" for key in differing)]))
    return labels


def _system_label(settings: Settings) -> str:
    from core_models.system_catalogue import SYSTEMS

    kinds = list(settings["mechanisms"])
    entries = {name: entry.model.get("mechanisms", ()) for name, entry in SYSTEMS.items()}
    systems = [
        name for name, entry in entries.items() if [kind for mechanisms in entry for kind in mechanisms] == kinds
    ]
    return systems[0] if len(systems) == 1 else "+".join(kinds).replace("_", "-") or str(settings["backbone"])


def base_of(settings: Mapping[str, Settings], option: str, baseline: str | None = None) -> str | None:
    """The baseline system: the one named, else of those without the option the first that is most like those with it.

    Systems without a mechanism come before others, and of these, those of the same backbone.
    """
    if baseline is not None and baseline in settings:
        return baseline
    backbones = {system_settings["backbone"] for system_settings in settings.values() if option in system_settings}
    without = {name: system_settings for name, system_settings in settings.items() if option not in system_settings}
    return min(
        without,
        key=lambda name: (bool(without[name]["mechanisms"]), without[name]["backbone"] not in backbones),
        default=None,
    )


def settings_of_runs(runs: Sequence[Run]) -> dict[str, Settings]:
    """The settings of runs by their short names."""
    names = short_names(runs)
    checked = {"context_sentences"}  # a training setting that repeats a mechanism's option
    return {
        names[run.name]: settings_of(run.config.model, run.config.training.model_dump(exclude=checked)) for run in runs
    }


def of_runs(runs: Sequence[Run], test: str, metric: str) -> Scored:
    """The scores of runs; runs that differ only in the seed are one system, with intervals of `analyses.seeds`."""
    import pandas as pd

    from analyses.seeds import score_table
    from workbench.evaluation.scoring import references, statistics

    opened = {run.name: run.translations(test) for run in runs}
    references(opened)  # refuses runs that were tested on different sentences
    own_settings, names = settings_of_runs(runs), short_names(runs)
    settings: dict[str, Settings] = {}
    statistics_by_seed: dict[str, dict[int, Any]] = {}
    name_of_system: dict[str, str] = {}
    for run in runs:
        run_settings, seed = own_settings[names[run.name]], run.config.training.seed
        system = name_of_system.setdefault(next(iter(_alike_but_for("seed", {"": run_settings}))), names[run.name])
        settings[system] = run_settings
        if seed in statistics_by_seed.setdefault(system, {}):
            raise RunError(f"{run.name} and {system} are the same system with the same seed; leave one of them out")
        statistics_by_seed[system][seed] = statistics(run, opened[run.name], metric)
    by_seed = [
        {"system": system, "seed": seed, "score": segment_statistics.total}
        for system, seed_statistics in statistics_by_seed.items()
        for seed, segment_statistics in seed_statistics.items()
    ]
    return Scored(settings, score_table(statistics_by_seed), pd.DataFrame(by_seed), f"test set {test}")


def experiments(folder: Path | None = None) -> list[str]:
    """The names of the experiments with results."""
    folder = folder or _folder()
    names = (path.name.removesuffix(".scores.csv") for path in sorted((folder / "results").glob("*.scores.csv")))
    return [name for name in names if (folder / f"{name}.yaml").is_file()]


def experiment_varying(option: str, system: str, folder: Path | None = None) -> str | None:
    """The first experiment with results of systems that differ in this option alone.

    Only systems that have all mechanisms of `system` (of the catalogue) count.
    """
    mechanisms = set(of_description(system)["mechanisms"])
    for name in experiments(folder):
        settings = settings_of_experiment(name, folder)
        if option in varied_options(
            {
                system_name: system_settings
                for system_name, system_settings in settings.items()
                if mechanisms <= set(system_settings["mechanisms"])
            }
        ):
            return name
    return None


def settings_of_experiment(name: str, folder: Path | None = None) -> dict[str, Settings]:
    """The settings of an experiment's systems with results, and of a controlled text its number of sentences.

    Raises RunError if there are none.
    """
    import pandas as pd

    known = experiments(folder)
    if not name:
        raise RunError("no experiment is named; name it: --option experiment=NAME")
    if name not in known:
        raise RunError(f"there are no results of an experiment {name!r}; {nearest(name, known)}")
    folder = folder or _folder()
    grid = read_experiment(folder / f"{name}.yaml")
    scored = set(pd.read_csv(folder / "results" / f"{name}.scores.csv").get("system", ()))
    controlled = grid.data.controlled
    shared = {**grid.training, **({SENTENCES: controlled.sentences} if controlled else {})}
    return {system: of_description(text, shared) for system, text in grid.systems.items() if system in scored}


def of_experiment(name: str, test: str, metric: str, folder: Path | None = None) -> Scored:
    """The scores of an experiment from `workbench experiment table --csv`, of `test` or else its first test set."""
    import pandas as pd

    settings = settings_of_experiment(name, folder)
    path = (folder or _folder()) / "results"
    try:
        tables = [pd.read_csv(path / f"{name}.{kind}.csv") for kind in ("scores", "cells")]
        scores, cells = (table[table["metric"] == metric] for table in tables)
        tests = list(dict.fromkeys(scores["test"]))
        test = test if test in tests else tests[0]
        scores, cells = scores[scores["test"] == test], cells[cells["test"] == test]
        by_seed = cells[["system", "seed", "score"]]
    except (OSError, KeyError, IndexError, ValueError) as error:
        raise RunError(
            f"{path / name}.scores.csv and .cells.csv hold no {metric} ({error}); write them again: workbench "
            f"experiment table {name}.yaml --csv {path}"
        ) from None
    return Scored(settings, scores, by_seed, f"experiment {name}, test set {test}")


def score_points(scored: Scored, option: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The scores of the systems that differ in an option, and of their seeds, with columns series and value."""
    points = option_grid(scored.settings, option)
    return _at_points(scored.scores, points), _at_points(scored.by_seed, points)


def _at_points(table: pd.DataFrame, points: Mapping[str, tuple[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    rows = table[table["system"].isin(list(points))]
    series, values = zip(*(points[system] for system in rows["system"]), strict=True) if len(rows) else ((), ())
    return rows.assign(series=list(series), value=pd.Series(list(values), index=rows.index, dtype=object))


def benches(folder: Path | None = None) -> list[str]:
    """The names of the tables of `workbench benchmark speed`, without those by length (`length_costs`)."""
    import pandas as pd

    paths = sorted(((folder or _folder()) / "results").glob("*.csv"))
    columns = {path.stem: set(pd.read_csv(path, nrows=0)) for path in paths}
    return [name for name, names in columns.items() if set(_RATIOS) <= names and "length" not in names]


def benches_of(option: str, folder: Path | None = None) -> list[str]:
    """The `benches` in which at least two systems differ in this option alone."""
    return [name for name in benches(folder) if option in varied_options(_benched(name, folder)[1])]


def _benched(name: str, folder: Path | None) -> tuple[pd.DataFrame, dict[str, Settings]]:
    """A table of `workbench benchmark speed`, its rows in the precision of the first row, and the systems' settings."""
    import pandas as pd

    table = pd.read_csv((folder or _folder()) / "results" / f"{name}.csv").dropna(subset=["system"])
    table = table[table["precision"] == table["precision"].iloc[0]]
    return table, {str(system): of_description(str(system)) for system in table["system"]}


def cost_points(name: str, option: str, folder: Path | None = None) -> tuple[pd.DataFrame, str, Mapping[str, Settings]]:
    """Speeds and peak memory relative to the first system of a bench; that system; the settings of all.

    Columns: series, value, work (training, decoding, memory), ratio. Raises RunError if no two of its systems differ in
    the option alone.
    """
    known = benches(folder)
    if name not in known:
        raise RunError(f"there is no table {name!r} of workbench benchmark speed with ratios; {nearest(name, known)}")
    table, settings = _benched(name, folder)
    table = table.rename(columns=_RATIOS)
    if _MEMORY in table:
        table = table.assign(memory=table[_MEMORY] / table[_MEMORY].iloc[0])
    works = [work for work in (*_RATIOS.values(), "memory") if work in table]
    points_of_system = _at_points(table, option_grid(settings, option))
    points = points_of_system.melt(["series", "value"], works, var_name="work", value_name="ratio").dropna(
        subset=["ratio"]
    )
    return points, str(table["system"].iloc[0]), settings


def result_tables() -> list[Path]:
    """The tables of all experiments and benches."""
    return sorted((_folder() / "results").glob("*.csv"))


def _folder() -> Path:
    return data_folder() / "experiments"
