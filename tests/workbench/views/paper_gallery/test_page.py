"""Paper gallery: what is printed stands there without any run, ours beside it with its origin, checks as a badge."""

import html
import re

import numpy as np
import pytest

from tests.workbench.papers.written_runs import written_run
from tests.workbench.views.app_pages import axis_titles, charts, codes, heat_maps, open_page, texts, traces
from workbench.app.components import figure_view
from workbench.evaluation.alignment_error import ALIGNMENT_ERROR, AlignmentError
from workbench.evaluation.document_context import context_rows
from workbench.evaluation.live_trace import trace_sentence
from workbench.evaluation.result_cache import of_forced_references
from workbench.figures.request import Request
from workbench.papers import claims, comparison, ledger, presets
from workbench.papers.load import library
from workbench.papers.our_results import our_results
from workbench.store import external


@pytest.fixture
def with_runs(runs_root, prepared):
    """Two systems of Duan 2020, below the runs folder."""
    return [
        written_run(runs_root, "plain", "transformer:preset=tiny", prepared, spoiled=6),
        written_run(runs_root, "second", "future-cost-2:preset=tiny", prepared, spoiled=3),
    ]


def _printed(at):
    """The table of what is printed beside ours."""
    return next(element.value for element in at.dataframe if "row" in element.value)


def _links(at):
    return [link.proto.page for link in at.main.get("page_link") if link.proto.page != "jobs"]


@pytest.mark.slow
def test_without_a_run_it_shows_what_is_printed_and_the_checks(runs_root):
    at = open_page("gallery", paper="dou-2019", table="Table 1")
    table = library()["dou-2019"].table("table-1")
    shown = _printed(at)
    assert shown["BLEU"].tolist() == [str(row.values["bleu"]) for row in table.rows] == [
        "27.31", "27.73", "28.33", "28.22", "28.81",
    ]  # fmt: skip
    assert shown["Train"].tolist()[-1] == "1.10"
    differing = presets.checks_of(library(), "dou-2019", "table-1").query("not agrees")
    said = " ".join(texts(at))
    for check in differing.to_dict("records"):
        assert f"reported {check['reported']}, recomputed {check['recomputed']}" in said
    badges = [element.value for element in at.markdown if "recomputed" in element.value]
    assert any(f"≠ recomputed: {len(differing)}" in badge for badge in badges)
    _, chart = charts(at)
    assert traces(chart, "reported")[0]["x"].tolist() == [float(row.values["bleu"]) for row in table.rows]
    assert f"workbench demo --runs {runs_root}" in codes(at)


@pytest.mark.slow
def test_every_claim_is_a_row_with_its_verdict(runs_root):
    at = open_page("gallery", paper="dou-2019")
    wanted = ledger.claim_table(
        claims.reported_claims(library()["dou-2019"]), claims.measured_claims(library()["dou-2019"])
    )
    (table,) = at.table
    assert [text.replace("\\", "") for text in table.value.index] == wanted["claim"].tolist()
    for shown, verdict in zip(table.value["Verdict"], wanted["verdict"], strict=True):
        assert f"[{verdict}]" in shown
    for shown, level in zip(table.value["Ours"], wanted["level"], strict=True):
        assert shown.replace("\\", "").startswith(f"{level} intervals:") == bool(level)
    assert len(set(wanted["level"])) > 2
    (chart,) = charts(at)
    assert len({key for key in chart["layout"] if key.startswith("xaxis")}) > 2, "an axis a data set"
    assert any("workbench figure paper-claims --option paper=dou-2019" in code for code in codes(at))


@pytest.mark.slow
def test_ours_stands_beside_with_run_data_test_set_and_metric(with_runs):
    at = open_page("gallery", paper="duan-2020", table="Table 1", runs=["plain", "second"])
    lines = next(element.value for element in at.dataframe if "differs" in element.value)
    shown = lines[lines["measure"] == "BLEU"].set_index("row")
    wanted = our_results(library()["duan-2020"].table("table-1"), with_runs, "test")
    wanted = wanted[wanted["measure"] == "bleu"].set_index("row")
    for label, key in (("Trans.base", "transformer"), ("+Model II", "model-2")):
        row = shown.loc[label]
        assert row["ours"] == wanted.loc[key, "score"]
        assert row[["measure", "test", "data"]].tolist() == ["BLEU", "test", wanted.loc[key, "data"]]
    assert shown.loc["+Model II", "where"] == "run second"
    assert _printed(at).set_index("row").loc["+BIARN", "ours"] == comparison.NOT_HERE
    captions = " ".join(element.value for element in at.caption).replace("\\", "")
    assert f"no reproduction: run plain, run second (data {row['data']}, test set test)" in captions
    assert "preset=tiny" not in captions  # the line names runs; the table below says what each ran as
    assert set(lines.loc[lines["where"] == "run plain", "ran as"]) == {"transformer:preset=tiny"}
    commands = [code for code in codes(at) if code.startswith("workbench figure ")]
    assert any("paper-table" in code and "paper=" in code and "table-1" in code for code in commands)
    assert any(code.startswith("workbench figure scores") for code in commands)  # the same kind of figure, of our runs
    assert not at.error


def test_dots_are_drawn_anew_when_a_result_is_kept_beside_a_run(runs_root, prepared):
    run = written_run(runs_root, "rnn", "rnnsearch:preset=tiny", prepared)
    run.weights.write_bytes(b"weights")
    request = Request((run,), "test", options={"paper": "zheng-2018", "table": "table-4", "columns": ["aer"]})
    for error in (0.25, 0.5):
        result = AlignmentError(aer=error, sentences=15, layer="mean", head="mean", argmax="words", links="gold.txt")
        ALIGNMENT_ERROR.save(run, of_forced_references(run, "test"), result, "test")
        table = figure_view.drawn("paper-table", request).table
        assert 100 * error in table.select_dtypes("number").to_numpy()


@pytest.mark.parametrize(("paper", "left_out"), [("zheng-2019", True), ("duan-2020", False)])
@pytest.mark.slow
def test_what_of_a_paper_is_out_of_scope_is_said(runs_root, paper, left_out):
    captions = [element.value.replace("\\", "") for element in open_page("gallery", paper=paper).caption]
    said = [caption for caption in captions if caption.startswith("Out of scope here: ")]
    assert ["layer-wise" in caption and "dynamic decoder" in caption for caption in said] == [True] * left_out


@pytest.mark.slow
def test_another_paper_begins_with_its_claims(runs_root):
    at = open_page("gallery", paper="duan-2020", table="Figure 3")
    assert at.session_state["table"] == "figure-3"
    at.selectbox(key="paper").select("yang-2019").run()
    assert not at.exception
    assert at.session_state["table"] is None
    assert not [element for element in at.dataframe if "row" in element.value]
    at.segmented_control(key="table").set_value("table-1").run()
    assert "206126" in _printed(at)["TED Sent No."].tolist()
    at = open_page("gallery", paper="nobody-1999", table="Table 99")
    assert at.selectbox(key="paper").value == next(iter(library()))


@pytest.mark.parametrize(("paper", "names"), [("duan-2020", []), ("zheng-2018", ["table-1b", "table-9-1"])])
@pytest.mark.slow
def test_a_preset_is_a_page(paper, names, runs_root):
    at = open_page("gallery", paper=paper)
    known = presets.presets(library())[paper]
    for preset in [known[name] for name in names or known]:
        at.segmented_control(key="table").set_value(preset.id).run()
        assert not at.exception
        assert not at.error
        assert any(f"**{preset.title}: " in element.value.replace("\\", "") for element in at.markdown)
        assert _links(at) == (["sentences", "beam_trees"] if preset.cases else [])
        if preset.table is None or not presets.columns_with_values(preset.table):
            assert len(charts(at)) == 1, "the claims alone"


def test_a_case_shows_what_it_is_about_and_leads_to_our_sentences(with_runs):
    at = open_page("gallery", paper="duan-2020", table="Figure 4", runs=["plain", "second"], sentence="3")
    (case,) = library()["duan-2020"].cases
    assert case.what in texts(at)
    opened = {run.name: run.translations("test") for run in with_runs}
    body = "".join(
        html.unescape(re.sub(r"<del.*?</del>|<[^>]+>", "", element.proto.body)) for element in at.get("html")
    )
    (latex,) = [code for code in codes(at) if r"\midrule" in code and "plain &" in code]
    for line in (opened["plain"].test_set.sources[3], *(found.hypotheses[3] for found in opened.values())):
        assert " ".join(line.split()) in " ".join(body.split())
        assert "".join(line.split()) in re.sub(r"\\underline\{(.*?)\}|\s", r"\1", latex)
    assert _links(at) == ["sentences", "beam_trees"]
    assert not any(
        link.proto.query_string for link in at.main.get("page_link")[:2]
    )  # runs and sentence are kept anyway
    assert any("no search was recorded" in error.value for error in at.error)


def test_figure_4_of_yang_2019_prints_which_numbers_of_sentences_are_best(runs_root):
    at = open_page("gallery", paper="yang-2019", table="Figure 4")
    assert _printed(at).set_index("row")["K"].to_dict() == {"best Meteor": "1", "best BLEU": "2", "chosen": "3"}
    _, chart = charts(at)
    assert traces(chart, "reported")[0]["x"].tolist() == [1, 2, 3]
    assert "There is no run here yet, so nothing of ours can be drawn." in " ".join(texts(at))


@pytest.mark.parametrize(
    ("table", "option", "values", "printed"),
    [
        ("Figure 4", "context_sentences", (1, 2, 4), {"best Meteor": "1", "best BLEU": "2", "chosen": "3"}),
        ("Figure 5", "capsules", (2, 4, 8), {"best Meteor": "2", "best BLEU": "4", "chosen": "4"}),
    ],
)
def test_figures_4_and_5_of_yang_2019_stand_beside_our_numbers(runs_by, table, option, values, printed):
    runs = runs_by(option, *values)
    at = open_page("gallery", paper="yang-2019", table=table, runs=[run.name for run in runs])
    assert _printed(at).set_index("row")[{"Figure 4": "K", "Figure 5": "m"}[table]].to_dict() == printed
    stacked = charts(at)[-1]
    lines = [trace for trace in stacked["data"] if trace.get("mode") == "lines+markers"]
    assert [trace["x"].tolist() for trace in lines] == [list(values)] * 2
    assert [trace["y"].argmax() for trace in lines] == [1, 1]
    assert {"BLEU", "chrF"} <= axis_titles(stacked)
    assert not at.error


def test_a_run_from_elsewhere_does_not_hinder_figures_of_an_option(runs_by, runs_root):
    runs = runs_by("capsules", 2, 4, 8)
    folder = runs[0].folder / "translations" / "test"
    test_set = external.read_test_set("test", folder / "sources.txt", [folder / "references.txt"])
    external.import_translations(
        runs_root / "outside", test_set, folder / "sources.txt", {"online": folder / "hypotheses.txt"}
    )
    chosen = ["outside/online", *(run.name for run in runs)]
    at = open_page("gallery", paper="yang-2019", table="Figure 5", runs=chosen)
    stacked = charts(at)[-1]
    assert [trace["x"].tolist() for trace in stacked["data"] if trace.get("mode") == "lines+markers"] == [[2, 4, 8]] * 2
    assert not at.error


@pytest.mark.parametrize(
    ("table", "array", "printed"),
    [
        ("Figure 6", "couplings", {"words": "26", "capsules": "4", "first": "0", "last": "3", "fullest": "2"}),
        ("Figure 7", "correlations", {"words": "17", "queries": "4", "first": "0", "last": "3"}),
    ],
)
def test_figures_6_and_7_of_yang_2019_are_all_iterations_of_a_sentence(
    table, array, printed, with_context, context_runs
):
    run = context_runs[0]
    test_set = run.translations("test").test_set
    row = next(row for row in range(len(test_set.sources)) if None not in context_rows(test_set, row, 2))
    at = open_page("gallery", paper="yang-2019", table=table, runs=[run.name], sentence=str(row))
    (shown,) = _printed(at).to_dict("records")
    assert {name: shown[name] for name in printed} == printed
    values = trace_sentence(run, "test", row).array(f"query_capsules.{array}")
    _, chart = charts(at)
    drawn = heat_maps(chart)
    assert len(drawn) == len(values) == int(printed["last"]) - int(printed["first"]) + 1
    if array == "couplings":  # shaded by the logarithm of their ratio to an even share
        values = np.log2(values * values.shape[-1])
    for found, wanted in zip(drawn, values, strict=True):
        np.testing.assert_allclose(found, wanted.T, atol=1e-4)
    assert not at.error
