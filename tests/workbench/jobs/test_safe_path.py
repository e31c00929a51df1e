"""Nothing of ours is imported from the current folder, which may hold what somebody else left there."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.workbench.app.app_server import serving
from workbench.jobs import queue, safe_path, state_folder

# Of Python, of what is imported for every command, and of what is imported for some.
NAMES = ("tokenize", "json", "struct", "yaml", "torch", "numpy", "pydantic", "streamlit", "workbench", "sitecustomize")
SECONDS = 60.0


@pytest.fixture
def hostile(tmp_path, monkeypatch) -> Path:
    """A current folder of modules that say when they were imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name + ' '!r})\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv(state_folder.HOME, str(tmp_path / "state"))
    return folder


def _imported(folder: Path) -> str:
    file = folder.parent / "imported"
    return file.read_text() if file.exists() else ""


def _run(*words: str, **environment: str) -> subprocess.CompletedProcess:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    return subprocess.run(words, env=kept | environment, capture_output=True, text=True, timeout=250)


def test_the_current_folder_of_this_test_would_be_imported_from(hostile):
    _run(sys.executable, "-m", "json.tool")
    assert _imported(hostile), "else the others show nothing"


@pytest.mark.parametrize("command", ["translate", "resume", "trace"])
def test_a_command_imports_nothing_from_there(hostile, demo_runs, command):
    """One that begins itself again, for the allocator, and one that does not; both load a model."""
    missing = "nowhere" if command == "resume" else str(demo_runs / "demo" / "transformer")
    words = [command, missing, *(["--test", "none"] if command != "resume" else [])]
    done = _run(sys.executable, "-P", "-m", "workbench.cli", *words)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert _imported(hostile) == ""


@pytest.mark.slow
def test_training_and_the_grid_s_workers_import_nothing_from_there(hostile, tmp_path, demo_runs):
    data = str(demo_runs / "demo" / "data")
    settings = ["--config", "max_steps=1", "--config", "batch_tokens=64", "--device", "cpu"]
    words = ["train", "transformer:preset=tiny", "--data", data, "--out", str(tmp_path / "run"), *settings]
    done = _run(sys.executable, "-P", "-m", "workbench.cli", *words)
    assert done.returncode == 0, done.stderr
    assert _imported(hostile) == ""


@pytest.mark.parametrize("path", ["", os.pathsep, ".", f"relative{os.pathsep}"])
@pytest.mark.slow
def test_a_job_and_what_it_hands_on_import_nothing_from_there(hostile, tmp_path, monkeypatch, path):
    """Also where an entry of PYTHONPATH means the current folder, as in `export PYTHONPATH=$PYTHONPATH:/mine`."""
    (hostile / "relative").symlink_to(hostile)
    monkeypatch.setenv("PYTHONPATH", path)
    root = tmp_path / "runs"
    root.mkdir()
    first, second = queue.start(root, ["resume", str(root / "nowhere")]), queue.start(root, ["demo", "--help"])
    until = time.monotonic() + SECONDS
    while {first.state, second.state} & {*queue.ACTIVE}:
        assert time.monotonic() < until, (first.log, second.log)
        time.sleep(0.05)
    assert (first.exit_code, second.current.state) == (2, "done")
    assert _imported(hostile) == ""


@pytest.mark.slow
def test_the_app_imports_nothing_from_there(hostile):
    with serving(hostile) as server:
        assert server.status("/", {}) == 200
    assert _imported(hostile) == ""


def test_what_a_process_starts_in_its_turn_is_safe_too_and_own_folders_stay(monkeypatch, tmp_path):
    own = str(tmp_path / "mine")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", own, "src", "."]))
    environment = safe_path.environment(MORE="1")
    assert environment["MORE"] == environment["PYTHONSAFEPATH"] == "1"
    entries = environment["PYTHONPATH"].split(os.pathsep)
    assert own in entries
    assert all(map(os.path.isabs, entries))


@pytest.mark.parametrize("words", [("-m", "workbench.cli"), ("-P", "-m", "workbench.cli")])
def test_started_by_a_module_s_name_the_command_itself_drops_the_folder(tmp_path, demo_runs, monkeypatch, words):
    """What Python loads before our first line cannot be helped; what a command loads later can."""
    (tmp_path / "torch.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    done = _run(
        sys.executable,
        *words,
        "trace",
        str(demo_runs / "demo" / "transformer"),
        "--test",
        "none",
        PYTHONPATH=os.pathsep,
    )
    assert done.returncode == 2, done.stderr
    assert "imported from" not in done.stderr
