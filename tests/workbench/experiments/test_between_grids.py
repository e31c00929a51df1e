"""Differences between grids: several systems beside one have the differences of each pair, corrected together."""

import runpy

import pandas as pd
import pytest

from tests.paths import ROOT
from workbench.experiments import kept_segments
from workbench.papers.experiment_differences import results_folder

pytestmark = pytest.mark.long

FIRST, SECOND = "claims-two-layers-rate-0.002:gdr-bow-bca", "claims-guided-iterations:iterations-1"
BASELINE = "claims-guided-iterations:iterations-5"
SHARED = ["system", "test", "metric", "score", "delta", "low", "high", "p_value", "seeds"]


@pytest.fixture
def between_grids(tmp_path):
    """The script's main, which reads the project's counts and writes into a folder of its own."""
    for name in {grid.partition(":")[0] for grid in (FIRST, SECOND, BASELINE)}:
        file = f"{name}{kept_segments.SUFFIX}"
        (tmp_path / file).symlink_to(results_folder() / file)
    main = runpy.run_path(str(ROOT / "data" / "experiments" / "between_grids.py"))["main"]
    main.__globals__["results_folder"] = lambda: tmp_path
    return main


def test_several_beside_one_have_each_pairs_difference_and_one_correction(between_grids, tmp_path):
    between_grids(FIRST, BASELINE)
    between_grids(FIRST, SECOND, BASELINE)
    pair = pd.read_csv(
        tmp_path / "claims-two-layers-rate-0.002.gdr-bow-bca-beside-iterations-5-of-claims-guided-iterations.csv"
    )
    both = pd.read_csv(tmp_path / "claims-guided-iterations.others-beside-iterations-5.csv")
    of_first = both[both["grid"] == "claims-two-layers-rate-0.002"]
    pd.testing.assert_frame_equal(of_first[SHARED], pair[SHARED])
    assert set(both["system"]) == {"gdr-bow-bca", "iterations-1"}
    for _, rows in both.groupby("metric"):
        ordered = rows.sort_values("p_value")
        corrected = ordered["p_value"] * range(len(rows), 0, -1)
        assert ordered["p_holm"].tolist() == pytest.approx(corrected.cummax().clip(upper=1).tolist(), abs=3e-4)


@pytest.mark.parametrize("names", [[], ["a"], ["a:x", "b"], ["a", "b", "c"]])
def test_other_names_are_refused(between_grids, names):
    with pytest.raises(SystemExit, match="name two grids"):
        between_grids(*names)
