"""A grid's committed files agree: counts per sentence give the scores, these give means and differences."""

from __future__ import annotations

import filecmp
import runpy
import shutil
from pathlib import Path

import pandas as pd
import pytest

from workbench.experiments import kept_segments
from workbench.papers.experiment_differences import CELLS, COMPARISONS, comparison_files, results_folder

pytestmark = pytest.mark.long

COUNTS = sorted(results_folder().glob(f"*{kept_segments.SUFFIX}"))
# Their METEOR was scored before the translations went; no file of counts holds it.
WITHOUT_METEOR = ("claims-documents", "claims-documents-half")


def _scored(path: Path) -> pd.DataFrame:
    """The rows of a result file that have a score; older files are of the test set `test` alone."""
    table = pd.read_csv(path).dropna(subset=["score"])
    return table.assign(test=table.get("test", "test"))


@pytest.mark.parametrize("path", COUNTS, ids=lambda path: path.name)
def test_counts_give_every_score(path: Path):
    name = path.name.removesuffix(kept_segments.SUFFIX)
    counted = {cell: statistics.total for cell, statistics in kept_segments.read(path, {}).items()}
    scores = {
        kept_segments.Cell(row.system, int(row.seed), row.test, row.metric): row.score
        for row in _scored(path.with_name(f"{name}{CELLS}")).itertuples()
        if row.metric != "meteor" or name not in WITHOUT_METEOR
    }
    assert len(scores) > 0
    assert counted == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("path", comparison_files(), ids=lambda path: path.name)
def test_scores_give_every_mean_and_difference(path: Path):
    name = path.name.removesuffix(COMPARISONS)
    cells = _scored(path.with_name(f"{name}{CELLS}"))
    by_seed = {key: rows.set_index("seed")["score"] for key, rows in cells.groupby(["system", "metric", "test"])}
    for row in _scored(path.with_name(f"{name}.scores.csv")).itertuples():
        scores = by_seed[row.system, row.metric, row.test]
        assert row.score == pytest.approx(scores.mean(), abs=2e-4)
        assert row.seeds == len(scores)
    for row in _scored(path).itertuples():
        system, baseline = (by_seed[one, row.metric, row.test] for one in (row.system, row.baseline))
        delta = (system - baseline).dropna()
        assert row.delta == pytest.approx(delta.mean(), abs=3e-4)
        assert row.seeds == len(delta)


def test_p_over_all_settings_is_that_of_todays_differences():
    made = runpy.run_path(str(results_folder().parent / "all_settings.py"))["all_settings"]().round(4)
    kept = pd.read_csv(results_folder() / "future-cost.all-settings.csv")
    pd.testing.assert_frame_equal(kept, made.reset_index(drop=True), check_dtype=False)


def test_statistics_that_were_made_again_or_are_of_today_are_left_as_they_are(tmp_path):
    results = tmp_path / "results"
    shutil.copytree(results_folder(), results)
    script = shutil.copy(results_folder().parent / "remake_statistics.py", tmp_path)
    runpy.run_path(script, run_name="__main__")
    changed = filecmp.cmpfiles(results_folder(), results, [file.name for file in results.iterdir()], shallow=False)[1]
    assert changed == []
