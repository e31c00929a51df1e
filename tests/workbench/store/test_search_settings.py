"""Compared translations that were searched for differently are named; what changes speed alone is not."""

import json
import shlex

import pytest

from core_models.files.atomic_files import atomic_replace
from tests.workbench.views.app_pages import open_page, runs_of
from workbench import cli
from workbench.store.search_settings import search_note

NAMES = ["transformer", "future-cost-1", "future-cost-2"]


@pytest.fixture
def change(with_demo):
    """Changes what meta.json says of one run's translations of the test set, in a file of its own."""

    def changed(name, search=(), without="", **more):
        path = with_demo / "demo" / name / "translations" / "test" / "meta.json"
        meta = json.loads(path.read_text())
        kept = {key: value for key, value in {**meta["search"], **dict(search)}.items() if key != without}
        with atomic_replace(path) as file:
            file.write_text(json.dumps({**meta, "search": kept, **more}))

    return changed


def test_the_same_search_with_other_batches_needs_no_note(with_demo, change):
    assert search_note(runs_of(with_demo, *NAMES), ["test"]) == ""
    change("future-cost-2", {"batch_tokens": 77, "compile": True, "n_best": 2})
    assert search_note(runs_of(with_demo, *NAMES), ["test"]) == ""


def test_a_setting_that_came_later_had_its_default(with_demo, change):
    change("transformer", without="penalty_offset")
    assert search_note(runs_of(with_demo, *NAMES), ["test"]) == ""
    change("transformer", {"penalty_offset": 1})
    assert "penalty_offset 1" in search_note(runs_of(with_demo, *NAMES), ["test"])


def test_compare_and_the_page_scores_name_the_settings_that_differ_and_whose_they_are(with_demo, change, capsys):
    beam = runs_of(with_demo, "transformer")[0].translations("test").meta["search"]["beam"]
    change("future-cost-2", {"beam": beam + 8})
    note = search_note(runs_of(with_demo, *NAMES), ["test"])
    assert f"(beam {beam}: transformer, future-cost-1; beam {beam + 8}: future-cost-2)" in note
    folders = [str(with_demo / "demo" / name) for name in NAMES]
    cli.app(shlex.split("compare --test test") + folders, standalone_mode=False)
    assert note in " ".join(capsys.readouterr().err.split())
    captions = [caption.value.replace("\\", "") for caption in open_page("scores").caption]
    assert any(note in caption for caption in captions)


def test_another_engine_is_another_search(with_demo, change):
    change("transformer", engine="ctranslate2")
    note = search_note(runs_of(with_demo, "transformer", "future-cost-1"), ["test"])
    assert "(engine ctranslate2: transformer; engine workbench: future-cost-1)" in note
