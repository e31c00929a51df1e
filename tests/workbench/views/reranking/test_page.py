"""The page Reranking: commands where nothing is scored; its sliders are the drawing's weights."""

import shutil

import pytest

from tests.workbench.views.app_pages import charts, codes, open_page, texts
from workbench.app.components import figure_view
from workbench.figures.request import Request
from workbench.store.runs import Run, open_run
from workbench.views.reranking import measure as rescoring
from workbench.views.reranking.figures import WeightsOptions, weights_table


def test_without_lists_and_without_scores_the_page_says_what_makes_them(with_demo, layered_run):
    shutil.copytree(layered_run.folder, with_demo / "demo" / "pfrnn-loss")
    at = open_page("rescoring", runs=["demo/transformer", "demo/pfrnn-loss"])
    assert any("not scored yet" in text for text in texts(at))
    assert any("No n-best lists are stored" in text for text in texts(at))
    said = "\n".join(codes(at))
    assert "workbench rerank" in said
    assert "--beam 12 --n-best 12" in said
    assert not charts(at)


def test_a_figure_is_drawn_anew_where_other_lists_were_scored(tmp_path):
    """Also of the set that weights are tuned on."""
    run = Run(tmp_path, "run")
    before = figure_view.stamps([run], "test")
    (tmp_path / "rescoring").mkdir()
    (tmp_path / "rescoring" / "dev.npz").touch()
    assert figure_view.stamps([run], "test") != before


@pytest.mark.slow
def test_sliders_are_the_weights(with_demo, layered_run):
    folder = shutil.copytree(layered_run.folder, with_demo / "demo" / "pfrnn-loss")
    run = open_run(folder)
    for test in ("test", "dev"):
        rescoring.measure(run, test)
    at = open_page("rescoring", runs=["demo/pfrnn-loss"])
    assert not at.error
    assert codes(at)[0].startswith("workbench figure rescoring")
    assert {slider.key for slider in at.slider} == {"weight-past", "weight-future", "weight-length"}
    at.slider(key="weight-past").set_value(0.4).run()
    at.selectbox(key="tuned-on").set_value("dev").run()
    assert not at.exception
    assert all(said in codes(at)[0] for said in ("weights=", "past=0.4", "dev"))
    (shown,) = [table.value for table in at.dataframe if "choice" in table.value]
    wanted = weights_table(Request((run,), "test"), WeightsOptions(weights="past=0.4", dev="dev"))
    assert shown.score.tolist() == wanted.score.tolist()
    assert shown.choice.tolist()[-1] == "tuned on dev"
