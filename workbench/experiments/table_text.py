"""What `workbench experiment table` prints: formatted numbers, and how to read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.experiments.grid import Experiment, cells
from workbench.experiments.kept_segments import Kept
from workbench.store.runs import open_run
from workbench.store.training_logs import precision_note

if TYPE_CHECKING:
    import pandas as pd

INTERVALS = (
    "Intervals: 95%, Student's t of the seeds and the bootstrap of the sentences added in quadrature; p inverts them."
)
ONE_SEED = "One seed: no interval over seeds; those shown are of other sentences, and say nothing of another training."
HOLM = "Holm's correction: over all differences of a metric in the table, every test set included."


def readable(scores: pd.DataFrame, comparisons: pd.DataFrame, seeds: int) -> pd.DataFrame:
    """One row for each test, metric and system, with formatted numbers."""
    import pandas as pd

    from workbench.evaluation.scoring import METRIC_NAMES

    bootstrap = comparisons[comparisons["method"] != "sign test"] if len(comparisons) else comparisons
    against = {(row["test"], row["metric"], row["system"]): row for row in bootstrap.to_dict("records")}
    rows = []
    for row in scores.to_dict("records"):
        spread = f" ± {row['spread']:.2f}" if row["seeds"] > 1 else ""
        shown = {
            "test": row["test"],
            "metric": METRIC_NAMES[row["metric"]],
            "system": row["system"],
            "seeds": f"{row['seeds']} of {seeds}",
            "score": f"{row['score']:.2f}{spread}",
            "95% CI": f"[{row['low']:.2f}, {row['high']:.2f}]",
            **dict.fromkeys(("difference", "difference 95% CI", "p", "p (Holm)"), ""),
        }
        if other := against.get((row["test"], row["metric"], row["system"])):
            shown["difference"] = f"{other['delta']:+.2f}"
            shown["difference 95% CI"] = f"[{other['low']:+.2f}, {other['high']:+.2f}]"
            shown["p"], shown["p (Holm)"] = f"{other['p_value']:.3f}", f"{other['p_holm']:.3f}"
        rows.append(shown)
    return pd.DataFrame(rows)


def readable_additivity(additivity: pd.DataFrame) -> pd.DataFrame:
    """One row for each test, metric and combination, with formatted numbers."""
    import pandas as pd

    from workbench.evaluation.scoring import METRIC_NAMES

    return pd.DataFrame(
        {
            "test": row["test"],
            "metric": METRIC_NAMES[row["metric"]],
            "combination": row["system"],
            "seeds": row["seeds"],
            "gain": f"{row['gain']:+.2f}",
            "gains of its parts": f"{row['gains_of_parts']:+.2f}",
            "beyond them": f"{row['delta']:+.2f}",
            "95% CI": f"[{row['low']:+.2f}, {row['high']:+.2f}]",
            "p": f"{row['p_value']:.3f}",
        }
        for row in additivity.to_dict("records")
    )


def remarks(experiment: Experiment, root: Path, kept: Kept | None = None) -> list[str]:
    """Notes on the table: missing cells (but for those whose statistics are kept), and the meaning of the intervals."""
    elsewhere = {(cell.system, cell.seed) for cell in kept or {}}
    here = [
        cell for cell in cells(experiment, root) if (cell.system, cell.seed) not in elsewhere or cell.state == "done"
    ]
    open_cells = [cell for cell in here if cell.state != "done" or cell.changes()]
    states = [f"{cell.name}: {cell.state_text()}" for cell in open_cells]
    if note := precision_note([open_run(cell.folder) for cell in cells(experiment, root) if cell.trained_precision]):
        states.append(note)
    seeds = len(experiment.seeds)
    if seeds == 1:
        return [*states, f"{ONE_SEED} {HOLM}"]
    return [*states, f"Score: mean ± standard deviation over seeds. {INTERVALS} {HOLM}"]
