"""Presets: which rows a system stands in, the checks that stand with a table, and the figure of a table."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core_models.settings import ConfigError
from core_models.system_spec import describe
from tests.workbench.papers.written_runs import written_run
from workbench import cli
from workbench.evaluation import adequacy
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.papers import presets
from workbench.papers.load import library
from workbench.papers.our_results import our_results
from workbench.store.runs import RunError

pytestmark = pytest.mark.long


@pytest.fixture
def papers():
    return library()


def _table(papers, paper="duan-2020", name="table-1"):
    return papers[paper].table(name)


def test_every_table_and_every_case_has_its_preset(papers):
    for name, of_paper in presets.presets(papers).items():
        assert list(of_paper)[: len(papers[name].tables)] == [table.id for table in papers[name].tables]
        assert set(of_paper) == {entry.id for entry in (*papers[name].tables, *papers[name].cases)}
    figure = presets.presets(papers)["duan-2020"]["figure-4"]
    assert (figure.title, figure.table.drawing, len(figure.cases)) == ("Figure 4", "beam-trees", 1)
    assert presets.cited_as(papers["dou-2019"]) == "Dou et al. 2019"


@pytest.mark.parametrize(
    ("paper", "system", "rows"),
    [
        ("duan-2020", "future-cost-2", ["model-2"]),
        ("duan-2020", "future-cost-2:preset=small,weight=0.5", ["model-2"]),
        ("duan-2020", "future-cost-2:weight=0.7,preset=big", ["model-2-big"]),
        ("duan-2020", "transformer", ["transformer"]),  # its own baseline, not Vaswani's that it cites too
        ("duan-2020", "transformer:preset=big", ["transformer-big"]),
        ("duan-2020", "future-cost-2:preset=demo,d_model=256", ["model-2-big"]),  # what stands for Big here
        ("duan-2020", "future-cost-2:preset=demo,d_model=64", ["model-2"]),
        ("zheng-2019", "gdr-bow-bca:preset=demo,d_model=256", ["ours"]),  # its paper has no Big
        ("duan-2020", "translated elsewhere", []),
        ("duan-2020", "rnnsearch", []),
    ],
)
def test_a_system_stands_in_the_row_that_says_most_of_it(papers, paper, system, rows):
    assert [row.key for row in presets.rows_of(_table(papers, paper), system)] == rows


@pytest.mark.parametrize(
    ("table", "system", "row"),
    [
        ("table-1b", "rnnsearch", "summary"),
        ("table-1b", "rnnsearch:preset=demo,decoder_init=zero", "zero"),
        ("table-2", "frnn-gru-o:preset=demo", "frnn-gru-o"),
        ("table-2", "rnnsearch-3dec", "rnnsearch-3dec"),
        ("table-3", "coverage:preset=demo", "coverage"),
        ("table-4", "pfrnn-loss", "pfrnn-loss"),
        ("table-5", "coverage", "coverage"),
        ("table-6", "prnn-loss:preset=demo", "prnn-loss"),
        ("table-7", "pfrnn", "no-loss"),
        ("table-7", "pfrnn-loss:test_loss=none", "loss-in-training"),
        ("table-7", "pfrnn-loss:preset=demo", "loss-in-both"),
        ("table-8", "frnn-gru-i", "summary"),
        ("table-8", "frnn-gru-i:future_start=zero", "zero"),
    ],
)
def test_every_variant_of_the_recurrent_layers_has_its_row(papers, table, system, row):
    assert [found.key for found in presets.rows_of(_table(papers, "zheng-2018", table), system)] == [row]


def test_every_row_of_ours_is_a_system_that_can_be_built(papers):
    rows = [row for table in papers["zheng-2018"].tables for row in table.rows if not row.cited]
    for row in rows:
        describe(":".join(filter(None, (row.system, row.settings))))
    assert {row.settings for row in rows} == {"", "decoder_init=zero", "test_loss=none", "future_start=zero"}


def test_a_cited_row_is_ours_where_the_paper_has_no_other(papers):
    (row,) = presets.rows_of(_table(papers, "yang-2019", "table-2"), "han")
    assert row.cited == "Miculicich et al. 2018"


@pytest.mark.long
def test_checks_stand_where_their_numbers_are_and_nothing_is_corrected(papers):
    found = presets.checks_of(papers, "dou-2019", "table-2")
    size = found[found["known"] == "B4"].iloc[0]
    assert (size["reported"], size["recomputed"], bool(size["agrees"])) == ("123", "145", False)
    gains = presets.checks_of(papers, "yang-2019", "table-2")
    printed = gains[gains["known"] == "E14"].set_index("reported")["recomputed"]
    assert printed.to_dict() == {"0.59": "0.61", "0.61": "0.43", "44.02": "44.27"}
    assert presets.checks_of(papers, "duan-2020")["known"].tolist() == ["C8"]
    for name, paper in papers.items():
        shown = [presets.checks_of(papers, name, table) for table in (*(table.id for table in paper.tables), "")]
        assert set(pd.concat(shown)["what"]) == {check.what for check in paper.checks}
    assert len(presets.claims_of(papers["dou-2019"])) == len(papers["dou-2019"].claims)


def test_the_figure_draws_printed_numbers_hollow_and_ours_filled(papers, prepared, tmp_path):
    run = written_run(tmp_path, "mine", "future-cost-1:preset=tiny", prepared, spoiled=4)
    request = Request((run,), options={"paper": "duan-2020", "table": "table-1", "columns": "ende_bleu,zhen_bleu"})
    figure = draw("paper-table", request)
    (panel,) = figure.panels
    assert panel.x.label == "BLEU, case-sensitive"
    marks = {mark.series: mark for mark in panel.marks}
    table = _table(papers)
    for key, label in (("ende_bleu", "EN-DE BLEU"), ("zhen_bleu", "ZH-EN BLEU")):
        mark = marks[f"reported {label}"]
        assert mark.style.hollow
        assert mark.rows()["value"].tolist() == [float(row.values[key]) for row in table.rows if key in row.values]
    assert marks["reported EN-DE BLEU"].style.marker != marks["reported ZH-EN BLEU"].style.marker
    mine, found = marks["mine"], our_results(table, [run], "test")
    assert not mine.style.hollow
    drawn = mine.rows().iloc[0]
    wanted = found[found["row"] == "model-1"].iloc[0]
    assert [drawn["score"], drawn["low"], drawn["high"]] == [wanted["score"], wanted["low"], wanted["high"]]
    assert panel.y.texts[int(drawn["place"])] == "+Model I"
    assert f"run mine (data {prepared.folder.parent.name}, test set test)" in figure.caption
    assert "no reproduction" in figure.caption


def test_proxies_stand_in_no_panel_of_what_people_counted(papers, prepared, tmp_path):
    run = written_run(tmp_path, "mine", "transformer:preset=tiny", prepared, spoiled=9)
    aligner, _ = adequacy.aligner_of([run], "test")
    wanted = adequacy.adequacy_table([run], "test", aligner).set_index("measure")["score"]
    figure = draw("paper-table", Request((run,), options={"paper": "zheng-2019", "table": "table-3"}))
    units = {panel.x.label: {mark.series for mark in panel.marks} for panel in figure.panels}
    assert "mine" in units["coverage difference ratio"]
    assert all(series.startswith("reported") for series in units["% of source words"])
    for measure, unit in (("over", "Over-translation (proxy, %)"), ("under", "Under-translation (proxy, %)")):
        (mark,) = (mark for panel in figure.panels if panel.x.label == unit for mark in panel.marks)
        assert mark.rows()["score"].tolist() == [wanted[f"{measure} (proxy, %)"]]
        assert f"{unit}: ours on other data" in figure.summary
    assert "stands apart from our proxies of it by links" in figure.caption
    alone = draw("paper-table", Request((run,), options={"paper": "zheng-2019", "table": "table-3", "columns": "cdr"}))
    assert "proxies" not in alone.caption


def test_it_is_drawn_without_a_run_a_panel_for_each_unit(papers, tmp_path):
    options = {"paper": "yang-2019", "table": "table-2", "columns": ["ted_bleu", "ted_meteor", "news_meteor"]}
    figure = draw("paper-table", Request((), options=options))
    assert [panel.x.label for panel in figure.panels] == ["BLEU", "Meteor"]
    assert [len(panel.marks) for panel in figure.panels][1] == 2
    out = tmp_path / "table.csv"
    asked = ["figure", "paper-table", "--option", "paper=dou-2019", "--option", "table=figure-4", "--out", str(out)]
    done = CliRunner().invoke(cli.app, asked)
    assert done.exit_code == 0, done.output
    written = pd.read_csv(out)
    assert written["value"].tolist() == [6.24, 5.93, 5.86, 0.0, 0.09, 0.18]


@pytest.mark.long
@pytest.mark.slow
def test_every_printed_number_of_the_columns_drawn_is_a_hollow_dot(papers):
    drawn = 0
    for name, paper in papers.items():
        for table in paper.tables:
            known = presets.columns_with_values(table)
            if known:
                options = {"paper": name, "table": table.id, "columns": [column.key for column in known]}
                figure = draw("paper-table", Request((), options=options))
                hollow = [mark.values("value") for panel in figure.panels for mark in panel.marks if mark.style.hollow]
                printed = [float(value) for row in table.rows for value in row.values.values()]
                assert sorted(np.concatenate(hollow)) == sorted(printed)
                assert len(figure.panels) == len({column.unit for column in known})
                drawn += len(printed)
    assert drawn > 300


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "paper-table draws a table of a paper; name both"),
        ({"paper": "duan2020", "table": "table-1"}, "did you mean 'duan-2020'"),
        ({"paper": "duan-2020", "table": "table-11"}, "did you mean 'table-1'"),
        ({"paper": "duan-2020", "table": "table-1", "columns": "ende_blue"}, "did you mean 'ende_bleu'"),
        ({"paper": "duan-2020", "table": "table-1", "colour": "red"}, "there is no option 'colour'"),
        ({"paper": "duan-2020", "table": "figure-2"}, "prints no number in Figure 2"),
    ],
)
def test_what_cannot_be_drawn_is_said(options, message):
    with pytest.raises((RunError, ConfigError), match=message):
        draw("paper-table", Request((), options=options))
