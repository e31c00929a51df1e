"""Exhibits: the runs of a grid, packed in half precision, are runs like any other, and the package stays as it is."""

import pytest
import torch
import yaml

import core_models
from core_models.checkpoint import read_tensors
from workbench.evaluation.scoring import score_table
from workbench.experiments import exhibits as making
from workbench.experiments.grid import read_experiment
from workbench.experiments.runner import run_experiment
from workbench.figures.drawing import draw
from workbench.figures.from_spec import request_of
from workbench.figures.request import Request
from workbench.figures.spec import Recipe
from workbench.store import exhibits
from workbench.store.listing import listing
from workbench.store.runs import RunError, open_run
from workbench.views.layer_routing.corpus_figures import store_history
from workbench.views.start import cards, findings

GRID = {
    "name": "exhibits",
    "data": {
        "pieces": 50,
        "train": ["train.en", "train.de"],
        "dev": ["train.en", "train.de"],
        "tests": {"first": ["train.en", "train.de"], "second": ["train.en", "train.de"]},
    },
    "systems": {"plain": "transformer:preset=tiny", "future": "future-cost-2:preset=tiny"},
    "training": {"max_steps": 2, "validate_every": 2, "log_every": 1, "batch_tokens": 256},
    "search": {"beam": 2, "max_length": 8},
    "inspect": "first",
}


@pytest.fixture
def grid(tmp_path, prepared):
    """A finished grid: its file, and the runs folder."""
    text = prepared.test("test")
    for language, lines in (("en", text.sources), ("de", text.targets)):
        (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    file = tmp_path / "grid.yaml"
    file.write_text(yaml.safe_dump(GRID, sort_keys=False), encoding="utf-8")
    run_experiment(read_experiment(file), tmp_path / "runs", tmp_path, print, device="cpu")
    return file, tmp_path / "runs"


@pytest.fixture
def second_grid(grid, tmp_path):
    """Another finished grid beside it, exhibits-more, of one system."""
    file = tmp_path / "more.yaml"
    more = {**GRID, "name": "exhibits-more", "training": {**GRID["training"], "keep_every": 1}}
    more["systems"] = {
        "plain": "transformer:preset=tiny,ffn_dim=48",
        "routed": "em-routing:preset=tiny,encoder_layers=2,decoder_layers=2,capsules=4,width_reduction=mean",
    }
    file.write_text(yaml.safe_dump(more, sort_keys=False), encoding="utf-8")
    run_experiment(read_experiment(file), tmp_path / "runs", tmp_path, print, device="cpu")
    return file


@pytest.fixture
def packed(grid, tmp_path, monkeypatch):
    """The exhibits of the grid, with trees of the first three sentences, shown instead of the package's."""
    monkeypatch.setattr(making, "TREES", 3)
    archive = making.pack(*grid, tmp_path / "packed")
    monkeypatch.setenv(exhibits.VARIABLE, str(archive.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return archive.parent


def _content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_exhibits_are_runs_of_half_precision_that_translate_to_the_stored_text(grid, packed, tmp_path):
    before, empty = _content(packed), tmp_path / "empty"
    assert sorted(before) == ["exhibits.future.safetensors", "exhibits.plain.safetensors", "exhibits.tar.xz"]
    assert [known.name for known in listing(empty).known] == ["exhibits/future", "exhibits/plain"]
    for known in listing(empty).known:
        run = open_run(known.name, empty)
        assert {tensor.dtype for tensor in read_tensors(run.weights).values()} == {torch.float16}
        assert run.tests() == ["first", "second"]
        assert run.traced("first")
        translator = core_models.load(run.folder)
        translations = run.translations("first")
        found = translator.translate(translations.test_set.sources)
        assert [translation.text for translation in found] == translations.hypotheses
        whole = open_run(grid[1] / "exhibits" / run.folder.name)
        tensors = read_tensors(whole.weights)
        assert all(torch.equal(tensor, tensors[name].half()) for name, tensor in read_tensors(run.weights).items())
    score_table([open_run("exhibits/plain", empty)], "first")
    assert _content(packed) == before
    assert not empty.exists()


@pytest.mark.slow
def test_runs_of_a_second_grid_stand_in_a_folder_of_their_own(grid, second_grid, tmp_path, monkeypatch):
    making.pack(*grid, tmp_path / "packed")
    archive = making.pack(second_grid, grid[1], tmp_path / "packed")
    monkeypatch.setenv(exhibits.VARIABLE, str(archive.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    empty = tmp_path / "empty"
    assert [known.name for known in listing(empty).known] == [
        "exhibits/future",
        "exhibits/plain",
        "exhibits-more/plain",
        "exhibits-more/routed",
    ]
    plain, more = (open_run(name, empty) for name in ("exhibits/plain", "exhibits-more/plain"))
    assert plain.config.model.ffn_dim != more.config.model.ffn_dim == 48
    run = core_models.load(more.folder)
    translations = more.translations("first")
    assert [line.text for line in run.translate(translations.test_set.sources)] == translations.hypotheses


@pytest.mark.slow
def test_measures_of_checkpoints_are_packed_without_them(grid, second_grid, tmp_path, monkeypatch):
    archive = making.pack(second_grid, grid[1], tmp_path / "packed", print, [store_history])
    monkeypatch.setenv(exhibits.VARIABLE, str(archive.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = open_run("exhibits-more/routed", tmp_path / "empty")
    assert not list(run.folder.glob("checkpoints/*"))
    table = draw("routing-health", Request((run,), "first")).table
    assert sorted(set(table["step"].dropna())) == [0, 1, 2]
    with pytest.raises(RunError, match="has kept no checkpoint"):
        draw("routing-health", Request((run,), "first", options={"sentences": 3}))


@pytest.mark.slow
def test_what_the_first_page_shows_is_packed_and_found_again(grid, tmp_path, monkeypatch):
    archive = making.pack(*grid, tmp_path / "packed", print, [findings.store])
    monkeypatch.setenv(exhibits.VARIABLE, str(archive.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runs = cards.in_order((run for run in listing(tmp_path / "empty").runs), "exhibits/plain")
    stored = sorted(path.name for run in runs for path in run.results.glob("scores/*"))
    shown = cards.cards(runs, "first")
    assert [card.page for card in shown] == ["scores", "beam_trees", "future_cost"]
    pictures = [cards.picture(card, {run.name: run for run in runs}) for card in shown]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert findings.findings(runs, "first")
    assert sorted(path.name for run in runs for path in run.results.glob("scores/*")) == stored


def test_trees_are_those_of_the_first_sentences_and_of_the_rounded_weights(packed, tmp_path):
    run = open_run("exhibits/plain")
    translations = run.translations("first")
    assert translations.trees == 3
    (again,) = core_models.load(run.folder).translate([translations.test_set.sources[2]], record=True)
    tree = translations.tree(2)
    assert tree["word"] == again.tree["word"]
    assert tree["log_prob"] == pytest.approx(again.tree["log_prob"], abs=1e-4)
    with pytest.raises(RunError, match=r"trees of the first 3 sentences of first; record all: workbench translate"):
        translations.tree(3)


def test_a_run_of_the_same_name_comes_first_and_exhibits_can_be_hidden(grid, packed, monkeypatch):
    _, runs = grid
    own = runs / "exhibits" / "plain"
    (runs / "mine").mkdir()
    (runs / "exhibits" / "future").rename(runs / "mine" / "future")
    assert [known.name for known in listing(runs).known] == ["exhibits/plain", "mine/future", "exhibits/future"]
    assert open_run("exhibits/plain", runs).folder == own
    recipe = Recipe(drawing="scores", runs=("exhibits/future", "mine/future"), test="first")
    assert [run.name for run in request_of(recipe, runs).runs] == ["exhibits/future", "mine/future"]
    monkeypatch.setenv(exhibits.VARIABLE, "0")
    assert [known.name for known in listing(runs).known] == ["exhibits/plain", "mine/future"]
    with pytest.raises(RunError, match="no run here"):
        open_run("exhibits/future", runs)


def test_unfinished_runs_are_not_packed(tmp_path, grid):
    file, runs = grid
    with pytest.raises(RunError, match=r"exhibits/plain is missing; finish it: workbench experiment run"):
        making.pack(file, runs / "elsewhere", tmp_path / "packed")


def test_a_grid_of_another_name_is_refused_since_its_runs_would_not_be_found(tmp_path, grid):
    file, runs = grid
    file.write_text(file.read_text(encoding="utf-8").replace("name: exhibits", "name: other"), encoding="utf-8")
    with pytest.raises(RunError, match=r"name the grid exhibits or exhibits-"):
        making.pack(file, runs, tmp_path / "packed")


def test_the_same_runs_give_the_same_weights_and_another_archive_another_folder(grid, packed, tmp_path, monkeypatch):
    again = making.pack(*grid, tmp_path / "again").parent
    for name in ("plain", "future"):
        assert (again / f"exhibits.{name}.safetensors").read_bytes() == (
            packed / f"exhibits.{name}.safetensors"
        ).read_bytes()
    first = exhibits.root()
    assert first == exhibits.root()
    with (again / "exhibits.tar.xz").open("ab") as archive:
        archive.write(bytes(4))
    monkeypatch.setenv(exhibits.VARIABLE, str(again))
    assert exhibits.root() != first
