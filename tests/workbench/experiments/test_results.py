"""Tables of a grid over seeds, on a generated corpus: means, spreads and differences are those of independent
computations, half a grid is tabled as half a grid, and the files name all of it."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sacrebleu
import yaml
from typer.testing import CliRunner

from analyses import significance
from analyses.buckets import LEAST
from analyses.scores import extract
from core_models.settings import ConfigError
from workbench import cli
from workbench.evaluation.scoring import METRIC_NAMES
from workbench.evaluation.translate import test_set as open_test_set
from workbench.evaluation.translate import translate_test
from workbench.experiments import kept_segments
from workbench.experiments.cell_statistics import update_kept
from workbench.experiments.grid import Experiment, cells, read_experiment
from workbench.experiments.results import (
    METRICS,
    additivity,
    cell_table,
    dev_loss_table,
    length_differences,
    pair_differences,
    seed_tables,
    write_csv,
)
from workbench.experiments.runner import run_experiment
from workbench.experiments.table_text import HOLM, INTERVALS, ONE_SEED, readable, readable_additivity, remarks
from workbench.papers.experiment_differences import stored_differences
from workbench.store.runs import Run, RunError, open_run

GRID = {
    "name": "grid",
    "data": {"pieces": 160, "kind": "bpe", "controlled": {"sentences": 150, "dev": 10, "test": 30}},
    "systems": {"plain": "transformer:preset=tiny", "future": "future-cost-2:preset=tiny"},
    "seeds": [1, 2],
    "training": {"max_steps": 2, "validate_every": 1, "log_every": 1, "batch_tokens": 256, "precision": "float32"},
    "search": {"beam": 1, "max_length": 4},
}


def _spoil(run: Run, share: float, seed: int) -> tuple[list[str], list[str]]:
    """Put references with a share of their words spoiled in place of a run's translations; returns both."""
    folder, drawn = run.results / "translations" / "test", random.Random(seed)
    references = (folder / "references.txt").read_text(encoding="utf-8").splitlines()
    worse = [" ".join("falsch" if drawn.random() < share else word for word in line.split()) for line in references]
    (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in worse), encoding="utf-8")
    return worse, references


@pytest.fixture(scope="module")
def grid(tmp_path_factory) -> tuple[Experiment, Path]:
    """A grid of two systems and two seeds, run to its end."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "grid.yaml").write_text(yaml.safe_dump(GRID, sort_keys=False), encoding="utf-8")
    experiment = read_experiment(folder / "grid.yaml")
    run_experiment(experiment, folder, None, print, device="cpu")
    return experiment, folder


@pytest.fixture(scope="module")
def outputs(grid) -> dict[tuple[str, int], tuple[list[str], list[str]]]:
    """What each cell made of the test set, ever fewer words of it spoiled."""
    shares = {("plain", 1): 0.5, ("future", 1): 0.35, ("plain", 2): 0.4, ("future", 2): 0.3}
    return {
        (cell.system, cell.seed): _spoil(open_run(cell.folder), shares[cell.system, cell.seed], cell.seed)
        for cell in cells(*grid)
    }


def test_a_generated_corpus_is_prepared_with_its_truth_and_needs_no_files(grid):
    experiment, root = grid
    assert [cell.state for cell in cells(experiment, root)] == ["done"] * 4
    translations = open_run(root / "grid" / "future.seed-2").translations("test")
    assert len(translations) == len(translations.truth) == 30
    assert INTERVALS in remarks(experiment, root)[-1]


def test_means_and_spreads_are_those_of_sacrebleu_and_numpy(grid, outputs):
    scores, comparisons = seed_tables(*grid, samples=100)
    for row in scores.itertuples():
        own = [
            {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf}[row.metric](worse, [references]).score
            for worse, references in (outputs[row.system, seed] for seed in (1, 2))
        ]
        assert (row.score, row.spread) == pytest.approx((np.mean(own), np.std(own, ddof=1)))
        assert row.low < row.score < row.high
        assert (row.n, row.seeds, row.test) == (30, 2, "test")
    means = scores.set_index(["system", "metric"]).score
    for row in comparisons.itertuples():
        assert (row.system, row.baseline, row.method) == ("future", "plain", "bootstrap of sentences, t of seeds")
        assert row.delta == pytest.approx(means["future", row.metric] - means["plain", row.metric])
    turned = seed_tables(*grid, baseline="future", samples=100)[1]
    assert turned.delta.tolist() == pytest.approx((-comparisons.delta).tolist())
    with pytest.raises(RunError, match="--baseline 'futur': did you mean 'future'"):
        seed_tables(*grid, baseline="futur")


def test_half_a_grid_is_compared_over_the_seeds_that_both_have_and_names_the_missing(grid, outputs):
    experiment, root = grid
    late = root / "grid" / "future.seed-2" / "translations"
    late.rename(root / "elsewhere")
    try:
        scores, comparisons = seed_tables(experiment, root, ("bleu",), samples=200)
        assert scores[["system", "seeds"]].values.tolist() == [["plain", 2], ["future", 1]]
        pair = [extract(*outputs[system, 1], "bleu") for system in ("plain", "future")]
        plain = significance.paired_bootstrap(*pair, samples=200)
        (row,) = comparisons.itertuples()
        assert (row.method, row.seeds) == ("paired bootstrap", 1)
        assert (row.delta, row.low, row.high, row.p_value) == (plain.delta, plain.low, plain.high, plain.p_value)
        assert remarks(experiment, root)[0] == "future.seed-2: trained"
        shown = readable(scores, comparisons, 2).set_index("system")
        assert shown.seeds.tolist() == ["2 of 2", "1 of 2"]
        assert "±" in shown.score["plain"]
        assert "±" not in shown.score["future"]
    finally:
        (root / "elsewhere").rename(late)


@pytest.mark.slow
def test_cells_of_another_machine_count_from_their_statistics_to_the_last_bit(grid, outputs, tmp_path):
    """The second seed is scored first, alone; then it is gone, and the first seed is scored."""
    experiment, root = grid
    metrics = tuple(METRIC_NAMES)
    whole = seed_tables(experiment, root, metrics, samples=100)
    complete = cell_table(experiment, root, metrics)
    first, second = ([cell.folder for cell in cells(experiment, root) if cell.seed == seed] for seed in (1, 2))
    path = tmp_path / "grid.segments.npz"
    for hidden in (first, second):
        away = {folder: tmp_path / folder.name for folder in hidden}
        for folder, place in away.items():
            folder.rename(place)
        try:
            kept = update_kept(experiment, root, path, metrics)
            found = seed_tables(experiment, root, metrics, samples=100, kept=kept)
            table = cell_table(experiment, root, metrics, kept=kept)
            assert [line.endswith("missing") for line in remarks(experiment, root)] == [True, True, False]
            named = remarks(experiment, root, kept)
            assert len(named) == (3 if hidden is first else 1), "all are kept when the second half is scored"
            assert len(seed_tables(experiment, root, metrics, samples=100)[0]) == len(whole[0])
        finally:
            for folder, place in away.items():
                place.rename(folder)
    for one, other in zip(found, whole, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    keys = ["system", "seed", "metric", "test"]
    pd.testing.assert_frame_equal(
        table.sort_values(keys, ignore_index=True)[[*keys, "state", "score", "n"]],
        complete.sort_values(keys, ignore_index=True)[[*keys, "state", "score", "n"]],
        check_exact=True,
    )
    assert path.stat().st_size < 20_000
    elsewhere = cell_table(experiment, tmp_path / "none", metrics, kept=kept)
    write_csv(experiment, tmp_path, {"cells": elsewhere.assign(step=7, steps=8, commits="abc def")})
    known = cell_table(experiment, tmp_path / "none", metrics, kept, tmp_path)[["step", "steps", "commits"]]
    assert known.values.tolist() == [[7, 8, "abc def"]] * len(elsewhere), "as an earlier table has it"
    with pytest.raises(ConfigError, match="other references of test"):
        kept_segments.read(path, {"test": kept_segments.towards([["something else"]])})
    slower = experiment.model_copy(update={"training": {**experiment.training, "learning_rate": 0.5}})
    with pytest.raises(ConfigError, match="was trained with other settings than the grid has now"):
        update_kept(slower, tmp_path / "none", path, metrics)
    wider = experiment.model_copy(update={"search": {**experiment.search, "beam": 2}})
    with pytest.raises(ConfigError, match="was searched with other settings than the grid has now"):
        update_kept(wider, tmp_path / "none", path, metrics)
    more_often = experiment.model_copy(update={"training": {**experiment.training, "log_every": 7}})
    assert len(update_kept(more_often, tmp_path / "none", path, metrics)) == len(kept), "the same trainings"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ConfigError, match="no statistics of an experiment's cells"):
        kept_segments.read(path, {})


def test_cells_of_other_settings_are_named_and_not_kept(grid, outputs, tmp_path):
    experiment, root = grid
    path, metrics = tmp_path / "grid.segments.npz", ("bleu",)
    here = update_kept(experiment, root, path, metrics)
    slower = experiment.model_copy(update={"training": {**experiment.training, "learning_rate": 0.5}})
    assert update_kept(slower, root, tmp_path / "other.npz", metrics) == {}
    first = next(cell for cell in cells(experiment, root) if cell.state == "done")
    meta = first.folder / "translations" / experiment.data.test_names[0] / "meta.json"
    written = meta.read_text(encoding="utf-8")
    meta.write_text(json.dumps({**json.loads(written), "search": {"beam": 7}}), encoding="utf-8")
    try:
        assert any("translated with beam 7, now" in change for change in first.changes())
        kept = update_kept(experiment, root, tmp_path / "third.npz", metrics)
        assert {(cell.system, cell.seed) for cell in here} - {(cell.system, cell.seed) for cell in kept} == {
            (first.system, first.seed)
        }
    finally:
        meta.write_text(written, encoding="utf-8")


def test_every_commit_that_a_training_ran_at_is_named(grid, tmp_path):
    experiment, root = grid
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True)
    expected = head.stdout.strip()  # "" outside of a checkout
    for commits in cell_table(experiment, root)["commits"].fillna(""):
        assert commits.removesuffix("-dirty") == expected
    cell = shutil.copytree(cells(experiment, root)[0].folder, tmp_path / cells(experiment, root)[0].name)
    starts = [
        {"event": "start", "step": step, "commit": commit} for step, commit in ((0, "a"), (1, "b-dirty"), (2, "a"))
    ]
    (cell / "training.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in starts), encoding="utf-8")
    assert open_run(cell).commits() == ["a", "b-dirty"]
    without = [{"event": "start", "step": 0}, {"event": "start", "step": 0, "commit": ""}]
    (cell / "training.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in without), encoding="utf-8")
    assert open_run(cell).commits() == [], "logs of earlier versions, and code outside of a checkout"


def test_where_no_run_is_here_differences_by_length_need_the_prepared_text_alone(grid, tmp_path):
    experiment, root = grid
    kept = update_kept(experiment, root, tmp_path / "kept.npz", METRICS)
    whole = length_differences(experiment, root, samples=100, kept=kept)
    elsewhere = tmp_path / "elsewhere"
    assert length_differences(experiment, elsewhere, samples=100, kept=kept).empty
    shutil.copytree(root / experiment.name / "data", elsewhere / experiment.name / "data")
    found = length_differences(experiment, elsewhere, samples=100, kept=kept)
    pd.testing.assert_frame_equal(found, whole, check_exact=True)
    text = elsewhere / experiment.name / "data" / "tests" / "test.target"
    text.write_text(text.read_text().replace("e", "a"), encoding="utf-8")
    with pytest.raises(ConfigError, match="other references of test"):
        update_kept(experiment, elsewhere, tmp_path / "kept.npz", METRICS)


def test_a_checkpoint_is_compared_with_the_baseline_at_its_step(grid, outputs):
    experiment, root = grid
    for cell in cells(experiment, root):
        run = open_run(f"{cell.folder}@1")
        test, _ = open_test_set(run, "test")
        translate_test(run, test)
        _spoil(run, 0.6 if cell.system == "plain" else 0.2, cell.seed)
    scores, comparisons = seed_tables(experiment, root, ("chrf",), [1], samples=100)
    assert scores.system.tolist() == ["plain", "future", "plain@1", "future@1"]
    assert comparisons[["system", "baseline"]].values.tolist() == [["future", "plain"], ["future@1", "plain@1"]]
    assert comparisons.delta[1] > comparisons.delta[0] > 0
    assert comparisons.p_holm.tolist() == significance.holm(comparisons.p_value.tolist()).tolist(), "one family"
    assert (comparisons.p_holm > comparisons.p_value).any(), "two tests, and not a family each"


def test_the_command_prints_a_row_a_system_and_writes_every_cell(grid, outputs, tmp_path):
    experiment, root = grid
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump({**GRID, "seeds": [1, 2, 3]}, sort_keys=False), encoding="utf-8")
    found = CliRunner().invoke(
        cli.app,
        ["experiment", "table", str(path), "--runs", str(root), "--csv", str(tmp_path / "out"), "--n-resamples", "100"],
    )
    assert found.exit_code == 0, found.output
    assert [line.split("\t")[:4] for line in found.stdout.splitlines()[1:5]] == [
        ["test", metric, system, "2 of 3"] for metric in ("BLEU", "chrF") for system in ("plain", "future")
    ]
    assert "plain.seed-3: missing" in found.stderr
    assert INTERVALS in found.stderr
    cells_file, scores, comparisons, lengths = (
        pd.read_csv(tmp_path / "out" / f"grid.{kind}.csv") for kind in ("cells", "scores", "comparisons", "lengths")
    )
    assert cells_file.state.tolist() == ["done"] * 8 + ["missing"] * 2, "two metrics of each cell that is done"
    means = cells_file[cells_file.state == "done"].groupby(["system", "metric"]).score.mean()
    assert scores.set_index(["system", "metric"]).score.to_dict() == pytest.approx(means.to_dict(), abs=1e-4)
    assert {"system", "baseline", "metric", "score", "delta", "low", "high", "p_value", "p_holm", "method", "test"} < {
        *comparisons.columns
    }
    in_groups = lengths.low_edge.notna()
    groups = lengths[(lengths.metric == "bleu") & in_groups]
    assert groups.n.sum() == 30, "every sentence is in one group"
    assert set(groups.system) == {"future"}
    assert set(groups.seeds) == {2}
    least = lengths[(lengths.metric == "bleu") & (lengths.bucket == LEAST)].iloc[0]
    assert least.delta == groups.delta.min()
    ratios = lengths[(lengths.metric == "length-ratio") & in_groups]
    assert ratios.bucket.tolist() == groups.bucket.tolist()
    ratio, seen = ratios.iloc[0], {}
    for cell in cells(experiment, root):
        kept = open_run(cell.folder).translations("test")
        short = [row for row, source in enumerate(kept.test_set.sources) if len(source.split()) <= ratio.high_edge]
        output, reference = ([lines[row] for row in short] for lines in (kept.hypotheses, kept.test_set.references[0]))
        found = sacrebleu.corpus_bleu(output, [reference])
        seen.setdefault(cell.system, []).append(found.sys_len / found.ref_len)
    assert ratio.delta == pytest.approx(np.mean(seen["future"]) - np.mean(seen["plain"]), abs=1e-4)


def test_dev_losses_are_those_of_the_logs_and_of_cells_that_are_elsewhere(grid, tmp_path):
    experiment, root = grid
    table = dev_loss_table(experiment, root)
    for cell in cells(experiment, root):
        logged = [event for event in open_run(cell.folder).events() if event["event"] == "valid"]
        rows = table[(table.system == cell.system) & (table.seed == cell.seed)]
        assert rows.dev_loss.tolist() == [event["main_loss"] for event in logged]
        for column in ("step", "tokens", "seconds"):
            assert rows[column].tolist() == [event[column] for event in logged]
    assert table.system.unique().tolist() == list(experiment.systems)
    kept = table.assign(dev_loss=7.0)
    kept.to_csv(tmp_path / "grid.dev-losses.csv", index=False)
    assert dev_loss_table(experiment, tmp_path / "none", tmp_path).equals(kept), "of other machines"
    assert dev_loss_table(experiment, root, tmp_path).equals(table), "what is here stands for what was kept"


def test_with_one_seed_the_sign_test_stands_beside_the_bootstrap(grid, outputs, tmp_path):
    experiment, root = grid
    single = experiment.model_copy(update={"seeds": (1,)})
    for system in experiment.systems:  # a grid of one seed looks for folders without a seed's name
        (root / "grid" / f"{system}.seed-1").rename(root / "grid" / system)
    try:
        scores, comparisons = seed_tables(single, root, ("bleu",), samples=100)
        assert scores.spread.isna().all()
        signs = significance.sign_test(*(extract(*outputs[system, 1], "bleu") for system in ("plain", "future")))
        assert comparisons.method.tolist() == ["paired bootstrap", "sign test"]
        assert comparisons.p_value[1] == signs.p_value
        assert remarks(single, root) == [f"{ONE_SEED} {HOLM}"]
        assert scores.form.tolist() == ["sentences"] * 2
        kept = update_kept(single, root, tmp_path / "kept.npz", METRICS)
        elsewhere = seed_tables(single, tmp_path / "none", ("bleu",), samples=100, kept=kept)[1]
        pd.testing.assert_frame_equal(elsewhere, comparisons)
    finally:
        for system in experiment.systems:
            (root / "grid" / system).rename(root / "grid" / f"{system}.seed-1")


def test_every_two_systems_are_compared_as_with_one_of_them_as_the_baseline(grid, tmp_path):
    experiment, root = grid
    kept = update_kept(experiment, root, tmp_path / "kept.npz", METRICS)
    kept |= {
        cell._replace(system="third"): one for cell, one in kept.items() if (cell.system, cell.seed) == ("plain", 2)
    }
    three = experiment.model_copy(update={"systems": {**experiment.systems, "third": "transformer:preset=tiny"}})
    pairs = pair_differences(three, tmp_path / "none", samples=100, kept=kept)
    keys = ["metric", "system", "baseline", "seeds"]
    assert pairs[pairs.metric == "bleu"][keys[1:]].values.tolist() == [
        ["future", "plain", 2], ["third", "plain", 1], ["third", "future", 1]
    ]  # fmt: skip
    compared = [
        seed_tables(three, tmp_path / "none", baseline=base, samples=100, kept=kept)[1] for base in three.systems
    ]
    expected = pd.concat(compared).drop(columns="p_holm").merge(pairs[keys])
    pd.testing.assert_frame_equal(
        pairs.sort_values(keys, ignore_index=True), expected.sort_values(keys, ignore_index=True)
    )
    (written,) = write_csv(three, tmp_path, {"pairs": pairs})
    assert pair_differences(experiment, tmp_path / "none").empty
    assert stored_differences(written)[0]["delta"] == pytest.approx(pairs.delta[0], abs=1e-4)


def test_a_combination_of_the_grid_is_beside_its_parts(grid, tmp_path):
    """The combination translates like `future` here, and its other part is the baseline: nothing is beyond the gain."""
    experiment, root = grid
    kept = update_kept(experiment, root, tmp_path / "kept.npz", METRICS)
    kept |= {cell._replace(system="plain+future"): one for cell, one in kept.items() if cell.system == "future"}
    both = experiment.model_copy(
        update={"systems": {**experiment.systems, "plain+future": "future-cost-2:preset=tiny"}}
    )
    table = additivity(both, tmp_path / "none", kept=kept, samples=100)
    gains = seed_tables(both, tmp_path / "none", kept=kept, samples=100)[1].set_index(["system", "metric"]).delta
    assert table.metric.tolist() == ["bleu", "chrf"]
    assert table.gain.tolist() == pytest.approx([gains["future", "bleu"], gains["future", "chrf"]])
    assert table[["delta", "low", "high"]].abs().max().max() < 1e-4
    assert readable_additivity(table)[["combination", "seeds"]].values.tolist() == [["plain+future", 2]] * 2
    (written,) = write_csv(both, tmp_path, {"additivity": table})
    assert pd.read_csv(written).system.tolist() == ["plain+future"] * 2
    assert write_csv(both, tmp_path, {"additivity": table[:0]}) == []
    assert not written.exists(), "of a grid without combinations"
