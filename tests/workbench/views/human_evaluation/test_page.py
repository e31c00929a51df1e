"""Human rating: the form names no system, goes on where one stopped, and results come on asking only."""

import json

import pytest

from tests.workbench.views.app_pages import charts, codes, open_page, runs_of, switch, texts
from workbench.app.components import figure_view
from workbench.figures.from_spec import request_of
from workbench.figures.spec import Recipe
from workbench.store import rating_studies as rating
from workbench.store.rating_studies import Mark
from workbench.views.human_evaluation import tables as rating_tables

NAMES = ["transformer", "future-cost-1", "future-cost-2"]


@pytest.fixture
def study(with_demo) -> rating.Study:
    return rating.create(with_demo, "blind", runs_of(with_demo, *NAMES), "test", sentences=3)


def _fill(at, quality: int) -> None:
    for control in at.main.button_group:
        if control.key and control.key.endswith("-quality"):
            control.set_value(quality)


def _texts_to_mark(at) -> dict[str, dict]:
    """What the browser is given of each source whose words can be marked, by the letter of its translation."""
    given = [json.loads(element.proto.json) for element in at.get("bidi_component")]
    return {text["others"][0]["label"]: text for text in given if "others" in text}


def _mark(at, letter: str, **positions: list) -> None:
    """What clicks on words report."""
    at.session_state[_texts_to_mark(at)[letter]["key"]] = {"positions": positions}


def _save(at):
    return next(button for button in at.button if button.label == "Save and next").click().run()


def test_without_a_study_the_page_says_how_to_begin_one(with_demo):
    at = open_page("rating")
    assert any(code.startswith("workbench rating new NAME --run") for code in codes(at))
    at = open_page("rating", rating="New study")
    at.text_input[-1].set_value("first")
    next(button for button in at.button if button.label == "Create study").click().run()
    assert not at.error
    study = rating.open_study(with_demo, "first")
    assert len(study.items) == 30
    assert set(study.systems) == {f"demo/{name}" for name in NAMES}


def test_the_form_shows_translations_under_letters(study, with_demo):
    at = open_page("rating", rater="ann")
    kept = rating.open_study(with_demo, "blind")
    item = kept.items[0]
    given = _texts_to_mark(at)
    assert {letter: text["others"][0]["text"] for letter, text in given.items()} == {
        letter: text or "(empty)" for letter, text in kept.translations_by_letter("ann", item).items()
    }
    assert all(text["words"] == item.words for text in given.values())
    assert not any(name in str(given) for name in NAMES)
    keys = [control.key for control in at.main.button_group]
    assert not any(name in key for key in keys if key for name in NAMES)


def test_nothing_names_a_run_while_one_rates(study, with_demo):
    """Neither the sidebar nor the page nor the URL, whatever the URL asked for; the choice is there again after it."""
    chosen = ["demo/future-cost-2", "demo/transformer"]
    at = open_page("rating", rater="ann", runs=[*chosen, "demo/gone"], baseline="demo/future-cost-2")
    for asked in ("", "Rate", "rate"):
        if asked:
            at = open_page("rating", rater="ann", runs=chosen, rating=asked)
        shown = [str(element.value) for element in at.main if hasattr(element, "value")]
        shown += [str(element.value) for element in at.sidebar if hasattr(element, "value")]
        shown += [element.proto.body for element in at.get("html")] + [str(dict(at.query_params))]
        assert not any(name in text for text in shown for name in NAMES), shown
        assert not at.sidebar.multiselect
        assert any("Sentence 1 of 3" in text for text in texts(at))
    at = open_page("scores", runs=chosen)
    switch(at, "rating").run()
    assert not at.sidebar.multiselect
    switch(at, "scores").run()
    assert at.sidebar.multiselect(key="runs").value == chosen


def test_a_rating_is_kept_and_the_rater_goes_on_there(study, with_demo):
    at = open_page("rating", rater="ann")
    _save(at)
    assert "Give every translation a quality" in at.warning[0].value
    _fill(at, 4)
    _mark(at, "A", under=[2, 0], over=[])
    _save(at)
    assert any("Sentence 2 of 3" in text for text in texts(at))
    kept = rating.open_study(with_demo, "blind")
    given = rating.marks(kept, "ann")[kept.items[0].sentence]
    assert given["A"] == Mark(4, (), (0, 2))
    assert set(given) == set(kept.translations_by_letter("ann", kept.items[0]))

    again = open_page("rating", rater="ann")
    assert any("Sentence 2 of 3" in text for text in texts(again))
    for _ in range(2):
        _fill(again, 2)
        _save(again)
    assert "All sentences are rated" in again.success[0].value


def test_results_come_on_asking(study, with_demo):
    entered = rating.enter(study, "ann")
    for item in entered.items:
        rating.save(
            entered, "ann", {item.sentence: {letter: Mark(3) for letter in entered.translations_by_letter("ann", item)}}
        )
    at = open_page("rating", rating="Results")
    assert any("ann has rated 3" in text for text in texts(at))
    assert not charts(at)
    assert not at.main.dataframe
    at.toggle(key="unblind").set_value(True).run()
    assert charts(at)
    scores = next(table.value for table in at.main.dataframe if "measure" in table.value)
    assert set(scores["system"]) == {f"demo/{name}" for name in NAMES}
    assert (scores.loc[scores["measure"] == "quality", "score"] == 3).all()


def test_whatever_page_draws_a_study_draws_it_anew_when_ratings_come_in(study, with_demo):
    entered = rating.enter(study, "ann")
    runs = tuple(f"demo/{name}" for name in NAMES)
    request = request_of(Recipe(drawing="human-rating", runs=runs, options={"study": "blind"}), with_demo)
    for quality in (2, 5):
        given = {letter: Mark(quality) for letter in entered.translations_by_letter("ann", entered.items[0])}
        rating.save(entered, "ann", {entered.items[0].sentence: given})
        assert f"{quality}.00" in figure_view.drawn("human-rating", request).summary


def test_a_file_of_ratings_is_brought_in_once(study):
    filled = rating_tables.form(study, "ann").assign(quality="2").to_csv(index=False).encode()
    at = open_page("rating", rating="Results")
    at.file_uploader(key="ratings-blind").upload("ann.csv", filled, "text/csv").run()
    sentence = study.items[0].sentence
    assert {mark.quality for mark in rating.marks(study, "ann")[sentence].values()} == {2}
    better = {letter: Mark(5) for letter in rating.marks(study, "ann")[sentence]}
    rating.save(study, "ann", {sentence: better})  # rated anew, while the file stands in its box
    at.toggle(key="unblind").set_value(True).run()
    assert rating.marks(study, "ann")[sentence] == better


def test_marks_of_an_earlier_rating_stay_where_no_word_is_clicked(study):
    entered = rating.enter(study, "ann")
    earlier = Mark(1, over=(0, 1), under=(1, 2))  # the second word both
    sentence = study.items[0].sentence
    for item in study.items:
        letters = entered.translations_by_letter("ann", item)
        rating.save(entered, "ann", {item.sentence: dict.fromkeys(letters, earlier)})
    at = open_page("rating", rater="ann")
    assert _texts_to_mark(at)["A"]["positions"] == {"under": [1, 2], "over": [0, 1]}
    _fill(at, 5)
    _save(at)
    assert rating.marks(entered, "ann")[sentence]["A"] == Mark(5, earlier.over, earlier.under)


def test_positions_that_no_word_has_are_not_kept(study):
    at = open_page("rating", rater="ann")
    _fill(at, 3)
    _mark(at, "A", under=[-1, 1, 1000, "0", None], over="all")
    _save(at)
    assert rating.marks(study, "ann")[study.items[0].sentence]["A"] == Mark(3, (), (1,))


def test_a_name_that_cannot_be_kept_is_a_sentence(study):
    at = open_page("rating", rater="../ann")
    assert "is used as a file" in at.error[0].value.replace("\\", "")
