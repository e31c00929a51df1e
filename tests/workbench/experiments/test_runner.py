"""Grids of runs: nothing is done twice, time that runs out is taken up again, what is missing stands in the table."""

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import yaml
from filelock import FileLock

from core_models.resources import data_folder
from core_models.settings import ConfigError
from core_models.text.prepared import Prepared
from core_models.training.precision import FEWEST_STEPS
from workbench.experiments.data import prepare_data
from workbench.experiments.grid import cells, read_experiment
from workbench.experiments.results import cell_table
from workbench.experiments.runner import run_experiment
from workbench.experiments.table_text import remarks
from workbench.experiments.train import finished, train
from workbench.store.runs import RunError, open_run
from workbench.store.training_logs import precision_note

GRID = {
    "name": "grid",
    "data": {
        "languages": "en-de",
        "pieces": 50,
        "train": ["train.en", "train.de"],
        "dev": ["dev.en", "dev.de"],
        "tests": {"first": ["test.en", "test.de"], "second": ["dev.en", "dev.de"]},
    },
    "systems": {"plain": "transformer:preset=tiny", "future": "future-cost-2:preset=tiny"},
    "training": {"max_steps": 4, "validate_every": 2, "log_every": 1, "batch_tokens": 256},
    "search": {"beam": 2, "max_length": 8},
    "inspect": "first",
}


@pytest.fixture
def files(prepared, tmp_path) -> Path:
    """The text of `prepared` as plain files: its test set serves for training, too."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name, test in (("train", "dev"), ("dev", "dev"), ("test", "test")):
        text = prepared.test(test)
        for language, lines in (("en", text.sources), ("de", text.targets)):
            (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def _write(tmp_path: Path, **changes) -> Path:
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump({**GRID, **changes}, sort_keys=False), encoding="utf-8")
    return path


def _times(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_grid_is_run_once_and_stopped_training_is_taken_up(tmp_path, files):
    experiment = read_experiment(_write(tmp_path))
    root, said = tmp_path / "runs", []
    assert [cell.state for cell in cells(experiment, root)] == ["missing", "missing"]
    assert cell_table(experiment, root).state.tolist() == ["missing", "missing"]

    run_experiment(experiment, root, files, said.append, device="cpu", minutes=1e-6)
    assert [cell.state_text() for cell in cells(experiment, root)] == ["begun, step 1 of 4"] * 2
    assert all("begun" in line for line in said)
    run_experiment(experiment, root, None, said.append, device="cpu")
    plain, future = (open_run(root / "grid" / name) for name in ("plain", "future"))
    assert [cell.state for cell in cells(experiment, root)] == ["done", "done"]
    assert all(finished(run.folder) and run.tests() == ["first", "second"] for run in (plain, future))
    assert all(
        run.translations("first").has_trees and not run.translations("second").has_trees for run in (plain, future)
    )
    assert "future_cost.gate" in future.traces("first").names
    assert plain.traces("first").names == ["log_prob"], "all that a system without mechanisms has of it"

    before = _times(root)
    run_experiment(experiment, root, None, said.append, device="cpu")
    assert _times(root) == before, "nothing is done twice"

    scores = cell_table(experiment, root, ("bleu",))
    assert scores[["system", "test", "metric", "n"]].values.tolist() == [
        ["plain", "first", "bleu", 15],
        ["plain", "second", "bleu", 20],
        ["future", "first", "bleu", 15],
        ["future", "second", "bleu", 20],
    ]

    # stopped between translating and tracing
    for path in (future.folder / "traces" / "first").iterdir():
        path.unlink()
    assert [cell.state for cell in cells(experiment, root)] == ["done", "trained"]
    partial = cell_table(experiment, root, ("bleu",))
    assert partial[partial.system == "future"].state.tolist() == ["trained"]
    assert partial[partial.system == "future"].score.isna().all()
    assert partial[partial.system == "plain"].score.notna().all()
    run_experiment(experiment, root, None, said.append, device="cpu")
    assert "future_cost.gate" in future.traces("first").names


def test_a_cell_that_was_trained_on_is_translated_and_traced_again(tmp_path, files):
    """Its translations would be those of weights that are gone."""
    experiment = read_experiment(_write(tmp_path, systems={"future": GRID["systems"]["future"]}))
    root = tmp_path / "runs"
    run_experiment(experiment, root, files, print, device="cpu")
    (cell,) = cells(experiment, root)
    first = {name: open_run(cell.folder).translations(name).meta["weights"] for name in ("first", "second")}

    config = cell.folder / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 4", "max_steps: 6"))
    assert cell.state == "begun"
    train(open_run(cell.folder), device="cpu")
    run = open_run(cell.folder)
    assert (cell.state, run.tests()) == ("trained", [])
    assert cell_table(experiment, root).state.tolist() == ["trained"]
    for look in (run.translations, run.traces):
        with pytest.raises(RunError, match=r"other weights than it has now; do it again: workbench translate .*first"):
            look("first")

    run_experiment(experiment, root, None, print, device="cpu")
    assert cell.state == "done"
    assert {name: run.translations(name).meta["weights"] for name in first} == dict.fromkeys(first, run.digest)
    assert run.digest not in first.values()
    forced = [record["token_log_probs"] for record in run.translations("first").details]
    traced = [run.traces("first").array("log_prob", row).values for row in range(len(forced))]
    for one, other in zip(traced, forced, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)  # traces are float16


def test_a_copied_run_keeps_its_translations(tmp_path, files):
    """The file of the weights is another one, what is in it is the same; without weights nothing can be outdated."""
    experiment = read_experiment(_write(tmp_path, systems={"plain": GRID["systems"]["plain"]}))
    run_experiment(experiment, tmp_path / "runs", files, print, device="cpu")
    (cell,) = cells(experiment, tmp_path / "runs")
    copied = open_run(shutil.copytree(cell.folder, tmp_path / "copied"))
    os.utime(copied.weights, (1.0, 1.0))
    assert copied.tests() == ["first", "second"]
    copied.weights.unlink()
    assert copied.tests() == ["first", "second"]


def test_several_seeds_are_runs_of_their_own(tmp_path):
    experiment = read_experiment(_write(tmp_path, seeds=[1, 7]))
    assert [cell.folder.name for cell in cells(experiment, tmp_path)] == [
        "plain.seed-1",
        "future.seed-1",
        "plain.seed-7",
        "future.seed-7",
    ]


def test_a_grid_that_is_given_more_seeds_keeps_the_run_it_has(tmp_path, files):
    root, one = tmp_path / "runs", {"systems": {"plain": GRID["systems"]["plain"]}, "seeds": [7]}
    run_experiment(read_experiment(_write(tmp_path, **one)), root, files, print, device="cpu", minutes=1e-6)
    more = read_experiment(_write(tmp_path, **{**one, "seeds": [1, 7]}))
    assert [(cell.name, cell.seed, cell.state) for cell in cells(more, root)] == [
        ("plain.seed-1", 1, "missing"),
        ("plain", 7, "begun"),
    ]


def test_cells_begin_from_a_run_that_is_there(tmp_path, files):
    """All but what a system adds is the other run's, and a grid that begins elsewhere says so."""
    root, later = tmp_path / "runs", {"name": "later", "systems": {"future": GRID["systems"]["future"]}}
    grid = read_experiment(_write(tmp_path, **later, begin_from="grid/plain"))
    with pytest.raises(RunError, match=r"1 of 1 cells failed.*grid/plain"):
        run_experiment(grid, root, files, print, device="cpu")
    run_experiment(read_experiment(_write(tmp_path)), root, files, print, device="cpu")
    run_experiment(grid, root, files, print, device="cpu", minutes=1e-6)
    (cell,) = cells(grid, root)
    assert cell.changes() == []
    (start,) = [event for event in open_run(cell.folder).events() if event["event"] == "start"]
    assert start["unmatched"]
    assert all(name.startswith("mechanisms.") for name in start["unmatched"])
    (other,) = cells(read_experiment(_write(tmp_path, **later)), root)
    assert other.changes() == [f"training.init_from {root / 'grid' / 'plain'}, now None"]


def test_cells_begin_from_the_run_with_their_seed(tmp_path):
    later = {"name": "later", "systems": {"future": GRID["systems"]["future"]}, "seeds": [3, 5]}
    grid = read_experiment(_write(tmp_path, **later, begin_from="grid/plain.seed-{seed}"))
    begun = [(cell.training.seed, cell.training.init_from) for cell in cells(grid, tmp_path)]
    assert begun == [(seed, str(tmp_path / "grid" / f"plain.seed-{seed}")) for seed in (3, 5)]


def test_one_system_of_a_grid_begins_from_another(tmp_path):
    begins = {"future": "grid/plain.seed-{seed}"}
    grid = read_experiment(_write(tmp_path, seeds=[3], begin_from=begins))
    begun = {cell.system: cell.training.init_from for cell in cells(grid, tmp_path)}
    assert begun == {"plain": None, "future": str(tmp_path / "grid" / "plain.seed-3")}
    with pytest.raises(ConfigError, match=r"begin_from: there is no system 'futur'; .*future"):
        read_experiment(_write(tmp_path, begin_from={"futur": "grid/plain"}))


def test_a_cell_that_another_process_holds_is_passed_by_and_one_that_fails_stops_no_other(tmp_path, files):
    experiment, root, said = read_experiment(_write(tmp_path)), tmp_path / "runs", []
    plain, future = cells(experiment, root)
    future.folder.parent.mkdir(parents=True)
    with future.lock():
        run_experiment(experiment, root, files, said.append, device="cpu", minutes=1e-6)
        assert [cell.state_text() for cell in (plain, future)] == ["begun, step 1 of 4", "missing, running"]
    assert said == [f"{plain.folder}: begun, step 1 of 4", f"{future.folder}: another process is at it"]

    (plain.folder / "config.yaml").write_text("name: [", encoding="utf-8")
    with pytest.raises(RunError, match=r"1 of 2 cells failed.*config\.yaml: not readable as YAML"):
        run_experiment(experiment, root, None, said.append, device="cpu", minutes=1e-6)
    assert plain.state_text().startswith("broken: ")
    assert future.state_text() == "begun, step 1 of 4"
    assert cell_table(experiment, root).state.tolist() == ["broken", "begun"]


def test_a_run_made_with_other_settings_is_named_and_bookkeeping_is_not(tmp_path, files):
    root = tmp_path / "runs"
    run_experiment(read_experiment(_write(tmp_path)), root, files, print, device="cpu", minutes=1e-6)
    changed = {
        "training": {**GRID["training"], "warmup": 5, "keep_last": 1, "precision": "auto"},
        "systems": {**GRID["systems"], "future": "future-cost-2:preset=tiny,weight=0.5"},  # its default
    }
    told = [cell.state_text() for cell in cells(read_experiment(_write(tmp_path, **changed)), root)]
    assert told == ["begun, step 1 of 4; made with other settings: training.warmup 4000, now 5"] * 2
    changed["systems"]["future"] = "future-cost-2:preset=tiny,weight=0.6"
    future = cells(read_experiment(_write(tmp_path, **changed)), root)[1]
    assert future.changes()[0].startswith("system future-cost-2:preset=tiny, now future-cost-2:preset=tiny,weight=0.6")


def test_text_that_was_prepared_with_other_settings_is_no_text_of_the_grid(tmp_path, files):
    root = tmp_path / "runs"
    prepare_data(read_experiment(_write(tmp_path)), root, files)
    prepare_data(read_experiment(_write(tmp_path)), root, None)
    other = read_experiment(_write(tmp_path, data={**GRID["data"], "kind": "bpe", "pieces": 77}))
    with pytest.raises(RunError, match=f"data.pieces {GRID['data']['pieces']}, now 77.*another name"):
        prepare_data(other, root, files)


def test_torchrun_is_told_how_to_train_a_cell(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RunError, match="workbench resume RUN"):
        run_experiment(read_experiment(_write(tmp_path)), tmp_path / "runs", None, print)


def test_cells_are_chosen_by_name(tmp_path):
    experiment = read_experiment(_write(tmp_path, seeds=[1, 2]))
    assert [cell.name for cell in cells(experiment, tmp_path, ["future.seed-2"])] == ["future.seed-2"]
    with pytest.raises(RunError, match=r"no cell 'future\.seed-3'; did you mean 'future\.seed-2'"):
        cells(experiment, tmp_path, ["future.seed-3"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sytems": {}}, "unknown key 'sytems'; did you mean 'systems'?"),
        ({"data": {**GRID["data"], "peices": 3}}, "unknown key 'data.peices'; did you mean 'pieces'?"),
        ({"data": {**GRID["data"], "dev": ["dev.en"]}}, "data.dev"),
        (
            {"training": {**GRID["training"], "learning_rat": 1}},
            "training: unknown key 'learning_rat'; did you mean 'learning_rate'?",
        ),
        ({"training": {}}, "give max_steps or max_epochs"),
        ({"search": {"beem": 3}}, "search: unknown key 'beem'; did you mean 'beam'?"),
        ({"seeds": [1, 2, 1]}, "names a seed twice"),
        ({"seeds": []}, "seeds"),
        ({"systems": {"coverage:form=max": "coverage:form=max"}}, "not every file system takes ':' there"),
        ({"name": "grid."}, "'grid.' names a folder, and not every file system takes '.' there"),
        ({"data": {"pieces": 50}}, "give either train, dev and tests, or controlled"),
        (
            {"data": {**GRID["data"], "controlled": {"sentences": 9, "dev": 1, "test": 1}}},
            "give either train, dev and tests, or controlled",
        ),
    ],
)
def test_a_wrong_key_is_named_with_the_file_and_the_nearest(tmp_path, changes, message):
    path = _write(tmp_path, **changes)
    with pytest.raises(ConfigError) as refusal:
        read_experiment(path)
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)


def test_a_test_set_to_inspect_must_be_one_of_its_tests(tmp_path):
    with pytest.raises(RunError, match="inspect: 'third' is none of its tests: first, second"):
        read_experiment(_write(tmp_path, inspect="third"))


def test_an_unknown_system_is_refused_before_the_others_are_trained(tmp_path, files):
    two = "gdr-bow+future-cost-1:preset=tiny"
    experiment = read_experiment(_write(tmp_path, systems={"plain": two, "other": "tranformer"}))
    with pytest.raises(ConfigError, match="did you mean 'transformer'"):
        run_experiment(experiment, tmp_path / "runs", files, print, device="cpu")
    assert not (tmp_path / "runs").exists()


def test_text_that_another_process_prepares_meanwhile_is_taken_as_it_is(tmp_path, prepared):
    """Preparing it again would take it away under the training that has begun on it; here it would fail: no file."""
    experiment, folder = read_experiment(_write(tmp_path)), tmp_path / "runs" / "grid" / "data"
    folder.parent.mkdir(parents=True)
    with ThreadPoolExecutor(1) as other:
        with FileLock(folder.with_name(".data.lock")):
            found = other.submit(prepare_data, experiment, tmp_path / "runs", tmp_path / "nowhere", print)
            time.sleep(0.2)  # time to see that there is no text yet; the outcome is the same without
            shutil.copytree(prepared.folder, folder)
        assert found.result() == folder


def test_sentences_of_the_package_are_named_without_their_folder(tmp_path, files):
    names = ["package:sentences/en-de.en", "package:sentences/en-de.de"]
    experiment = read_experiment(_write(tmp_path, data={**GRID["data"], "tests": {"first": names}}))
    text = Prepared.open(prepare_data(experiment, tmp_path / "runs", files)).test("first")
    lines = [
        (data_folder() / "sentences" / name).read_text(encoding="utf-8").splitlines()
        for name in ("en-de.en", "en-de.de")
    ]
    assert [text.sources, text.targets] == lines
    assert len(set(text.sources)) == len(text.sources) == 60


@pytest.mark.parametrize("joint", [True, False])
def test_a_controlled_corpus_has_one_vocabulary_or_two_as_the_grid_says(tmp_path, joint):
    data = {"pieces": 160, "kind": "bpe", "joint": joint, "controlled": {"sentences": 60, "dev": 5, "test": 5}}
    experiment = read_experiment(_write(tmp_path, data=data, inspect="test"))
    assert Prepared.open(prepare_data(experiment, tmp_path / "runs", None, lambda line: None)).joint is joint


def test_text_that_was_never_prepared_is_asked_for(tmp_path):
    with pytest.raises(RunError, match="give the folder of its files with --data"):
        run_experiment(read_experiment(_write(tmp_path)), tmp_path / "runs", None, print, device="cpu")


def test_the_experiments_that_are_shipped_can_be_read_and_built():
    from core_models.system_spec import describe

    for path in sorted((data_folder() / "experiments").glob("*.yaml")):
        experiment = read_experiment(path)
        assert experiment.name == path.stem
        assert all(describe(system).d_model > 0 for system in experiment.systems.values())


def test_a_grid_decides_its_precision_once_for_all_cells(tmp_path, files):
    training = {**GRID["training"], "max_steps": FEWEST_STEPS, "batch_tokens": 64}
    experiment, root = read_experiment(_write(tmp_path, training=training)), tmp_path / "runs"
    run_experiment(experiment, root, files, print, device="cpu", minutes=1e-6, only=["future"])
    decided = json.loads((root / "grid" / "precision.json").read_text())
    assert decided["cell"] == "plain", "the baseline of the comparisons, whichever cell comes first"
    assert set(decided["seconds"]) == {"float32", "bfloat16"}
    other = {"float32": "bfloat16", "bfloat16": "float32"}[decided["precision"]]
    (root / "grid" / "precision.json").write_text(json.dumps({**decided, "precision": other}))
    run_experiment(experiment, root, None, print, device="cpu", minutes=1e-6)
    made = {cell.name: open_run(cell.folder).precision for cell in cells(experiment, root)}
    assert made == {"future": decided["precision"], "plain": other}, "a cell keeps its own, a new one takes the grid's"
    assert all(cell.changes() == [] for cell in cells(experiment, root))
    note = precision_note([open_run(cell.folder) for cell in cells(experiment, root)])
    assert note in remarks(experiment, root)
    assert f"{other}: plain; {decided['precision']}: future" in note


def test_a_grid_of_before_stays_in_the_precision_of_its_cells(tmp_path, files):
    root, auto = tmp_path / "runs", {**GRID["training"], "max_steps": FEWEST_STEPS}
    begun = read_experiment(_write(tmp_path, training={**auto, "precision": "bfloat16"}))
    run_experiment(begun, root, files, print, device="cpu", minutes=1e-6, only=["plain"])
    run_experiment(read_experiment(_write(tmp_path, training=auto)), root, None, print, device="cpu", minutes=1e-6)
    assert json.loads((root / "grid" / "precision.json").read_text())["seconds"] == {}
    assert open_run(root / "grid" / "future").precision == "bfloat16"
    assert precision_note([open_run(root / "grid" / name) for name in ("plain", "future")]) == ""
