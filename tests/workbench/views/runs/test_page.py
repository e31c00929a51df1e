"""Runs: the table says how far each run is; selecting rows is choosing runs."""

import shutil

import pytest
from sacrebleu.metrics import BLEU

from tests.workbench.views.app_pages import codes, open_page, runs_of
from workbench.evaluation import bleu_cache, scoring
from workbench.evaluation import run_table as overview
from workbench.store import read_only
from workbench.store.runs import open_run
from workbench.views.runs import table as run_table


def test_the_table_says_how_far_each_run_is_and_its_score(with_demo):
    table = open_page("runs").dataframe[0].value.set_index("run")
    assert list(table.index) == ["demo/future-cost-1", "demo/future-cost-2", "demo/transformer"]
    row = table.loc["demo/transformer"]
    assert (row["step"], row["of"], row["state"], row["data"]) == (6, "6 steps", "trained", "demo")
    (run,) = runs_of(with_demo, "transformer")
    losses = [event["main_loss"] for event in run.events() if event["event"] == "valid"]
    assert row["dev_loss"] == pytest.approx(losses[-1])
    found = run.translations("test")
    assert row["bleu"] == pytest.approx(BLEU().corpus_score(found.hypotheses, [found.test_set.references]).score)


def test_scores_of_a_large_test_set_are_shown_as_far_as_they_are_known(with_demo, monkeypatch):
    """Three runs of 30 sentences, of which two are too many to count at once: their command is offered."""
    monkeypatch.setattr(overview, "MOST_SEGMENTS", 59)
    runs = runs_of(with_demo, "transformer", "future-cost-1", "future-cost-2")
    for run in runs:
        bleu_cache.SCORES.path(run, "test").unlink()
    at = open_page("runs")
    assert at.dataframe[0].value["bleu"].isna().all()
    folders = " ".join(sorted(str(run.folder) for run in runs))
    assert f"workbench evaluate {folders} --test test --metrics bleu" in codes(at)
    scores = [scoring.statistics(run, run.translations("test"), "bleu").total for run in runs]
    assert open_page("runs").dataframe[0].value.set_index("run")["bleu"].to_dict() == {
        run.name: score for run, score in zip(runs, scores, strict=True)
    }
    for run in runs[1:]:
        bleu_cache.SCORES.path(run, "test").unlink()
    table = open_page("runs").dataframe[0].value.set_index("run")["bleu"]
    assert (table[runs[0].name], table.isna().sum()) == (scores[0], 2)
    scoring.statistics(runs[1], runs[1].translations("test"), "bleu")
    at = open_page("runs")  # one is left, which is counted in a moment
    assert not at.dataframe[0].value["bleu"].isna().any()
    assert not any("evaluate" in code for code in codes(at))


def test_a_known_score_is_of_the_texts_as_they_are(copied_runs):
    (run,) = runs_of(copied_runs, "transformer")
    score = bleu_cache.known(run, "test")
    assert score == scoring.statistics(run, run.translations("test"), "bleu").total
    hypotheses = run.folder / "translations" / "test" / "hypotheses.txt"
    hypotheses.write_bytes((run.folder / "translations" / "test" / "references.txt").read_bytes())
    assert bleu_cache.known(run, "test") is None
    assert scoring.statistics(run, run.translations("test"), "bleu").total == pytest.approx(100)
    assert bleu_cache.known(run, "test") == pytest.approx(100)
    bleu_cache.SCORES.path(run, "test").write_text('{"bleu": "x"')
    assert bleu_cache.known(run, "test") is None
    assert bleu_cache.known(run, "another") is None


def test_chosen_runs_have_a_line_of_their_own_colour(with_demo):
    table = open_page("runs", runs=["demo/transformer", "demo/future-cost-2"]).dataframe[0].value.set_index("run")
    assert "%23000000" in table.loc["demo/transformer", "line"]
    assert "%23E69F00" in table.loc["demo/future-cost-2", "line"]
    assert not isinstance(table.loc["demo/future-cost-1", "line"], str)


def test_a_new_row_does_not_move_the_selection_to_another_run(with_demo):
    runs = ["demo/transformer"]
    before = open_page("runs", runs=runs).dataframe[0]
    shutil.copytree(with_demo / "demo" / "future-cost-1", with_demo / "a-new-run")
    after = open_page("runs", runs=runs).dataframe[0]
    assert len(after.value) == len(before.value) + 1
    assert after.proto.id != before.proto.id, "rows are selected by their places in a table of this identity"
    assert open_page("runs", runs=runs).dataframe[0].proto.id == after.proto.id


def test_selecting_rows_chooses_at_most_six_runs(monkeypatch):
    import streamlit as st

    state = {"table": {"selection": {"rows": list(range(8))}}}
    monkeypatch.setattr(st, "session_state", state)
    run_table.select("table", [f"run-{number}" for number in range(9)])
    assert state["runs"] == [f"run-{number}" for number in range(6)]


def _import(at, name: str, content: bytes):
    at.text_input(key="import-name").set_value(name)
    at.file_uploader(key="import-file").upload("mine.txt", content, "text/plain")
    next(button for button in at.button if button.label == "Import").click().run()
    return [error.value.replace("\\", "") for error in at.error]


def test_translations_are_imported_from_a_file_for_the_test_set_of_a_run(with_demo):
    at = open_page("runs")
    test_set = runs_of(with_demo, "transformer")[0].translations("test").test_set
    assert at.selectbox(key="import-test-set").value == ("demo/transformer", "test")
    errors = _import(at, "mine", b"a line\n")
    assert len(errors) == 1
    assert "test has 30 lines but mine.txt has 1" in errors[0]
    assert _import(at, "mine", "".join(f"{line}\n" for line in test_set.references).encode()) == []
    assert "outside/mine is there" in at.success[0].value.replace("\\", "")
    assert at.multiselect(key="runs").value[-1] == "outside/mine"
    table = at.dataframe[0].value.set_index("run")
    assert (table.loc["outside/mine", "state"], table.loc["outside/mine", "bleu"]) == ("outside", pytest.approx(100))
    assert open_run(with_demo / "outside" / "mine").translations("test").test_set == test_set
    assert "already" in _import(at, "mine", b"x\n" * 30)[0]


def test_a_file_to_import_must_be_chosen(with_demo):
    at = open_page("runs")
    next(button for button in at.button if button.label == "Import").click().run()
    assert [error.value.replace("\\", "") for error in at.error] == ["Choose a file with the translations."]


def test_nothing_is_imported_where_nothing_may_be_written(with_demo, monkeypatch):
    monkeypatch.setenv(read_only.READ_ONLY, "1")
    at = open_page("runs")
    assert all(button.disabled for button in at.button if button.label == "Import")
    (popover,) = [one for one in at.get("popover") if one.proto.popover.label == "Import translations"]
    assert popover.proto.popover.disabled
