"""The systems that two grids have in common, one grid less the other: what another rate or another begin does.

    python data/experiments/between_grids.py claims-combinations-rate-0.002 claims-combinations
    python data/experiments/between_grids.py claims-past-future:gdr-bow-bca scale-width-64:transformer
    python data/experiments/between_grids.py GRID_A:em-routing GRID_B:gdr-bow-bca GRID_B:transformer

The second line takes one system of each grid, whatever it is called in the other; the third sets several beside the
last, as where each has its own best rate. Works from the statistics per segment in
data/experiments/results/NAME.segments.npz, so it needs no run. Differences are paired by seed and sentence. Writes
FIRST.beside-SECOND.csv there (of two systems FIRST.SYSTEM-beside-OTHER-of-SECOND.csv, of several
SECOND.others-beside-OTHER.csv), a row for each system, test set and metric; p_holm is Holm's correction over all rows
of a metric.

Of two grids with the same baseline it also writes FIRST.gains-beside-SECOND.csv: how much larger each system's gain
over the baseline is in the first grid, and of a combination A+B what it has beyond the gains of its parts (column of);
first and second are the two grids' values, delta their difference, p_holm is corrected over the rows of a metric.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd

from analyses.seeds import BySeed, compare_over_seeds, weighted_sum
from analyses.significance import holm_within
from core_models.resources import data_folder
from workbench.experiments import kept_segments
from workbench.experiments.grid import read_experiment
from workbench.papers.experiment_differences import results_folder
from workbench.store.csv_cells import csv_text

ByCell = Mapping[tuple[str, str, str], BySeed]  # by system, test set and metric


def main(*names: str) -> None:
    *firsts, (second, other) = [name.partition(":")[::2] for name in names or [""]]
    several = len(firsts) > 1
    of_systems = {bool(system) for _, system in [*firsts, (second, other)]}
    if not firsts or len(of_systems) > 1 or (several and not other):
        raise SystemExit("name two grids, GRID GRID, or one system of each: GRID:SYSTEM [GRID:SYSTEM …] GRID:BASELINE")
    tests = kept_segments.digests(results_folder() / f"{firsts[0][0]}{kept_segments.SUFFIX}")
    old = _statistics(second, tests)
    rows = []
    for first, system in firsts:
        new = _statistics(first, tests)
        found = [cell for cell in new if cell[0] == (system or cell[0]) and (other or cell[0], *cell[1:]) in old]
        if not found:
            raise SystemExit(f"there is no such pair of {first} and {second} with results")
        for name, test, metric in found:
            difference = compare_over_seeds(old[other or name, test, metric], new[name, test, metric])
            of = {"grid": first} if several else {}
            rows.append({**of, "system": name, "test": test, "metric": metric, **asdict(difference)})
    if several:
        _write(f"{second}.others-beside-{other}.csv", rows)
        return
    _write(f"{first}.{f'{system}-beside-{other}-of-' if system else 'beside-'}{second}.csv", rows)
    baseline = _systems(first)[0]
    if not system and baseline == _systems(second)[0]:
        _write(f"{first}.gains-beside-{second}.csv", _gains(new, old, baseline))


def _gains(new: ByCell, old: ByCell, baseline: str) -> list[dict[str, object]]:
    """The change of each gain over the baseline, and of what each combination has beyond its parts' gains."""
    rows: list[dict[str, object]] = []
    for name, test, metric in new:
        parts = name.split("+")
        sums = {"gain": {name: 1, baseline: -1}}
        if len(parts) > 1:
            sums["beyond its parts"] = {name: 1, **dict.fromkeys(parts, -1), baseline: len(parts) - 1}
        for of, weights in sums.items():
            cells = {(system, test, metric): weight for system, weight in weights.items()}
            seeds = set.intersection(*(set(grid.get(cell, {})) for grid in (new, old) for cell in cells))
            if name == baseline or not seeds:
                continue
            first, second = (
                [(weight, {seed: grid[cell][seed] for seed in seeds}) for cell, weight in cells.items()]
                for grid in (new, old)
            )
            change = weighted_sum([*first, *((-weight, by_seed) for weight, by_seed in second)])
            values = {"first": weighted_sum(first).delta, "second": weighted_sum(second).delta, **asdict(change)}
            del values["score"]
            rows.append({"system": name, "of": of, "test": test, "metric": metric, **values})
    return rows


def _write(name: str, rows: list[dict[str, object]]) -> None:
    table = pd.DataFrame(rows)
    table = table.assign(p_holm=holm_within(table["p_value"], table["metric"])).round(4)
    (results_folder() / name).write_text(csv_text(table), encoding="utf-8")
    print(f"{name}: {len(table)} rows")


def _systems(name: str) -> list[str]:
    return list(read_experiment(data_folder() / "experiments" / f"{name}.yaml").systems)


def _statistics(name: str, tests: Mapping[str, str]) -> dict[tuple[str, str, str], BySeed]:
    """By system, test set and metric, in the grid's order of systems; refuses other references than these."""
    path = results_folder() / f"{name}{kept_segments.SUFFIX}"
    if not path.is_file():
        raise SystemExit(f"there is no {path.name}: write it with experiment table {name}.yaml --segments")
    found: dict[tuple[str, str, str], BySeed] = defaultdict(dict)
    for cell, statistics in kept_segments.read(path, tests).items():
        found[cell.system, cell.test, cell.metric][cell.seed] = statistics
    order = _systems(name)
    return dict(sorted(found.items(), key=lambda item: (item[0][1], item[0][2], order.index(item[0][0]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
