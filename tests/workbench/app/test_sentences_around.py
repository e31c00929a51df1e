"""Translate beside runs that read the sentences after one too: what is said of each, and what is not."""

import os
import shutil

import pytest

from tests.workbench.views.app_pages import open_page, texts
from workbench.evaluation.document_context import context_rows
from workbench.store.runs import list_runs


@pytest.fixture
def row(runs_root, demo_runs, context_runs, offline_run) -> int:
    """A sentence with three before it and two after, in a runs folder with a reader of those before, one of both, and
    the demo's Transformer."""
    for folder in (demo_runs / "demo" / "transformer", context_runs[0].folder, offline_run.folder):
        shutil.copytree(folder, runs_root / "demo" / folder.name, copy_function=os.link)
    test_set = offline_run.translations("test").test_set
    return next(row for row in range(len(test_set.sources)) if None not in context_rows(test_set, row, 3, 2))


def lines(run, row, before, after):
    sources = run.translations("test").test_set.sources
    return "\n".join([*sources[row - before : row], *sources[row + 1 : row + 1 + after]])


def test_the_field_holds_what_stands_before_alone(row, offline_run):
    at = open_page("translate", runs=["demo/san", "demo/transformer"], sentence=str(row), **{"with": "san"})
    assert at.text_area(key="before").placeholder == lines(offline_run, row, 2, 0)
    assert lines(offline_run, row, 2, 2) in texts(at)


def test_all_that_some_run_reads_is_shown(row, offline_run, runs_root):
    names = ["demo/qcn-reg", "demo/san", "demo/transformer"]
    assert {run.name for run in list_runs(runs_root)} == set(names)
    at = open_page("translate", runs=names, sentence=str(row), beam="1")
    assert lines(offline_run, row, 3, 2) in texts(at)
    captions = [caption.value.replace("\\", "") for caption in at.caption]
    assert "Around it (qcn-reg reads 3; san reads 4; transformer: single sentences):" in captions
