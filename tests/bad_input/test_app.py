"""The app given a URL that leads elsewhere, or runs that are not whole: a sentence on the page, and no exception."""

from __future__ import annotations

import shutil

import pytest

from tests.workbench.views.app_pages import open_page
from workbench.store.runs import list_runs


@pytest.mark.parametrize("where", ["../../etc", "../elsewhere/secret", "ABSOLUTE", "one/../../elsewhere/secret"])
def test_a_path_outside_the_runs_folder_cannot_be_had_by_the_url(run, tmp_path, monkeypatch, where):
    shutil.copytree(run, tmp_path / "elsewhere" / "secret")
    monkeypatch.setenv("WORKBENCH_RUNS", str(run.parent))
    asked = where.replace("ABSOLUTE", str(tmp_path / "elsewhere" / "secret"))
    at = open_page("scores", runs=[asked])
    assert at.sidebar.multiselect(key="runs").options == ["one"]
    assert at.sidebar.multiselect(key="runs").value == ["one"]
    assert any("There is no run" in warning.value.replace("\\", "") for warning in at.warning)


def test_a_link_that_somebody_put_among_the_runs_is_a_run(run, tmp_path):
    shutil.copytree(run, tmp_path / "elsewhere" / "large")
    (run.parent / "link").symlink_to(tmp_path / "elsewhere" / "large")
    assert {found.name: found.problem for found in list_runs(run.parent)} == {"link": None, "one": None}


def test_a_sentence_number_without_end_is_a_warning(run, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(run.parent))
    for number in ("9" * 5000, "1e999"):
        at = open_page("translate", sentence=number, beam=number, best=number)
        assert any("the default is shown" in warning.value for warning in at.warning)
        assert at.sidebar.number_input(key="sentence").value == 0


def test_translations_of_another_length_are_a_sentence_on_the_page(run, monkeypatch):
    folder = run.rename(run.with_name("short")) / "translations" / "test"
    (folder / "hypotheses.txt").write_text("der\n", encoding="utf-8")
    monkeypatch.setenv("WORKBENCH_RUNS", str(run.parent))
    for page in ("scores", "lengths"):
        at = open_page(page)
        assert any("has 1 lines" in error.value.replace("\\", "") for error in at.error), page


def test_a_broken_summary_of_translations_stops_no_page(run, monkeypatch):
    shutil.copytree(run, run.with_name("broken"))
    (run.with_name("broken") / "translations" / "test" / "meta.json").write_text("[1]", encoding="utf-8")
    monkeypatch.setenv("WORKBENCH_RUNS", str(run.parent))
    for page in ("start", "runs", "scores"):
        at = open_page(page, runs=["one", "broken"])
        assert at.sidebar.selectbox(key="test").value == "test"
