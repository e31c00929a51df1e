"""What a context changes: every variant is what the translator says of that context; what cannot be seen has no say."""

import numpy as np
import pytest

import core_models
from analyses.context_routing import moved
from workbench.evaluation.document_context import ContextSentences, before, context_rows
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.store.translations import TestSet as TestedOn
from workbench.views.document_context.context_ablation import (
    BACKWARDS,
    NONE,
    OTHER,
    SENTENCE,
    SWAPPED,
    WORD,
    changes,
    context_variants,
)


def test_variants_leave_out_each_word_and_each_sentence_once():
    found = context_variants(ContextSentences(("a b", "c", None)), ContextSentences(("d", "e", None)))
    said = [(one.change, one.distance, one.word, one.before.sources) for one in found]
    assert said == [
        ("", 0, "", ("a b", "c", None)),
        (WORD, 2, "c", ("a b", "", None)),
        (WORD, 1, "a", ("b", "c", None)),
        (WORD, 1, "b", ("a", "c", None)),
        (SENTENCE, 2, "", ("a b", None, None)),
        (SENTENCE, 1, "", (None, "c", None)),
        (NONE, 0, "", (None, None, None)),
        (OTHER, 0, "", ("d", "e", None)),
        (BACKWARDS, 0, "", ("b a", "c", None)),
        (SWAPPED, 0, "", ("c", "a b", None)),
    ]


def test_translations_before_are_left_out_beside_their_sources():
    found = context_variants(ContextSentences(("a b",), ("A B",)))
    words = [(one.side, one.before) for one in found if one.change == WORD]
    assert words[2:] == [
        ("translation", ContextSentences(("a b",), ("B",))),
        ("translation", ContextSentences(("a b",), ("A",))),
    ]
    assert [one.before for one in found if one.change == SENTENCE] == [ContextSentences((None,), (None,))]
    assert not any(one.change == SWAPPED for one in found)


@pytest.fixture(scope="module")
def row(context_runs):
    test_set = context_runs[0].translations("test").test_set
    return next(place for place in range(len(test_set.sources)) if context_rows(test_set, place, 2)[-1] is not None)


def scored(run, row, sources, trace=()):
    """The reference of a sentence with some context, by the translator's own account."""
    test_set = run.translations("test").test_set
    translator = core_models.load(run.folder)
    reach = translator.context.sentences
    contexts = [[*sources, *[None] * (reach - len(sources))]]
    return translator.score([test_set.sources[row]], [test_set.references[row]], contexts=contexts, trace=trace)[0]


def test_changes_are_differences_of_log_p(context_runs, row):
    run = context_runs[0]
    test_set = run.translations("test").test_set
    near, far = test_set.sources[row - 1], test_set.sources[row - 2]
    table = changes(run, "test", row, "reference")
    known = table.set_index(["what", "distance", "place"])
    as_is = scored(run, row, [near, far]).log_prob
    assert table["log_prob"].iloc[0] == pytest.approx(as_is, abs=1e-4)
    shorter = " ".join(near.split()[1:])
    for key, context in (
        ((WORD, 1, 0), [shorter, far]),
        ((SENTENCE, 1, -1), [None, far]),
        ((SENTENCE, 2, -1), [near, None]),
        ((NONE, 0, -1), []),
        ((SWAPPED, 0, -1), [far, near]),
    ):
        wanted = scored(run, row, context).log_prob - as_is
        assert known.loc[key, "change"] == pytest.approx(wanted, abs=2e-4)
    assert len(table[table["what"] == WORD]) == len(near.split()) + len(far.split())


def test_capsules_cannot_see_the_order_of_words_but_that_of_sentences(context_runs, row):
    table = changes(context_runs[0], "test", row, "reference").set_index("what")
    assert table.loc[BACKWARDS, "change"] == pytest.approx(0, abs=1e-4)
    assert table.loc[BACKWARDS, "routing"] == pytest.approx(0, abs=1e-5)
    assert abs(table.loc[SWAPPED, "change"]) > 1e-5
    assert table.loc[SWAPPED, "routing"] > 1e-5
    ordered = changes(context_runs[2], "test", row, "reference").set_index("what")
    assert abs(ordered.loc[BACKWARDS, "change"]) > 1e-5
    assert np.isnan(ordered["routing"]).all()


def test_couplings_of_the_other_words_move(context_runs, row):
    run = context_runs[0]
    test_set = run.translations("test").test_set
    near, far = test_set.sources[row - 1], test_set.sources[row - 2]
    names = ["query_capsules.couplings", "context.distance"]
    whole, rest = scored(run, row, [near, far], names), scored(run, row, [near], names)
    own = whole.trace["context.distance"].values == 1
    last = [one.trace["query_capsules.couplings"].values[-1] for one in (whole, rest)]
    table = changes(run, "test", row, "reference").set_index(["what", "distance"])
    assert table.loc[(SENTENCE, 2), "routing"] == pytest.approx(moved(last[0][own], last[1]), abs=1e-5)
    assert np.isnan(table.loc[(NONE, 0), "routing"])
    other_way = scored(run, row, [far, near], names).trace
    mirrored, couplings = (other_way[name].values for name in reversed(names))
    back = np.concatenate([couplings[-1][mirrored == distance] for distance in (1, 2)])  # as they stand in the document
    assert table.loc[(SWAPPED, 0), "routing"] == pytest.approx(moved(last[0], back), abs=1e-5)


def test_the_figure_is_the_table(context_runs, demo_runs, row):
    run = context_runs[0]
    figure = draw("context-changes", Request((run,), "test", row, options={"target": "reference"}))
    table = changes(run, "test", row, "reference")
    drawn = figure.table[figure.table.mark == "bars"]
    words = drawn[drawn.panel == "without a word (source)"]
    assert words.change.dropna().tolist() == table[table.what == WORD].change.tolist()
    wholes = drawn[drawn.label.notna() & drawn.change.notna()]
    assert wholes.label.tolist()[:2] == ["without the sentence 2 before", "without the sentence 1 before"]
    assert wholes.change.tolist() == table[table.what != WORD].change.tolist()[1:]
    moved = drawn[drawn.label.notna() & drawn.routing.notna()]
    assert moved.label.tolist()[:2] == wholes.label.tolist()[:2]
    assert moved.routing.tolist() == table[table.what != WORD].routing.iloc[1:].dropna().tolist()
    han = draw("context-changes", Request((context_runs[1],), "test", row, options={"target": "reference"}))
    assert "without a word (translation)" in {panel.title for panel in han.panels}
    assert "couplings moved" not in {panel.x.label for panel in han.panels}
    plain = open_run("demo/transformer", demo_runs)
    with pytest.raises(RunError, match="reads no context; choose a run of qcn"):
        draw("context-changes", Request((plain,), "test", row))
    with pytest.raises(RunError, match="sentence 0 of 'test' begins its document"):
        draw("context-changes", Request((run,), "test", 0))
    with pytest.raises(RunError, match="sentence 0 of 'test' has no sentence before it"):
        changes(run, "test", 0)


def test_sentences_after_stand_behind_those_before_and_are_left_out_by_themselves():
    test = TestedOn("test", list("abcde"), None, list("xxxxy"))
    assert context_rows(test, 1, 2, 2) == (0, None, 2, 3)
    assert context_rows(test, 4, 2, 2) == (None,) * 4
    own = before(test, 1, 2, after=2)
    assert own.in_order == ["a", "c", "d"]
    assert [own.distance(entry) for entry in own.entries] == [2, 1, -1, -2]
    found = context_variants(own, before(test, 2, 2, after=2))
    left_out = {one.distance: one.before for one in found if one.change == SENTENCE}
    assert left_out == {
        1: ContextSentences((None, None, "c", "d"), None, 2),
        -1: ContextSentences(("a", None, None, "d"), None, 2),
        -2: ContextSentences(("a", None, "c", None), None, 2),
    }
    assert [(one.word, one.distance) for one in found if one.change == WORD] == [("a", 1), ("c", -1), ("d", -2)]


@pytest.mark.parametrize("row", range(6))
def test_sentences_are_swapped_along_the_document_each_with_its_translation(row):
    own = before(TestedOn("test", list("abcdef"), None, ["x"] * 6), row, 2, list("ABCDEF"), 2)
    swapped = next(one.before for one in context_variants(own) if one.change == SWAPPED)
    assert swapped.in_order == own.in_order[::-1]
    assert [line is None for line in swapped.sources] == [line is None for line in own.sources]
    assert swapped.outputs == tuple(line and line.upper() for line in swapped.sources)


def test_a_run_without_a_context_at_the_sentence_is_left_out(context_runs, offline_run):
    """The first sentence of a document has a context where the sentences after it are read."""
    figure = draw("context-changes", Request((context_runs[1], offline_run), "test", 0))
    table = changes(offline_run, "test", 0)
    drawn = figure.table[figure.table.mark == "bars"]
    assert drawn.change.tolist() == table.change.tolist()[1:]
    assert drawn.label.dropna().tolist()[:2] == ["without the sentence 1 after", "without the sentence 2 after"]
    assert "where a word of the context is left out" in figure.caption
