"""Grids of runs: nothing is done twice, time that runs out is taken up again, what is missing stands in the table."""

from pathlib import Path

import pytest
import yaml

from core_models.config import ConfigError
from core_models.resources import data_folder
from workbench.experiments import cells, read_experiment, run_experiment, table
from workbench.runs import RunError, open_run
from workbench.training import finished

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


def test_a_grid_is_run_once_and_stopped_training_is_taken_up(tmp_path, files):
    experiment = read_experiment(_write(tmp_path))
    root, said = tmp_path / "runs", []
    assert [cell.state for cell in cells(experiment, root)] == ["missing", "missing"]
    assert table(experiment, root).state.tolist() == ["missing", "missing"]

    run_experiment(experiment, root, files, said.append, device="cpu", minutes=1e-6)
    assert [cell.state for cell in cells(experiment, root)] == ["begun", "begun"]
    assert all(line.endswith("begun") for line in said)
    run_experiment(experiment, root, None, said.append, device="cpu")
    plain, future = (open_run(root / "grid" / name) for name in ("plain", "future"))
    assert [cell.state for cell in cells(experiment, root)] == ["done", "done"]
    assert all(finished(run.folder) and run.tests() == ["first", "second"] for run in (plain, future))
    assert all(
        run.translations("first").has_trees and not run.translations("second").has_trees for run in (plain, future)
    )
    assert "future_cost.gate" in future.traces("first").names
    assert not (plain.folder / "traces").exists(), "a system without mechanisms has nothing of its own to trace"

    before = _times(root)
    run_experiment(experiment, root, None, said.append, device="cpu")
    assert _times(root) == before, "nothing is done twice"

    scores = table(experiment, root, ("bleu",))
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
    partial = table(experiment, root, ("bleu",))
    assert partial[partial.system == "future"].state.tolist() == ["trained"]
    assert partial[partial.system == "future"].score.isna().all()
    assert partial[partial.system == "plain"].score.notna().all()
    run_experiment(experiment, root, None, said.append, device="cpu")
    assert "future_cost.gate" in future.traces("first").names


def test_several_seeds_are_runs_of_their_own(tmp_path):
    experiment = read_experiment(_write(tmp_path, seeds=[1, 7]))
    assert [cell.folder.name for cell in cells(experiment, tmp_path)] == [
        "plain.seed-1",
        "future.seed-1",
        "plain.seed-7",
        "future.seed-7",
    ]


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
    experiment = read_experiment(_write(tmp_path, systems={"plain": "transformer:preset=tiny", "other": "tranformer"}))
    with pytest.raises(ConfigError, match="did you mean 'transformer'"):
        run_experiment(experiment, tmp_path / "runs", files, print, device="cpu")
    assert not (tmp_path / "runs").exists()


def test_text_that_was_never_prepared_is_asked_for(tmp_path):
    with pytest.raises(RunError, match="give the folder of its files with --data"):
        run_experiment(read_experiment(_write(tmp_path)), tmp_path / "runs", None, print, device="cpu")


def test_the_experiments_that_are_shipped_can_be_read_and_built():
    from core_models.systems import describe

    for path in sorted((data_folder() / "experiments").glob("*.yaml")):
        experiment = read_experiment(path)
        assert experiment.name == path.stem
        assert all(describe(system).width > 0 for system in experiment.systems.values())
