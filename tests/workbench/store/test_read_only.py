"""An app for reading only: whatever a page, a page's plug-in or a request does, the runs stay as they are."""

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from analyses.npz_cache import write_arrays
from core_models.files import atomic_files
from tests.kinds import sampled
from tests.workbench.app.app_server import serving
from tests.workbench.views.app_pages import charts, open_page, texts
from workbench import cli
from workbench.export import collection
from workbench.figures.spec import Recipe
from workbench.jobs import processes, queue
from workbench.store import external, read_only, segment_annotations
from workbench.store import rating_studies as rating
from workbench.store.runs import list_runs


@pytest.fixture
def shown(copied_runs, monkeypatch) -> Path:
    """A runs folder of one's own that an app shows for reading only, nothing of it kept in memory."""
    monkeypatch.setenv("WORKBENCH_RUNS", str(copied_runs))
    runs = list_runs(copied_runs)
    rating.create(copied_runs, "study", runs[:2], "test", 3, 1, False)
    collection.add(collection.file_of(copied_runs), _recipe(copied_runs))
    for kept in ("scores", "known_scores", "adequacy"):  # to be computed again, and not to be kept
        for run in runs:
            shutil.rmtree(run.folder / kept, ignore_errors=True)
    monkeypatch.setenv(read_only.READ_ONLY, "1")
    return copied_runs


def _recipe(root: Path) -> Recipe:
    names = [run.name for run in list_runs(root)][:2]
    return Recipe(drawing="scores", runs=names, test="test")


def _state(root: Path) -> dict[str, tuple[int, int]]:
    found = {str(path): path.lstat() for path in root.rglob("*")}
    return {path: (about.st_size, about.st_mtime_ns) for path, about in found.items()}


def test_every_writer_of_the_workbench_refuses_and_nothing_is_started(shown, tmp_path):
    before = _state(shown)
    study = rating.open_study(shown, "study")
    run = list_runs(shown)[0]
    refused = (
        lambda: queue.start(shown, ["demo", "--runs", str(shown)]),
        lambda: queue.Job(tmp_path, shown, "t", ("demo",), 0, 0.0).cancel(),
        lambda: processes.begun("true", tmp_path / "log", os.environ, "").__enter__(),
        lambda: rating.save(study, "me", {}),
        lambda: rating.create(shown, "other", [run], "test", 3, 1, False),
        lambda: collection.clear(collection.file_of(shown)),
        lambda: segment_annotations.save(shown, "test", "a.txt", b"x\n" * 30, 30),
        lambda: external.import_content(shown, "new", b"x\n" * 30, "a.txt", run.translations("test").test_set),
    )
    for change in refused:
        with pytest.raises(read_only.ReadOnlyError, match="started with --read-only"):
            change()
    assert not (tmp_path / "log").exists()
    assert _state(shown) == before


def test_beneath_them_the_interpreter_refuses_every_write_below_the_runs(shown, tmp_path, monkeypatch):
    read_only.protect(shown)
    (tmp_path / "link").symlink_to(shown)  # to read from there is to change nothing
    shutil.copyfile(next(shown.rglob("config.yaml")), tmp_path / "copy")
    some = next(path for path in shown.rglob("config.yaml"))
    before = _state(shown)
    changes = (
        lambda: atomic_files.write_atomic(shown / "a", "x"),
        lambda: atomic_files.write_atomic(tmp_path / "link" / "a", "x"),
        lambda: write_arrays(shown / "a.npz"),
        lambda: some.open("a"),
        lambda: os.open(os.fsencode(some), os.O_WRONLY),
        lambda: os.open(some, os.O_RDWR),
        lambda: some.write_text(""),
        lambda: some.unlink(),
        lambda: some.rename(tmp_path / "a"),
        lambda: (tmp_path / "outside").rename(shown / "a"),
        lambda: (shown / "a").mkdir(),
        lambda: (shown / "a").symlink_to(tmp_path),
        lambda: some.chmod(0),
        lambda: os.truncate(some, 0),
        lambda: shutil.rmtree(some.parent),
        lambda: shutil.copyfile(some, shown / "a"),
    )
    (tmp_path / "outside").touch()
    for change in changes:
        with pytest.raises(OSError, match="started with --read-only"):
            change()
    assert _state(shown) == before
    (tmp_path / "elsewhere").write_text("other folders are no business of ours")
    monkeypatch.delenv(read_only.READ_ONLY)
    (shown / "a").touch()


@pytest.mark.parametrize(
    "page",
    sampled(["start", "scores", "adequacy", "sentences", "jobs", "rating", "basket", "beam_trees"], every=2),
)
def test_pages_show_what_is_there_and_leave_it_as_it_is(shown, page):
    before = _state(shown)
    at = open_page(page, runs=["demo/transformer", "demo/future-cost-1"])
    assert not at.error, [error.value for error in at.error]
    if page in ("scores", "adequacy", "beam_trees"):
        assert charts(at)
    if page in ("jobs", "rating"):
        assert read_only.WHY in texts(at)
    changing = ("Add to collection", "Run now", "Build the demo", "Clear", "Remove", "Up", "Down", "Create study")
    offered = [button for button in at.button if button.label.startswith(changing)]
    assert all(button.disabled for button in offered)
    assert offered or page not in ("scores", "basket", "beam_trees")
    assert _state(shown) == before


def test_what_a_page_lacks_says_why_it_is_not_made(shown, monkeypatch):
    monkeypatch.delenv(read_only.READ_ONLY)
    shutil.rmtree(shown / "demo" / "future-cost-2" / "traces")
    monkeypatch.setenv(read_only.READ_ONLY, "1")
    at = open_page("future_cost", runs=["demo/future-cost-2"])
    (button,) = [button for button in at.button if button.label == "Run now"]
    assert (button.disabled, button.help) == (True, read_only.WHY)


def test_results_of_ratings_are_shown(shown):
    at = open_page("rating", runs=["demo/transformer"], rating="Results")
    assert not at.error
    assert any("nobody has begun" in text for text in texts(at))


@pytest.mark.slow
def test_the_server_takes_nothing_in(tmp_path):
    with serving(tmp_path, "--read-only") as server:
        assert server.status("/") == 200
        assert server.status("/_stcore/stream", server.own) == 101
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            answer = server.ask("/_stcore/upload_file/session/file", {"Origin": server.address}, method)
            assert (answer.status, "--read-only" in answer.text) == (403, True)


def test_it_goes_on_with_no_job_and_builds_no_demo(tmp_path, monkeypatch):
    monkeypatch.delenv(read_only.READ_ONLY, raising=False)
    told = CliRunner().invoke(cli.app, ["app", "--runs", str(tmp_path), "--read-only", "--demo"])
    assert told.exit_code == 2
    assert "leave one of them out" in told.output
