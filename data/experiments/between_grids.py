"""The systems that two grids have in common, one grid less the other: what another rate or another begin does.

    python data/experiments/between_grids.py claims-combinations-rate-0.002 claims-combinations
    python data/experiments/between_grids.py claims-past-future:gdr-bow-bca scale-width-64:transformer

The second line takes one system of each grid, whatever it is called in the other. Works from the statistics per segment
in data/experiments/results/NAME.segments.npz, so it needs no run. Differences are paired by seed and sentence. Writes
FIRST.beside-SECOND.csv there (of two systems FIRST.SYSTEM-beside-OTHER-of-SECOND.csv), a row for each system, test set
and metric; p_holm is Holm's correction over all rows of a metric.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd

from analyses.seeds import BySeed, compare_over_seeds
from analyses.significance import holm_within
from core_models.resources import data_folder
from workbench.experiments import kept_segments
from workbench.experiments.grid import read_experiment
from workbench.papers.experiment_differences import results_folder
from workbench.store.csv_cells import csv_text


def main(first: str, second: str) -> None:
    (first, system), (second, other) = (name.partition(":")[::2] for name in (first, second))
    if bool(system) != bool(other):
        raise SystemExit("name a system of both grids, or of neither: GRID:SYSTEM GRID:SYSTEM")
    tests = kept_segments.digests(results_folder() / f"{first}{kept_segments.SUFFIX}")
    new, old = (_statistics(name, tests) for name in (first, second))
    rows = []
    for name, test, metric in new:
        beside = (other or name, test, metric)
        if beside in old and name == (system or name):
            found = compare_over_seeds(old[beside], new[name, test, metric])
            rows.append({"system": name, "test": test, "metric": metric, **asdict(found)})
    if not rows:
        raise SystemExit(f"there is no such pair of {first} and {second} with results")
    table = pd.DataFrame(rows)
    p_holm = holm_within(table["p_value"], table["metric"])
    path = results_folder() / f"{first}.{f'{system}-beside-{other}-of-' if system else 'beside-'}{second}.csv"
    path.write_text(csv_text(table.assign(p_holm=p_holm).round(4)), encoding="utf-8")
    print(f"{path.name}: {len(table)} rows")


def _statistics(name: str, tests: Mapping[str, str]) -> dict[tuple[str, str, str], BySeed]:
    """By system, test set and metric, in the grid's order of systems; refuses other references than these."""
    path = results_folder() / f"{name}{kept_segments.SUFFIX}"
    if not path.is_file():
        raise SystemExit(f"there is no {path.name}: write it with experiment table {name}.yaml --segments")
    found: dict[tuple[str, str, str], BySeed] = defaultdict(dict)
    for cell, statistics in kept_segments.read(path, tests).items():
        found[cell.system, cell.test, cell.metric][cell.seed] = statistics
    order = list(read_experiment(data_folder() / "experiments" / f"{name}.yaml").systems)
    return dict(sorted(found.items(), key=lambda item: (item[0][1], item[0][2], order.index(item[0][0]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
