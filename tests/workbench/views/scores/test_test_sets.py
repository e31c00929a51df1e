"""Several test sets: each scored as by itself, differences corrected as one family; page, command and LaTeX."""

import json
import shlex

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from typer.testing import CliRunner

from analyses.significance import holm
from core_models.text.parallel import write_lines
from tests.workbench.views.app_pages import charts, codes, open_page, traces
from workbench import cli
from workbench.evaluation import scoring
from workbench.figures.drawing import draw
from workbench.figures.provenance import digests_of
from workbench.figures.request import Request
from workbench.store import external
from workbench.store.runs import RunError, list_runs, open_run
from workbench.views.scores import test_sets

TESTS = ("news", "talks")
SYSTEMS = ("plain", "better", "twin")
WORDS = ["the", "dog", "sees", "a", "small", "house", "near", "our", "old", "wood", "and", "then", "it", "sleeps"]


def _reference(row, length):
    return " ".join(WORDS[(row * 5 + place) % len(WORDS)] for place in range(length))


def _spoiled(row, reference, system):
    """The first three words; of the better system every third sentence is right."""
    return reference if system == "better" and row % 3 == 0 else " ".join([*reference.split()[:3], "x"])


@pytest.fixture
def runs(tmp_path):
    """Three systems from elsewhere with two test sets of 30 sentences; `talks` are half as long."""
    for number, test in enumerate(TESTS):
        references = [_reference(row + number, 9 - 4 * number) for row in range(30)]
        write_lines(tmp_path / f"{test}.ref", references)
        for system in SYSTEMS:
            write_lines(
                tmp_path / f"{test}.{system}", [_spoiled(row, line, system) for row, line in enumerate(references)]
            )
        found = external.read_test_set(test, tmp_path / f"{test}.ref", [tmp_path / f"{test}.ref"])
        files = {system: tmp_path / f"{test}.{system}" for system in SYSTEMS}
        external.import_translations(tmp_path / "runs" / "outside", found, tmp_path / f"{test}.ref", files)
    listed = {run.name: run for run in list_runs(tmp_path / "runs")}
    return [listed[f"outside/{system}"] for system in SYSTEMS]


def _lines(run, test, side):
    path = run.folder / "translations" / test / f"{side}.txt"
    return path.read_text(encoding="utf-8").splitlines()


def test_every_score_is_sacrebleus_of_its_test_set_and_a_mean_is_over_test_sets(runs):
    found = test_sets.with_means(test_sets.score_table(runs, TESTS, ["bleu", "ter"], samples=10))
    for run in runs:
        for metric, scorer in (("bleu", BLEU()), ("ter", TER())):
            wanted = [
                scorer.corpus_score(_lines(run, test, "hypotheses"), [_lines(run, test, "references")]).score
                for test in TESTS
            ]
            own = found[(found["system"] == run.name) & (found["metric"] == metric)].set_index("test")["score"]
            assert own.loc[list(TESTS)].tolist() == pytest.approx(wanted, abs=1e-9)
            assert own.loc[test_sets.MEAN] == pytest.approx(np.mean(wanted))


def test_differences_are_those_of_each_test_set_under_one_correction(runs):
    found = test_sets.comparison_table(runs, TESTS, "outside/plain", "bootstrap", ["bleu", "chrf"])
    for metric in ("bleu", "chrf"):
        alone = [scoring.comparison_table(runs, test, "outside/plain", "bootstrap", [metric]).p_value for test in TESTS]
        rows = found[found["metric"] == metric]
        assert rows["test"].tolist() == ["news", "news", "talks", "talks"]
        np.testing.assert_array_equal(rows["p_value"], np.concatenate(alone))
        np.testing.assert_allclose(rows["p_holm"], holm(np.concatenate(alone).tolist()))
    assert found["p_holm"].max() == 1.0  # the twin
    assert (found["p_holm"] > found["p_value"]).any()


def test_what_is_not_translated_is_left_out_of_its_test_set_alone(runs, tmp_path):
    test_set = external.read_test_set("third", tmp_path / "news.ref", [tmp_path / "news.ref"])
    external.import_translations(
        runs[0].folder.parent, test_set, tmp_path / "news.ref", {"plain": tmp_path / "news.twin"}
    )
    runs = [open_run(run.folder) for run in runs]
    assert test_sets.shared_tests(runs) == list(TESTS)
    assert test_sets.shared_tests(runs[:1]) == ["news", "talks", "third"]
    found = test_sets.with_means(test_sets.score_table(runs, [*TESTS, "third"], ["bleu"], samples=10))
    assert found[found["test"] == "third"]["system"].tolist() == ["plain"]
    assert found[found["test"] == test_sets.MEAN]["system"].tolist() == ["plain"]  # only it has all of them
    assert set(test_sets.comparison_table(runs, [*TESTS, "third"], "plain")["test"]) == set(TESTS)
    with pytest.raises(RunError, match="no other run has translated a test set that plain has"):
        test_sets.comparison_table(runs, ["third"], "plain")
    with pytest.raises(RunError, match="'gone' is not among the runs compared"):
        test_sets.comparison_table(runs, TESTS, "gone")
    with pytest.raises(RunError, match="has no 'nowhere'"):
        test_sets.score_table(runs, ["nowhere"], ["bleu"])


@pytest.mark.slow
def test_the_command_prints_all_of_them_and_a_table_for_a_paper(runs):
    folders = [str(run.folder) for run in runs]
    tests = [word for test in TESTS for word in ("--test", test)]
    printed = CliRunner().invoke(cli.app, ["compare", *folders, *tests], catch_exceptions=False).stdout.splitlines()
    assert printed[0].split("\t")[:3] == ["test", "system", "baseline"]
    assert [line.split("\t")[:2] for line in printed[1:]] == [
        ["news", "better"], ["news", "twin"], ["talks", "better"], ["talks", "twin"],
    ]  # fmt: skip
    twice = CliRunner().invoke(cli.app, ["compare", *folders, *tests, *tests], catch_exceptions=False).stdout
    assert twice.splitlines() == printed  # no difference counts twice in Holm's correction
    alone = CliRunner().invoke(cli.app, ["evaluate", folders[0], "--test", "news"], catch_exceptions=False).stdout
    assert alone.startswith("system\tmetric")
    both = CliRunner().invoke(cli.app, ["evaluate", folders[0], *tests], catch_exceptions=False).stdout
    assert [line.split("\t")[0] for line in both.splitlines()] == ["test", *["news"] * 3, *["talks"] * 3]
    latex = CliRunner().invoke(cli.app, ["compare", *folders, *tests, "--latex"], catch_exceptions=False).stdout
    scores = test_sets.with_means(test_sets.score_table(runs, TESTS, ["bleu"], samples=10))
    scores = scores.set_index(["system", "test"])["score"]
    assert "System & news & talks & (mean) \\\\" in latex
    (line,) = [line for line in latex.splitlines() if line.startswith("twin &")]
    assert all(f"{scores['outside/twin', test]:.2f}" in line for test in (*TESTS, test_sets.MEAN))
    assert f"BLEU: {BLEU(references=[['a']]).get_signature()}"[:13] in latex.replace(r"\allowbreak{}", "")
    assert latex.count(r"\scriptsize") == len(runs) * len(TESTS), "a mean has no interval"
    two = CliRunner().invoke(cli.app, ["compare", *folders, *tests, "--latex", "--metrics", "bleu,ter"]).stdout
    head = " & ".join(f"{test} BLEU & {test} TER $\\downarrow$" for test in (*TESTS, test_sets.MEAN))
    assert head in two


@pytest.mark.slow
def test_the_page_draws_and_tables_them_on_asking(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    names = [run.name for run in runs]
    at = open_page("scores", runs=names, metrics=["chrF", "TER"])
    before = [chart["layout"]["title"]["text"] for chart in charts(at)]
    at.toggle(key="by-test").set_value(True).run()
    assert not at.exception
    (drawn,) = (chart for chart in charts(at) if chart["layout"]["title"]["text"] not in before)
    for run in runs:
        wanted = [
            CHRF().corpus_score(_lines(run, test, "hypotheses"), [_lines(run, test, "references")]).score
            for test in TESTS
        ]
        shown = [float(trace["x"][0]) for trace in traces(drawn, run.name.removeprefix("outside/"))]
        assert shown == pytest.approx(wanted)
    table = next(one.value for one in at.dataframe if "Δ (news)" in one.value)
    assert list(table) == ["(system)", "news", "talks", "(mean)", "Δ (news)", "Δ (talks)", "p (news)", "p (talks)"]
    compared = test_sets.comparison_table(runs, TESTS, "outside/plain", "bootstrap", ["chrf"])
    wanted = compared[(compared["system"] == "outside/better") & (compared["test"] == "talks")].iloc[0]
    assert table.set_index("(system)").loc["better", ["Δ (talks)", "p (talks)"]].tolist() == [
        wanted.delta,
        wanted.p_holm,
    ]
    assert sum("tabular" in code and "talks" in code for code in codes(at)) == 1
    (command,) = [code for code in codes(at) if code.startswith("workbench compare") and "talks" in code]
    printed = CliRunner().invoke(cli.app, shlex.split(command)[1:], catch_exceptions=False).stdout
    assert printed.startswith("test\tsystem")
    at.selectbox(key="by-test-metric").select("ter").run()
    assert "is best in news" in " ".join(element.value for element in at.text)


def test_one_test_set_or_one_run(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    at = open_page("scores", runs=["outside/plain"], **{"by-test": "true"})
    assert not at.exception
    (table,) = [one.value for one in at.dataframe if "talks" in one.value]
    assert list(table) == ["(system)", "news", "talks", "(mean)"]
    for run in runs:
        (run.folder / "translations" / "talks" / "references.txt").unlink()
    assert test_sets.shared_tests(runs) == ["news"]
    at = open_page("scores", runs=["outside/plain"])
    assert "All test sets" not in [element.value for element in at.subheader]


@pytest.mark.parametrize("name", ["p talks", "system", "mean"])
def test_a_test_set_may_be_named_like_a_column(runs, tmp_path, monkeypatch, name):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    for run in runs:  # "p talks" stands beside "talks"
        (run.folder / "translations" / "news").rename(run.folder / "translations" / name)
    at = open_page("scores", runs=[run.name for run in runs], **{"by-test": "true"})
    assert not at.exception
    table = next(one for one in at.dataframe if f"p ({name})" in one.value)
    columns = json.loads(table.proto.columns)
    formats = {name: columns[name]["type_config"]["format"] for name in table.value if name != "(system)"}
    assert formats == {
        **dict.fromkeys([name, "talks", "(mean)"], "%.2f"),
        **dict.fromkeys([f"Δ ({name})", "Δ (talks)"], "%+.2f"),
        **dict.fromkeys([f"p ({name})", "p (talks)"], "%.4f"),
    }


def test_a_figure_of_several_test_sets_says_what_each_of_them_was(runs):
    request = Request(tuple(runs), "news", options={"tests": "news,talks", "metric": "ter"})
    figure = draw("scores-by-test", request)
    assert [panel.x.label for panel in figure.panels] == list(TESTS)
    assert set(figure.provenance["signatures"]) == {"TER, news", "TER, talks"}
    before = figure.provenance["digests"]["outside/twin"]
    (runs[2].folder / "translations" / "talks" / "hypotheses.txt").write_text("x\n" * 30, encoding="utf-8")
    after = digests_of(open_run(runs[2].folder), "scores-by-test", request)
    assert [part for part in before if before[part] != after[part]] == ["translations of talks"]
