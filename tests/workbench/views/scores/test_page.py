"""Scores, Lengths and Curves: charts and tables hold the numbers of the line before them."""

import shlex
import shutil

import numpy as np
import pytest

from analyses.significance import holm
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, runs_of, texts, traces
from workbench import cli
from workbench.evaluation import bucketed_scores, scoring
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store import segment_annotations
from workbench.store.training_logs import training_table
from workbench.views.scores.tables import METHOD_NAMES

NAMES = ["transformer", "future-cost-1", "future-cost-2"]


@pytest.fixture
def runs(with_demo):
    return runs_of(with_demo, *NAMES)


def test_scores_stand_in_the_chart_and_in_the_table(runs):
    at = open_page("scores")
    expected = scoring.score_table(runs, "test", ["bleu", "chrf"])
    chart, _ = charts(at)
    assert {"BLEU", "chrF"} <= axis_titles(chart)
    for name in NAMES:
        drawn = [float(trace["x"][0]) for trace in traces(chart, name)]
        assert drawn == pytest.approx(expected[expected["system"] == f"demo/{name}"]["score"].tolist())
    table = at.dataframe[1].value
    assert table["score"].tolist() == pytest.approx(expected["score"].tolist())
    assert table["signature"].tolist() == expected["signature"].tolist()
    assert table["system"].tolist() == NAMES * 2


def test_a_run_looks_the_same_on_a_page_of_some_of_the_chosen_runs_and_by_its_command(with_demo, tmp_path):
    for name, system in (("transformer", "pfrnn"), ("future-cost-1", "gdr"), ("future-cost-2", "qcn")):
        (with_demo / "demo" / name).rename(with_demo / "demo" / system)
    shutil.rmtree(with_demo / "demo" / "gdr" / "translations")
    chosen = [f"demo/{name}" for name in ("gdr", "pfrnn", "qcn")]
    curves = charts(open_page("curves", runs=chosen))[0]
    at = open_page("scores", runs=chosen, baseline="demo/qcn", metrics=["BLEU"])
    (scores,) = charts(at)
    (command,) = (code for code in codes(at) if code.startswith("workbench figure scores "))
    file = tmp_path / "scores.svg"
    cli.app(shlex.split(command)[1:-1] + [str(file)], standalone_mode=False)
    for name in ("pfrnn", "qcn"):
        colors = {trace["marker"]["color"] for chart in (curves, scores) for trace in traces(chart, name)[:1]}
        assert len(colors) == 1
        assert colors.pop().lower() in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("method", list(scoring.TESTS))
def test_systems_are_tested_against_the_baseline(runs, method):
    at = open_page("scores", method=METHOD_NAMES[method], baseline="demo/future-cost-1", metrics=["chrF"])
    table = at.dataframe[2].value
    first = [runs[1], runs[0], runs[2]]
    expected = scoring.comparison_table(first, "test", "demo/future-cost-1", method, ["chrf"])
    for column in ("delta", "p_value", "p_holm"):
        np.testing.assert_allclose(table[column].astype(float), expected[column])
    assert "demo/future-cost-1" not in table["system"].tolist()
    assert at.dataframe[2].proto.placeholder == "–", "and not the word None"
    without = table[["low", "high"]].isna().all(axis=None)
    assert without == (method in ("randomization", "sign"))
    assert any("gives no interval" in one.value for one in at.caption) == without


@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_every_pair_stands_in_a_matrix_with_the_better_system_in_blue(graded_runs, metric):
    figure = draw("score-pairs", Request(tuple(graded_runs), "test", options={"metric": metric}))
    (panel,) = figure.panels
    heat, labels = panel.marks
    best_first = ["future-cost-2", "future-cost-1", "transformer"]
    assert list(panel.x.texts) == list(panel.y.texts) == best_first
    values, _, _ = heat.cells()
    assert (values[np.triu_indices(3, 1)] > 0).all()
    np.testing.assert_allclose(values, -values.T)
    assert np.isnan(np.diag(values)).all()
    for name in best_first:  # each column has the differences to its system
        compared = scoring.comparison_table(graded_runs, "test", name, metrics=[metric])
        drawn = labels.table[labels.table["other"] == name].set_index("system")["delta"]
        assert drawn.to_dict() == pytest.approx(compared.set_index("system")["delta"].to_dict())
    pairs = scoring.pair_table(graded_runs, "test", metric)
    ranks = {name: rank for rank, name in enumerate(best_first)}
    assert (pairs["system"].map(ranks) < pairs["other"].map(ranks)).all()
    np.testing.assert_allclose(pairs["p_holm"], holm(pairs["p_value"]))
    texts_of = {(row.system, row.other): row.text for row in labels.table.itertuples()}
    for row in pairs.itertuples():
        pair = row.system, row.other
        wanted = sum(row.p_holm < level for level in (0.05, 0.01, 0.001))
        assert texts_of[pair].count("∗") == texts_of[pair[::-1]].count("∗") == wanted
    assert figure.summary.startswith("Significantly better in") == (pairs["p_holm"] < 0.05).any()


def test_a_matrix_of_pairs_needs_a_third_system(with_demo):
    for names, shown in ((NAMES, True), (NAMES[:2], False)):
        at = open_page("scores", runs=[f"demo/{name}" for name in names], metrics=["chrF"])
        commands = [code for code in codes(at) if code.startswith("workbench figure score-pairs ")]
        assert [("--option metric=chrf " in command) for command in commands] == [True] * shown
        assert not at.error


def test_the_latex_table_has_a_row_for_each_system(with_demo):
    (latex,) = [code for code in codes(open_page("scores")) if "tabular" in code]
    assert latex.count(r"\\") == 1 + len(NAMES)
    assert r"\toprule" in latex


def test_one_run_has_scores_but_no_test(with_demo):
    at = open_page("scores", runs=["demo/future-cost-1"])
    assert any("second run" in text for text in texts(at))
    assert len(charts(at)) == 1


def test_lengths_draw_scores_differences_and_output_lengths(runs):
    grouping = bucketed_scores.Grouping("reference", "quantiles:4")
    scores, differences, _ = bucketed_scores.tables(runs, "test", grouping, "chrf", "demo/transformer")
    asked = {"scheme": "4 quantiles", "metric": "chrF", "measure": "reference length"}
    at = open_page("lengths", **asked)
    (by_score,) = charts(at)
    (by_difference,) = charts(open_page("lengths", figure="Difference to the baseline", **asked))
    (by_length,) = charts(open_page("lengths", figure="Output length", **asked))
    assert {"chrF", "n", "reference length (words)"} <= axis_titles(by_score)
    assert {"Δ chrF", "n"} <= axis_titles(by_difference)
    assert {"mean length (words)", "n"} <= axis_titles(by_length)
    for name in NAMES:
        rows = scores[scores["system"] == f"demo/{name}"]
        np.testing.assert_allclose(traces(by_score, name)[0]["y"], rows["score"])
        np.testing.assert_allclose(traces(by_length, name)[0]["y"], rows["mean_output_length"])
    np.testing.assert_allclose(
        traces(by_difference, "future-cost-2")[0]["y"],
        differences[differences["system"] == "demo/future-cost-2"]["delta"],
    )
    assert traces(by_difference, "transformer") == []
    (command,) = [code for code in codes(at) if "length-scores" in code]
    assert "--option scheme=quantiles:4 " in command


def test_buckets_begin_with_quantiles_and_a_link_keeps_the_edges_that_it_names(runs):
    for asked, scheme in (({}, "quantiles:4"), ({"scheme": "steps of ten to 50"}, "tens")):
        at = open_page("lengths", **asked)
        (command,) = [code for code in codes(at) if "length-scores" in code]
        assert f"--option scheme={scheme} " in command
        scores, _, _ = bucketed_scores.tables(runs, "test", bucketed_scores.Grouping("source", scheme))
        rows = scores[(scores["system"] == "demo/transformer") & (scores["n"] > 0)]
        np.testing.assert_allclose(traces(charts(at)[0], "transformer")[0]["y"], rows["score"])


def test_buckets_by_label_take_the_files_beside_the_runs(runs, with_demo):
    labels = "".join(f"{'news' if row % 3 else '<b>'}\n" for row in range(30))
    segment_annotations.save(with_demo, "test", "domain.txt", labels.encode(), 30)
    at = open_page("lengths", measure="label or document", label="domain")
    first = charts(at)[0]
    assert "domain" in axis_titles(first)
    assert any(code.endswith("length-scores.pdf") and "domain.txt" in code for code in codes(at))
    scores, _, _ = bucketed_scores.tables(
        runs, "test", bucketed_scores.Grouping(labels=str(with_demo / "annotations/test/domain.txt")), "bleu"
    )
    rows = scores[scores["system"] == "demo/transformer"]
    assert rows["n"].tolist() == [20, 10]
    np.testing.assert_allclose(traces(first, "transformer")[0]["y"], rows["score"])


def test_buckets_by_frequency_are_counted_in_the_training_text(runs):
    at = open_page("lengths", measure="frequency of the rarest source word", counts="the training text of the baseline")
    assert "frequency of the rarest source word" in axis_titles(charts(at)[0])
    assert any("--option counts=training " in code for code in codes(at))


def test_a_single_run_has_no_differences_to_draw(with_demo):
    at = open_page("lengths", runs=["demo/transformer"], figure="Difference to the baseline")
    assert not charts(at)
    assert any("second run" in text for text in texts(at))


def test_curves_draw_what_was_logged(runs):
    at = open_page(
        "curves", quantities=["train main loss", "learning rate"], against="target tokens", log=["learning rate"]
    )
    (chart,) = charts(at)
    assert {"train main loss", "learning rate", "target tokens"} <= axis_titles(chart)
    table = training_table(runs)
    for run in runs:
        loss, rate = traces(chart, run.name.removeprefix("demo/"))
        rows = table[(table["run"] == run.name) & (table["name"] == "train_main_loss")]
        np.testing.assert_allclose(loss["y"], rows["value"])
        np.testing.assert_allclose(loss["x"], rows["tokens"])
        assert len(rate["y"]) == len(loss["y"])
    assert "log" in {axis.get("type") for key, axis in chart["layout"].items() if key.startswith("yaxis")}


def test_old_links_keep_their_presets(runs):
    for asked in ("dla", "dla: Dou 2019: NIST BLEU", "dou-2019: Dou 2019, as it was described once"):
        assert open_page("scores", preset=asked).selectbox(key="preset").value == "dou-2019"
    assert open_page("lengths", scheme="gdr").selectbox(key="scheme").value == "tens"
