"""What a grid's results say beside another's, from the files that both have stored."""

import re

import pandas as pd
import pytest

from workbench.papers.experiment_differences import results_folder

pytestmark = pytest.mark.long

# GRID.beside-OTHER.csv and GRID.SYSTEM-beside-SYSTEM-of-OTHER.csv
NAME = re.compile(r"(.+?)\.(?:([a-z0-9-]+?)-beside-([a-z0-9-]+?)-of-|beside-)((?:claims|scale)-.+)\.csv")
GAINS = [path.name for path in sorted(results_folder().glob("*.gains-beside-*.csv"))]
FILES = [name for path in sorted(results_folder().glob("*beside-*.csv")) if (name := NAME.fullmatch(path.name))]


def _scores(grid):
    cells = pd.read_csv(results_folder() / f"{grid}.cells.csv")
    return cells[cells["state"] == "done"].set_index(["system", "test", "metric", "seed"])["score"]


def test_the_files_of_both_forms_are_found():
    assert {bool(system) for _, system, _, _ in map(re.Match.groups, FILES)} == {True, False}


@pytest.mark.parametrize("name", FILES, ids=lambda name: name[0])
def test_a_difference_of_two_grids_is_the_first_less_the_second(name):
    first, system, other, second = name.groups()
    table = pd.read_csv(results_folder() / name[0]).set_index(["system", "test", "metric"])
    old = _scores(second)
    if system:
        assert set(table.index.unique("system")) == {system}
        old = old.xs(other, drop_level=False).rename({other: system}, level="system")
    paired = (_scores(first) - old).dropna().groupby(["system", "test", "metric"])
    assert table["seeds"].to_dict() == paired.size().reindex(table.index).to_dict()
    assert table["delta"].tolist() == pytest.approx(paired.mean().reindex(table.index).tolist(), abs=3e-4)
    assert (table["low"] < table["delta"]).all()
    assert (table["delta"] < table["high"]).all()
    _is_corrected_by_metric(table)


@pytest.mark.parametrize("name", GAINS)
def test_a_change_of_gains_is_that_of_their_scores(name):
    """A gain: system - baseline; beyond its parts: (A+B - baseline) - (A - baseline) - (B - baseline)."""
    first, second = name.removesuffix(".csv").split(".gains-beside-")
    table = pd.read_csv(results_folder() / name)
    assert len(table)
    for row in table.itertuples():
        values = []
        for grid in (first, second):
            scores = _scores(grid).xs((row.test, row.metric), level=("test", "metric")).unstack("system")
            over = scores.sub(scores["transformer"], axis=0)
            parts = row.system.split("+") if row.of == "beyond its parts" else []
            values.append(over[row.system] - over[parts].sum(axis=1, min_count=len(parts)))
        both = pd.concat(values, axis=1).dropna()
        assert row.seeds == len(both)
        assert [row.first, row.second] == pytest.approx(both.mean().tolist(), abs=4e-4)
        assert row.delta == pytest.approx(row.first - row.second, abs=2e-4)
        assert row.low < row.delta < row.high
    _is_corrected_by_metric(table)


def _is_corrected_by_metric(table):
    for _, family in table.groupby("metric"):
        ordered = family.sort_values("p_value")
        steps = ordered["p_value"] * range(len(ordered), 0, -1)
        assert ordered["p_holm"].tolist() == pytest.approx(steps.cummax().clip(upper=1).tolist(), abs=2e-3)
