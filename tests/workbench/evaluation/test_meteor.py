"""METEOR beside the other metrics, where it is asked for: tables, buckets, sentences, pages, by its variant's name."""

import sys

import numpy as np
import pytest

from analyses import meteor, scores
from analyses.significance import bootstrap_interval
from tests.workbench.views.app_pages import charts, open_page, runs_of
from workbench import cli
from workbench.evaluation import bucketed_scores, scoring
from workbench.figures.request import Request
from workbench.views.segments import measure as segments

pytest.importorskip("nltk")
LABEL = meteor.label()


@pytest.fixture
def runs(with_demo):
    return runs_of(with_demo, "transformer", "future-cost-1")


@pytest.fixture
def with_demo(graded_runs, monkeypatch):
    """The graded runs: translations that share words with their references."""
    root = graded_runs[0].folder.parents[1]
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    return root


def own(run):
    found = run.translations("test")
    return scores.extract(found.hypotheses, found.test_set.references, "meteor")


def test_scores_and_tests_have_it_with_its_signature_and_interval(runs):
    table = scoring.score_table(runs, "test", ["meteor"])
    for run, row in zip(runs, table.itertuples(), strict=True):
        interval = bootstrap_interval(own(run))
        assert (row.score, row.low, row.high) == pytest.approx((interval.score, interval.low, interval.high))
        assert "match:exact+stem" in row.signature
        assert "mean of segments" in row.signature
    (compared,) = scoring.comparison_table(runs, "test", runs[0].name, metrics=["meteor"]).itertuples()
    assert compared.delta == pytest.approx(own(runs[1]).total - own(runs[0]).total)
    assert compared.delta > 0, "fewer of its words are spoiled"


def test_buckets_and_sentences_take_it(runs):
    table, differences, _ = bucketed_scores.tables(runs, "test", metric="meteor")
    mean = (table["score"] * table["n"]).groupby(table["system"]).sum() / table["n"].groupby(table["system"]).sum()
    for run in runs:
        assert mean[run.name] == pytest.approx(own(run).total)
    assert len(differences)
    sentences, _ = segments.of_request(Request(tuple(runs)), ["meteor"], runs[0].folder.parents[1])
    column = sentences.values[f"{LABEL} transformer"]
    np.testing.assert_allclose(column, own(runs[0]).values[:, 0])


def test_it_is_offered_and_not_shown_unless_asked_for(runs):
    at = open_page("scores", runs=[run.name for run in runs])
    assert LABEL not in at.dataframe[1].value["metric"].tolist()
    at = open_page("scores", runs=[run.name for run in runs], metrics=[LABEL])
    assert set(at.dataframe[1].value["metric"]) == {LABEL}
    (chart,) = charts(at)
    assert LABEL in str(chart["layout"])


def test_the_command_line_says_what_is_missing(runs, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    monkeypatch.setattr(sys, "argv", ["workbench", "compare", *(str(run.folder) for run in runs), "--metrics=meteor"])
    meteor._library.cache_clear()
    with pytest.raises(SystemExit) as end:
        cli.main()
    meteor._library.cache_clear()
    assert end.value.code == 2
    assert capsys.readouterr().err.strip().splitlines()[-1] == (
        "workbench: METEOR is counted by NLTK, which is not installed; install it: pip install 'nmt-workbench[meteor]'"
    )
