"""The query string of a view: round trips, unknown keys, invalid values and their defaults."""

from itertools import pairwise
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.app import url_state as view
from workbench.app.url_state import ViewState, from_query
from workbench.store.listing import Known

SHELF = [
    Known("demo/future-cost-1", {"test": 30, "dev": 12}),
    Known("demo/transformer", {"test": 30}),
    Known("other/<b> & $x$=1", {"wmt": 5}),
]
NAMES = [run.name for run in SHELF]


def _query(view: ViewState) -> dict[str, list[str]]:
    """What the widgets of all pages write into the URL."""
    query = {"runs": list(view.runs), "test": [view.test], "sentence": [str(view.sentence)]}
    return {**query, "baseline": [view.baseline]}


@st.composite
def _views(draw) -> ViewState:
    runs = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    test = draw(st.sampled_from(view.tests(runs, SHELF)))
    baseline = draw(st.sampled_from(view.baselines(runs, test, SHELF)))
    sentence = draw(st.integers(0, view.sentences(runs, test, SHELF) - 1))
    return ViewState(view.baseline_first(runs, baseline), test, sentence, baseline)


@settings(deadline=None)
@given(_views())
def test_a_view_comes_back_from_its_query_and_from_a_link_of_it(wanted):
    assert from_query(_query(wanted), SHELF) == (wanted, [])
    assert from_query(parse_qs(urlencode(_query(wanted), doseq=True)), SHELF) == (wanted, [])


def test_no_query_is_the_experiment_of_the_first_run_with_its_transformer_as_the_baseline():
    found, warnings = from_query({}, SHELF)
    assert found == ViewState(("demo/transformer", "demo/future-cost-1"), "test", 0, "demo/transformer")
    assert warnings == []


@given(st.permutations(range(9)), st.sets(st.integers(0, 8), max_size=8), st.sets(st.integers(0, 8)))
def test_unfinished_runs_are_chosen_and_compared_with_only_where_nothing_else_is(order, unfinished, translated):
    """For any order of runs of one folder, one of them named after a baseline: defaults are finished runs."""
    names = ["transformer", *(f"system-{number}" for number in range(1, 9))]
    shelf = [
        Known(f"demo/{names[number]}", {"test": 3} if number in translated else {}, number not in unfinished)
        for number in order
    ]
    by_name = {run.name: run for run in shelf}
    found, _ = from_query({}, shelf)
    assert len(found.runs) <= view.MOST_RUNS
    assert all(by_name[name].finished for name in found.runs)
    assert found.baseline == found.runs[0]
    if any(by_name[name].tests for name in found.runs):
        assert by_name[found.baseline].tests, "what is compared with has been translated"
    everything = [run.name for run in shelf][: view.MOST_RUNS]
    chosen, _ = from_query({"runs": everything}, shelf)
    able = [by_name[name] for name in everything if by_name[name].tests] or [by_name[name] for name in everything]
    assert by_name[chosen.baseline].finished == any(run.finished for run in able)


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=view.MOST_RUNS, unique=True),
    st.lists(st.sampled_from("ABCDEFGH"), min_size=1, max_size=view.MOST_RUNS, unique=True),
)
def test_runs_that_are_added_take_the_places_of_the_last_but_never_of_the_baseline(runs, more):
    together = view.with_more(runs, more)
    assert together[0] == runs[0]
    assert len(together) == min(view.MOST_RUNS, len(runs) + len(more))
    kept = [run for run in together if run in runs]
    assert kept == runs[: len(kept)]
    assert together[len(kept) :] == more[: len(together) - len(kept)]


def test_unknown_keys_are_passed_over():
    assert from_query({"scheme": ["gdr"], "utm": ["x"]}, SHELF) == from_query({}, SHELF)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"runs": ["demo/transformr"]}, "no run 'demo/transformr' here; did you mean 'demo/transformer'?"),
        ({"test": ["nowhere"]}, "no test set 'nowhere'"),
        ({"baseline": ["other/<b> & $x$=1"]}, "no baseline"),
        ({"sentence": ["30"]}, "sentences 0 to 29"),
        ({"sentence": ["-1"]}, "no sentence '-1'"),
        ({"sentence": ["1e3"]}, "no sentence '1e3'"),
        ({"sentence": ["²"]}, "no sentence '²'"),
    ],
)
def test_what_cannot_be_had_is_said_and_the_default_is_shown(query, said):
    found, (warning,) = from_query(query, SHELF)
    assert said in warning
    assert found == from_query({}, SHELF)[0]


def test_of_known_and_unknown_runs_the_known_are_shown():
    found, (warning,) = from_query({"runs": ["gone", "demo/future-cost-1"]}, SHELF)
    assert found.runs == ("demo/future-cost-1",)
    assert warning == "There is no run 'gone' here; it is left out."


def test_an_empty_choice_of_runs_is_a_choice():
    assert from_query({"runs": [""]}, SHELF) == (ViewState(), [])


def test_the_first_six_of_more_runs_are_shown():
    many = [Known(f"run-{number}", {"test": 3}) for number in range(8)]
    found, (warning,) = from_query({"runs": [run.name for run in many]}, many)
    assert found.runs == tuple(run.name for run in many[:6])
    assert "8 runs" in warning


def test_without_runs_there_is_nothing_to_look_at():
    assert from_query({}, []) == (ViewState(), [])
    assert from_query({"runs": ["gone"], "sentence": ["3"]}, [])[0] == ViewState()


@given(st.integers(1, 400))
def test_surprises_visit_every_sentence_once_before_the_first_comes_again(count):
    order = [0]
    while (sentence := view.elsewhere(order[-1], count)) != order[0]:
        order.append(sentence)
    assert sorted(order) == list(range(count))
    if count > 10:
        assert all(count / 4 < abs(after - before) for before, after in pairwise(order))


def test_of_many_runs_those_with_a_page_of_their_own_are_shown_first():
    mechanisms = {"a": set(), "b": {"coverage"}, "c": {"dynamic_routing"}, "d": {"em_routing"}, "e": {"future_cost"},
                  "f": {"guided_capsules"}, "g": {"past_future_layers"}, "h": set()}  # fmt: skip
    known = [Known(f"grid/{name}", {"test": 3}, True, frozenset(own)) for name, own in mechanisms.items()]
    assert view.default_runs(known) == [f"grid/{name}" for name in "abdefg"]
    assert view.default_runs(known[:4]) == [f"grid/{name}" for name in "abcd"]


def test_imported_translations_alone_do_not_hide_other_runs():
    known = [Known("outside/online-a", {"test": 3}), Known("exhibits/transformer", {"test": 3})]
    assert view.default_runs(known) == ["exhibits/transformer"]
    assert view.default_runs(known[:1]) == ["outside/online-a"]
