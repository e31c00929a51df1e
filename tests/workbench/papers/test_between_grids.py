"""What a grid's results say beside another's, from the files that both have stored."""

import pandas as pd
import pytest

from workbench.papers.experiment_differences import results_folder


def _scores(grid):
    cells = pd.read_csv(results_folder() / f"{grid}.cells.csv")
    return cells[cells["state"] == "done"].set_index(["system", "test", "metric", "seed"])["score"]


@pytest.mark.parametrize("path", sorted(results_folder().glob("*.beside-claims-*.csv")), ids=lambda path: path.name)
def test_a_difference_of_two_grids_is_the_first_less_the_second(path):
    first, _, second = path.name.removesuffix(".csv").partition(".beside-")
    table = pd.read_csv(path).set_index(["system", "test", "metric"])
    paired = (_scores(first) - _scores(second)).dropna().groupby(["system", "test", "metric"])
    assert table["seeds"].to_dict() == paired.size().reindex(table.index).to_dict()
    assert table["delta"].tolist() == pytest.approx(paired.mean().reindex(table.index).tolist(), abs=3e-4)
    assert (table["low"] < table["delta"]).all()
    assert (table["delta"] < table["high"]).all()
    for _, family in table.groupby("metric"):
        ordered = family.sort_values("p_value")
        steps = ordered["p_value"] * range(len(ordered), 0, -1)
        assert ordered["p_holm"].tolist() == pytest.approx(steps.cummax().clip(upper=1).tolist(), abs=2e-3)
