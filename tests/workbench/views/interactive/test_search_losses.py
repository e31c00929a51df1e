"""Losses of PAST and FUTURE layers at test time, on the command line and on the page Translate, each way."""

import os
import shutil

import pytest

import core_models
from core_models.config import CONFIG
from core_models.settings import read_yaml, write_yaml
from tests.workbench.cli.test_commands import invoke
from tests.workbench.views.app_pages import codes, open_page
from workbench.store.runs import Run, open_run
from workbench.views.interactive import decoding as live

KEY = "losses"


@pytest.fixture
def run(with_demo, layered_run) -> Run:
    """A copy that knows its data."""
    folder = shutil.copytree(layered_run.folder, with_demo / "demo" / "pfrnn-loss")
    data = str(layered_run.config.data_folder(layered_run.folder))
    write_yaml(folder / CONFIG, read_yaml(folder / CONFIG) | {"data": data})
    return open_run(folder)


def test_the_command_line_stores_how_the_losses_took_part(run):
    left_out = core_models.load(run.folder).translate(run.translations("test").test_set.sources, test_loss="none")
    assert [one.text for one in left_out] != run.translations("test").hypotheses
    invoke("translate", run.folder, "--test", "test", "--search", "test_loss=none")
    stored = open_run(run.folder).translations("test")
    assert stored.hypotheses == [one.text for one in left_out]
    assert stored.meta["search"]["test_loss"] == "none"


def test_evaluate_searches_again_only_what_was_searched_otherwise(run):
    asked = "evaluate", run.folder, "--metrics", "bleu", "--n-resamples", 40, "--search"
    meta = run.folder / "translations" / "test" / "meta.json"
    before = os.stat(meta)
    invoke(*asked, "test_loss=as_built")
    assert os.stat(meta).st_mtime_ns == before.st_mtime_ns
    scored = invoke(*asked, "test_loss=none")
    assert open_run(run.folder).translations("test").meta["search"]["test_loss"] == "none"
    made = os.stat(meta)
    assert invoke(*asked, "test_loss=none") == scored
    assert os.stat(meta).st_mtime_ns == made.st_mtime_ns


@pytest.mark.slow
def test_the_page_asks_where_a_run_has_losses_and_nowhere_else(run):
    at = open_page("translate", runs=["demo/transformer"])
    assert KEY not in {box.key for box in at.selectbox}
    at = open_page("translate", runs=["demo/pfrnn-loss"], inside="n-best and tokens")
    source = run.translations("test").test_set.sources[0]
    translator = core_models.load(run.folder)
    for choice, test_loss in (("own", None), ("none", "none"), ("step_mean_prob", "step_mean_prob")):
        at.selectbox(key=KEY).set_value(choice).run()
        assert not at.exception
        wanted = translator.translate([source], beam=5, length_penalty=0.6, n_best=5, test_loss=test_loss)[0]
        shown = at.dataframe[1].value
        assert shown["text"].tolist() == [wanted.text, *(one.text for one in wanted.n_best)]
        assert shown["score"].iloc[0] == pytest.approx(wanted.score, abs=1e-4)
        assert any(f"--search test_loss={test_loss}" in code for code in codes(at)) == (test_loss is not None)
    assert live.command(run, live.TranslationRequest(source)).count("--search") == 0


def test_the_losses_are_left_out_by_the_runs_that_have_some(run):
    at = open_page("translate", runs=["demo/pfrnn-loss", "demo/transformer"], sentence="0", losses="left out")
    source = run.translations("test").test_set.sources[0]
    table = next(frame.value for frame in at.dataframe if "log_prob_change" in frame.value).set_index("system")
    others = open_run(run.folder.parent / "transformer")
    for one, changes in ((run, {"test_loss": "none"}), (others, {})):
        (wanted,) = core_models.load(one.folder).translate([source], beam=5, length_penalty=0.6, **changes)
        assert table.loc[one.folder.name, "score"] == pytest.approx(wanted.score, abs=1e-4)
