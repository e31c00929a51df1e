"""Lists of many runs: each configuration is read once, and again only where its file has changed."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from core_models.settings import load_yaml
from workbench.benchmark.scale.runs import make_many_runs
from workbench.evaluation import run_table
from workbench.store.listing import listing
from workbench.store.runs import list_runs

pytestmark = pytest.mark.long

RUNS = 300
_OPENED: list[str] = []
_WATCHED: list[Path] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _WATCHED and event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(str(_WATCHED[-1])):
        _OPENED.append(arguments[0])


sys.addaudithook(_watch)  # for the life of the process: Python cannot take one away


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("many")
    make_many_runs(root, RUNS)
    return root


@pytest.fixture
def opened(many) -> Callable[[Callable[[], object]], list[str]]:
    """The files of the runs that are opened while something is done, by name below the runs folder."""

    def during(do: Callable[[], object]) -> list[str]:
        _OPENED.clear()
        _WATCHED.append(many)
        try:
            do()
        finally:
            _WATCHED.clear()
        return [Path(path).relative_to(many).as_posix() for path in _OPENED]

    return during


def _write_again(folder: Path, **changes: object) -> None:
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(content | changes), encoding="utf-8")


def test_a_list_opens_each_configuration_once_and_then_the_changed_one_alone(many, opened):
    def everything() -> None:
        run_table.runs_table(listing(many).runs, "test")
        assert {run.system for run in list_runs(many) if not run.problem} <= {"transformer", "other"}

    first = opened(everything)
    configurations = sorted(name for name in first if name.endswith("config.yaml"))
    assert configurations == sorted(f"{run.name}/config.yaml" for run in list_runs(many))
    assert len(configurations) == RUNS
    opened(everything)  # the scores that were counted the first time are known from now on
    assert opened(everything) == []
    _write_again(many / "experiment-0001" / "run-00123", system="other")
    again = opened(everything)
    assert {Path(name).parts[1] for name in again} == {"run-00123"}
    assert len([name for name in again if name.endswith("config.yaml")]) == 1
    found = {run.name: run for run in listing(many).runs}
    assert found["experiment-0001/run-00123"].system == "other"


def _break(folder: Path) -> None:
    (folder / "config.yaml").write_text("name: [unclosed", encoding="utf-8")


def _same_size_and_time(folder: Path) -> None:
    path = folder / "config.yaml"
    before = path.stat()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("seed:", "sede:"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a broken configuration": (_break, "not readable as YAML"),
    "a configuration of the same size and time": (_same_size_and_time, "did you mean 'seed'?"),
    "a vocabulary that went": (lambda folder: (folder / "vocabulary/source.model").unlink(), "source.model is missing"),
    "a run that became an outside one": (
        lambda folder: (folder / "config.yaml").write_text("kind: outside\nname: online\n", encoding="utf-8"),
        "",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_a_run_changes_its_place_in_the_list_and_back(many, change):
    do, problem = CHANGES[change]
    folder = many / "experiment-0002" / "run-00200"
    kept = shutil.copytree(folder, many.parent / f"{many.name}-kept", dirs_exist_ok=True)
    before = {run.name: run for run in listing(many).runs}
    name = folder.relative_to(many).as_posix()
    assert not before[name].problem
    do(folder)
    for found in (listing(many).runs, list_runs(many)):
        changed = {run.name: run for run in found}
        assert problem in (changed[name].problem or "")
        assert bool(problem) == bool(changed[name].problem)
        assert changed[name].outside == ("outside" in change)
        assert {one: run for one, run in changed.items() if one != name} == {
            one: run for one, run in before.items() if one != name
        }
    assert (name in {known.name for known in listing(many).known}) == (not problem)
    shutil.rmtree(folder)
    assert name not in {run.name for run in listing(many).runs}
    shutil.copytree(kept, folder)
    assert {run.name: run for run in listing(many).runs} == before
    assert not listing(many).runs[200].outside


def test_what_a_run_has_translated_is_looked_at_again_when_it_changes(many):
    name = "experiment-0000/run-00007"
    made = many / name / "translations"
    tests = {known.name: known.tests for known in listing(many).known}
    assert tests[name] == {"test": 1}
    shutil.copytree(made / "test", made / "other")
    assert {known.name: known.tests for known in listing(many).known}[name] == {"test": 1, "other": 1}
    table = run_table.runs_table(listing(many).runs, "other").set_index("run")
    assert table["tests"][name] == "other, test"
    assert table["bleu"].notna().sum() == 1
    shutil.rmtree(made / "other")
    assert {known.name: known.tests for known in listing(many).known} == tests


def test_training_that_goes_on_changes_its_row_alone(many):
    name = "experiment-0000/run-00009"
    before = run_table.runs_table(listing(many).runs, "test").set_index("run")
    with (many / name / "training.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event": "end", "step": 1100}\n')
    after = run_table.runs_table(listing(many).runs, "test").set_index("run")
    assert (after["step"][name], after["state"][name]) == (1100, "trained")
    assert after.drop(name).equals(before.drop(name))


YAML = {
    "deep brackets": "a: " + "[" * 100_000,
    "deep blocks": "- " * 100_000 + "a",
    "deep mappings": "{a: " * 50_000,
    "not closed": "a: [1, 2",
    "an alias of nothing": "a: *x",
    "an object": "a: !!python/object/apply:os.getcwd []",
    "a control character": "a: \x1b",
    "a date that is none": "a: 2020-13-45",
    "a tab": "a:\n\tb: 1",
}


@pytest.mark.parametrize("case", YAML)
def test_what_yaml_refuses_in_python_is_refused_in_c_in_the_same_words(case):
    """Text that is nested deep would end a process that composes it in C."""

    def refusal(read: Callable[[str], object]) -> str:
        with pytest.raises((yaml.YAMLError, ValueError, RecursionError)) as caught:
            read(YAML[case])
        return str(caught.value) if caught.type is not RecursionError else "RecursionError"

    assert refusal(load_yaml) == refusal(yaml.safe_load)
