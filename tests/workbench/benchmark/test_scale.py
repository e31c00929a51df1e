"""What large data may cost: laws that hold for a corpus of two million pairs and for a small test set alike."""

import io
import mmap
import os
import shutil
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from analyses import scores
from workbench import cli
from workbench.benchmark.scale import app
from workbench.benchmark.scale.corpus import write_corpus
from workbench.benchmark.scale.stages import Stages
from workbench.benchmark.scale.test_set import made_up_texts

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc, which only Linux has")


def _table(*arguments: object) -> pd.DataFrame:
    """What `workbench scale` prints."""
    found = CliRunner().invoke(cli.app, ["benchmark", f"scale-{arguments[0]}", *map(str, arguments[1:])])
    assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
    return pd.read_csv(io.StringIO(found.stdout), sep="\t")


@linux
def test_stages_see_memory_that_is_taken_and_given_back():
    stages = Stages()
    with stages.stage("take"):
        taken = mmap.mmap(-1, 50_000_000, flags=mmap.MAP_PRIVATE)  # not from a heap that may have free pages
        for _ in range(50):
            taken.write(b"x" * 1_000_000)
    with stages.stage("give back"):
        taken.close()
    took, gave_back = stages.rows
    assert took["anonymous_mb"] == pytest.approx(50, abs=3)
    assert gave_back["anonymous_mb"] == pytest.approx(-50, abs=1)
    assert gave_back["peak_mb"] == pytest.approx(took["peak_mb"], abs=1)
    assert took["peak_mb"] > 50


@linux
@pytest.mark.slow
def test_a_corpus_of_two_million_pairs_costs_what_it_may(tmp_path):
    table = _table("corpus", "--pairs", 2_000_000, "--batches", 400, "--folder", tmp_path)
    grown = table.anonymous_mb + table.mapped_mb
    opening, planning, *iterating = table.index[:4]
    assert grown[opening] < 1
    assert table.stage[planning] == "plan an epoch of 2,000,000 pairs"
    grown_by = table.peak_mb[planning] - table.peak_mb[opening]
    assert grown_by < 1000 * 2 / 36  # so that 36 million pairs take less than a gigabyte
    assert grown[iterating].max() < 2
    assert grown[table.stage.str.startswith("seek")].max() < 2
    assert list(tmp_path.iterdir()) == []


def test_the_tokens_of_a_corpus_take_no_room(tmp_path):
    write_corpus(tmp_path, 100_000)
    tokens = [(tmp_path / f"{side}.tokens.npy").stat() for side in ("source", "target")]
    assert all(file.st_size > 100_000 * 20 for file in tokens)
    if hasattr(tokens[0], "st_blocks"):
        assert sum(file.st_blocks * 512 for file in tokens) < 50_000


@linux
@pytest.mark.slow
def test_every_stage_of_a_test_set_is_measured():
    table = _table("testset", "--segments", 200, "--systems", 3, "--metrics", "bleu", "--n-resamples", 40)
    assert [stage.split(": ")[-1].split(",")[0] for stage in table.stage] == [
        "make 200 segments x 3 systems",
        "extract statistics",
        "read them back",
        "intervals",
        "bands in 6 buckets",
        "differences in 6 buckets",
    ]
    assert (table.peak_mb.diff().dropna() >= 0).all()


def test_made_up_systems_are_better_one_after_the_other():
    references, systems = made_up_texts(300, 3)
    found = [statistics.total for statistics in scores.extract_all(systems, references).values()]
    assert len(references) == 300
    assert found == sorted(found)
    assert 5 < found[0] < found[-1] < 80


@linux
@pytest.mark.slow
def test_our_bootstrap_and_sacrebleus_own_say_the_same():
    table = _table("significance", "--segments", 200, "--paired-bs-n", 200, "--paired-ar-n", 500)
    p_value = table.dropna(subset=["p_value"]).set_index(["engine", "stage"]).p_value
    ours, theirs = p_value["nmt-workbench"], p_value["sacrebleu"]
    assert ours["bootstrap, 200 resamples"] == theirs["statistics and bootstrap, 200 resamples"]
    swapped = ours["randomization, 500 trials"], theirs["statistics and randomization, 500 trials"]
    assert abs(swapped[0] - swapped[1]) < 3 * (0.25 / 500) ** 0.5 * 2**0.5


@pytest.mark.exhaustive
@linux
def test_the_app_is_measured_in_a_browser(monkeypatch):
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        if os.environ.get("CI") == "true":
            pytest.fail("no chromium or google-chrome is installed; the browser test must run here")
        pytest.skip("no chromium or google-chrome is installed")
    monkeypatch.setattr(app, "PAGES", {"Sentences": "Compare"})
    table = pd.DataFrame(app.measure_app(segments=30, systems=2, rounds=2)).set_index("stage")
    assert table["n"].to_dict() == {
        "first page": 2,
        "Sentences, for the first time": 1,
        "Sentences, again": 2,
        "Sentences: another order": 2,
        "Sentences: a filter": 2,
        "Sentences: next sentence": 2,
    }
    assert (table["seconds"] > 0).all()
    assert (table["longest"] >= table["seconds"]).all()
    assert (table["server_mb"] > 50).all()


@linux
def test_lists_of_runs_are_measured():
    table = _table("runs", "--runs", 30).set_index("stage")
    assert list(table.index) == [
        "make 30 runs",
        "list them, for the first time",
        "what they have translated",
        "again, one has changed",
        "again, none has changed",
        "table of the page Runs",
        "table of the page Runs, one has changed",
    ]
    assert table.seconds["again, none has changed"] < table.seconds["list them, for the first time"]
