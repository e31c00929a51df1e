"""Which runs and which baseline are shown unless told, and what a page offers whose runs lack what it shows."""

import os
import shutil
from pathlib import Path

import pytest

from tests.kinds import sampled
from tests.workbench.views.app_pages import charts, codes, open_page, runs_of, texts
from workbench.app import url_state
from workbench.app.frame import escape_markdown
from workbench.store.runs import Run, open_run


def shown(at) -> url_state.ViewState:
    return at.session_state["_frame"].view


@pytest.fixture(params=["translated before", "not translated"])
def unfinished(request, with_demo) -> Run:
    """A run in training that is named after a baseline and comes first by name."""
    folder = with_demo / "demo" / "rnnsearch"
    left_out = () if request.param == "translated before" else ("translations", "traces", "scores")
    shutil.copytree(with_demo / "demo" / "transformer", folder, ignore=shutil.ignore_patterns(*left_out))
    log = folder / "training.jsonl"
    *logged, end = log.read_text(encoding="utf-8").splitlines(keepends=True)
    assert '"event": "end"' in end
    log.unlink()
    log.write_text("".join(logged), encoding="utf-8")
    return open_run(folder)


def test_a_run_in_training_is_no_default(unfinished):
    assert not unfinished.finished
    at = open_page("scores")
    assert "demo/rnnsearch" in at.sidebar.multiselect(key="runs").options
    assert "demo/rnnsearch" not in shown(at).runs
    assert shown(at).baseline == "demo/transformer"
    assert not any("rnnsearch" in caption.value for caption in at.caption)


def test_a_run_in_training_that_is_chosen_is_called_so_and_is_not_the_baseline(unfinished):
    at = open_page("scores", runs=["demo/rnnsearch", "demo/future-cost-1", "demo/transformer"])
    assert any("Training has not ended" in one.value and "rnnsearch" in one.value for one in at.sidebar.caption)
    assert at.sidebar.selectbox(key="baseline").value == shown(at).baseline == "demo/transformer"


def test_the_sidebar_and_the_tests_of_a_page_have_one_baseline(unfinished):
    """Whatever the URL asks for: the sidebar names the run that differences are counted from."""
    translated = "test" in unfinished.tests()
    for wanted in ("demo/rnnsearch", "demo/future-cost-2", ""):
        asked = {"baseline": wanted} if wanted else {}
        at = open_page("scores", runs=["demo/rnnsearch", "demo/future-cost-1", "demo/future-cost-2"], **asked)
        baseline = at.sidebar.selectbox(key="baseline").value
        assert baseline == shown(at).baseline
        assert any(escape_markdown(f"Baseline: {baseline.removeprefix('demo/')}.") in one.value for one in at.caption)
        assert (baseline == wanted) == (bool(wanted) and (translated or wanted != "demo/rnnsearch"))
        refused = wanted == "demo/rnnsearch" and not translated
        assert any("cannot be the baseline" in one.value for one in at.warning) == refused


def test_a_run_that_ends_while_the_app_is_open_counts_as_finished(unfinished, with_demo):
    at = open_page("curves", runs=["demo/rnnsearch"])
    assert any("Training has not ended" in one.value for one in at.sidebar.caption)
    shutil.copy(with_demo / "demo" / "transformer" / "training.jsonl", unfinished.folder / "training.jsonl")
    at.run()
    assert not any("Training has not ended" in one.value for one in at.sidebar.caption)


@pytest.fixture
def many(with_demo) -> Path:
    """More finished runs than are shown at once, in the folder of the demo."""
    for number in range(url_state.MOST_RUNS):
        copied = with_demo / "demo" / f"copy-{number}"
        shutil.copytree(with_demo / "demo" / "future-cost-1", copied, copy_function=os.link)
    return with_demo


@pytest.mark.parametrize(
    ("page", "fixture", "system"),
    sampled(
        [
            ("past_future", "guided_run", "gdr-bow-bca"),
            ("routing", "routed_run", "em-routing"),
            ("content_states", "layered_run", "pfrnn-loss"),
        ]
    ),
)
@pytest.mark.slow
def test_a_page_shows_the_run_of_the_folder_that_has_what_the_chosen_ones_lack(page, fixture, system, many, request):
    run = request.getfixturevalue(fixture)
    shutil.copytree(run.folder, many / "demo" / system)
    name, test = f"demo/{system}", {"test": "test"}
    shown_first = ["demo/transformer", *(f"demo/copy-{number}" for number in range(url_state.MOST_RUNS - 1))]
    at = open_page(page, runs=shown_first, **test)
    assert any(name in text for text in texts(at))
    assert not any("train" in code for code in codes(at)), "what is there needs no training"
    assert charts(at)
    assert list(shown(at).runs) == shown_first, "the choice stays until the button is clicked"
    at.button(key="choose-instead").click().run()
    assert not at.exception
    assert charts(at)
    assert shown(at).runs == (*shown_first[:-1], name), "the last one gave way, the baseline stays"


def test_of_more_runs_than_are_shown_the_baseline_is_first(many):
    shutil.copytree(
        many / "demo" / "future-cost-1", many / "demo" / "bare", ignore=shutil.ignore_patterns("trees.*"),
        copy_function=os.link,
    )  # fmt: skip
    at = open_page("beam_trees", runs=["demo/bare"])
    (said,) = [text for text in texts(at) if "Shown instead: " in text]
    names = said.partition("Shown instead: ")[2].removesuffix(".").split(", ")
    assert names == ["demo/transformer", *(f"demo/copy-{number}" for number in range(url_state.MOST_RUNS - 1))]


def test_runs_of_other_texts_are_shown_alone(with_demo, guided_run):
    other = with_demo / "other" / "gdr-bow-bca"
    shutil.copytree(guided_run.folder, other)
    sources = other / "translations" / "test" / "sources.txt"
    lines = sources.read_text(encoding="utf-8").splitlines()
    sources.write_text("".join(f"{line}\n" for line in reversed(lines)), encoding="utf-8")
    at = open_page("past_future", runs=["demo/transformer"])
    at.button(key="choose-instead").click().run()
    assert shown(at).runs == ("other/gdr-bow-bca",)


def test_a_chosen_run_that_has_not_translated_the_test_set_is_to_translate_it(with_demo, guided_run):
    folder = with_demo / "demo" / "gdr-bow-bca"
    shutil.copytree(guided_run.folder, folder, ignore=shutil.ignore_patterns("translations", "traces"))
    at = open_page("past_future", runs=["demo/transformer", "demo/gdr-bow-bca"])
    assert codes(at) == [f"workbench translate {folder} --test test --save-beams"]


def test_without_any_such_run_a_page_says_how_to_make_one(with_demo):
    at = open_page("past_future", runs=["demo/transformer"])
    assert any("nor does any other run here" in text for text in texts(at))
    assert any("workbench train gdr-bow-bca" in code for code in codes(at))


def test_a_run_without_a_log_is_finished_once_it_has_weights(with_demo):
    run = runs_of(with_demo, "transformer")[0]
    (run.folder / "training.jsonl").unlink()
    assert run.finished
    run.weights.unlink()
    assert not run.finished
