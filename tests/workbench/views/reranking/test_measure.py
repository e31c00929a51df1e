"""Rescoring of a run: parts are forced log-probabilities of the stored pieces; the page's numbers are the table's."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import core_models
from tests.workbench.views.app_pages import runs_of
from workbench.cli import app
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.reranking import measure as rescoring
from workbench.views.reranking.figures import ONES, SEARCH, WeightsOptions, weights_table


@pytest.fixture
def run(layered_run, tmp_path):
    return open_run(shutil.copytree(layered_run.folder, tmp_path / "pfrnn-loss"))


@pytest.fixture
def scored(run):
    for test in ("test", "dev"):
        rescoring.measure(run, test)
    return run


def test_lists_are_stored_with_their_pieces(run):
    detail = run.translations("test").details[3]
    assert len(detail["n_best"]) == 3
    for other in detail["n_best"]:
        (trace,) = core_models.load(run.reference).trace([run.translations("test").test_set.sources[3]],
                                                         [other["tokens"]], ["log_prob"])  # fmt: skip
        assert trace["log_prob"].values.sum() == pytest.approx(other["log_prob"], abs=1e-3)


def test_every_hypothesis_has_its_parts_and_its_bleu(scored):
    lists = rescoring.read(scored, "test")
    assert set(lists.parts) == {"main", "decoder", "past", "future", "length"}
    opened, translator = scored.translations("test"), core_models.load(scored.reference)
    every = rescoring.lists_of(scored, "test")
    assert np.diff(lists.starts).tolist() == [len(own) for own in every]
    assert len(lists) == len(opened)
    for sentence in (0, 7):
        for place, one in enumerate(every[sentence]):
            names = ["log_prob", "*.log_prob"]
            (trace,) = translator.trace([opened.test_set.sources[sentence]], [one["tokens"]], names)
            row = dict(zip(lists.parts, lists.values[lists.starts[sentence] + place], strict=True))
            assert row["length"] == len(one["tokens"])
            assert row["main"] == pytest.approx(trace["log_prob"].values.sum(), abs=1e-3)
            for part in ("past", "future", "decoder"):
                assert row[part] == pytest.approx(trace[f"{part}.log_prob"].values.sum(), abs=1e-3)


def test_the_searchs_choice_has_the_runs_own_score(scored):
    from workbench.evaluation.scoring import score_table

    table = weights_table(Request((scored,), "test"), WeightsOptions()).set_index("choice")
    own = score_table([scored], "test", ["bleu"])
    assert table.score[SEARCH] == pytest.approx(own["score"].iloc[0])
    assert table.low[SEARCH] == pytest.approx(own["low"].iloc[0])
    assert table.weights[ONES] == "log P of the decoder 1, PAST 1, FUTURE 1"


def test_the_figure_is_the_curve_and_the_choices(scored):
    from analyses.reranking import curve, tuned

    options = {"weights": "past=0.5,length=0.2", "part": "future", "dev": "dev"}
    figure = draw("rescoring", Request((scored,), "test", options=options))
    lists = rescoring.read(scored, "test")
    weights = {**lists.ones, "past": 0.5, "length": 0.2}
    line = figure.table[figure.table.mark == "line"]
    assert line.score.tolist() == curve(lists, weights, "future").score.tolist()
    dots = figure.table[figure.table.mark == "points"]
    found = tuned(rescoring.read(scored, "dev"))
    wanted = [lists.of(one).total for one in (None, lists.ones, weights, found)]
    assert dots.score.tolist() == pytest.approx(wanted)
    assert figure.panels[1].y.texts[-1] == "tuned on dev"
    assert "Tuned on dev, by a grid" in figure.caption


def test_a_table_of_other_weights_or_lists_is_scored_again(scored):
    path = scored.folder / "translations" / "test" / "details.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[0])
    record["n_best"] = record["n_best"][:1]
    path.write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n", encoding="utf-8")
    again = open_run(scored.folder)
    assert not rescoring.is_measured(again, "test")
    with pytest.raises(RunError, match="other lists of 'test', or other weights; again: workbench rerank"):
        rescoring.read(again, "test")
    rescoring.measure(again, "test")
    assert np.diff(rescoring.read(again, "test").starts)[0] == 2


def test_the_command_scores_and_prints(run):
    done = CliRunner().invoke(app, ["rerank", str(run.folder), "--dev", "dev", "--weights", "past=0"])
    assert done.exit_code == 0, done.output
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[1] for row in rows] == ["choice", SEARCH, ONES, "chosen weights", "tuned on dev"]
    assert rescoring.is_measured(run, "test")


def test_what_cannot_be_rescored_is_said(scored, demo_runs):
    (plain,) = runs_of(demo_runs, "transformer")
    with pytest.raises(RunError, match="no n-best lists of 'test'; translate it with some: workbench translate"):
        rescoring.measure(plain, "test")
    assert not rescoring.has_lists(plain, "test")
    with pytest.raises(RunError, match="no n-best lists of 'test' were scored yet; score them: workbench rerank"):
        rescoring.read(plain, "test")
    for options, message in (
        ({"weights": "pasts=1"}, "none of the runs has a part 'pasts'"),
        ({"weights": "past"}, "write PART=NUMBER"),
        ({"part": "main"}, "part 'main': its weight is not free; choose"),
        ({"dev": "test"}, "say nothing; name another"),
    ):
        with pytest.raises(RunError, match=message):
            draw("rescoring", Request((scored,), "test", options=options))
