"""The demo: the same seed gives the same bytes, and a demo that was killed goes on to the same end."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from core_models.settings import ConfigError
from tests.workbench.conftest import SYSTEMS, demo_grid
from workbench.experiments import demo
from workbench.experiments.grid import cells, read_experiment
from workbench.experiments.train import finished
from workbench.store.runs import RunError, open_run

SMALL = {
    "data": {"pieces": 160, "kind": "bpe", "controlled": {"sentences": 200, "dev": 10, "test": 10}},
    "search": {"beam": 2, "max_length": 12},
    "training": {"max_steps": 12, "validate_every": 2, "log_every": 1, "warmup": 1, "batch_tokens": 256},
}
SCRIPT = """
import sys
from pathlib import Path
from workbench.experiments import demo
demo.build(Path(sys.argv[1]), file=Path(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return demo_grid(tmp_path_factory.mktemp("grid") / "demo.yaml", SMALL, SYSTEMS[:2])


def grid_of(runs: Path) -> Path:
    """The grid that the fixture `demo_runs` was built from."""
    return runs.with_name(f"{runs.name}.yaml")


def _bytes(root: Path) -> dict[str, bytes]:
    """Everything that a seed decides: not the clock times of logs and summaries."""
    kept = (
        "corpus/*",
        "data/**/*",
        "*/vocabulary/*",
        "*/weights.safetensors",
        "*/config.yaml",
        "*/traces/test/*",
        "*/scores/*",
        *(f"*/translations/test/{name}" for name in ("hypotheses.txt", "details.jsonl", "trees.jsonl", "truth.jsonl")),
    )
    found = {path for pattern in kept for path in (root / "demo").glob(pattern) if path.is_file()}
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(found)}


def _same(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    assert list(one) == list(other)
    assert [name for name in one if one[name] != other[name]] == []


@pytest.mark.exhaustive
def test_the_same_seed_gives_the_same_bytes_killed_or_not(small, tmp_path):
    said = []
    demo.build(tmp_path / "one", say=said.append, processes=1, file=small)
    whole = _bytes(tmp_path / "one")
    assert demo.complete(tmp_path / "one", small)
    assert {Path(name).name for name in whole} >= {
        "train.en",
        "joint.model",
        "weights.safetensors",
        "hypotheses.txt",
        "details.jsonl",
        "trees.jsonl",
        "index.json",
    }
    assert [line.split()[0] for line in said if " bleu " in line] == list(SYSTEMS[:2])

    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "two"), str(small)])
    first, until = tmp_path / "two" / "demo" / SYSTEMS[0], time.monotonic() + 120
    while not list(first.glob("state/step-*2/progress.json")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children()
    for one in (process, *workers):
        one.send_signal(signal.SIGKILL)
    process.wait()
    psutil.wait_procs(workers)
    assert not finished(first), "it was to be killed in the middle of training"
    assert not demo.complete(tmp_path / "two", small)

    demo.build(tmp_path / "two", say=lambda _: None, processes=2, file=small)
    _same(whole, _bytes(tmp_path / "two"))
    steps = [event["step"] for event in open_run(first).events() if event["event"] == "train"]
    assert steps == list(range(1, 13)), "each step stands in the log once"


def test_a_demo_that_is_there_stays_as_it_is(demo_runs):
    before = {path: path.stat().st_mtime_ns for path in demo_runs.rglob("*") if path.is_file()}
    said = []
    demo.build(demo_runs, say=said.append, file=grid_of(demo_runs))
    assert {path: path.stat().st_mtime_ns for path in demo_runs.rglob("*") if path.is_file()} == before
    assert not [line for line in said if line.startswith("Writing")]


@pytest.mark.slow
def test_what_a_demo_lacks_is_made_again(copied_runs, demo_runs):
    """Removing one product brings that one back, from the same weights the same bytes."""
    run = copied_runs / "demo" / "future-cost-1"
    index = (run / "traces" / "test" / "index.json").read_bytes()
    (run / "traces" / "test" / "index.json").unlink()
    assert not demo.complete(copied_runs, grid_of(demo_runs))
    before = _bytes(copied_runs)
    demo.build(copied_runs, say=lambda _: None, file=grid_of(demo_runs))
    assert demo.complete(copied_runs, grid_of(demo_runs))
    assert (run / "traces" / "test" / "index.json").read_bytes() == index
    after = _bytes(copied_runs)
    _same(before, {name: content for name, content in after.items() if name in before})


def test_the_demo_is_of_documents_whose_truth_is_known(demo_runs):
    translations = open_run("demo/transformer", demo_runs).translations("test")
    assert len(translations.truth) == len(translations) == len(translations.test_set.documents)
    assert translations.has_trees


@pytest.mark.slow
def test_a_demo_of_which_only_another_test_set_was_translated_goes_on(copied_runs, demo_runs):
    run = copied_runs / "demo" / "transformer"
    (run / "translations" / "test").rename(run / "translations" / "dev")
    shutil.rmtree(run / "traces")
    demo.build(copied_runs, say=lambda _: None, file=grid_of(demo_runs))
    assert open_run(run).tests() == ["dev", "test"]
    assert demo.complete(copied_runs, grid_of(demo_runs))


@pytest.mark.slow
def test_another_system_joins_the_demo_by_its_recipe_and_on_its_text(copied_runs, demo_runs):
    own = grid_of(demo_runs)
    (grid,) = demo.grids_of(["em-routing"], copied_runs, own)
    before = _bytes(copied_runs)
    demo.build(copied_runs, say=lambda _: None, file=grid)
    added, first = (open_run(f"demo/{name}", copied_runs) for name in ("em-routing", "transformer"))
    assert added.mechanisms == {"em_routing"}
    assert added.config.training == first.config.training
    assert added.translations("test").test_set.sources == first.translations("test").test_set.sources
    assert added.config.model.d_model == first.config.model.d_model
    after = _bytes(copied_runs)
    _same(before, {name: content for name, content in after.items() if name in before})


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("em-rooting", r"there is no system 'em-rooting'; .*em-routing"),
        ("coverage:form=neutral", "mechanisms.coverage: form: input should be"),
        ("coverage:backbone=transformer", "coverage needs the hook point .* which transformer does not have"),
        ("pfrnn+future-cost-1:rnn_cell=gnu", "rnn_cell: input should be 'gru' or 'lstm'"),
    ],
)
def test_what_cannot_be_built_joins_no_demo(tmp_path, description, message):
    with pytest.raises(ConfigError, match=message):
        demo.grids_of(["em-routing", description], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("description", "name", "whole"),
    [
        ("coverage:form=neural", "coverage-form=neural", "coverage:{recipe},form=neural"),
        ("rnnsearch:decoder_init=zero", "rnnsearch-decoder_init=zero", "rnnsearch:{recipe},decoder_init=zero"),
        (
            "coverage+gdr-rnn:losses=[bow, bca],norm=post",
            "coverage+gdr-rnn-losses=bow-bca-norm=post",
            "coverage+gdr-rnn:{recipe},losses=[bow, bca],norm=post",
        ),
        (
            "future-cost-2:dropout=0.1,preset=tiny",
            "future-cost-2-dropout=0.1-preset=tiny",
            "future-cost-2:attention_dropout=0,dropout=0.1,preset=tiny",
        ),
        ("gdr-bow:losses=[]", "gdr-bow-losses=", "gdr-bow:{recipe},losses=[]"),
    ],
)
def test_a_description_joins_by_the_recipe_and_has_a_plain_name(tmp_path, description, name, whole):
    """What it sets itself it keeps; its folder's name holds nothing that a file system or a shell reads."""
    (grid,) = demo.grids_of([description], tmp_path)
    assert read_experiment(grid).systems == {name: whole.format(recipe="preset=demo,dropout=0,attention_dropout=0")}
    assert grid == tmp_path / "demo" / f"{name}.yaml"


def test_a_long_name_is_cut_and_still_its_own():
    one, other = (demo.run_name(f"gdr-bow-bca:{'bag_smoothing=0.1,' * 9}lambda_2={value}") for value in (1, 2))
    assert one != other
    assert len(one) == len(other) == demo.LONGEST_NAME
    assert one.startswith("gdr-bow-bca-bag_smoothing=0.1-")


@pytest.mark.parametrize(
    ("description", "first"),
    [
        ("coverage:form=neural", None),
        ("gdr-rnn+coverage", None),
        ("pfrnn-loss:weight=0.5", "rnnsearch"),
        ("pfrnn+future-cost-1:rnn_cell=lstm,layers=[past]", "rnnsearch:rnn_cell=lstm"),
        ("rnnsearch-2dec+coverage+prnn:d_model=32", "rnnsearch-2dec:d_model=32"),
    ],
)
def test_a_second_pass_begins_from_the_same_model_without_mechanisms(description, first):
    assert demo.first_pass(description) == first


@pytest.mark.exhaustive
def test_layers_of_content_join_the_demo_in_a_second_pass(copied_runs, demo_runs):
    """RNNSearch is trained before, although nobody asked for it, and all that it has in common with them is taken."""
    names = ["pfrnn", "gdr-rnn", "prnn-loss", "pfrnn:rnn_cell=lstm"]
    grids = [read_experiment(grid) for grid in demo.grids_of(names, copied_runs, grid_of(demo_runs))]
    assert [(grid.begin_from, [*grid.systems]) for grid in grids] == [
        (None, ["gdr-rnn", "rnnsearch", "rnnsearch-rnn_cell=lstm"]),
        ("demo/rnnsearch", ["pfrnn", "prnn-loss"]),
        ("demo/rnnsearch-rnn_cell=lstm", ["pfrnn-rnn_cell=lstm"]),
    ]
    for grid in demo.grids_of(["pfrnn+coverage:form=subtractive,rnn_cell=lstm"], copied_runs, grid_of(demo_runs)):
        demo.build(copied_runs, say=lambda _: None, file=grid)
    run = open_run("demo/pfrnn+coverage-form=subtractive-rnn_cell=lstm", copied_runs)
    assert run.mechanisms == {"past_future_layers", "coverage"}
    (start,) = (event for event in run.events() if event["event"] == "start")
    assert start["unmatched"]
    assert all(name.startswith("mechanisms.") for name in start["unmatched"])


@pytest.mark.slow
def test_a_demo_that_another_process_is_at_is_named(copied_runs, demo_runs):
    run = copied_runs / "demo" / "transformer"
    shutil.rmtree(run / "traces")
    (cell, *_) = cells(read_experiment(grid_of(demo_runs)), copied_runs)
    with cell.lock(), pytest.raises(RunError, match="another process builds the demo"):
        demo.build(copied_runs, say=lambda _: None, file=grid_of(demo_runs))
