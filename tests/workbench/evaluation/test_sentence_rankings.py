"""Rankings of sentences against sacreBLEU's own sentence scores, and the buttons of the sidebar that follow them."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from tests.workbench.views.app_pages import open_page, runs_of
from workbench.evaluation import sentence_rankings
from workbench.evaluation.sentence_rankings import (
    FEWEST_WORDS,
    RANKINGS,
    default_sentence,
    most_different,
    next_in_ranking,
)
from workbench.store.runs import RunError


@pytest.fixture
def runs(demo_runs):
    return runs_of(demo_runs, "transformer", "future-cost-1", "future-cost-2")


def _chrf(runs):
    """Sentence chrF [runs, sentences] by sacreBLEU."""
    opened = [run.translations("test") for run in runs]
    references = opened[0].test_set.references
    return np.array(
        [
            [CHRF().sentence_score(line, [right]).score for line, right in zip(one.hypotheses, references, strict=True)]
            for one in opened
        ]
    )


def test_orders_are_those_of_the_scores_and_lengths(runs):
    scores, sources = _chrf(runs), runs[0].translations("test").test_set.sources
    order = {name: ranking.order(runs, "test") for name, ranking in RANKINGS.items()}
    differences = np.ptp(scores, axis=0)[order["Most different"]]
    assert (np.diff(differences) <= 1e-9).all()
    assert len(differences) == (np.ptp(scores, axis=0) > 0).sum()
    assert (np.diff(scores.mean(axis=0)[order["Worst"]]) >= -1e-9).all()
    assert (np.diff([len(sources[row].split()) for row in order["Longest"]]) <= 0).all()
    assert len(order["Worst"]) == len(order["Longest"]) == len(sources)


def test_a_click_goes_to_the_first_and_then_on_and_round(runs):
    order = RANKINGS["Longest"].order(runs, "test")
    assert next_in_ranking("Longest", runs, "test", order[0]) == order[1]
    assert next_in_ranking("Longest", runs, "test", order[-1]) == order[0]


def test_pronouns_are_those_of_the_truth(context_runs):
    translations = context_runs[0].translations("test")
    rows = [row for row, record in enumerate(translations.truth) if "it" in record["phenomena"]]
    assert rows
    assert all("it" in translations.test_set.sources[row].lower().split() for row in rows)
    for row in range(len(translations)):
        later = [other for other in rows if other > row] if row in rows else []
        assert next_in_ranking("With a pronoun", context_runs, "test", row) == [*later, rows[0]][0]


def test_only_allowed_sentences_are_the_most_different(runs):
    differences = np.ptp(_chrf(runs), axis=0)
    assert most_different(runs, "test") == differences.argmax()
    assert most_different(runs, "test", lambda row, words: row in (3, 7)) == max((3, 7), key=differences.__getitem__)
    assert most_different(runs, "test", lambda row, words: False) == 0


def test_one_run_has_no_sentence_where_runs_differ(runs):
    with pytest.raises(RunError, match="Most different: no sentence of test is such a one"):
        next_in_ranking("Most different", runs[:1], "test", 0)


def test_the_sidebar_follows_them_and_says_why_it_cannot(with_demo):
    runs = runs_of(with_demo, "transformer", "future-cost-1", "future-cost-2")
    at = open_page("sentences")
    at = at.button(key="go-Longest").click().run()
    assert at.number_input(key="sentence").value == next_in_ranking("Longest", runs, "test", 0)
    at = at.multiselect(key="runs").set_value(["demo/transformer"]).run()
    before = at.number_input(key="sentence").value
    at = at.button(key="go-Most different").click().run()
    assert at.number_input(key="sentence").value == before
    assert any("no sentence of test" in caption.value for caption in at.caption)


@pytest.mark.slow
def test_pages_begin_where_the_runs_differ_most_and_one_run_at_its_first_sentence(graded_runs, monkeypatch):
    names = [run.name for run in graded_runs]
    monkeypatch.setenv("WORKBENCH_RUNS", graded_runs[0].folder.as_posix().removesuffix(names[0]))
    most = default_sentence(graded_runs, "test")
    assert most > 0
    at = open_page("attention", runs=names, sentence=[])
    assert at.number_input(key="sentence").value == most
    assert at.number_input(key="sentence").set_value(0).run().number_input(key="sentence").value == 0
    assert open_page("attention", runs=names[:1], sentence=[]).number_input(key="sentence").value == 0


def test_many_translations_are_not_scored_for_the_first_sentence(runs, monkeypatch):
    monkeypatch.setattr(sentence_rankings, "MOST_SCORED", 3 * len(runs[0].translations("test")) - 1)
    assert default_sentence(runs, "test") == 0
    monkeypatch.setattr(sentence_rankings, "MOST_SCORED", 3 * len(runs[0].translations("test")))
    assert default_sentence(runs, "test") == most_different(runs, "test", lambda _, words: words >= FEWEST_WORDS)


def test_the_first_sentence_has_a_beam_tree_of_every_run(graded_runs):
    most = default_sentence(graded_runs, "test")
    assert most > 1
    starts = graded_runs[1].translations_folder("test") / "trees.npy"
    np.save(starts, np.load(starts)[: most + 1])  # of the sentences before it
    assert default_sentence(graded_runs, "test") == np.ptp(_chrf(graded_runs), axis=0)[:most].argmax()


def test_runs_that_read_documents_begin_with_a_pronoun_that_needs_them(context_runs, demo_runs):
    most = default_sentence(context_runs, "test")
    truth = context_runs[0].translations("test").truth
    assert "it" in truth[most]["phenomena"]
    mixed = [*context_runs, runs_of(demo_runs, "transformer")[0]]
    assert default_sentence(mixed, "test") == most_different(mixed, "test", lambda _, words: words >= FEWEST_WORDS)
