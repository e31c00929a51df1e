"""Beam sizes of a run: what is measured is what translating and scoring say; figure, page, command and refusals."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

import core_models
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, traces
from workbench.evaluation import translate
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.store.translations import TestSet as TestedOn
from workbench.views.beam_size import measure as beam_sizes
from workbench.views.beam_size.figures import sizes_table

SIZES = [1, 2, 8]


@pytest.fixture(scope="module")
def measured(taught_run, tmp_path_factory):
    """A copy of a run that ends its sentences, translated and measured."""
    folder = tmp_path_factory.mktemp("runs") / "taught" / "transformer"
    run = open_run(shutil.copytree(taught_run.folder, folder))
    test, _ = translate.test_set(taught_run, "test")
    translate.translate_test(run, test)
    beam_sizes.measure(run, test, SIZES, short_words=7, most_short=4, most_nodes=300)
    return run


def test_quality_is_that_of_translating_with_each_size(measured):
    translator, test_set = core_models.load(measured.folder), measured.translations("test").test_set
    for row in beam_sizes.read(measured, "test")["sizes"]:
        lines = [one.text for one in translator.translate(test_set.sources, beam=row["size"])]
        assert row["bleu"] == pytest.approx(BLEU().corpus_score(lines, [test_set.references]).score)
        assert row["empty"] == lines.count("")
        assert row["length_ratio"] == pytest.approx(
            sum(len(line.split()) for line in lines) / sum(len(line.split()) for line in test_set.references)
        )


def test_a_run_whose_search_asks_for_several_is_measured_with_a_beam_of_one_too(measured, tmp_path):
    run = open_run(shutil.copytree(measured.folder, tmp_path / "run"))
    config = run.folder / "config.yaml"
    config.write_text(config.read_text().replace("n_best: 1", "n_best: 5"))
    assert open_run(run.folder).config.search.n_best == 5
    test_set = measured.translations("test").test_set
    beam_sizes.measure(run, test_set, [1], short_words=7, most_short=1, most_nodes=300)
    (found,), wanted = beam_sizes.read(run, "test")["sizes"], beam_sizes.read(measured, "test")["sizes"][0]
    assert found["bleu"] == wanted["bleu"]


def test_search_errors_are_beams_that_something_more_probable_beats(measured):
    translator, test_set = core_models.load(measured.folder), measured.translations("test").test_set
    short = [source for source in test_set.sources if len(source.split()) <= 7][:4]
    exact = [translator.exact(source, most_nodes=100_000) for source in short]  # without a bound
    assert all(one.decided for one in exact)
    said = beam_sizes.read(measured, "test")
    assert (said["short"], said["decided"]) == (len(short), len(short))
    for row in said["sizes"]:
        beams = translator.translate(short, beam=row["size"], length_penalty=0.0)
        missed = [
            not beam.finished or best.log_prob > beam.log_prob + 1e-3 for beam, best in zip(beams, exact, strict=True)
        ]
        assert row["errors"] == sum(missed)
        for beam, best in zip(beams, exact, strict=True):
            assert not beam.finished or best.log_prob >= beam.log_prob - 1e-3


def test_the_figure_draws_the_result(measured):
    figure = draw("beam-sizes", Request((measured,)))
    table = sizes_table(Request((measured,)))
    assert [panel.y.label for panel in figure.panels] == [
        "BLEU",
        "length ratio",
        "empty outputs (%)",
        "search errors (%)",
    ]
    assert figure.panels[0].x.texts == ("1", "2", "8")
    lines = figure.table[figure.table["mark"] == "line"]
    np.testing.assert_allclose(lines["bleu"].dropna(), table["bleu"])
    np.testing.assert_allclose(lines["error_percent"].dropna(), 100 * table["errors"] / 4)
    assert "4 of 4 short sentences decided (at most 7 words, 300 nodes each)" in figure.caption
    assert "BLEU is highest with a beam of" in figure.summary


def test_the_page_shows_the_figure_or_the_command(measured, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(measured.folder.parents[1]))
    at = open_page("beam_sizes")
    (chart,) = charts(at)
    assert {"BLEU", "length ratio", "search errors (%)", "beam size"} <= axis_titles(chart)
    table = sizes_table(Request((measured,)))
    np.testing.assert_allclose(traces(chart, "transformer")[0]["y"], table["bleu"])
    assert at.dataframe[-1].value["errors"].tolist() == table["errors"].tolist()


def test_a_run_that_was_not_measured_is_asked_for(with_demo):
    at = open_page("beam_sizes", runs=["demo/transformer"])
    assert codes(at) == [f"workbench beam-sweep {with_demo / 'demo' / 'transformer'} --test test"]
    assert not charts(at)


def test_curves_of_different_versions_of_a_test_set_are_refused(measured, tmp_path):
    run = open_run(shutil.copytree(measured.folder, tmp_path / "again"))
    test_set = measured.translations("test").test_set
    beam_sizes.measure(run, test_set, [1], most_short=0)
    request = Request((measured, run))
    assert list(beam_sizes.read_all(request.runs, "test")) == [measured.name, run.name]
    assert draw("beam-sizes", request).panels
    for other in (
        replace(test_set, sources=["the dog", *test_set.sources[1:]]),
        replace(test_set, references=["der Hund", *test_set.references[1:]]),
        replace(test_set, documents=["one"] * len(test_set.sources)),
    ):
        beam_sizes.measure(run, other, [1], most_short=0)
        with pytest.raises(RunError, match="different versions of 'test'; measure all of them again: workbench beam-"):
            draw("beam-sizes", request)


def test_what_cannot_be_measured_or_read_is_said(measured, tmp_path):
    with pytest.raises(RunError, match="has no references; a curve of BLEU needs them"):
        beam_sizes.measure(measured, TestedOn("bare", ["the dog"], None, None))
    with pytest.raises(RunError, match="beam sizes 0: give numbers from 1"):
        beam_sizes.measure(measured, TestedOn("bare", ["the dog"], ["der Hund"], None), [0])
    run = open_run(shutil.copytree(measured.folder, tmp_path / "run"))
    (run.folder / "beam_sizes" / "test.json").write_text(json.dumps({"sizes": []}), encoding="utf-8")
    with pytest.raises(RunError, match=r"not readable \(no sizes\); measure again: workbench beam-sweep"):
        beam_sizes.read(run, "test")
    shutil.copy(measured.folder / "beam_sizes" / "test.json", run.folder / "beam_sizes" / "test.json")
    assert beam_sizes.read(run, "test") == beam_sizes.read(measured, "test")
    run.weights.write_bytes(run.weights.read_bytes() + b"\0")
    with pytest.raises(RunError, match=r"are of other weights than it has now; try them: workbench beam-sweep"):
        beam_sizes.read(run, "test")
    with pytest.raises(RunError, match="no beam sizes were tried on 'other' yet"):
        beam_sizes.read(run, "other")
