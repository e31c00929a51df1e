"""Work dealt over the tasks of an array gives the bytes of one process, whatever is killed, missing or out of date."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from tests.workbench.evaluation.conftest import files_of, in_small_batches
from workbench import cli
from workbench.evaluation import scoring
from workbench.evaluation.dealt import Statistics, Task, Tracing, Translating, Work
from workbench.evaluation.translate import test_set as named_test_set
from workbench.evaluation.translate import trace_test, translate_test
from workbench.store.runs import Run, RunError, open_run

SEARCH = {"beam": 4, "n_best": 3}
TREES = Translating("test", tasks=3, trees=True, search=SEARCH)
KILLED = """
import os, signal, sys
renamed = []
def hear(event, arguments):
    if event == "os.rename" and ".jsonl" in str(arguments[0]):
        renamed.append(arguments)
        if len(renamed) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hear)
from workbench.evaluation.dealt import Task, Translating
Task()(Translating("test", tasks=2), sys.argv[1], sys.argv[2], 0)
"""


def _copy(run: Run) -> Run:
    return open_run(shutil.copytree(run.folder, run.folder.with_name("dealt")))


def _all(work: Work, run: Run) -> list[str]:
    """What the tasks of a work say, the last ones first."""
    return [Task()(work, run.reference, *call) for call in reversed(work.calls(run))]


def _shares(run: Run, kind: str = "translations") -> dict[str, int]:
    """The shares that are there, each with its time."""
    return {path.name: path.stat().st_mtime_ns for path in run.folder.glob(f"shares/{kind}/test/*/[0-9]*")}


def _translations(run: Run) -> dict[str, bytes]:
    return files_of(run.folder / "translations" / "test")


def _traces(run: Run) -> dict[str, bytes]:
    return files_of(run.folder / "traces" / "test")


def test_translations_trees_and_traces_are_those_of_one_process(batched_run):
    dealt = _copy(batched_run)
    made = translate_test(batched_run, *named_test_set(batched_run, "test"), trees=True, **SEARCH)
    said = _all(TREES, dealt)
    assert ["shares are still to be done" in line for line in said] == [True, True, False]
    assert said[-1] == f"{dealt.folder / 'translations' / 'test'}: done"
    assert {"details.jsonl", "trees.jsonl", "trees.npy"} <= _translations(dealt).keys()
    assert _translations(dealt) == _translations(batched_run)
    assert json.loads((dealt.folder / "translations/test/meta.json").read_text())["seconds"] > 0

    trace_test(batched_run, made, ["log_prob", "decoder.*"], range(1, 14))
    tracing = Tracing("test", tasks=2, names=["log_prob", "decoder.*"], sentences=range(1, 14))
    assert len(_all(tracing, dealt)) == 2
    assert {"log_prob.npy", "index.json", "forced.json"} < _traces(dealt).keys()
    assert _traces(dealt) == _traces(batched_run)

    assert _shares(dealt) == _shares(dealt, "traces") == {}, "they are gone once they are gathered"
    for work in (TREES, tracing):
        assert work.calls(dealt) == [], "what is done is not done again"
        before = work.shares(dealt).result.stat()
        assert work.do(dealt, work.shares(dealt).key, 1).endswith(": done"), "a task that is queued again afterwards"
        assert work.shares(dealt).result.stat() == before


@pytest.mark.slow
def test_documents_whose_translations_are_read_are_those_of_one_process(context_runs, tmp_path):
    alone = in_small_batches(context_runs[1], tmp_path / "han", 100)
    shutil.rmtree(alone.folder / "translations")
    dealt = _copy(alone)
    trace_test(alone, translate_test(alone, *named_test_set(alone, "test")), ["*"])
    _all(Translating("test", tasks=2), dealt)
    _all(Tracing("test", tasks=2), dealt)
    assert _translations(dealt) == _translations(alone)
    assert _traces(dealt) == _traces(alone)


@pytest.mark.slow
def test_a_task_that_is_killed_is_called_again_and_does_what_is_missing(batched_run):
    dealt, work = _copy(batched_run), Translating("test", tasks=2)
    (key, _), other = work.calls(dealt)
    killed = subprocess.run([sys.executable, "-c", KILLED, dealt.reference, key], capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (first,) = _shares(dealt).items()
    assert first[0].startswith("0000-of-")
    assert list(dealt.folder.glob("shares/translations/test/*/.*.part-*")), "what it was writing is not whole"
    assert work.calls(dealt) == [(key, 0), other]
    assert "are still to be done" in Task()(work, dealt.reference, key, 0)
    there = _shares(dealt)
    assert first in there.items()
    assert work.calls(dealt) == [other]
    assert replace(work, tasks=9).calls(dealt)[0] == (key, 1), "and with another number of tasks"

    removed = next(path for path in dealt.folder.glob("shares/translations/test/*/0002-*"))
    removed.unlink()
    assert Task()(work, dealt.reference, *other).endswith(
        "1 of " + first[0][8:12].lstrip("0") + " shares are still to be done, by other tasks"
    )
    assert work.calls(dealt) == [(key, 0)]
    assert {name: time for name, time in _shares(dealt).items() if name in there} == {
        name: time for name, time in there.items() if name != removed.name
    }
    assert Task()(work, dealt.reference, key, 0).endswith(": done")
    translate_test(batched_run, *named_test_set(batched_run, "test"))
    assert _translations(dealt) == _translations(batched_run)


def test_where_all_shares_are_there_one_task_gathers(batched_run):
    dealt, work = _copy(batched_run), Translating("test", tasks=2)
    _all(work, dealt)
    shutil.rmtree(dealt.folder / "translations")
    first, second = work.calls(dealt)
    Task()(work, dealt.reference, *first)
    kept = {path: path.read_bytes() for path in dealt.folder.glob("shares/translations/test/*/[0-9]*")}
    Task()(work, dealt.reference, *second)
    shutil.rmtree(dealt.folder / "translations")
    Task()(work, dealt.reference, *second)
    for path, content in kept.items():  # as if it had been killed before it gathered
        path.write_bytes(content)
    assert work.calls(dealt) == [first]
    Task()(work, dealt.reference, *first)
    translate_test(batched_run, *named_test_set(batched_run, "test"))
    assert _translations(dealt) == _translations(batched_run)


def test_shares_of_other_settings_or_weights_are_not_taken(batched_run):
    work, wider = Translating("test", tasks=2), Translating("test", tasks=2, search={"beam": 2})
    first, second = work.calls(batched_run)
    Task()(work, batched_run.reference, *first)
    assert len(wider.calls(batched_run)) == 2
    mine = batched_run.folder / "shares" / "translations" / "test" / ("0" * 16) / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert len({call[0] for each in (work, wider, replace(work, trees=True)) for call in each.calls(batched_run)}) == 3
    _all(wider, batched_run)
    assert batched_run.translations("test").meta["search"]["beam"] == 2
    assert _shares(batched_run) == {}, "those of the other search went with them"
    assert mine.is_file(), "what we did not make is left alone"

    Task()(work, batched_run.reference, *first)
    weights = {name: array + 0.01 for name, array in load_file(batched_run.weights).items()}
    save_file(weights, batched_run.weights)
    with pytest.raises(RunError, match="weights, texts or settings have changed since the array was submitted"):
        Task()(work, batched_run.reference, *second)
    dealt = _copy(batched_run)
    assert len(work.calls(dealt)) == 2
    _all(work, dealt)
    translate_test(batched_run, *named_test_set(batched_run, "test"))
    assert _translations(dealt)["details.jsonl"] == _translations(batched_run)["details.jsonl"]


def test_a_damaged_share_is_named_and_made_again_once_it_is_removed(batched_run):
    work = Translating("test", tasks=2)
    first, second = work.calls(batched_run)
    Task()(work, batched_run.reference, *first)
    path = next(path for path in batched_run.folder.glob("shares/translations/test/*/0000-*"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RunError, match=r"0000-of-.*this share cannot be read.*remove it, and give the same command"):
        Task()(work, batched_run.reference, *second)
    path.unlink()
    assert work.calls(batched_run) == [first]
    assert _all(work, batched_run)[-1].endswith(": done")

    tracing = Tracing("test", tasks=2, names=["log_prob"])
    first, second = tracing.calls(batched_run)
    Task()(tracing, batched_run.reference, *first)
    folder = next(path for path in batched_run.folder.glob("shares/traces/test/*/0000-*"))
    (folder / "index.json").write_text("[]")
    with pytest.raises(RunError, match=r"a share of traces is damaged: .*0000-of-.*remove its folder before"):
        Task()(tracing, batched_run.reference, *second)
    shutil.rmtree(folder)
    assert _all(tracing, batched_run)[-1].endswith(": done")
    nothing = Tracing("test", names=["no_such"])
    with pytest.raises(RunError, match="has no trace of the name no_such"):
        _all(nothing, batched_run)


def test_statistics_are_counted_where_translations_are_gathered(batched_run):
    metrics = ["bleu", "chrf"]
    counting, dealt = Statistics("test", metrics), _copy(batched_run)
    _all(Translating("test", tasks=2, metrics=metrics), dealt)
    assert counting.calls(dealt) == []
    translate_test(batched_run, *named_test_set(batched_run, "test"))
    assert counting.calls(batched_run) == [("", 0)]
    _all(counting, batched_run)
    assert counting.calls(batched_run) == []
    scored = [scoring.score_table([run], "test", metrics, 40).drop(columns="system") for run in (batched_run, dealt)]
    assert scored[0].equals(scored[1])


@pytest.mark.exhaustive
def test_commands_submit_an_array_and_the_same_command_again_finds_it_done(batched_run, monkeypatch):
    """submitit's own local executor: controller, pickle and logs are those of a cluster."""
    submitit = pytest.importorskip("submitit")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    dealt = _copy(batched_run)
    array = ["--launcher", "submitit", "--cluster", "local", "--tasks", "2", "--cpus", "1"]
    evaluate = ["evaluate", dealt.reference, "--metrics", "bleu,chrf", "--n-resamples", "40"]
    trace = ["trace", dealt.reference, "--arrays", "log_prob"]
    for command, result in ((evaluate, "translations/test/meta.json"), (trace, "traces/test/index.json")):
        done = CliRunner().invoke(cli.app, [*command, *array])
        assert done.exit_code == 0, done.output
        assert "2 tasks; if some fail, the same command again does what is missing" in done.output
        until = time.monotonic() + 200
        while not (dealt.folder / result).exists():
            assert time.monotonic() < until, [path.read_text() for path in dealt.folder.parent.glob(".jobs/*.err")]
            time.sleep(0.1)
    alone = CliRunner().invoke(cli.app, ["evaluate", batched_run.reference, *evaluate[2:]])
    until = time.monotonic() + 60
    while "all is done" not in (again := CliRunner().invoke(cli.app, [*evaluate, *array])).stdout:
        assert time.monotonic() < until, again.output
        time.sleep(0.5)
    assert again.stdout.replace("all is done\n", "").replace("dealt", "alone") == alone.stdout
    assert CliRunner().invoke(cli.app, ["trace", batched_run.reference, "--arrays", "log_prob"]).exit_code == 0
    assert _translations(dealt) == _translations(batched_run)
    assert _traces(dealt) == _traces(batched_run)
    call = (TREES, dealt.reference, "key", 3)
    queued = Task().checkpoint(*call)
    assert isinstance(queued, submitit.helpers.DelayedSubmission)
    assert queued.args == call
