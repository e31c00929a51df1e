"""Attribution of runs: figures and tables hold what the model's own attribution finds for the same pieces; refusals."""

import shutil

import numpy as np
import pytest

import core_models
from core_models.inspection.attribution import attribute
from tests.kinds import sampled
from tests.workbench.views.app_pages import charts, codes, open_page, runs_of, traces
from workbench.evaluation import translate
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.attribution.measure import explain, sums

RUNS = ["demo/transformer", "demo/future-cost-2"]


def expected(run, sentence, chosen, **options):
    """By way of the text of the reference, as the translator segments it."""
    translator, test_set = core_models.load(run.folder), run.translations("test").test_set
    (source,) = translator.source_vocabulary.encode([test_set.sources[sentence]])
    (target,) = translator.target_vocabulary.encode([test_set.references[sentence]])
    return attribute(translator.systems[0], source, target, True, chosen, **options)


@pytest.fixture
def pair(demo_runs):
    return tuple(open_run(name, demo_runs) for name in RUNS)


def test_the_bars_are_the_attributions_of_each_run(pair):
    request = Request(pair, sentence=2, options={"target": "reference", "word": 3})
    figure = draw("attribution", request)
    table = figure.table[figure.table["mark"] == "bars"]
    for run in pair:
        short, wanted = run.name.removeprefix("demo/"), expected(run, 2, (2,))
        for side, values in (("source", wanted.source), ("target prefix", wanted.prefix)):
            drawn = table[table["panel"] == f"{short}: {side}"]["nats"]
            np.testing.assert_allclose(drawn, values[0][: len(drawn)], atol=1e-4)
            assert len(drawn) == (len(values[0]) if side == "source" else 3)  # the words before the third
        assert f"difference {wanted.difference[0]:+.3f} nats" in figure.caption
        assert f"after {wanted.steps[0]} steps" in figure.caption
    assert "baseline: zero vector" in figure.caption
    assert "Not covered in demo/future-cost-2: what a mechanism reads at target position 1." in figure.caption
    assert "Not covered in demo/transformer" not in figure.caption


def test_the_matrix_has_a_row_for_each_word_on_one_scale(pair):
    options = {"target": "reference", "method": "occlusion", "baseline": "padding"}
    figure = draw("attribution-matrix", Request(pair, sentence=2, options=options))
    scales = {mark.limits for panel in figure.panels for mark in panel.marks}
    assert len(scales) == 1
    largest = 0.0
    for run, source, prefix in zip(pair, figure.panels[::2], figure.panels[1::2], strict=True):
        words = len(source.y.texts)
        wanted = expected(run, 2, tuple(range(words)), method="occlusion", baseline="padding")
        np.testing.assert_allclose(source.marks[0].cells()[0], wanted.source, atol=1e-4)
        cells = prefix.marks[0].cells()[0]
        below = np.tril(np.ones_like(cells)).astype(bool)
        np.testing.assert_allclose(cells[below], wanted.prefix[below], atol=1e-4)
        assert np.isnan(cells[~below]).all()
        assert prefix.x.texts == ("<s>", *source.y.texts[:-1])
        largest = max(largest, np.abs(wanted.source).max(), np.abs(wanted.prefix).max())
    assert scales.pop()[1] >= largest - 1e-4


def test_a_taught_run_is_complete_for_every_word_of_its_own_output(taught_run, tmp_path):
    run = open_run(shutil.copytree(taught_run.folder, tmp_path / "taught"))
    translate.translate_test(run, translate.test_set(taught_run, "test")[0])
    found = explain(run, "test", 0, word=None)
    table = sums([found], {run.name: "taught"})
    detail = run.translations("test").details[0]
    assert table["word"].tolist() == [*detail["tokens"], "(sentence)"]
    np.testing.assert_allclose(table["log_prob"], [*detail["token_log_probs"], detail["log_prob"]], atol=1e-4)
    assert (table["error"].abs() < 0.01 * np.maximum(table["difference"].abs(), 0.5)).all()
    np.testing.assert_allclose(table["sum"] - table["difference"], table["error"])


@pytest.mark.parametrize("baseline", sampled(["padding", "zero"]))
@pytest.mark.slow
def test_every_system_of_the_demo_is_complete_for_every_word(demo_runs, baseline):
    runs = runs_of(demo_runs, "transformer", "future-cost-1", "future-cost-2")
    found = [explain(run, "test", number, baseline=baseline, word=None) for run in runs for number in (0, 3)]
    table = sums(found, {run.name: run.name for run in runs})
    assert set(table["system"]) == {run.name for run in runs}
    error = (table["sum"] - (table["log_prob"] - table["baseline_log_prob"])).abs()
    assert (error < 0.01 * np.maximum(table["difference"].abs(), 0.5)).all()
    assert table["complete"].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "gradient"}, "method 'gradient': choose integrated_gradients"),
        ({"baseline": "mean"}, "baseline 'mean': choose zero, padding"),
        ({"word": 99}, "word 99: demo/transformer has the words 1 to"),
        ({"word": "first"}, "word 'first': write sentence, or a number from 1"),
        ({"target": "typed"}, "no text was typed"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_a_sentence(pair, options, message):
    with pytest.raises(RunError, match=message):
        draw("attribution", Request(pair[:1], options=options))


def test_the_page_shows_bars_or_a_matrix_and_what_they_sum_to(with_demo):
    runs = runs_of(with_demo, "transformer", "future-cost-2")
    at = open_page("attribution", runs=RUNS, sentence="2", translation="Reference", method="Occlusion")
    (chart,) = charts(at)
    titles = [annotation["text"] for annotation in chart["layout"]["annotations"]]
    sides = ("source", "target prefix")
    assert titles == [f"{name}: {side}" for name in ("transformer", "future-cost-2") for side in sides]
    table = at.dataframe[-1].value
    for run, drawn, row in zip(runs, ("transformer", "future-cost-2"), table.itertuples(), strict=True):
        wanted = expected(run, 2, (-1,), method="occlusion")
        np.testing.assert_allclose(traces(chart, drawn)[0]["y"], wanted.source[0], atol=1e-4)
        assert (row.difference, row.error) == pytest.approx((wanted.difference[0], wanted.error[0]), abs=1e-3)
        assert row.system == drawn
    assert any("the attributions sum to" in caption.value for caption in at.caption)
    (command,) = [code for code in codes(at) if code.startswith("workbench figure attribution ")]
    assert "--option method=occlusion " in command

    at = open_page("attribution", runs=RUNS[:1], sentence="2", explain="Every word", method="Gradient × input")
    (chart,) = charts(at)
    assert len([trace for trace in chart["data"] if trace["type"] == "heatmap"]) == 2
    words = at.dataframe[-1].value["word"].tolist()
    assert words == [*runs[0].translations("test").details[2]["tokens"], "(sentence)"]
