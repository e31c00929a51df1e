"""Training towards adequacy, from the command line to the gallery, on a controlled corpus of a few sentences."""

from pathlib import Path

import pytest
import yaml

import core_models
from analyses import adequacy as measures
from analyses.aligner import words
from core_models.settings import ConfigError
from tests.workbench.cli.test_commands import invoke
from tests.workbench.cli.test_refusals import refused
from workbench.evaluation import adequacy
from workbench.experiments.grid import cells, read_experiment
from workbench.papers import our_results, presets
from workbench.papers.load import library
from workbench.store.runs import ALIGNERS, open_run

GRID = {
    "name": "tiny",
    "data": {"pieces": 160, "kind": "bpe", "controlled": {"sentences": 60, "dev": 5, "test": 5}},
    "systems": {"rnnsearch": "rnnsearch:preset=tiny,dropout=0"},
    "training": {"max_steps": 20, "warmup": 3, "learning_rate": 0.01, "batch_tokens": 500, "validate_every": 20},
    "search": {"beam": 2, "max_length": 12},
}
TOWARDS = {"max_steps": 2, "batch_tokens": 100_000, "log_every": 1, "adequacy": {"weight": 10, "samples": 2}}


def grid_file(folder: Path, **changes) -> Path:
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump({**GRID, **changes}, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A runs folder with the trained run that others begin from."""
    folder = tmp_path_factory.mktemp("towards")
    invoke("experiment", "run", grid_file(folder), "--runs", folder / "runs", "--device", "cpu")
    return folder / "runs"


def train(root: Path, name: str, *further: object) -> Path:
    out, base = root / "tiny" / name, root / "tiny" / "rnnsearch"
    settings = (f"{key}={value}" for key, value in {**TOWARDS, "adequacy": "{weight: 10, samples: 2}"}.items())
    options = [part for setting in (*settings, "early_stopping.metric=adequacy") for part in ("--config", setting)]
    search = ("--search", "beam=2", "--search", "max_length=12")
    invoke(
        "train", "rnnsearch:preset=tiny,dropout=0", "--data", root / "tiny" / "data", "--out", out, "--init-from", base,
        "--device", "cpu", *options, *search, *further,
    )  # fmt: skip
    return out


def macro(run, aligner, sources, translations, references) -> float:
    """The mean of the sentences' ratios, as the measures of a test set have it."""
    source, written, wanted = ([words(line) for line in lines] for lines in (sources, translations, references))
    links = aligner.align_all(source, wanted), aligner.align_all(source, written)
    return measures.coverage_difference_ratio(*links).macro


@pytest.mark.slow
def test_a_trained_run_is_trained_on_towards_coverage_and_can_be_interrupted(root):
    """All sentences are one batch: the first baseline is the coverage of what the trained run says greedily."""
    whole = train(root, "whole")
    parts = train(root, "parts", "--max-minutes", "0.000001")
    assert "all steps done" in invoke("resume", parts, "--device", "cpu")
    assert (whole / "weights.safetensors").read_bytes() == (parts / "weights.safetensors").read_bytes()
    run, base = open_run(whole), core_models.load(root / "tiny" / "rnnsearch")
    assert (whole / "weights.safetensors").read_bytes() != (root / "tiny/rnnsearch/weights.safetensors").read_bytes()
    (kept,) = (root / "tiny" / ALIGNERS).iterdir()
    aligner, origin = adequacy.aligner_of([run], "test", kept)
    assert origin == f"read from {kept.name}"

    from core_models.text.prepared import Prepared

    prepared = Prepared.open(root / "tiny" / "data")
    text = prepared.split("train")
    sources, references = ([side(row) for row in range(len(text))] for side in (text.source_text, text.target_text))
    greedy = [one.text for one in base.translate(sources, beam=1, length_penalty=0)]
    logged = [event for event in run.events() if event["event"] == "train"]
    assert 0.1 < logged[0]["greedy_reward"] < 1
    assert logged[0]["greedy_reward"] == pytest.approx(macro(run, aligner, sources, greedy, references), abs=0.02)
    assert all(0 <= event["reward"] <= 1 for event in logged)
    dev = prepared.test("dev")
    found = [one.text for one in core_models.load(run.folder).translate(dev.sources)]
    (valid,) = (event for event in run.events() if event["event"] == "valid")
    assert valid["adequacy"] == pytest.approx(macro(run, aligner, dev.sources, found, dev.targets), abs=1e-6)


@pytest.mark.slow
def test_such_a_run_has_a_name_of_its_own_and_its_own_row_in_the_gallery(root):
    run, base = open_run(train(root, "named")), open_run(root / "tiny" / "rnnsearch")
    assert (run.system, base.system) == (
        "rnnsearch+aol:preset=tiny,dropout=0",
        "rnnsearch:preset=tiny,dropout=0",
    )
    table = library()["zheng-2019"].table("table-1")
    assert [row.key for row in presets.rows_of(table, run.system)] == ["rnmt-aol"]
    assert [row.key for row in presets.rows_of(table, base.system)] == ["rnmt"]
    notes = [
        row.note for paper in library().values() for one in paper.tables for row in one.rows if "+aol" in row.system
    ]
    assert len(notes) == 2
    assert all("not a faithful reproduction" in note for note in notes)
    for one in (run, base):
        invoke("translate", one.folder, "--test", "test", "--device", "cpu")
    found = our_results.our_results(table, [run, base], "test")
    found = found[found["where"].isin([f"run {one.name}" for one in (run, base)])]
    assert set(zip(found["row"], found["system"], strict=True)) == {("rnmt", base.system), ("rnmt-aol", run.system)}


def test_a_grid_trains_towards_adequacy_from_a_run_that_is_there(root, tmp_path):
    changes = {"systems": {"aol": GRID["systems"]["rnnsearch"]}, "training": TOWARDS}
    grid = grid_file(tmp_path, **changes, begin_from="tiny/rnnsearch")
    invoke("experiment", "run", grid, "--runs", root, "--device", "cpu")
    (cell,) = cells(read_experiment(grid), root)
    assert (cell.state, cell.changes()) == ("done", [])
    assert any("reward" in event for event in open_run(cell.folder).events())
    with pytest.raises(ConfigError, match=r"adequacy.weight: .*name a trained run to begin from: init_from"):
        read_experiment(grid_file(tmp_path, **changes))


def test_a_run_that_was_never_trained_is_not_begun(root, capsys, monkeypatch):
    out = root / "tiny" / "never"
    said = refused(
        capsys, monkeypatch, "train", "rnnsearch", "--data", root / "tiny" / "data", "--out", out, "--config",
        "adequacy.weight=1",
    )  # fmt: skip
    assert "what an untrained system draws is noise" in said
    assert not out.exists()


def test_what_is_rewarded_is_the_coverage_of_each_sentence(root):
    run = open_run(root / "tiny" / "rnnsearch")
    aligner, _ = adequacy.aligner_of([run], "test")
    test_set = run.translations("test").test_set
    rewards = adequacy.reward(aligner)(test_set.sources, test_set.references, test_set.references)
    assert rewards == [1.0] * 5
    assert adequacy.reward(aligner)(test_set.sources, [""] * 5, test_set.references) == [0.0] * 5
    assert adequacy.reward(aligner)(["x"], ["y"], [""]) == [1.0], "nothing can be missed"
