"""The p of both models of future cost over all settings that were tried with several seeds, not of one grid alone.

    python data/experiments/all_settings.py

A grid corrects p over its own differences; the largest gain of all grids is picked from more. Reads the differences in
BLEU to the Transformer of three seeds or more, without trainings that another grid repeats (uncounted.toml), and writes
data/experiments/results/future-cost.all-settings.csv, smallest p first. Columns of p after Holm's correction over the
differences of

- p_model: the same model with a weight of 0.5 (missing for other weights);
- p_model_all_weights: the same model with all weights;
- p_both: both models with a weight of 0.5;
- p_both_all_weights: both models with all weights.

nominal says whether p before correction is below 0.05.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analyses.significance import holm, holm_within
from workbench.papers.experiment_differences import COMPARISONS, comparison_files, results_folder, uncounted
from workbench.store.csv_cells import csv_text

MODELS = ("future-cost-1", "future-cost-2")
SEEDS = 3  # of fewer nothing is claimed
FILE = "future-cost.all-settings.csv"


def main() -> None:
    text = csv_text(all_settings().round(4))
    (results_folder() / FILE).write_text(text, encoding="utf-8")


def all_settings() -> pd.DataFrame:
    """A row for each difference in BLEU: grid, system, test set, the difference with its interval, p of each family."""
    rows = pd.concat(map(_of_grid, comparison_files()), ignore_index=True).astype({"seeds": int})
    model = rows["system"].str.slice(0, len(MODELS[0]))
    usual = rows["system"].isin(MODELS)
    rows["p_model"] = holm_within(rows.loc[usual, "p_value"], model[usual])
    rows["p_model_all_weights"] = holm_within(rows["p_value"], model)
    rows["p_both"] = holm_within(rows.loc[usual, "p_value"], usual[usual])
    rows["p_both_all_weights"] = holm(rows["p_value"].to_numpy())
    return rows.assign(nominal=rows["p_value"] < 0.05).sort_values("p_value", kind="stable")


def _of_grid(path: Path) -> pd.DataFrame:
    grid, table = path.name.removesuffix(COMPARISONS), pd.read_csv(path)
    bleu = (table["metric"] == "bleu") & ~table["method"].str.startswith("sign")
    ours = table["system"].str.fullmatch(rf"({'|'.join(MODELS)})(-weight-[\d.]+)?")
    found = table[bleu & ours & (table["seeds"] >= SEEDS)].assign(grid=grid)
    found = found[[not uncounted(grid, system) for system in found["system"]]]
    return found.reindex(columns=["grid", "system", "test", "seeds", "delta", "low", "high", "p_value"])


if __name__ == "__main__":
    main()
