"""Runs: the table says how far each run is; selecting rows is choosing runs."""

import pytest
from sacrebleu.metrics import BLEU

from tests.workbench.pages.app_pages import open_page, runs_of
from workbench.widgets import run_table


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


def test_chosen_runs_have_a_line_of_their_own_colour(with_demo):
    table = open_page("runs", runs=["demo/transformer", "demo/future-cost-2"]).dataframe[0].value.set_index("run")
    assert "%23000000" in table.loc["demo/transformer", "line"]
    assert "%23E69F00" in table.loc["demo/future-cost-2", "line"]
    assert not isinstance(table.loc["demo/future-cost-1", "line"], str)


def test_selecting_rows_chooses_at_most_six_runs(monkeypatch):
    import streamlit as st

    state = {"table": {"selection": {"rows": list(range(8))}}}
    monkeypatch.setattr(st, "session_state", state)
    run_table.select("table", [f"run-{number}" for number in range(9)])
    assert state["runs"] == [f"run-{number}" for number in range(6)]
