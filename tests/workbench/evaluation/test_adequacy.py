"""Adequacy of runs: one aligner for all, kept with its digest; the measures are the analysis's; the page shows them."""

import pytest
from typer.testing import CliRunner

from analyses import aligner as aligners
from tests.workbench.views.app_pages import axis_titles, charts, open_page, runs_of, traces
from workbench import notebook
from workbench.cli import app
from workbench.evaluation import adequacy
from workbench.evaluation.result_cache import of_translations
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.papers import our_measurements
from workbench.store.runs import ALIGNERS, RunError, open_run

NAMES = ["transformer", "future-cost-1", "future-cost-2"]


@pytest.fixture(scope="module")
def trained(demo_runs, tmp_path_factory):
    """An aligner of the demo's training text, as a file."""
    found, _ = adequacy.aligner_of(runs_of(demo_runs, *NAMES), "test")
    path = tmp_path_factory.mktemp("aligner") / "frozen.npz"
    found.save(path)
    return found, path


def test_an_aligner_is_trained_once_and_is_the_same_for_every_choice_of_runs(graded_runs, trained):
    first, origin = adequacy.aligner_of(graded_runs, "test")
    kept = list((graded_runs[0].folder.parent / ALIGNERS).iterdir())
    assert [aligners.load(path).digest for path in kept] == [first.digest]
    assert "sentences of the training text" in origin
    assert adequacy.aligner_of(graded_runs[2:], "test")[0].digest == first.digest == trained[0].digest
    kept[0].write_bytes(b"damaged")
    assert adequacy.aligner_of(graded_runs, "test")[0].digest == first.digest
    named, origin = adequacy.aligner_of(graded_runs, "test", trained[1])
    assert (named.digest, origin) == (first.digest, "read from frozen.npz")


def test_the_more_words_are_spoiled_the_less_is_covered(graded_runs, trained):
    table = adequacy.adequacy_table(graded_runs, "test", trained[0], samples=200)
    by_measure = table.pivot(index="measure", columns="system", values="score")[["transformer", *NAMES[1:]]]
    own = adequacy.by_sentence(graded_runs, "test", trained[0])
    cdr = by_measure.loc["CDR"]
    assert cdr["transformer"] < cdr["future-cost-1"] < cdr["future-cost-2"] < 1
    wanted = {name: (1 - table["under"]).mean() for name, table in own.items()}
    assert by_measure.loc["CDR (macro)"].to_dict() == pytest.approx(wanted)
    assert by_measure.loc["under (proxy, %)"].tolist() == pytest.approx((100 - 100 * cdr).tolist())
    assert ((table["low"] <= table["score"]) & (table["score"] <= table["high"])).all()
    worst = adequacy.sentences_table(graded_runs, "test", trained[0])
    assert (worst["missed"] + worst["repeated"]).is_monotonic_decreasing
    sums = own["transformer"][["missed", "covered"]].sum()
    assert 1 - sums["missed"] / sums["covered"] == pytest.approx(cdr["transformer"])
    assert worst["missed"].sum() == sum(table["missed"].sum() for table in own.values())


def _with_a_second_reference(runs):
    """The translations of the last run as a second reference of all."""
    lines = (runs[-1].folder / "translations" / "test" / "hypotheses.txt").read_text(encoding="utf-8")
    for run in runs:
        (run.folder / "translations" / "test" / "references.2.txt").write_text(lines, encoding="utf-8")
    return [open_run(run.folder) for run in runs]


def test_towards_all_references_counts_what_any_covers(graded_runs, trained):
    """A run that is the second reference misses what the first alone covers, of more words, and repeats nothing."""
    runs, towards = _with_a_second_reference(graded_runs), {"towards": "union"}
    first, union = (adequacy.by_sentence(runs, "test", trained[0], one)[runs[-1].name] for one in adequacy.TOWARDS)
    assert union["missed"].tolist() == first["missed"].tolist()
    assert union["covered"].sum() > first["covered"].sum()
    assert union["repeated"].sum() == 0
    expected = 1 - union["missed"].sum() / union["covered"].sum()
    path = ["--aligner", str(trained[1]), "--towards", "union"]
    printed = CliRunner().invoke(app, ["adequacy", *(str(run.folder) for run in runs), *path], catch_exceptions=False)
    assert f"{expected:.4f}" in printed.stdout
    kept = adequacy.ADEQUACY.load(runs[-1], of_translations(runs[-1], "test"), "test")
    assert kept.towards == "union"
    assert {row.measure: row.score for row in kept.measures}["CDR"] == pytest.approx(expected)
    record = next(our_measurements.run_records(runs[-1], None, "test", frozenset({"cdr"})))
    assert record["how"].endswith("towards all references together")
    worst = notebook.analyze("adequacy-sentences", runs, aligner=str(trained[1]), **towards)
    assert worst["missed"].sum() > adequacy.sentences_table(runs, "test", trained[0])["missed"].sum()
    drawn = {one: draw("adequacy", Request(tuple(runs), options={"towards": one})) for one in adequacy.TOWARDS}
    assert "that any of the 2 references covers" in drawn["union"].caption
    assert "that the first of 2 references covers" in drawn["first"].caption
    with pytest.raises(RunError, match="towards 'all': choose first or union"):
        adequacy.by_sentence(runs, "test", trained[0], "all")


@pytest.mark.slow
def test_the_page_asks_which_of_several_references(graded_runs, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(graded_runs[0].folder.parents[1]))
    _with_a_second_reference(graded_runs)
    alone = open_page("adequacy")
    assert any("that the first of 2 references covers" in caption.value for caption in alone.caption)
    missed = alone.dataframe[-1].value["missed"].sum()
    together = alone.selectbox(key="towards").select("any of the 2 references").run()
    assert any("that any of the 2 references covers" in caption.value for caption in together.caption)
    assert together.dataframe[-1].value["missed"].sum() > missed


def test_the_page_draws_the_measures_and_lists_the_sentences(graded_runs, trained, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(graded_runs[0].folder.parents[1]))
    at = open_page("adequacy")
    wanted = adequacy.adequacy_table(graded_runs, "test", trained[0]).set_index(["system", "measure"])["score"]
    chart = charts(at)[0]
    assert {"CDR", "CDR (macro)", "under (proxy, %)", "over (proxy, %)"} <= axis_titles(chart)
    for name in NAMES:
        drawn = [float(trace["x"][0]) for trace in traces(chart, name)]
        assert drawn == pytest.approx(wanted[name].tolist())
    assert any(trained[0].digest in caption.value for caption in at.caption)
    worst = adequacy.sentences_table(graded_runs, "test", trained[0])
    assert at.dataframe[-1].value["missed"].tolist() == worst["missed"].tolist()
