"""Content states of runs: what is drawn is what the forced pass traced; coverage stands beside the truth."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import core_models
from analyses import content_states, past_future_gold
from tests.workbench.views.app_pages import runs_of
from workbench.evaluation import translate
from workbench.evaluation.gold_alignments import truths
from workbench.experiments.train import new_run, train
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.plotting.axes import token_texts
from workbench.store.runs import RunError, open_run
from workbench.views.past_future.gold_figures import POSITION, TruthOptions, against_truth
from workbench.views.past_future.measure import coverage_form, measured
from workbench.views.past_future_layers import measure as measuring
from workbench.views.past_future_layers.plots import MOST_COVERED

LAYERS = "past_future_layers"


@pytest.fixture(scope="module")
def run(layered_run, tmp_path_factory):
    return open_run(shutil.copytree(layered_run.folder, tmp_path_factory.mktemp("content") / "pfrnn-loss"))


def covering_run(data, folder, form):
    """A hardly trained run of a form of coverage, its test set translated."""
    training = {"max_steps": 2, "warmup": 1, "batch_tokens": 256, "learning_rate": 0.01}
    made = new_run(folder, f"coverage:preset=tiny,form={form}", data, training, {"max_length": 12})
    train(made, device="cpu")
    translate.translate_test(made, *translate.test_set(made, "test"))
    return open_run(folder)


@pytest.fixture(scope="module")
def covering(demo_runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("covering") / "demo"
    return [covering_run(demo_runs / "demo" / "data", folder / form, form) for form in ("additive", "subtractive")]


@pytest.fixture(scope="module")
def forced(run):
    """The reference of sentence 2 by the translator's own account."""
    text = run.translations("test").test_set
    (one,) = core_models.load(run.reference).score([text.sources[2]], [text.references[2]], trace=["*"])
    return one


def test_the_figure_of_a_sentence_is_the_trace(run, forced):
    figure = draw("content-states", Request((run,), "test", 2, options={"target": "reference"}))
    table = figure.table
    for measure, label in content_states.MEASURES.items():
        drawn = table[(table.panel == label) & (table.mark == "line")]
        for side, name in (("past", "PAST"), ("future", "FUTURE")):
            traced = forced.trace.get(f"{LAYERS}.{side}.{measure}", forced.trace.get(f"{side}.{measure}"))
            values = drawn[drawn.series == name].value.tolist()
            np.testing.assert_allclose(values, [] if traced is None else traced.values, atol=1e-5)
    for measure in ("cosine", "distance"):
        drawn = table[(table.panel == content_states.MEASURES[measure]) & (table.mark == "line")]
        np.testing.assert_allclose(
            drawn.value.astype(float), forced.trace[f"{LAYERS}.whole.{measure}"].values, atol=1e-5
        )
    own = table[(table.panel == content_states.MEASURES["log_prob"]) & (table.series == "system")]
    np.testing.assert_allclose(own.value.astype(float), forced.trace["log_prob"].values, atol=1e-5)
    assert figure.panels[0].x.texts == token_texts(forced.tokens)


def test_panels_stand_above_one_axis_of_words_and_the_lengths_can_stand_alone(run):
    request = Request((run,), "test", 2, options={"target": "reference"})
    whole = draw("content-states", request)
    assert (whole.shared_x, whole.columns) == (True, 1)
    assert len({panel.x for panel in whole.panels}) == 1
    parts = [draw("content-states", replace(request, options={**request.options, "part": part}))
             for part in ("lengths", "rest")]  # fmt: skip
    titles = [[panel.title for panel in part.panels] for part in parts]
    assert titles[0] == [content_states.MEASURES["norm"]]
    assert titles[0] + titles[1] == [panel.title for panel in whole.panels]
    course = draw("content-course", Request((run,), "test", options={"sentences": 5, "part": "lengths"}))
    assert [panel.title for panel in course.panels] == titles[0]


def test_the_course_is_the_mean_of_forced_passes_and_is_kept(run):
    found = measuring.measured(run, "test", "reference", 5)
    text = run.translations("test").test_set
    passes = core_models.load(run.reference).score(text.sources[:5], text.references[:5], trace=measuring.NAMES)
    for one, wanted in zip(found, passes, strict=True):
        np.testing.assert_allclose(one["past.norm"], wanted.trace[f"{LAYERS}.past.norm"].values, atol=1e-5)
        np.testing.assert_array_equal(one["future.rank"], wanted.trace["future.rank"].values)
    kept = list(run.statistics.glob("content-*.npz"))
    assert kept
    again = measuring.measured(run, "test", "reference", 5)
    assert all((one[name] == other[name]).all() for one, other in zip(found, again, strict=True) for name in one)
    figure = draw("content-course", Request((run,), "test", options={"sentences": 5}))
    wanted = content_states.course(found)
    drawn = figure.table[(figure.table.panel == content_states.MEASURES["first"]) & (figure.table.series == "FUTURE")]
    rows = wanted[(wanted.measure == "first") & (wanted.side == "future")]
    assert drawn.value.tolist() == rows.value.tolist()
    distance = content_states.steadiness(found).distance.mean()
    assert f"distance {distance:.2f}, spread along a sentence" in figure.caption
    own = draw("content-course", Request((run,), "test", options={"sentences": 5, "target": "own"}))
    assert "5 sentences, its own translations" in own.caption


def test_maps_of_coverage_are_what_was_traced_and_attention_added_up(run, covering):
    figure = draw("coverage-map", Request((*covering, run), "test", 2, options={"target": "reference", "pieces": True}))
    text = run.translations("test").test_set
    heats = {panel.title: panel.marks[0].cells()[0] for panel in figure.panels}
    for one, form in zip(covering, ("additive", "subtractive"), strict=True):
        (passed,) = core_models.load(one.reference).score([text.sources[2]], [text.references[2]], trace=["*"])
        values = passed.trace["coverage.coverage"].values
        np.testing.assert_allclose(heats[form], (1 - values if form == "subtractive" else values).T, atol=1e-5)
        assert f"{form}: {form} coverage" in figure.caption
    (passed,) = core_models.load(run.reference).score([text.sources[2]], [text.references[2]], trace=["*"])
    added = passed.trace["decoder.cross_attention"].values[0, 0].cumsum(0)
    np.testing.assert_allclose(heats["pfrnn-loss"], added.T, atol=1e-5)
    words = draw("coverage-map", Request(tuple(covering[:1]), "test", 2, options={"target": "reference"}))
    marked = words.table[words.table.series == "gold, sure"]
    links = {(int(i), int(j)) for i, j in zip(marked.word, marked.step, strict=True)}
    assert links == truths(run, "test")[2].links


def test_neural_coverage_is_drawn_by_unit_or_as_a_mean(demo_runs, covering, tmp_path):
    neural = covering_run(demo_runs / "demo" / "data", tmp_path / "neural", "neural,units=3")
    text = neural.translations("test").test_set
    (passed,) = core_models.load(neural.reference).score([text.sources[2]], [text.references[2]], trace=["*"])
    states = passed.trace["coverage.coverage"].values
    assert states.shape[-1] == 3
    options = {"target": "reference", "pieces": True}
    for unit, wanted, said in (("mean", states.mean(-1), "mean of 3 units"), ("2", states[..., 1], "unit 2")):
        figure = draw("coverage-map", Request((neural, covering[0]), "test", 2, options={**options, "unit": unit}))
        heat, counted = (panel.marks[0] for panel in figure.panels)
        np.testing.assert_allclose(heat.cells()[0], wanted.T, atol=1e-5)
        assert (heat.role, heat.limits) == ("signed", (-1.0, 1.0))
        assert counted.limits == (0.0, MOST_COVERED)
        assert f"neural: neural coverage, {said}" in figure.caption
        assert "additive: additive coverage" in figure.caption
        assert f"the state of a source word is {wanted[-1].mean():.2f} on average" in figure.summary
    with pytest.raises(RunError, match="unit 4: write mean, or a number from 1 to 3"):
        draw("coverage-map", Request((neural,), "test", 2, options={**options, "unit": "4"}))
    with pytest.raises(RunError, match="unit: none of the runs has neural coverage"):
        draw("coverage-map", Request(tuple(covering), "test", 2, options={**options, "unit": "1"}))


def test_coverage_and_attention_of_recurrent_systems_stand_beside_the_truth(run, covering):
    request = Request((*covering, run), "test", options={"sentences": 8})
    found = against_truth(request, TruthOptions(sentences=8))
    assert found.systems == ("coverage of additive", "coverage of subtractive")
    assert set(found.rules) == {*(f"rule: attention of {name}" for name in ("additive", "subtractive", "pfrnn-loss")),
                                POSITION}  # fmt: skip
    areas = found.areas.table.set_index(["system", "words"]).auc
    for one in covering:
        scores, past = [], []
        for sentence, true in zip(measured(one, "test", "reference", 8), truths(one, "test"), strict=False):
            for cell in past_future_gold.cells(true.links, true.source_words, true.target_words).itertuples():
                start = 1.0 if coverage_form(one) == "subtractive" else 0.0
                value = sentence.coverage[cell.step - 1, cell.word] if cell.step else start
                scores.append(start - value if start else value)
                past.append(cell.past)
        name = open_run(one.folder).name.rsplit("/")[-1]
        wanted = past_future_gold.area_under_curve(np.array(scores), np.array(past))
        assert areas[f"coverage of {name}", "all"] == pytest.approx(wanted, abs=1e-6)
    caption = draw("past-future-truth", request).caption
    assert "Coverage: what stood for the word before the step." in caption
    alone = draw("past-future-truth", Request((run,), "test", options={"sentences": 4})).caption
    assert "AUC minus" not in alone


def test_the_truth_of_one_version_is_not_laid_on_another(run, covering, tmp_path):
    """Sentences of the same lengths, so that only the texts tell the versions apart."""
    other = open_run(shutil.copytree(run.folder, tmp_path / "other"))
    path = other.folder / "translations" / "test" / "references.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{' '.join(reversed(line.split()))}\n" for line in lines), encoding="utf-8")
    with pytest.raises(RunError, match="were tested on different versions of test; translate again"):
        draw("past-future-truth", Request((covering[0], open_run(other.folder)), "test", options={"sentences": 4}))


def test_alignment_errors_of_recurrent_systems_are_of_words(run):
    from analyses import alignment, attention

    text, truth = run.translations("test").test_set, run.translations("test").truth
    passes = core_models.load(run.reference).score(text.sources, text.references, trace=["decoder.cross_attention"])
    assert any(len(one.tokens) > len(line.split()) + 1 for one, line in zip(passes, text.references, strict=True))
    weights = [
        attention.to_words(one.trace["decoder.cross_attention"].values[0, 0], one.tokens, one.source_tokens)[:-1, :-1]
        for one in passes
    ]
    wanted = alignment.threshold_curve(weights, [{(i, j) for i, j in record["alignment"]} for record in truth])
    table = draw("alignment-error", Request((run,), options={"links": "truth"})).table
    drawn = table[(table["series"] == "pfrnn-loss") & (table["panel"] == "AER (%)")]
    np.testing.assert_allclose(drawn["aer"] / 100, wanted["aer"].iloc[:-1], atol=2e-3)
    assert "subword" not in draw("alignment-error-lengths", Request((run,), options={"links": "truth"})).caption


def test_what_cannot_be_drawn_is_said(run, demo_runs):
    (plain,) = runs_of(demo_runs, "transformer")
    for name in ("content-states", "content-course"):
        with pytest.raises(RunError, match="transformer has no PAST or FUTURE layer; choose a run of pfrnn-loss"):
            draw(name, Request((plain,), "test"))
    with pytest.raises(RunError, match="transformer has no PAST or FUTURE layer"):
        measuring.measured(plain, "test", "own")
    with pytest.raises(RunError, match="target 'typed': choose own, reference"):
        draw("content-course", Request((run,), "test", options={"target": "typed"}))
    assert measuring.sides_of(plain) == ()
    assert measuring.sides_of(run) == ("past", "future")
