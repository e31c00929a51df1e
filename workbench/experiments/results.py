"""Tables of a grid: every cell with its state, systems over seeds with their intervals, differences to a baseline.

A grid may be unfinished: missing cells are listed with the results. Scores come from `analyses.seeds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from core_models.files.file_marks import atomic_replace_files
from core_models.settings import nearest
from workbench.experiments import kept_segments
from workbench.experiments.grid import Cell, Experiment, cells, training_key
from workbench.experiments.kept_segments import Kept
from workbench.store.csv_cells import csv_text
from workbench.store.runs import Run, RunError, open_run
from workbench.store.training_logs import training_table

if TYPE_CHECKING:
    import pandas as pd

    from analyses.scores import Statistics
    from analyses.seeds import BySeed

METRICS = ("bleu", "chrf")
DEV_LOSSES = ["system", "seed", "step", "tokens", "seconds", "dev_loss"]
LENGTH_GROUPS = 6  # of sources, as many as Duan 2020, Figure 2, has


def segments(experiment: Experiment, root: Path, path: Path, metrics: Sequence[str] = METRICS) -> Kept:
    """The statistics of all finished cells that are here, and of those that a file has; writes both into the file.

    Raises ConfigError for a file of something else, of other references, or of other settings of the grid's systems.
    """
    here: Kept = {}
    tests = {}
    for test in experiment.data.test_names:
        runs = dict(_runs(experiment, root, test, None))
        if text := _text(experiment, root, test, runs):
            tests[test] = kept_segments.towards(text.references)
        for metric in metrics:
            for system, by_seed in _statistics(runs, test, metric).items():
                here |= {kept_segments.Cell(system, seed, test, metric): one for seed, one in by_seed.items()}
    trainings = {system: training_key(experiment, system) for system in experiment.systems}
    kept = {**kept_segments.read(path, tests, trainings), **here}
    if here:
        kept_segments.write(path, kept, tests, {cell: trainings[cell.system] for cell in here})
    return kept


def cell_table(
    experiment: Experiment,
    root: Path,
    metrics: Sequence[str] = METRICS,
    kept: Kept | None = None,
    folder: Path | None = None,
) -> pd.DataFrame:
    """Scores of all finished cells, a row for each test and metric; other cells have a row with state and progress.

    kept: statistics of cells that are finished elsewhere, which count as done. folder: of the tables of an earlier call
    (`write_csv`), which may know their updates.
    Columns: system, seed, state, step, steps, metric, score, low, high, signature, n, test.
    """
    import pandas as pd

    from workbench.evaluation.scoring import score_table

    earlier = _updates(folder / f"{experiment.name}.cells.csv") if folder else {}
    rows: list[dict[str, Any]] = []
    for cell in cells(experiment, root):
        step, steps = cell.steps()
        cell_columns = {"system": cell.system, "seed": cell.seed, "state": cell.state, "step": step, "steps": steps}
        elsewhere = {key: one for key, one in (kept or {}).items() if key[:2] == (cell.system, cell.seed)}
        if cell.state != "done" and elsewhere:
            updates, planned = earlier.get((cell.system, cell.seed), (steps, steps))
            done = {**cell_columns, "state": "done", "step": updates, "steps": planned}
            scored = [{**done, **_score_of(key, one)} for key, one in elsewhere.items() if key.metric in metrics]
            rows += scored or [done]
            continue
        if cell.state != "done":
            rows.append(cell_columns)
            continue
        for test in experiment.data.test_names:
            scores = score_table([open_run(cell.folder)], test, metrics)
            rows += [{**cell_columns, **dict(row), "test": test} for _, row in scores.drop(columns="system").iterrows()]
    return pd.DataFrame(rows).astype({"step": "Int64", "steps": "Int64"})


def _updates(earlier: Path) -> dict[tuple[str, int], tuple[int | None, int | None]]:
    """Of each finished training of an earlier table the numbers of updates done and planned."""
    import pandas as pd

    if not earlier.is_file():
        return {}
    table = pd.read_csv(earlier).astype({"step": "Int64", "steps": "Int64"})
    done = table[table["state"] == "done"].drop_duplicates(["system", "seed"])
    numbers = done[["step", "steps"]].astype(object).where(done[["step", "steps"]].notna(), None)
    return dict(zip(zip(done["system"], done["seed"], strict=True), numbers.itertuples(index=False), strict=True))


def _score_of(cell: kept_segments.Cell, statistics: Statistics) -> dict[str, Any]:
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
    from workbench.evaluation.scoring import comparison_table

    baseline = baseline or next(iter(experiment.systems))
    if baseline not in experiment.systems:
        raise RunError(f"--baseline {baseline!r}: {nearest(baseline, list(experiment.systems))}")
    scores, comparisons = [], []
    for test in experiment.data.test_names:
        for metric in metrics:
            for step in (None, *checkpoints):
                runs = dict(_runs(experiment, root, test, step))
                statistics = _statistics(runs, test, metric)
                if step is None:
                    statistics = _with_kept(experiment, statistics, kept, test, metric)
                base = _named(baseline, step)
                scores.append(seeds.score_table(statistics, samples).assign(test=test))
                comparisons.append(seeds.comparison_table(statistics, base, samples).assign(test=test))
                single = [by_seed for by_seed in runs.values() if len(experiment.seeds) == 1]
                if base in runs and len(single) > 1:
                    opened = [run for by_seed in single for run in by_seed.values()]
                    signs = comparison_table(opened, test, base, "sign", [metric])
                    comparisons.append(signs.assign(test=test, seeds=1))
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
    for test in experiment.data.test_names:
        runs = dict(_runs(experiment, root, test, None))
        for metric in metrics:
            statistics = _with_kept(experiment, _statistics(runs, test, metric), kept, test, metric)
            while len(statistics) > 1:
                first = next(iter(statistics))
                parts.append(seeds.comparison_table(statistics, first, samples).assign(test=test))
                del statistics[first]
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
    for test in experiment.data.test_names:
        runs = dict(_runs(experiment, root, test, None))
        text = _text(experiment, root, test, runs)
        if text is None:
            continue
        for metric in metrics:
            statistics = _with_kept(experiment, _statistics(runs, test, metric), kept, test, metric)
            groups = buckets.quantiles([len(source.split()) for source in text.sources], LENGTH_GROUPS)
            if base not in statistics:
                continue
            measured: dict[str, Mapping[str, BySeed]] = {metric: statistics}
            if metric == "bleu":
                measured["length-ratio"] = _length_ratios(statistics)
            for name, compared in measured.items():
                of_groups = buckets.differences_over_seeds(compared, groups, base, samples)
                first_test, on_first = first.setdefault(name, (test, compared))
                if first_test != test:
                    more = seeds.gain_differences(on_first, compared, base, samples)
                    of_groups = _stacked([of_groups, more.assign(bucket=f"{test} - {first_test}")])
                parts.append(of_groups.assign(baseline=base, metric=name, test=test))
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
    for test in experiment.data.test_names:
        runs = dict(_runs(experiment, root, test, None))
        for metric in metrics:
            statistics = _with_kept(experiment, _statistics(runs, test, metric), kept, test, metric)
            parts.append(seeds.additivity_table(statistics, base, samples).assign(test=test))
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
    from analyses.significance import holm

    signs = comparisons["method"] == "sign test"
    families = comparisons.groupby([comparisons["metric"], signs], sort=False)["p_value"]
    return comparisons.assign(p_holm=families.transform(lambda values: holm(values.tolist())).astype(float))


def _stacked(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate tables without the empty ones, which would change the column types."""
    import pandas as pd

    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def _runs(experiment: Experiment, root: Path, test: str, step: int | None) -> Iterator[tuple[str, dict[int, Run]]]:
    """The runs (or their checkpoints) that can be scored on a test set, by system: seed -> run."""
    for system in experiment.systems:
        system_cells = (cell for cell in cells(experiment, root) if cell.system == system)
        if runs_by_seed := {
            cell.seed: run for cell in system_cells if (run := _scorable(cell, test, step)) is not None
        }:
            yield _named(system, step), runs_by_seed


def _scorable(cell: Cell, test: str, step: int | None) -> Run | None:
    if step is None:
        return open_run(cell.folder) if cell.state == "done" else None
    if not (cell.folder / "checkpoints" / f"step-{step:06d}.safetensors").is_file():
        return None
    run = open_run(f"{cell.folder}@{step}")
    return run if test in run.tests() else None


class _Text(NamedTuple):
    sources: Sequence[str]
    references: Sequence[Sequence[str]]


def _text(experiment: Experiment, root: Path, test: str, runs: Mapping[str, Mapping[int, Run]]) -> _Text | None:
    """The text of a test set: what a cell here has translated, else what is prepared for the grid's trainings."""
    from core_models.text.parallel import TextError
    from core_models.text.prepared import Prepared

    for run in (run for by_seed in runs.values() for run in by_seed.values()):
        translated = run.translations(test).test_set
        return _Text(translated.sources, translated.all_references)
    try:
        text = Prepared.open(root / experiment.name / "data").test(test)
    except TextError:
        return None
    return _Text(text.sources, [text.targets or []])


def _named(system: str, step: int | None) -> str:
    return system if step is None else f"{system}@{step}"


def _statistics(runs: dict[str, dict[int, Run]], test: str, metric: str) -> dict[str, dict[int, Statistics]]:
    from workbench.evaluation.scoring import references, statistics

    opened = {run.reference: run.translations(test) for by_seed in runs.values() for run in by_seed.values()}
    if opened:
        references(opened)  # refuses runs that were tested on different sentences
    return {
        system: {seed: statistics(run, opened[run.reference], metric) for seed, run in by_seed.items()}
        for system, by_seed in runs.items()
    }


def _with_kept(
    experiment: Experiment, statistics: dict[str, dict[int, Statistics]], kept: Kept | None, test: str, metric: str
) -> dict[str, dict[int, Statistics]]:
    """The statistics by system and seed, with those of cells that are not here, in the experiment's order."""
    both, kept = {}, kept or {}
    for system in experiment.systems:
        elsewhere = {seed: kept.get(kept_segments.Cell(system, seed, test, metric)) for seed in experiment.seeds}
        by_seed = {**{seed: one for seed, one in elsewhere.items() if one is not None}, **statistics.get(system, {})}
        if by_seed:
            both[system] = dict(sorted(by_seed.items()))
    return both


def write_csv(experiment: Experiment, folder: Path, tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write tables to a folder, each as NAME.KEY.csv; of one without rows an earlier file is removed.

    All of them are written, or none. Raises FolderError if a file of such a name is no table.
    """
    files = {f"{experiment.name}.{key}.csv": table for key, table in tables.items() if len(table)}
    endings = [f"{key}.csv" for key in tables]
    with atomic_replace_files(folder / experiment.name, endings, "experiment table", _is_table) as part:
        for name, table in files.items():
            (part / name).write_text(csv_text(table, "%.4f"), encoding="utf-8")
    return [folder / name for name in files]


def _is_table(path: Path) -> bool:
    """Return True if a file begins like one of these tables; earlier versions wrote no marker."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(1000).startswith(
            (b"system,seed,st", b"system,metric,", b"system,baseline,metric,", b"system,bucket,")
        )
