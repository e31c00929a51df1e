"""Figures of the context show the arrays of a forced pass with the sentences before."""

import numpy as np
import pytest

import core_models
from analyses import context_routing
from tests.kinds import sampled
from tests.workbench.figures.test_figure_files import check_printed_command
from workbench.evaluation.document_context import before, context_rows, next_with_context, of_another_document
from workbench.evaluation.live_trace import trace_sentence
from workbench.figures.drawing import draw
from workbench.figures.options import CorpusOptions
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.store.translations import TestSet
from workbench.views.attribution.measure import explain
from workbench.views.document_context.corpus_figures import measures_table
from workbench.views.document_context.measure_routing import measured

TEST = TestSet("test", list("abcdef"), list("ABCDEF"), ["x", "x", "x", "y", "y", "y"])


def number_with_context(run, sentences=2):
    """The first sentence that has so many before it in its document."""
    documents = run.translations("test").test_set.documents
    return next(row for row in range(len(documents)) if context_rows(run_test(run), row, sentences)[-1] is not None)


def run_test(run):
    return run.translations("test").test_set


@pytest.fixture(scope="module")
def passed(context_runs):
    """Of each run a sentence's reference, forced with all of its document by the translator's own account."""
    row = number_with_context(context_runs[0])
    found = {}
    for run in context_runs:
        test = run_test(run)
        rows = [place for place, document in enumerate(test.documents) if document == test.documents[row]]
        scored = core_models.load(run.folder).score(
            [test.sources[place] for place in rows],
            [test.references[place] for place in rows],
            documents=["one"] * len(rows),
            trace=["*"],
        )
        found[run.name] = scored[rows.index(row)]
    return row, found


def request(run, row, **options):
    return Request((run,), "test", row, options={"target": "reference", **options})


def heats(figure):
    return [mark for panel in figure.panels for mark in panel.marks if mark.kind == "heat"]


def test_what_stands_before_ends_at_the_document():
    assert context_rows(TEST, 2, 3) == (1, 0, None)
    assert context_rows(TEST, 3, 3) == (None, None, None)
    assert context_rows(TEST, 5, 1) == (4,)
    assert before(TEST, 2, 3).sources == ("b", "a", None)
    assert before(TEST, 5, 2, TEST.references).outputs == ("E", "D")
    assert before(TestSet("test", ["a", "b"], None, None), 1, 2).count == 0


def test_the_context_of_another_document_has_as_many_sentences():
    own = before(TEST, 2, 3)
    other = of_another_document(TEST, 2, own, TEST.references)
    assert (other.sources, other.outputs) == (("e", "d", None), ("E", "D", None))
    assert of_another_document(TEST, 3, before(TEST, 3, 3)) is None
    alone = TestSet("test", ["a", "b"], None, ["x", "x"])
    assert of_another_document(alone, 1, before(alone, 1, 2)) is None


def test_a_look_inside_hands_the_context_on(context_runs, passed):
    row, found = passed
    for run in context_runs:
        looked, one = trace_sentence(run, "test", row, "reference"), found[run.name]
        assert looked.target == tuple(one.tokens)
        np.testing.assert_allclose(looked.array("log_prob"), one.token_log_probs, atol=1e-4)
        assert len(looked.context) == len(one.trace["context.distance"].values)
        assert " ".join(looked.context).count("</s>") == looked.before.count
    assert trace_sentence(context_runs[1], "test", row).before.outputs is not None
    assert trace_sentence(context_runs[0], "test", row).before.outputs is None


def test_attribution_explains_the_sentence_in_its_document(context_runs, passed):
    """What it explains is the log P that the translator gives the reference with its document; the words before are
    named as not covered."""
    row, found = passed
    for run in context_runs:
        one = explain(run, "test", row, ("reference", ""), "occlusion")
        assert one.attribution.log_prob[0] == pytest.approx(sum(found[run.name].token_log_probs), abs=1e-3)
        assert one.constants == ["in the sentences before"]
        first = explain(run, "test", 0, ("reference", ""), "occlusion")
        source, reference = run_test(run).sources[0], run_test(run).references[0]
        (alone,) = core_models.load(run.folder).score([source], [reference])
        assert first.attribution.log_prob[0] == pytest.approx(alone.log_prob, abs=1e-3)


def test_maps_are_couplings_correlations_and_their_sum(context_runs, passed):
    run, (row, found) = context_runs[0], passed
    trace = found[run.name].trace
    figure = draw("context-routing", request(run, row))
    couplings, correlations = (trace[f"query_capsules.{name}"].values for name in ("couplings", "correlations"))
    assert len(figure.panels) == 3 * len(couplings)
    maps = heats(figure)
    for iteration in range(len(couplings)):
        c, p, both = (mark.table.pivot(index="capsule", columns="word", values="value").to_numpy()
                      for mark in maps[3 * iteration : 3 * iteration + 3])  # fmt: skip
        np.testing.assert_allclose(c, couplings[iteration].T, atol=1e-5)
        np.testing.assert_allclose(p, correlations[iteration].T, atol=1e-5)
        np.testing.assert_allclose(both, c + p, atol=1e-5)
    np.testing.assert_allclose(maps[0].cells()[0], 1, atol=1e-5)  # the first couplings are even
    assert [mark.role for mark in maps[:3]] == ["relative", "signed", "signed"]
    assert set(figure.table.distance.dropna()) == {1, 2}


def test_figures_6_and_7_and_the_literal_correlation(context_runs, passed):
    run, (row, found) = context_runs[0], passed
    trace = found[run.name].trace
    sixth, seventh = (draw("context-routing", request(run, row, show=show)) for show in ("c", "p"))
    assert [panel.title for panel in sixth.panels] == [f"iteration {number}, coupling c" for number in range(4)]
    first = heats(seventh)[0].cells()[0]
    assert (abs(first - first[0]) < 1e-6).all()  # every query begins as the same one: equal columns in Figure 7
    both = draw("context-routing", request(run, row, show="p", correlation="both", iteration=2, raw=True))
    assert [panel.title for panel in both.panels] == [
        "iteration 2, p by Pearson's correlation", "iteration 2, p by Equation 7 as published",
    ]  # fmt: skip
    for mark, name in zip(heats(both), ("pearson", "eq7"), strict=True):
        np.testing.assert_allclose(np.tanh(mark.cells()[0]), trace[f"query_capsules.{name}"].values[2].T, atol=1e-5)


def test_shares_of_capsules_are_colored_by_their_difference_to_an_even_share(context_runs, passed):
    run, (row, found) = context_runs[0], passed
    weights = found[run.name].trace["query_capsules.attention"].values
    weights = weights.mean(axis=tuple(range(weights.ndim - 2)))  # source positions by capsules
    figure = draw("context-capsules-read", request(run, row))
    (heat,) = heats(figure)
    np.testing.assert_allclose(heat.cells()[0], (weights - 1 / weights.shape[1]).T, atol=1e-5)
    np.testing.assert_allclose(heat.table["share"].to_numpy(), weights.T.ravel(), atol=1e-5)
    largest = np.abs(weights - 1 / weights.shape[1]).max()
    assert heat.role == "signed"
    assert max(0.01, 0.5 * largest) <= heat.limits[1] <= max(0.01, 1.2 * largest)
    (wide,) = heats(draw("context-capsules-read", request(run, row, limit=0.5)))
    assert wide.limits == (-0.5, 0.5)


def test_the_next_sentence_with_context_comes_round(context_runs):
    run = context_runs[0]
    assert [next_with_context(run, TEST, row) for row in range(6)] == [1, 2, 4, 4, 5, 1]
    assert next_with_context(run, TestSet("test", ["a", "b"], None, None), 0) is None


def test_curves_are_the_measures_of_the_pass(context_runs, passed):
    run, (row, found) = context_runs[0], passed
    trace = {name: one.values for name, one in found[run.name].trace.items()}
    table = draw("context-curves", request(run, row)).table
    couplings, correlations = trace["query_capsules.couplings"], trace["query_capsules.correlations"]
    for label, wanted in (
        ("capsules in use", context_routing.used_capsules(couplings)),
        ("weights below 0", context_routing.negative_share(couplings, correlations)),
        ("cosine with q", trace["query_capsules.query_cosine"].mean(-1)),
    ):
        drawn = table[(table.panel == label) & (table.mark == "line")]
        np.testing.assert_allclose(drawn.value.astype(float), wanted, atol=1e-5)


@pytest.mark.parametrize(("place", "kind"), [(1, "hierarchical_attention"), (2, "document_encoder")])
def test_attention_over_the_context_by_words_and_by_sentences(context_runs, passed, place, kind):
    run, (row, found) = context_runs[place], passed
    for side in ("encoder", "decoder"):
        weights = found[run.name].trace[f"{kind}.{side}.attention"].values
        wanted = weights.reshape(-1, *weights.shape[-2:]).mean(0)
        figure = draw("context-attention", request(run, row, side=side))
        np.testing.assert_allclose(heats(figure)[0].cells()[0], wanted, atol=1e-4)
        summed = draw("context-attention", request(run, row, side=side, over="sentences"))
        np.testing.assert_allclose(heats(summed)[0].cells()[0].sum(1), wanted.sum(1), atol=1e-4)
        assert summed.panels[0].x.texts == ("2␣before", "1␣before")


def test_attention_over_the_context_says_which_lines_each_run_looks_at(context_runs):
    _, han, document = context_runs
    row = number_with_context(han)

    def drawn(*runs, side):
        return draw("context-attention", Request(runs, "test", row, options={"target": "reference", "side": side}))

    assert {panel.x.label for panel in drawn(han, document, side="encoder").panels} == {"context (sources)"}
    assert drawn(han, side="decoder").panels[0].x.label == "context (their translations)"
    mixed = drawn(document, han, side="decoder")
    assert {panel.x.label for panel in mixed.panels} == {"context"}
    assert "(document-transformer: sources, han: their translations)" in mixed.caption


def test_attention_over_what_stands_around_a_sentence_says_so(context_runs, offline_run):
    test = run_test(offline_run)
    row = next(row for row in range(len(test.sources)) if None not in context_rows(test, row, 2, 2))
    words, whole = (draw("context-attention", request(offline_run, row, side="encoder", over=over))
                    for over in ("words", "sentences"))  # fmt: skip
    assert "Shares of the words of the sentences around it, as they stand in the document (sources)" in words.caption
    assert "Shares of the sentences around it (sources)" in whole.caption
    assert whole.panels[0].x.texts == ("2␣before", "1␣before", "1␣after", "2␣after")
    online = draw("context-attention", request(context_runs[1], row, side="encoder"))
    assert "the words of the sentences before it, as they stand in the document" in online.caption


@pytest.mark.slow
def test_a_test_set_is_measured_sentence_by_sentence_and_kept(context_runs, passed):
    run, (row, found) = context_runs[0], passed
    whole = measured(run, "test", row + 1)
    trace = {name: one.values for name, one in found[run.name].trace.items()}
    couplings, correlations = (trace[f"query_capsules.{name}"] for name in ("couplings", "correlations"))
    own = context_routing.spread(couplings, correlations, trace["context.distance"], 3)
    assert whole.words[-1] == own.words[0]
    np.testing.assert_allclose(whole.each[-1], own.each[0], atol=1e-5)
    np.testing.assert_allclose(whole.far[-1], own.far[0], atol=1e-5)
    test = run_test(run)
    there = [place for place in range(row + 1) if before(test, place, 3).count]
    assert len(whole.words) == len(there)
    again = measured(run, "test", row + 1)
    np.testing.assert_array_equal(again.each, whole.each)
    assert list(run.statistics.glob("context-routing-*.npz"))
    request = Request((run,), "test", options={"sentences": row + 1})
    table = measures_table(request, CorpusOptions(sentences=row + 1))
    drawn = draw("context-corpus", request).table
    used = table[(table.measure == "used") & (table.distance == 0)]
    assert drawn[(drawn.panel == "capsules in use") & (drawn.mark == "line")].value.tolist() == used.value.tolist()
    far = draw("context-distances", request).table
    for place, label in enumerate(("largest c of a word", "mean p", "mean |c + p|")):
        wanted = np.nanmean(whole.far[:, :, 1, place], axis=0)
        drawn = far[(far.panel == label) & (far.series == "2 before")]
        np.testing.assert_allclose(drawn.value.astype(float), wanted, atol=1e-12)


def test_what_cannot_be_drawn_is_said(context_runs, demo_runs):
    plain, run = open_run("demo/transformer", demo_runs), context_runs[0]
    row = number_with_context(run)
    for one, name, options, message in (
        (plain, "context-routing", {}, "routes no context to capsules; choose a run of qcn"),
        (run, "context-attention", {}, "attends to no words before the sentence"),
        (context_runs[1], "context-attention", {"limit": 0}, "limit 0: write auto, or a number above 0, up to 1"),
        (context_runs[1], "context-attention", {"head": 99}, "head 99: write mean, or a number from 1 to"),
        (run, "context-routing", {"iteration": 4}, "iteration 4: write all, or a number from 0 to 3"),
        (run, "context-routing", {"show": "x"}, "show 'x': choose all, c, p, sum"),
        (run, "context-corpus", {"sentences": 0}, "sentences 0: write all, or a number from 1"),
        (run, "context-corpus", {"sentences": 1}, "none of the first 1 sentences of 'test' has a sentence before it"),
        (run, "context-routing", {"shown": "c"}, "there is no option 'shown'"),
    ):
        with pytest.raises(RunError, match=message):
            draw(name, Request((one,), "test", row, options=options))
    with pytest.raises(RunError, match="sentence 0 of 'test' begins its document"):
        draw("context-routing", Request((run,), "test", 0))


@pytest.mark.parametrize(
    ("name", "places", "options"),
    sampled(
        [
            ("context-routing", [0], {"show": "p", "correlation": "both"}),
            ("context-curves", [0], {}),
            ("context-capsules-read", [0], {}),
            ("context-attention", [1, 2], {"side": "decoder", "over": "sentences"}),
            ("context-changes", [0, 1], {}),
            ("context-corpus", [0], {"sentences": 20}),
            ("context-distances", [0], {"sentences": 20}),
        ]
    ),
)
@pytest.mark.slow
def test_the_printed_command_writes_vectors(name, places, options, context_runs, tmp_path):
    runs, row = tuple(context_runs[place] for place in places), number_with_context(context_runs[0])
    check_printed_command(name, Request(runs, "test", row, options=options), tmp_path)
