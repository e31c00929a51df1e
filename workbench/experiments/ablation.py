"""What one option does to scores and speed: systems that differ in nothing else, beside those that do not have it.

From runs, from the result files of an experiment, or from a table of `workbench benchmark speed`. Any
option of a mechanism, of the model or of training will do. Knows settings and scores, no figure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
_STANDS_IN = {"capsules": "d_model"}  # the setting that decides where an option is not set
_FORMER_NAMES = {**ModelConfig.former_names, **TrainingConfig.former_names}  # in figures that were kept
_APART = {"mechanisms", "preset", "seed", *BOOKKEEPING}  # what makes no other system, or is said otherwise
_RATIOS = {"train_ratio": "training", "decode_ratio": "decoding"}
_MEMORY = "train_memory_bytes"


@dataclass(frozen=True)
class Scored:
    """Systems with their settings and scores. scores: system, score, low, high, seeds; by_seed: system, seed, score."""

    settings: Mapping[str, Settings]
    scores: pd.DataFrame
    by_seed: pd.DataFrame
    said: str


def settings_of(model: ModelConfig, training: Settings | None = None, resolved: bool = True) -> dict[str, Any]:
    """All that a system is made of, flat, defaults filled in: KIND.OPTION where two parts have an option of one name.

    resolved: an option that is not set has the value that stands in for it.
    """
    from core_models.system_catalogue import MECHANISMS, plugged_in

    plugged_in()
    found = {**(training or {}), **{key: value for key, value in model.model_dump().items() if key != "mechanisms"}}
    for entry in model.mechanisms:
        for kind, given in entry.items():
            options = parse(MECHANISMS[kind].Options, given or {}, where=f"mechanisms.{kind}").model_dump()
            found |= {f"{kind}.{name}" if name in found else name: value for name, value in options.items()}
    if resolved:
        found |= {name: found[other] for name, other in _STANDS_IN.items() if name in found and found[name] is None}
    return {**found, "mechanisms": tuple(kind for entry in model.mechanisms for kind in entry)}


def of_description(system: str, training: Settings | None = None, resolved: bool = True) -> dict[str, Any]:
    """The settings of a system of the catalogue, NAME or NAME:key=value,…; raises ConfigError."""
    from core_models.system_spec import describe

    return settings_of(describe(system), training, resolved)


def option_grid(settings: Mapping[str, Settings], option: str) -> dict[str, tuple[str, Any]]:
    """The series and the value of each system that differs from another in this option alone.

    Raises RunError where no system has the option, or no two differ in it alone.
    """
    having = {name: own for name, own in settings.items() if option in own}
    if not having and option in _FORMER_NAMES:
        return option_grid(settings, _FORMER_NAMES[option])
    if not having:
        known = varied_options(settings)
        hint = nearest(option, known) if known else "no two of them differ in one option alone"
        raise RunError(f"none of these systems has an option {option!r}; {hint}")
    groups = [names for names in _alike_but_for(option, having).values() if _values(names, having, option) > 1]
    if not groups:
        raise RunError(
            f"no two of these systems differ in {option} alone; {nearest(option, varied_options(settings) or ['none'])}"
        )
    labels = _labels([_without(option, having[names[0]]) for names in groups])
    return {name: (label, having[name][option]) for names, label in zip(groups, labels, strict=True) for name in names}


def varied_options(settings: Mapping[str, Settings]) -> list[str]:
    """The options in which at least two of the systems differ and are otherwise alike."""
    found = []
    for option in dict.fromkeys(name for own in settings.values() for name in own if name not in _APART):
        having = {name: own for name, own in settings.items() if option in own}
        if any(_values(names, having, option) > 1 for names in _alike_but_for(option, having).values()):
            found.append(option)
    return found


def _alike_but_for(option: str, settings: Mapping[str, Settings]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, own in settings.items():
        rest = {key: value for key, value in _without(option, own).items() if key not in _APART - {"mechanisms"}}
        groups.setdefault(json.dumps(rest, sort_keys=True, default=str), []).append(name)
    return groups


def _without(option: str, own: Settings) -> Settings:
    """What a system is made of beside an option, in whatever mechanisms it has one value."""
    value = own.get(option)
    return {k: v for k, v in own.items() if k != option and not (k.endswith(f".{option}") and v == value)}


def _values(names: Sequence[str], settings: Mapping[str, Settings], option: str) -> int:
    return len({str(settings[name][option]) for name in names})


def _labels(groups: Sequence[Settings]) -> list[str]:
    """What each group is called: its mechanisms, by the one system of the catalogue that has these where it is one, and
    the settings in which groups of these mechanisms differ."""
    labels = []
    for own in groups:
        alike = [other for other in groups if other["mechanisms"] == own["mechanisms"]]
        apart = [key for key in own if key not in _APART and len({str(other.get(key)) for other in alike}) > 1]
        labels.append(", ".join([_called(own), *(f"{key}={own[key]}" for key in apart)]))
    return labels


def _called(own: Settings) -> str:
    from core_models.system_catalogue import SYSTEMS

    kinds = list(own["mechanisms"])
    entries = {name: entry.model.get("mechanisms", ()) for name, entry in SYSTEMS.items()}
    named = [name for name, entry in entries.items() if [kind for one in entry for kind in one] == kinds]
    return named[0] if len(named) == 1 else "+".join(kinds).replace("_", "-") or str(own["backbone"])


def base_of(settings: Mapping[str, Settings], option: str, wanted: str | None = None) -> str | None:
    """The system that others are held against: the one named, else the first that lacks the option."""
    if wanted is not None and wanted in settings:
        return wanted
    return next((name for name, own in settings.items() if option not in own), None)


def settings_of_runs(runs: Sequence[Run]) -> dict[str, Settings]:
    """The settings of runs by their short names."""
    names = short_names(runs)
    checked = {"context_sentences"}  # of training: it says again what a mechanism has to read
    return {
        names[run.name]: settings_of(run.config.model, run.config.training.model_dump(exclude=checked)) for run in runs
    }


def of_runs(runs: Sequence[Run], test: str, metric: str) -> Scored:
    """Runs that differ in their seed alone are one system, with the interval of `analyses.seeds`."""
    import pandas as pd

    from analyses.seeds import score_table
    from workbench.evaluation.scoring import references, statistics

    opened = {run.name: run.translations(test) for run in runs}
    references(opened)  # refuses runs that were tested on different sentences
    own_settings, names = settings_of_runs(runs), short_names(runs)
    settings: dict[str, Settings] = {}
    found: dict[str, dict[int, Any]] = {}
    known: dict[str, str] = {}
    for run in runs:
        own, seed = own_settings[names[run.name]], run.config.training.seed
        system = known.setdefault(next(iter(_alike_but_for("seed", {"": own}))), names[run.name])
        settings[system] = own
        if seed in found.setdefault(system, {}):
            raise RunError(f"{run.name} and {system} are the same system with the same seed; leave one of them out")
        found[system][seed] = statistics(run, opened[run.name], metric)
    by_seed = [
        {"system": system, "seed": seed, "score": one.total}
        for system, own in found.items()
        for seed, one in own.items()
    ]
    said = f"{len(runs)} runs, test set {test}"
    return Scored(settings, score_table(found), pd.DataFrame(by_seed), said)


def experiments(folder: Path | None = None) -> list[str]:
    """The experiments whose results are at hand."""
    folder = folder or _folder()
    names = (path.name.removesuffix(".scores.csv") for path in sorted((folder / "results").glob("*.scores.csv")))
    return [name for name in names if (folder / f"{name}.yaml").is_file()]


def experiment_varying(option: str, system: str, folder: Path | None = None) -> str | None:
    """The first experiment that has results of systems that differ in this option alone and have all mechanisms of a
    system of the catalogue."""
    wanted = set(of_description(system)["mechanisms"])
    for name in experiments(folder):
        settings = settings_of_experiment(name, folder)
        if option in varied_options({one: own for one, own in settings.items() if wanted <= set(own["mechanisms"])}):
            return name
    return None


def settings_of_experiment(name: str, folder: Path | None = None) -> dict[str, Settings]:
    """The settings of the systems of an experiment that have results; raises RunError where none are here."""
    import pandas as pd

    known = experiments(folder)
    if name not in known:
        raise RunError(f"there are no results of an experiment {name!r}; {nearest(name, known)}")
    folder = folder or _folder()
    grid = read_experiment(folder / f"{name}.yaml")
    scored = set(pd.read_csv(folder / "results" / f"{name}.scores.csv").get("system", ()))
    return {system: of_description(text, grid.training) for system, text in grid.systems.items() if system in scored}


def of_experiment(name: str, test: str, metric: str, folder: Path | None = None) -> Scored:
    """What `workbench experiment table --csv` wrote of an experiment; of its first test set where it lacks `test`."""
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
    """The scores of the systems that differ in an option, and those of their seeds: series and value beside each."""
    placed = option_grid(scored.settings, option)
    return _placed(scored.scores, placed), _placed(scored.by_seed, placed)


def _placed(table: pd.DataFrame, placed: Mapping[str, tuple[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    rows = table[table["system"].isin(list(placed))]
    series, values = zip(*(placed[system] for system in rows["system"]), strict=True) if len(rows) else ((), ())
    return rows.assign(series=list(series), value=pd.Series(list(values), index=rows.index, dtype=object))


def benches(folder: Path | None = None) -> list[str]:
    """The tables of `workbench benchmark speed` that are at hand, but for those by length (`length_costs`)."""
    import pandas as pd

    found = sorted(((folder or _folder()) / "results").glob("*.csv"))
    columns = {path.stem: set(pd.read_csv(path, nrows=0)) for path in found}
    return [name for name, own in columns.items() if set(_RATIOS) <= own and "length" not in own]


def benches_of(option: str, folder: Path | None = None) -> list[str]:
    """Those in which at least two systems differ in this option alone."""
    return [name for name in benches(folder) if option in varied_options(_benched(name, folder)[1])]


def _benched(name: str, folder: Path | None) -> tuple[pd.DataFrame, dict[str, Settings]]:
    """A table of `workbench benchmark speed`, its systems in the precision that it begins with, and their settings."""
    import pandas as pd

    table = pd.read_csv((folder or _folder()) / "results" / f"{name}.csv").dropna(subset=["system"])
    table = table[table["precision"] == table["precision"].iloc[0]]
    return table, {str(system): of_description(str(system)) for system in table["system"]}


def cost_points(name: str, option: str, folder: Path | None = None) -> tuple[pd.DataFrame, str, Mapping[str, Settings]]:
    """Speeds and peak memory relative to the first system of a bench: series, value, work (training, decoding, memory),
    ratio; that system; the settings of all.

    Raises RunError where no two of its systems differ in the option alone.
    """
    known = benches(folder)
    if name not in known:
        raise RunError(f"there is no table {name!r} of workbench benchmark speed with ratios; {nearest(name, known)}")
    table, settings = _benched(name, folder)
    table = table.rename(columns=_RATIOS)
    if _MEMORY in table:
        table = table.assign(memory=table[_MEMORY] / table[_MEMORY].iloc[0])
    works = [work for work in (*_RATIOS.values(), "memory") if work in table]
    placed = _placed(table, option_grid(settings, option))
    points = placed.melt(["series", "value"], works, var_name="work", value_name="ratio").dropna(subset=["ratio"])
    return points, str(table["system"].iloc[0]), settings


def result_tables() -> list[Path]:
    """The tables of all experiments and benches."""
    return sorted((_folder() / "results").glob("*.csv"))


def _folder() -> Path:
    return data_folder() / "experiments"
