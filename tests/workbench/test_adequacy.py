"""Adequacy of runs: one aligner for all, kept with its digest; the measures are the analysis's; the page shows them."""

import pytest

from analyses import aligner as aligners
from tests.workbench.pages.app_pages import axis_titles, charts, open_page, runs_of, traces
from workbench import adequacy

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
    kept = list((graded_runs[0].folder.parent / adequacy.FOLDER).iterdir())
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
    cdr = by_measure.loc["CDR"]
    assert cdr["transformer"] < cdr["future-cost-1"] < cdr["future-cost-2"] < 1
    assert by_measure.loc["under (proxy, %)"].tolist() == pytest.approx((100 - 100 * cdr).tolist())
    assert ((table["low"] <= table["score"]) & (table["score"] <= table["high"])).all()
    worst = adequacy.sentences_table(graded_runs, "test", trained[0])
    assert (worst["missed"] + worst["repeated"]).is_monotonic_decreasing
    own = adequacy.by_sentence(graded_runs, "test", trained[0])
    sums = own["transformer"][["missed", "covered"]].sum()
    assert 1 - sums["missed"] / sums["covered"] == pytest.approx(cdr["transformer"])
    assert worst["missed"].sum() == sum(table["missed"].sum() for table in own.values())


def test_the_page_draws_the_measures_and_lists_the_sentences(graded_runs, trained, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(graded_runs[0].folder.parents[1]))
    at = open_page("adequacy")
    wanted = adequacy.adequacy_table(graded_runs, "test", trained[0]).set_index(["system", "measure"])["score"]
    chart = charts(at)[0]
    assert {"CDR", "under (proxy, %)", "over (proxy, %)"} <= axis_titles(chart)
    for name in NAMES:
        drawn = [float(trace["x"][0]) for trace in traces(chart, name)]
        assert drawn == pytest.approx(wanted[name].tolist())
    assert any(trained[0].digest in caption.value for caption in at.caption)
    worst = adequacy.sentences_table(graded_runs, "test", trained[0])
    assert at.dataframe[-1].value["missed"].tolist() == worst["missed"].tolist()
