"""The texts of a sentence: its lines, what belongs together in them, and the selected word on every figure."""

import json
import shutil

import numpy as np
import pytest

import core_models
from tests.workbench.views.app_pages import charts, heat_maps, open_page, runs_of, sentence_lines
from workbench.app.components.shadings import ATTENTION, GOLD, PRONOUN
from workbench.evaluation.gold_alignments import truths

pytestmark = pytest.mark.usefixtures("with_demo")
RUNS = ["demo/transformer", "demo/future-cost-2"]


def shading(at, name: str, over: str) -> np.ndarray:
    """Weights [over, on] of the one shading of this name over a line."""
    given = sentence_lines(at)
    labels = [line["label"] for line in given["lines"]]
    (weights,) = (s["weights"] for s in given["shadings"] if s["name"] == name and labels[s["over"]] == over)
    return np.array(weights)


def frames(at) -> list[list[dict]]:
    """The frames around selected words in each chart of the page."""
    return [chart["layout"].get("shapes", []) for chart in charts(at)]


def test_a_line_is_the_text_of_a_file(demo_runs):
    run = runs_of(demo_runs, "transformer")[0]
    translations = run.translations("test")
    lines = {line["label"]: line["words"] for line in sentence_lines(open_page("attention", runs=RUNS))["lines"]}
    assert lines["source"] == translations.test_set.sources[0].split()
    assert lines["reference"] == translations.test_set.references[0].split()
    assert lines["transformer"] == translations.hypotheses[0].split()


def test_words_are_shaded_by_the_attention_that_the_page_draws(with_demo):
    (run,) = runs_of(with_demo, "transformer")
    _write_the_reference(run)
    at = open_page("attention", runs=RUNS, words="true")
    drawn = heat_maps(charts(at)[0])[0].T  # sources downwards
    weights = shading(at, ATTENTION, "transformer")
    words = {line["label"]: len(line["words"]) for line in sentence_lines(at)["lines"]}
    assert weights.shape == (words["transformer"], words["source"]), "without </s>"
    np.testing.assert_allclose(weights, drawn[: weights.shape[0], : weights.shape[1]], atol=6e-4)


def _write_the_reference(run) -> None:
    """The first reference in place of the run's first output, which is no text of words yet."""
    translations, vocabulary = run.translations("test"), core_models.load(run.folder).target_vocabulary
    reference = translations.test_set.references[0]
    tokens = [*vocabulary.pieces(vocabulary.encode([reference])[0]), "</s>"]
    for name, first in (
        ("hypotheses.txt", reference), ("details.jsonl", json.dumps({**translations.details[0], "tokens": tokens}))
    ):  # fmt: skip
        path = translations.folder / name
        _, *others = path.read_text(encoding="utf-8").splitlines()
        path.unlink()  # it may be linked to that of other tests
        path.write_text("".join(f"{line}\n" for line in (first, *others)), encoding="utf-8")


def test_words_of_the_reference_are_shaded_by_the_gold_alignment(demo_runs):
    truth = truths(runs_of(demo_runs, "transformer")[0], "test")[0]
    weights = shading(open_page("attention", runs=RUNS), GOLD, "reference")
    linked = {(source, target) for target, source in np.argwhere(weights)}
    assert linked == truth.links


def test_a_pronoun_belongs_to_its_antecedent_in_the_sentence_where_that_stands(demo_runs):
    translations = runs_of(demo_runs, "transformer")[0].translations("test")
    number, pronoun = next(
        (number, record["pronouns"][0]) for number, record in enumerate(translations.truth) if record["pronouns"]
    )
    given = sentence_lines(open_page("beam_trees", runs=RUNS, sentence=str(number)))
    shaded = next(s for s in given["shadings"] if s["name"] == PRONOUN)
    before = given["lines"][shaded["on"]]
    assert before["words"] == translations.test_set.sources[number + pronoun["antecedent"]["sentence"]].split()
    assert before["side"] == "", "a word of another sentence cannot be selected"
    assert shaded["weights"][pronoun["source"]][pronoun["antecedent"]["word"]] == 1


def test_a_word_of_the_url_is_framed_in_every_figure_of_its_text():
    none = frames(open_page("attention", runs=RUNS))
    assert len(none) == 2
    assert not any(none)
    at = open_page("attention", runs=RUNS, **{"source-word": "1", "target-word": "0"})
    assert sentence_lines(at)["selected"] == {"source": 1, "target": 0}
    for chart, shapes in zip(charts(at), frames(at), strict=True):
        maps = sum(trace["type"] == "heatmap" for trace in chart["data"])
        assert len(shapes) == 2 * maps, "a row and a column of each map"


@pytest.mark.parametrize("word", ["-1", "x", "1e999", "²", "9999999999"])
def test_a_word_that_is_no_number_selects_nothing(word):
    assert sentence_lines(open_page("attention", runs=RUNS, **{"source-word": word}))["selected"] == {}


def test_another_sentence_has_no_selected_word_and_the_next_page_has_the_same_one():
    at = open_page("attention", runs=RUNS, **{"source-word": "1"})
    at.number_input(key="sentence").set_value(3).run()
    assert sentence_lines(at)["selected"] == {}
    assert not any(frames(at))
    assert "source-word" not in at.query_params


@pytest.mark.parametrize(
    ("page", "fixture", "side", "slider"),
    [("routing", "routed_run", "source", "position"), ("past_future", "guided_run", "target", "step")],
)
@pytest.mark.slow
def test_a_slider_along_a_text_follows_the_selected_word(page, fixture, side, slider, runs_root, request):
    run = request.getfixturevalue(fixture)
    shutil.copytree(run.folder, runs_root / "one")
    at = open_page(page, runs=["one"], **{f"{side}-word": "1"})
    assert at.select_slider(key=slider).value == "1", "of tokens that are words"
    at.session_state["_selected-words"] = ("test", 0), {}
    assert at.run().select_slider(key=slider).value in ("mean", "all")
