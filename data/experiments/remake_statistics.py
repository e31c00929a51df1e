"""Intervals over seeds and p-values of results that were stored before 2026-11-23, made again from what is stored.

    python data/experiments/remake_statistics.py

Until then p-values followed sacreBLEU's rule, which is not two-sided, and intervals over seeds came from a bootstrap of
seeds and sentences, which is too narrow for three seeds. The translations of those trainings are gone, so this works
from the tables: a p-value inverts the stored interval, taken as normal on either side; over several seeds the spread of
the sentences is what the stored interval has beyond the seeds resampled, and the seeds enter by Student's t, as in
`analyses.seeds`. What it makes again says so in its `method`. Tables that `workbench experiment table` writes today are
left as they are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm, t

from analyses.significance import holm, holm_within

RESULTS = Path(__file__).parent / "results"
AGAIN = "remade from the stored interval"
REACH = norm.ppf(0.975)
LEAST = 2 / 1001  # a thousand resamples, of which all were on one side, say no more


def one_seed(delta: float, low: float, high: float) -> float:
    """The p-value whose interval at 95 % is the stored one."""
    side = delta - low if delta > 0 else high - delta
    if delta == 0 or side <= 0:
        return 1.0
    return max(LEAST, float(2 * norm.sf(abs(delta) / side * REACH)))


def over_seeds(deltas: np.ndarray, low: float, high: float) -> tuple[float, float, float]:
    """Interval and p-value of the mean of the seeds' differences, of which a bootstrap of both gave low and high."""
    mean, count = deltas.mean(), len(deltas)
    variance = deltas.var(ddof=1)
    resampled = REACH**2 * variance * (count - 1) / count**2  # of the mean of seeds drawn with replacement
    sides = [np.sqrt(max(side**2 - resampled, 0)) / REACH for side in (mean - low, high - mean)]  # of the sentences

    def reach(side: float, level: float) -> float:
        of_seeds = t.ppf(1 - level / 2, count - 1) * np.sqrt(variance / count)
        return float(np.hypot(of_seeds, norm.ppf(1 - level / 2) * side))

    toward = sides[0] if mean > 0 else sides[1]
    p_value = brentq(lambda level: reach(toward, level) - abs(mean), 1e-12, 1 - 1e-12) if mean else 1.0
    return mean - reach(sides[0], 0.05), mean + reach(sides[1], 0.05), max(LEAST, float(p_value))


def paired(cells: pd.DataFrame, row: dict) -> np.ndarray:
    """The differences of the seeds that a row of comparisons is of."""
    own = cells[(cells["metric"] == row["metric"]) & (cells["test"] == row["test"])].set_index(["system", "seed"])[
        "score"
    ]
    system, base = own[row["system"]], own[row["baseline"]]
    return (system - base).dropna().to_numpy()


def remake_comparisons(path: Path) -> None:
    table = pd.read_csv(path)
    if "form" in table or not len(table):
        return
    cells_file = path.with_name(path.name.replace(".comparisons.csv", ".cells.csv"))
    cells = pd.read_csv(cells_file) if cells_file.is_file() else None
    rows = []
    for row in table.to_dict("records"):
        row["form"] = "sentences"
        if row["method"] == "two-level bootstrap":
            assert cells is not None
            deltas = paired(cells, row)
            assert len(deltas) == row["seeds"]
            row["low"], row["high"], row["p_value"] = over_seeds(deltas, row["low"], row["high"])
            row["method"], row["form"] = f"bootstrap of sentences, t of seeds, {AGAIN}", "seeds and sentences"
        elif row["method"] == "paired bootstrap":
            row["p_value"], row["method"] = (
                one_seed(row["delta"], row["low"], row["high"]),
                f"paired bootstrap, {AGAIN}",
            )
        rows.append(row)
    found = pd.DataFrame(rows)
    found["p_holm"] = holm_within(found["p_value"], [found["metric"], found["method"] == "sign test"])
    found.to_csv(path, index=False, float_format="%.4f")


def remake_scores(path: Path) -> None:
    """Scores over several seeds: their interval from that of the mean of resampled seeds."""
    table = pd.read_csv(path)
    if "form" in table:
        return
    cells = pd.read_csv(path.with_name(path.name.replace(".scores.csv", ".cells.csv")))
    table["form"] = np.where(table["seeds"] > 1, "seeds and sentences", "sentences")
    for place, row in table[table["seeds"] > 1].iterrows():
        own = cells[(cells[["system", "metric", "test"]] == row[["system", "metric", "test"]]).all(axis=1)]["score"]
        assert len(own) == row["seeds"]
        low, high, _ = over_seeds(own.to_numpy(), row["low"], row["high"])
        table.loc[place, ["low", "high"]] = low, high
    table.to_csv(path, index=False, float_format="%.4f")


def remake_adequacy(path: Path) -> None:
    """Of one training a row: p-values of the differences; over seeds: intervals too, from the rows of the seeds."""
    table, over = pd.read_csv(path), path.with_name(path.name.replace(".adequacy.", ".adequacy-over-seeds."))
    if "method" in table:
        return
    apart = table["delta"].notna()
    table.loc[apart, "p_value"] = [
        one_seed(*row) for row in table.loc[apart, ["delta", "delta_low", "delta_high"]].values
    ]
    table["method"] = np.where(apart, f"paired bootstrap, {AGAIN}", "")
    table.to_csv(path, index=False, float_format="%.4f")
    if over.is_file():
        whole = table[table["bucket"] == "all lengths"]
        _remake_adequacy_over_seeds(over, whole)


def _remake_adequacy_over_seeds(path: Path, whole: pd.DataFrame) -> None:
    table = pd.read_csv(path)
    for place, row in table.iterrows():
        name = row["system"].partition(":")[0]
        own = whole[(whole["measure"] == row["measure"]) & (whole["system"].str.rpartition(".")[0] == name)]
        assert len(own) == row["seeds"], (path, name, len(own))
        table.loc[place, ["low", "high"]] = over_seeds(own["percent"].to_numpy(), row["low"], row["high"])[:2]
        if pd.notna(row["delta"]):
            made = over_seeds(own["delta"].to_numpy(), row["delta_low"], row["delta_high"])
            table.loc[place, ["delta_low", "delta_high", "p_value"]] = made
    table["method"] = f"bootstrap of sentences, t of seeds, {AGAIN}"
    table.to_csv(path, index=False, float_format="%.4f")


def remake_alignment(path: Path) -> None:
    """Error rates of alignments in percent; over seeds those of each seed stand in a table beside."""
    table = pd.read_csv(path)
    if "method" in table or "form" in table or "delta" not in table:
        return
    apart = table["delta"].notna()
    if (table["seeds"] > 1).any():
        table = _alignment_over_seeds(table, path.with_name(path.name.replace("-over-seeds", "")))
    else:
        values = table.loc[apart, ["delta", "delta_low", "delta_high"]].to_numpy()
        table.loc[apart, "p_value"] = [one_seed(*row) for row in values]
        table["method"] = np.where(apart, f"paired bootstrap, {AGAIN}", "")
    table["p_holm"] = holm(table["p_value"].to_numpy())
    table.to_csv(path, index=False, float_format="%.4f")


def _alignment_over_seeds(table: pd.DataFrame, by_seed: Path) -> pd.DataFrame:
    rates = 100 * pd.read_csv(by_seed).pivot(index="seed", columns="system", values="aer")
    names = table["system"].str.partition(":")[0]
    base = names[table["delta"].isna()].iloc[0]
    for place, row in table.iterrows():
        own = rates[names[place]]
        table.loc[place, ["low", "high"]] = over_seeds(own.to_numpy(), row["low"], row["high"])[:2]
        if pd.notna(row["delta"]):
            made = over_seeds((own - rates[base]).to_numpy(), row["delta_low"], row["delta_high"])
            table.loc[place, ["delta_low", "delta_high", "p_value"]] = made
    return table.assign(method=f"bootstrap of sentences, t of seeds, {AGAIN}")


if __name__ == "__main__":
    for file in sorted(RESULTS.glob("*.comparisons.csv")):
        remake_comparisons(file)
    for file in sorted(RESULTS.glob("*.beside-readers.csv")):
        remake_comparisons(file)
    for file in sorted(RESULTS.glob("*.scores.csv")):
        remake_scores(file)
    for file in sorted(RESULTS.glob("*.adequacy.csv")):
        remake_adequacy(file)
    for file in sorted(RESULTS.glob("*.alignment*.csv")):
        remake_alignment(file)
