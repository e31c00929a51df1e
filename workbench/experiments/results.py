"""Tables of a grid: every cell with its state, systems over seeds with their intervals, differences to a baseline.

A grid may be unfinished: missing cells are listed with the results. Scores come from `analyses.seeds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.files.file_marks import atomic_replace_files
from core_models.settings import nearest
from workbench.experiments.cell_statistics import named, statistics_by_test
from workbench.experiments.grid import Experiment, cells
from workbench.experiments.kept_segments import Cell, Kept
from workbench.store.csv_cells import csv_text
from workbench.store.runs import RunError, open_run
from workbench.store.training_logs import training_table

if TYPE_CHECKING:
    import pandas as pd

    from analyses.scores import Statistics
    from analyses.seeds import BySeed

METRICS = ("bleu", "chrf")
CELLS = [
    "system",
    "seed",
    "state",
    "step",
    "steps",
    "metric",
    "score",
    "low",
    "high",
    "signature",
    "n",
    "test",
    "commits",
]
DEV_LOSSES = ["system", "seed", "step", "tokens", "seconds", "dev_loss"]
LENGTH_GROUPS = 6  # of sources, as many as Duan 2020, Figure 2, has


def cell_table(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str] = METRICS,
    kept: Kept | None = None,
    folder: Path | None = None,
) -> pd.DataFrame:
    """Scores of all finished cells, a row for each test and metric; other cells have a row with state and progress.

    kept: statistics of cells that are finished elsewhere, which count as done. folder: of the tables of an earlier call
    (`write_csv`), which may know their updates and commits.
    Columns: system, seed, state, step, steps, metric, score, low, high, signature, n, test, commits (that the training
    ran at, separated by spaces).
    """
    import pandas as pd

    from workbench.evaluation.scoring import score_table

    earlier = _trainings(folder / f"{experiment.name}.cells.csv") if folder else {}
    rows: list[dict[str, Any]] = []
    for cell in cells(experiment, root):
        step, steps = cell.steps()
        cell_columns = {"system": cell.system, "seed": cell.seed, "state": cell.state, "step": step, "steps": steps}
        elsewhere = {key: one for key, one in (kept or {}).items() if key[:2] == (cell.system, cell.seed)}
        if cell.state != "done" and elsewhere:
            known = earlier.get((cell.system, cell.seed), {"step": steps, "steps": steps, "commits": None})
            done = {**cell_columns, "state": "done", **known}
            scored = [{**done, **_score_of(key, one)} for key, one in elsewhere.items() if key.metric in metrics]
            rows += scored or [done]
            continue
        if cell.state != "done":
            rows.append(cell_columns)
            continue
        run = open_run(cell.folder)
        cell_columns["commits"] = " ".join(run.commits()) or None
        for test in experiment.data.test_names:
            scores = score_table([run], test, metrics)
            rows += [{**cell_columns, **dict(row), "test": test} for _, row in scores.drop(columns="system").iterrows()]
    return pd.DataFrame(rows).reindex(columns=CELLS).astype({"step": "Int64", "steps": "Int64"})


def _trainings(earlier: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Of each finished training of an earlier table the updates done and planned, and its commits."""
    import pandas as pd

    if not earlier.is_file():
        return {}
    table = pd.read_csv(earlier).astype({"step": "Int64", "steps": "Int64"})
    done = table[table["state"] == "done"].drop_duplicates(["system", "seed"])
    known = done.reindex(columns=["step", "steps", "commits"]).astype(object)
    rows = known.where(known.notna(), None).itertuples(index=False)
    keys = zip(done["system"], done["seed"], strict=True)
    return {key: dict(zip(known.columns, row, strict=True)) for key, row in zip(keys, rows, strict=True)}


def _score_of(cell: Cell, statistics: Statistics) -> dict[str, Any]:
    """The score of a kept cell with its interval over sentences, as columns of `cell_table`."""
    from analyses.seeds import over_seeds

    found = over_seeds({cell.seed: statistics})
    return {
        "metric": cell.metric,
        "score": found.score,
        "low": found.low,
        "high": found.high,
        "signature": statistics.signature,
        "n": len(statistics),
        "test": cell.test,
    }


def seed_tables(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str] = METRICS,
    checkpoints: Sequence[int] = (),
    baseline: str | None = None,
    samples: int = 1000,
    kept: Kept | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of systems over their seeds, and differences to the baseline (the first system if none is named).

    kept: statistics of cells that are finished elsewhere, which count too.
    checkpoints: steps at which systems are scored too, as SYSTEM@step, each against the baseline at that step. A seed
    counts as soon as its cell is done (a checkpoint: is translated). With a single seed the sign test is added to
    the bootstrap. Columns: those of `analyses.seeds`, and test; p_holm is corrected over all differences of a metric
    by one method, over all test sets and checkpoints together.
    """
    from analyses import seeds
    from workbench.evaluation.scoring import compare_statistics

    baseline = baseline or next(iter(experiment.systems))
    if baseline not in experiment.systems:
        raise RunError(f"--baseline {baseline!r}: {nearest(baseline, list(experiment.systems))}")
    scores, comparisons = [], []
    for one in statistics_by_test(experiment, root, metrics, kept, (None, *checkpoints)):
        base = named(baseline, one.step)
        scores.append(seeds.score_table(one.statistics, samples).assign(test=one.test))
        comparisons.append(seeds.comparison_table(one.statistics, base, samples).assign(test=one.test))
        if len(experiment.seeds) == 1 and base in one.statistics and len(one.statistics) > 1:
            single = {system: by_seed[experiment.seeds[0]] for system, by_seed in one.statistics.items()}
            comparisons.append(compare_statistics(single, base, "sign").assign(test=one.test, seeds=1))
    return _stacked(scores), _one_family(_stacked(comparisons))


def pair_differences(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str] = METRICS,
    samples: int = 1000,
    kept: Kept | None = None,
) -> pd.DataFrame:
    """The difference of every two systems, the later one of the grid less the earlier one.

    Paired by seed and sentence. Columns: those of `analyses.seeds.comparison_table` but p_holm, since nothing
    says which pairs are one family, and test.
    """
    import pandas as pd

    from analyses import seeds

    parts = []
    for one in statistics_by_test(experiment, root, metrics, kept):
        systems = dict(one.statistics)
        while len(systems) > 1:
            first = next(iter(systems))
            parts.append(seeds.comparison_table(systems, first, samples).assign(test=one.test))
            del systems[first]
    return _stacked(parts).drop(columns="p_holm") if parts else pd.DataFrame()


def length_differences(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str] = METRICS,
    baseline: str | None = None,
    samples: int = 1000,
    kept: Kept | None = None,
) -> pd.DataFrame:
    """Differences to the baseline by length of the source, in `LENGTH_GROUPS` groups of about equal size.

    Lengths are words between spaces. Beside BLEU stands the length ratio of its tokens, as the metric `length-ratio`.
    The bucket `long - test` of the test set long is how much larger its difference is than that of the first one, test.
    Test sets whose text is not here are left out. Columns: those of `analyses.buckets.DIFFERENCES`, and baseline,
    metric, test.
    """
    import pandas as pd

    from analyses import buckets, seeds

    base, parts = baseline or next(iter(experiment.systems)), []
    first: dict[str, tuple[str, Mapping[str, BySeed]]] = {}
    for one in statistics_by_test(experiment, root, metrics, kept):
        if one.text is None or base not in one.statistics:
            continue
        groups = buckets.quantiles([len(source.split()) for source in one.text.sources], LENGTH_GROUPS)
        measured: dict[str, Mapping[str, BySeed]] = {one.metric: one.statistics}
        if one.metric == "bleu":
            measured["length-ratio"] = _length_ratios(one.statistics)
        for name, systems in measured.items():
            of_groups = buckets.differences_over_seeds(systems, groups, base, samples)
            first_test, on_first = first.setdefault(name, (one.test, systems))
            if first_test != one.test:
                more = seeds.gain_differences(on_first, systems, base, samples)
                of_groups = _stacked([of_groups, more.assign(bucket=f"{one.test} - {first_test}")])
            parts.append(of_groups.assign(baseline=base, metric=name, test=one.test))
    return _stacked(parts or [pd.DataFrame(columns=[*buckets.DIFFERENCES, "baseline", "metric", "test"])])


def _length_ratios(statistics: Mapping[str, BySeed]) -> dict[str, BySeed]:
    """Statistics of BLEU, which begin with the tokens of output and reference, as those of the length ratio."""
    from analyses.buckets import length_statistics

    return {
        system: {seed: length_statistics(*one.values[:, :2].T) for seed, one in by_seed.items()}
        for system, by_seed in statistics.items()
    }


def additivity(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str] = METRICS,
    baseline: str | None = None,
    samples: int = 1000,
    kept: Kept | None = None,
) -> pd.DataFrame:
    """Whether the gains of the grid's combinations A+B are those of their parts, where the parts are systems too.

    Columns: those of `analyses.seeds.ADDITIVITY`, and test.
    """
    from analyses import seeds

    base, parts = baseline or next(iter(experiment.systems)), []
    for one in statistics_by_test(experiment, root, metrics, kept):
        parts.append(seeds.additivity_table(one.statistics, base, samples).assign(test=one.test))
    return _stacked(parts)


def dev_loss_table(experiment: Experiment, root: Path, folder: Path | None = None) -> pd.DataFrame:
    """The dev loss at every validation of the finished cells, in nats a target token.

    folder: of the tables of an earlier call (`write_csv`), whose rows of cells that are not here are kept.
    Columns: system, seed, step, tokens (target tokens trained on), seconds (of training so far), dev_loss.
    """
    import pandas as pd

    here = [cell for cell in cells(experiment, root) if cell.state == "done"]
    parts = []
    for cell in here:
        log = training_table([open_run(cell.folder)])
        losses = log[log["name"] == "dev_main_loss"].rename(columns={"value": "dev_loss"})
        parts.append(losses.assign(system=cell.system, seed=cell.seed)[DEV_LOSSES])
    earlier = folder and folder / f"{experiment.name}.dev-losses.csv"
    if earlier and earlier.is_file():
        stored = pd.read_csv(earlier)
        written_here = pd.MultiIndex.from_tuples([(cell.system, cell.seed) for cell in here], names=["system", "seed"])
        parts.append(stored[~stored.set_index(["system", "seed"]).index.isin(written_here)])
    table = _stacked([*parts, pd.DataFrame(columns=DEV_LOSSES)])
    order = {system: number for number, system in enumerate(experiment.systems)}
    return table.sort_values(
        ["system", "seed", "step"],
        key=lambda column: column.map(order) if column.name == "system" else column,
        ignore_index=True,
    )


def _one_family(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Holm's correction over all differences of a metric in the table; the sign test is a family of its own."""
    from analyses.significance import holm_within

    families = [comparisons["metric"], comparisons["method"] == "sign test"]
    return comparisons.assign(p_holm=holm_within(comparisons["p_value"], families))


def _stacked(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate tables without the empty ones, which would change the column types."""
    import pandas as pd

    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def write_csv(experiment: Experiment, folder: Path, tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write tables to a folder, each as NAME.KEY.csv; of one without rows an earlier file is removed.

    All of them are written, or none. Raises FolderError if a file of such a name is no table.
    """
    files = {f"{experiment.name}.{key}.csv": table for key, table in tables.items() if len(table)}
    endings = [f"{key}.csv" for key in tables]
    with atomic_replace_files(folder / experiment.name, endings, "experiment table", _is_table) as part:
        for name, table in files.items():
            # Length ratios differ in the fourth digit.
            digits = "%.6f" if name.endswith(".lengths.csv") else "%.4f"
            (part / name).write_text(csv_text(table, digits), encoding="utf-8")
    return [folder / name for name in files]


def _is_table(path: Path) -> bool:
    """Return True if a file begins like one of these tables; earlier versions wrote no marker."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(1000).startswith(
            (b"system,seed,st", b"system,metric,", b"system,baseline,metric,", b"system,bucket,")
        )
