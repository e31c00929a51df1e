"""Long work in parts: what is done is not done again, a failure stops no other part, and a limit ends one with all of
its processes. The parts are real commands."""

import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.paths import ROOT
from workbench.experiments.parts import LARGEST_LOG, Part, outcome, pack, run_parts, table


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _counting(name: str, folder: Path, then: str = "", **options) -> Part:
    """A part that writes a line into a file of its name each time it is called, and then does something."""
    code = f"open({str(folder / f'{name}.called')!r}, 'a').write('x'); {then}"
    return Part(name, "counts its calls", [_python(code)], 1, **options)


def _calls(name: str, folder: Path) -> int:
    path = folder / f"{name}.called"
    return len(path.read_text()) if path.exists() else 0


def _run(parts: list[Part], folder: Path, limit: float = 20, seconds: float = 60) -> dict[str, str]:
    said: list[str] = []
    found = run_parts(parts, folder, limit, seconds, said.append)
    assert [one.name for one in found] == [part.name for part in parts]
    return {one.name: one.state for one in found}


def _ended(number: int) -> bool:
    """Whoever takes over an orphan may need a moment to let it go."""
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_a_failure_stops_no_other_part_and_what_is_done_is_not_done_again(tmp_path):
    parts = [
        _counting("first", tmp_path),
        _counting("broken", tmp_path, "print('what went wrong', flush=True); raise SystemExit(3)"),
        _counting("last", tmp_path),
    ]
    for _ in range(2):
        assert _run(parts, tmp_path) == {"first": "done", "broken": "failed", "last": "done"}
    assert [_calls(part.name, tmp_path) for part in parts] == [1, 2, 1]
    assert outcome(parts[1], tmp_path).reason == "exit code 3: what went wrong"


def test_all_commands_of_a_part_are_tried_and_a_missing_one_fails(tmp_path):
    commands = [["/no/such/program"], _python("print('second')")]
    assert _run([Part("part", "", commands, 1)], tmp_path) == {"part": "failed"}
    log = (tmp_path / "logs/part.log").read_text()
    assert "No such file" in log
    assert "second" in log


def test_what_failed_waits_until_all_else_was_tried(tmp_path):
    order = tmp_path / "order"

    def part(name: str, code: int) -> Part:
        return Part(name, "", [_python(f"open({str(order)!r}, 'a').write({name!r}); raise SystemExit({code})")], 1)

    run_parts([part("a", 1)], tmp_path, 20, 60, lambda line: None)
    run_parts([part("a", 0), part("b", 0)], tmp_path, 20, 60, lambda line: None)
    assert order.read_text() == "aba"


@pytest.mark.slow
def test_a_limit_ends_a_part_with_the_processes_it_started_and_the_next_call_goes_on(tmp_path):
    """The part's command keeps how far it is, as trainings and benchmarks do, and starts a process that would go on."""
    kept, child = tmp_path / "kept", tmp_path / "child"
    code = (
        "import pathlib, subprocess, sys, time; "
        f"kept = pathlib.Path({str(kept)!r}); "
        "steps = len(kept.read_text()) if kept.exists() else 0; "
        "kept.open('a').write('x'); "
        "held = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"pathlib.Path({str(child)!r}).write_text(str(held.pid)); "
        "steps or time.sleep(60); held.kill(); held.wait()"
    )
    parts = [Part("long", "", [_python(code)], 1), _counting("next", tmp_path)]
    began = time.monotonic()
    assert _run(parts, tmp_path, limit=8) == {"long": "cut off", "next": "done"}
    assert time.monotonic() - began < 30
    assert _ended(int(child.read_text()))
    assert outcome(parts[0], tmp_path).failures == 0
    assert _run(parts, tmp_path) == {"long": "done", "next": "done"}
    assert kept.read_text() == "xx"
    assert outcome(parts[0], tmp_path).seconds >= 6


def test_being_cut_off_is_a_failure_of_a_part_that_begins_anew(tmp_path):
    part = _counting("laws", tmp_path, "import time; time.sleep(60)", resumes=False)
    assert _run([part], tmp_path, limit=1) == {"laws": "cut off"}
    assert outcome(part, tmp_path).failures == 1


def test_a_call_begins_no_part_without_time_for_it(tmp_path):
    parts = [_counting("first", tmp_path), _counting("second", tmp_path)]
    assert _run(parts, tmp_path, seconds=0) == {"first": "not begun", "second": "not begun"}
    assert _calls("first", tmp_path) == 0


def test_a_damaged_state_counts_as_not_begun(tmp_path):
    part = _counting("part", tmp_path)
    (tmp_path / "parts").mkdir()
    for damaged in ("", "[]", '{"name": "part", "state": "perhaps"}', '{"state": "done", "more": 1}'):
        (tmp_path / "parts/part.json").write_text(damaged)
        assert outcome(part, tmp_path).state == "not begun"
    assert _run([part], tmp_path) == {"part": "done"}
    assert json.loads((tmp_path / "parts/part.json").read_text())["state"] == "done"


def test_a_table_has_a_line_a_part(tmp_path):
    parts = [_counting("one", tmp_path), _counting("another", tmp_path, "raise SystemExit(3)")]
    lines = table(run_parts(parts, tmp_path, 20, 60, lambda line: None)).split("\n")
    assert [line.split()[:2] for line in lines] == [["part", "state"], ["one", "done"], ["another", "failed"]]


def test_tables_states_and_the_ends_of_logs_are_packed_but_no_runs(tmp_path):
    _run([_counting("part", tmp_path)], tmp_path)
    (tmp_path / "speed.csv").write_text("a,b\n")
    (tmp_path / "logs/long.log").write_bytes(b"a" * LARGEST_LOG + b"the end")
    (tmp_path / "runs/grid").mkdir(parents=True)
    (tmp_path / "runs/grid/table.csv").write_text("large")
    archive = tmp_path / "all.tar.gz"
    for _ in range(2):
        assert pack(tmp_path, archive) == archive.stat().st_size
    with tarfile.open(archive) as packed:
        assert packed.getnames() == ["logs/long.log", "logs/part.log", "parts/part.json", "speed.csv"]
        end = packed.extractfile("logs/long.log").read()
    assert len(end) == LARGEST_LOG
    assert end.endswith(b"the end")


def test_the_script_lists_its_parts_and_refuses_others(tmp_path):
    def script(*said: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHON": sys.executable}
        command = [str(ROOT / "data/experiments/on-a-gpu.sh"), str(tmp_path), *said]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    names = [line.split()[0] for line in script("--list").stdout.splitlines()]
    assert names[0] == "laws-stepping"
    assert "train-controlled" in names
    assert "train-manpages" not in names
    with_files = [line.split()[0] for line in script("--list", "--data", str(tmp_path)).stdout.splitlines()]
    to_look_at = {"demo", "exhibits", "exhibits-documents", "tatoeba-en-de"}
    same_trainings = {"scale-width-256-seeds-4-to-6"}  # as in scale-width-256-rate-0.001
    grids = {path.stem for path in (ROOT / "data/experiments").glob("*.yaml")} - to_look_at - same_trainings
    assert {name.removeprefix("train-") for name in with_files if name.startswith("train-")} == grids
    refused = script("no-such-part")
    assert refused.returncode
    assert "no part no-such-part" in refused.stderr
