"""Every analysis is one table, whether a command, a notebook or a package asks for it; its numbers are the pages'."""

import io
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core_models.text.parallel import write_lines
from workbench import cli, notebook
from workbench.evaluation import scoring
from workbench.figures.registry import figure, load
from workbench.figures.table_registry import analyses, analysis
from workbench.store.runs import RunError, open_run

OPTIONS = {"scores": {"metrics": "bleu,ter"}, "comparison": {"method": "sign"}, "documents": {"metric": "chrf"},
           "alignment-error": {"links": "truth"}}  # fmt: skip


@pytest.fixture
def runs(demo_runs, tmp_path):
    """Two runs of the demo; what is kept beside them is theirs."""
    for name in ("transformer", "future-cost-1"):
        shutil.copytree(demo_runs / "demo" / name, tmp_path / "demo" / name, copy_function=os.link)
    (tmp_path / "demo" / "data").symlink_to(demo_runs / "demo" / "data")
    return notebook.runs(tmp_path / "demo" / "*")


@pytest.mark.parametrize("name", list(analyses()))
def test_command_and_notebook_give_one_table(name, runs):
    options = OPTIONS.get(name, {})
    found = notebook.analyze(name, runs, sentence=3, **options)
    assert len(found) or name == "lines"  # nothing is odd about the demo
    folders = [word for run in runs for word in ("--run", str(run.folder))]
    settings = [word for option, value in options.items() for word in ("--option", f"{option}={value}")]
    words = ["analyze", name, *folders, "--sentence", "3", *settings]
    printed = CliRunner().invoke(cli.app, words, catch_exceptions=False).stdout
    same = pd.read_csv(io.StringIO(found.to_csv(index=False)), keep_default_na=False)
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(printed), keep_default_na=False), same)


def test_every_analysis_is_listed_with_what_it_is():
    listed = CliRunner().invoke(cli.app, ["analyze", "list"], catch_exceptions=False).stdout.splitlines()
    assert {line.split()[0] for line in listed} >= set(analyses())
    assert all(len(line.split()) > 3 for line in listed)


def test_scores_and_differences_are_those_of_the_page(runs):
    found = notebook.analyze("scores", runs, metrics="chrf", preset="lowercase")
    wanted = scoring.score_table(runs, "test", ["chrf"], counting=scoring.Counting("lowercase"))
    pd.testing.assert_frame_equal(found, wanted)
    found = notebook.analyze("comparison", runs, baseline="future-cost-1", method="randomization")
    wanted = scoring.comparison_table(runs, "test", "future-cost-1", "randomization")
    pd.testing.assert_frame_equal(found, wanted)


def test_nodes_of_a_tree_hold_the_translation(runs):
    found = notebook.analyze("beam-tree", runs, sentence=4)
    for run in runs:
        best = found[(found["system"] == run.name) & found["on_best"]].sort_values("step")
        assert best["word"].tolist() == run.translations("test").details[4]["tokens"]
        assert best["prefix"].iloc[-1] == " ".join(best["word"])
        assert best["log_prob"].sum() == pytest.approx(run.translations("test").details[4]["log_prob"], abs=1e-4)


def test_attributions_of_every_word_sum_to_what_they_should(runs):
    found = notebook.analyze("attribution", runs[:1], sentence=2, target="reference")
    error = (found["sum"] - (found["log_prob"] - found["baseline_log_prob"])).abs()
    assert (error < 0.01 * np.maximum(found["difference"].abs(), 0.5)).all()
    assert found["word"].iloc[-1] == "(sentence)"


def test_what_is_odd_about_an_output_is_found(runs):
    path = runs[0].folder / "translations" / "test" / "hypotheses.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.unlink()  # a link to the demo's own
    write_lines(path, ["", *lines[1:]])
    run = open_run(runs[0].folder)
    found = notebook.analyze("lines", [run])
    assert "empty" in found[(found["sentence"] == 0) & (found["side"] == run.name)]["finding"].tolist()
    assert notebook.analyze("outputs", [run])["empty"].tolist() == [1]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("score", {}, "no analysis is called 'score'; did you mean 'scores'"),
        ("training", {"metric": "bleu"}, "there is no option 'metric' of training; there is none"),
        (
            "documents",
            {"metrics": "bleu"},
            "there is no option 'metrics' of documents; there is preset, reference, metric",
        ),
        ("comparison", {"method": "t"}, "method 't': choose bootstrap"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(runs, name, options, said):
    with pytest.raises(RunError, match=said):
        notebook.analyze(name, runs, **options)


@pytest.mark.parametrize("name", list(analyses()))
def test_show_lists_the_options_of_an_analysis(name):
    shown = CliRunner().invoke(cli.app, ["analyze", "show", name], catch_exceptions=False).stdout.splitlines()
    spec = analyses()[name]
    assert shown[0] == f"{name}: {spec.summary}"
    assert [line.split()[0] for line in shown[2:]] == list(spec.options.model_fields)


def test_no_analysis_has_the_name_of_a_command():
    assert not {"compute", "list", "show"} & set(analyses())


@pytest.mark.parametrize("register", [figure("scores", scope="test_set"), analysis("scores")])
def test_a_name_that_is_taken_is_refused(register):
    load()
    analyses()
    with pytest.raises(ValueError, match="are called 'scores'"):
        register(lambda request, options: None)
