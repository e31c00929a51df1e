"""What is measured inside the finished trainings of an experiment, seed by seed: result files for the ledger.

    python data/experiments/inside_by_seed.py runs/claims-past-future
    python data/experiments/inside_by_seed.py runs/claims-documents pronouns

Writes into data/experiments/results, a row for each seed and system, by default options; all tables, or those named:

- NAME.truth.csv: the figure `past-future-truth`; NAME.overlap.csv: the figure `overlap`.
- NAME.course.csv: the figure `past-future-course`; NAME.flips.csv: the share of words that move to PAST as their last
  counterpart is written, of the figure `flip-times`.
- NAME.routing.csv: the figure `routing-corpus`, entropy in nats; NAME.routing-learned.csv: `routing-learned`.
- NAME.context.csv: the figure `context-corpus`, of query-guided capsules.
- NAME.coverage.csv: `workbench adequacy`.
- NAME.pronouns.csv: `workbench contrastive-eval --controlled test`, where items have sentences before them.
- NAME.search-errors.csv: search errors by beam size, of runs and test sets that `workbench beam-sweep` measured.
- NAME.adequacy-over-seeds.csv: what systems leave out and repeat (`workbench adequacy coverage --over-seeds`), over the
  seeds that are here, on each test set.
- NAME.alignment-over-seeds.csv: of RNNSearch and systems on it the alignment error of attention against the true links
  (`workbench analyze alignment-error`), over the seeds that are here.

Of all but the last two, rows of a file stay where no training here has their seed and system.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from analyses.past_future import flips_in_time
from analyses.past_future_gold import WORDS
from analyses.significance import holm_within
from core_models.resources import data_folder
from workbench.evaluation.adequacy import adequacy_table, aligner_of
from workbench.evaluation.document_context import routing_context
from workbench.experiments.grid import Cell, cells, read_experiment
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.papers.experiment_differences import results_folder
from workbench.store.csv_cells import csv_text
from workbench.store.runs import Run, open_run
from workbench.views.adequacy.word_coverage import over_seeds_table
from workbench.views.attention.alignment_error_figures import ComparedOptions, compared_table
from workbench.views.beam_size.figures import sizes_table
from workbench.views.beam_size.measure import is_measured, read
from workbench.views.contrastive.measure import accuracy_table, controlled, read_all, store_controlled
from workbench.views.layer_routing.measure import routed
from workbench.views.past_future.corpus_figures import FlipTimesOptions, flip_tables
from workbench.views.past_future.gold_figures import TruthOptions, against_truth
from workbench.views.past_future.measure import guided, has_bags

TEST, MARK = "test", ".seed-"
RULE = "rule: frequency"  # the most frequent pieces of the training text, which no model is needed for
Table = Callable[[Sequence[Run]], pd.DataFrame]
Trained = Sequence[tuple[Cell, Run]]


def truth(runs: Sequence[Run]) -> pd.DataFrame:
    areas = against_truth(Request(tuple(runs), TEST), TruthOptions()).areas.table
    return areas.assign(words=areas["words"].map(WORDS))


def overlap(runs: Sequence[Run]) -> pd.DataFrame:
    """The means of the sentences, which the figure draws at the right of each panel, and those of frequent pieces."""
    bags = tuple(run for run in runs if has_bags(run))
    if not bags:
        return pd.DataFrame()
    points = draw("overlap", Request(bags, TEST, options={"printed": False})).table
    points = points[points["mark"] == "points"].rename(columns={"panel": "system"})
    side, rule = points["series"].str.partition(", ")[0], points["series"].str.endswith("by frequency")
    # All runs are of the same text, so the rule is the same for all.
    points = points.assign(side=side, system=points["system"].mask(rule, RULE)).drop_duplicates(["system", "side"])
    return points[["system", "side", "value", "low", "high", "n"]]


def course(runs: Sequence[Run]) -> pd.DataFrame:
    """The mean mass of a source word in PAST, FUTURE and REDUNDANT, by tenths of the translation."""
    grouped = tuple(guided(runs))
    if not grouped:
        return pd.DataFrame()
    points = draw("past-future-course", Request(grouped, TEST)).table
    points = points[points["mark"] == "line"].rename(columns={"panel": "system", "series": "group"})
    return points[["system", "group", "place", "value", "low", "high", "n"]]


def flips(runs: Sequence[Run]) -> pd.DataFrame:
    """The shares of words that move to PAST as their last counterpart is written, by two measures."""
    grouped = tuple(guided(runs))
    if not grouped:
        return pd.DataFrame()
    found = flip_tables(Request(grouped, TEST), FlipTimesOptions())
    return pd.concat([flips_in_time(table).assign(system=run.name) for run, table, _ in found], ignore_index=True)


def routing(runs: Sequence[Run]) -> pd.DataFrame:
    """Entropy and diversity of the assignments that each iteration uses, means over 100 sentences."""
    routing_runs = tuple(run for run in runs if routed(run, "encoder"))
    if not routing_runs:
        return pd.DataFrame()
    curves = draw("routing-corpus", Request(routing_runs, TEST, options={"printed": False, "entropy": "nats"})).table
    curves = _entropy_and_diversity(curves).rename(columns={"series": "system"})
    return curves[["system", "panel", "iteration", "value", "low", "high"]]


def _entropy_and_diversity(curves: pd.DataFrame) -> pd.DataFrame:
    lines = curves[(curves["mark"] == "line") & (curves["series"] != "")]
    return lines[lines["panel"].isin(["entropy (nats)", "diversity"])]


def routing_learned(runs: Sequence[Run]) -> pd.DataFrame:
    """Entropy and diversity of trained weights, of those before training, and of moved votes; 100 sentences."""
    tables = []
    for run in (run for run in runs if routed(run, "encoder")):
        curves = draw("routing-learned", Request((run,), TEST)).table
        tables.append(_entropy_and_diversity(curves).rename(columns={"series": "weights"}).assign(system=run.name))
    if not tables:
        return pd.DataFrame()
    return pd.concat(tables, ignore_index=True)[["system", "weights", "panel", "iteration", "value", "low", "high"]]


def context(runs: Sequence[Run]) -> pd.DataFrame:
    """How the couplings of the words before a sentence concentrate, iteration by iteration; means over sentences."""
    reading = tuple(routing_context(runs))
    if not reading:
        return pd.DataFrame()
    curves = draw("context-corpus", Request(reading, TEST)).table
    curves = curves[curves["mark"] == "line"].rename(columns={"series": "system"})
    return curves[["system", "panel", "iteration", "value", "low", "high"]]


def coverage(runs: Sequence[Run]) -> pd.DataFrame:
    """CDR and proxies of under- and over-translation, on each test set."""
    tables = []
    for test in _tests(runs):
        aligner, _ = aligner_of(runs, test)
        tables.append(adequacy_table(runs, test, aligner).assign(test=test))
    return pd.concat(tables, ignore_index=True)


def pronouns(runs: Sequence[Run]) -> pd.DataFrame:
    """How often the right pronoun is more probable than the wrong ones: of all, by where its noun stands, by gender."""
    if runs[0].translations(TEST).truth is None:
        return pd.DataFrame()
    items, name, _ = controlled(runs[0], TEST)
    if not any(item.context for item in items):
        return pd.DataFrame()
    store_controlled(runs, TEST)
    contrasts = read_all(runs, name)
    by_tags = [accuracy_table(contrasts, tags).assign(by=tags) for tags in ("distance,order", "gender")]
    return pd.concat([accuracy_table(contrasts).assign(by="all"), *by_tags])


def search_errors(runs: Sequence[Run]) -> pd.DataFrame:
    """Search errors by beam size, on each test set; decided: the sentences that exact search decided."""
    tables = []
    for test in _tests(runs):
        measured = tuple(run for run in runs if is_measured(run, test))
        if measured:
            decided = {run.name: read(run, test)["decided"] for run in measured}
            sizes = sizes_table(Request(measured, test))
            tables.append(sizes.assign(test=test, decided=sizes["system"].map(decided)))
    if not tables:
        return pd.DataFrame()
    columns = ["system", "test", "size", "bleu", "decided", "errors", "error_percent", "error_low", "error_high"]
    return pd.concat(tables, ignore_index=True)[columns]


def adequacy(runs: Sequence[Run]) -> pd.DataFrame:
    """What systems leave out and repeat; the grid's first system is the baseline.

    relative, relative_low, relative_high: the difference and its interval as a percentage of the baseline's rate, over
    the seeds that both have;
    p_holm: Holm's correction over all systems and test sets of a measure.
    """
    tables = []
    for test in _tests(runs):
        tested = [run for run in runs if test in run.tests()]
        seeds: dict[str, set[int]] = {}
        for run in tested:
            seeds.setdefault(run.system, set()).add(run.config.training.seed)
        if alone := [system for system, own in seeds.items() if own - seeds.get(runs[0].system, set())]:
            raise SystemExit(f"{test}: {alone[0]} has a seed that {runs[0].system} lacks")
        found = over_seeds_table(tested, test)
        rates = found["percent"] - found["delta"]
        for column, delta in (("relative", "delta"), ("relative_low", "delta_low"), ("relative_high", "delta_high")):
            found[column] = 100 * found[delta] / rates
        tables.append(found.assign(test=test))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(p_holm=holm_within(table["p_value"], table["measure"]))


def alignment(runs: Sequence[Run]) -> pd.DataFrame:
    """The alignment error of attention; the grid's first system is the baseline."""
    attending = [run for run in runs if run.config.model.backbone == "rnnsearch" and run.traced(TEST)]
    if not attending or attending[0].translations(TEST).truth is None:
        return pd.DataFrame()
    return compared_table(Request(tuple(attending), TEST), ComparedOptions(links="truth", over_seeds=True))


def _tests(runs: Sequence[Run]) -> list[str]:
    return sorted({test for run in runs for test in run.tests()})


BY_SEED: dict[str, Table] = {
    "truth": truth,
    "overlap": overlap,
    "course": course,
    "flips": flips,
    "routing": routing,
    "routing-learned": routing_learned,
    "context": context,
    "coverage": coverage,
    "pronouns": pronouns,
    "search-errors": search_errors,
}
OVER_SEEDS: dict[str, Table] = {"adequacy-over-seeds": adequacy, "alignment-over-seeds": alignment}


def main(folder: Path, *names: str) -> None:
    known = (*BY_SEED, *OVER_SEEDS)
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"there is no table {unknown[0]!r}; there are {', '.join(known)}")
    experiment = read_experiment(data_folder() / "experiments" / f"{folder.name}.yaml")
    trained = [cell for cell in cells(experiment, folder.parent) if cell.state in ("trained", "done")]
    runs = [(cell, run) for cell in trained if TEST in (run := open_run(cell.folder)).tests()]
    if not runs:
        raise SystemExit(f"{folder}: there is no training with translations of {TEST}")
    for what in names or known:
        path = results_folder() / f"{folder.name}.{what}.csv"
        if what in BY_SEED:
            _write_by_seed(path, BY_SEED[what], runs)
        else:
            _write_over_seeds(path, OVER_SEEDS[what], runs, list(experiment.systems))


def _write_by_seed(path: Path, table: Table, runs: Trained) -> None:
    """The table of each seed's runs; rows of seeds and systems that are not here stay as they were."""
    parts = []
    for seed in sorted({cell.seed for cell, _ in runs}):
        of_seed = [run for cell, run in runs if cell.seed == seed]
        parts.append(table(sorted(of_seed, key=lambda run: run.name)).assign(seed=seed))
    parts = [part for part in parts if not part.empty]
    if not parts:
        return
    found = pd.concat(parts, ignore_index=True)
    # A name may stand within another: "rule: attention of transformer.seed-1".
    found["system"] = found["system"].str.replace(rf"{re.escape(MARK)}\d+", "", regex=True)
    if path.is_file():
        kept, keys = pd.read_csv(path), ["seed", "system"]
        elsewhere = ~kept.set_index(keys).index.isin(found.set_index(keys).index)
        found = pd.concat([kept[elsewhere], found], ignore_index=True)
    found = found.sort_values("seed", kind="stable")
    _write(path, found[["seed", *(column for column in found if column != "seed")]])


def _write_over_seeds(path: Path, table: Table, runs: Trained, systems: Sequence[str]) -> None:
    """The table of all runs, in the grid's order of systems."""
    ordered = sorted(runs, key=lambda trained: (systems.index(trained[0].system), trained[0].seed))
    found = table([run for _, run in ordered])
    if found.empty:
        return
    found = found.replace({"system": {run.system: cell.system for cell, run in runs}})
    if found["system"].iloc[0] != systems[0]:
        raise SystemExit(f"{path.name}: there is no training of {systems[0]}, which the others stand beside")
    _write(path, found)


def _write(path: Path, table: pd.DataFrame) -> None:
    path.write_text(csv_text(table.round(4)), encoding="utf-8")
    print(f"{path.name}: {len(table)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
