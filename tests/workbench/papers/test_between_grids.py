"""What a grid's results say beside another's, from the files that both have stored."""

import pandas as pd
import pytest

from workbench.papers.experiment_differences import results_folder


def _means(grid):
    cells = pd.read_csv(results_folder() / f"{grid}.cells.csv")
    return cells[cells["state"] == "done"].groupby(["system", "test", "metric"])["score"].mean()


@pytest.mark.parametrize("path", sorted(results_folder().glob("*.beside-claims-*.csv")), ids=lambda path: path.name)
def test_a_difference_of_two_grids_is_the_first_less_the_second(path):
    first, _, second = path.name.removesuffix(".csv").partition(".beside-")
    table = pd.read_csv(path).set_index(["system", "test", "metric"])
    assert set(table["seeds"]) == {3}, "so that the means are of the seeds that both have"
    means = (_means(first) - _means(second)).reindex(table.index)
    assert table["delta"].tolist() == pytest.approx(means.tolist(), abs=2e-3)
    assert (table["low"] < table["delta"]).all()
    assert (table["delta"] < table["high"]).all()
    assert (table["p_holm"] >= table["p_value"]).all()
