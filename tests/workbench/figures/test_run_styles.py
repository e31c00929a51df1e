"""A run has one color, dash and marker for good, whatever is chosen beside it and whatever comes and goes."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.figures import run_styles
from workbench.figures.request import Request, looks, styles
from workbench.plotting import theme
from workbench.store import read_only
from workbench.store.runs import Run

pytestmark = pytest.mark.long

SYSTEMS = ("transformer", "rnnsearch", "gdr", "future-cost-1", "future-cost-2", "em-routing")
NAMES = st.one_of(
    st.sampled_from([f"{folder}/{system}" for folder in ("demo", "mine") for system in SYSTEMS]),
    st.text("abc-", min_size=1, max_size=3).map("mine/{}".format),
)


@pytest.fixture(autouse=True)
def _runs_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "none"))


def _runs(root: Path, names) -> list[Run]:
    return [Run(root / name, name) for name in names]


def _pairs(shown) -> list[tuple[str, str]]:
    return [(style.colour, style.marker) for style in shown.values()]


@settings(deadline=None)
@given(st.lists(st.lists(NAMES, min_size=1, max_size=6), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_a_run_keeps_its_look_in_any_choice_and_however_the_folder_changes(tmp_path_factory, arrivals, chance):
    root, seen = tmp_path_factory.mktemp("runs"), {}
    for present in arrivals:  # those of earlier arrivals that are not among them have been removed
        run_styles.keep(root, present)
        chosen = _runs(root, dict.fromkeys(present))
        shown = looks(chosen)
        assert {name: seen.get(name, style) for name, style in shown.items()} == shown
        seen |= shown
        assert len(set(_pairs(shown))) == len(shown)
        some = chance.sample(chosen, chance.randint(1, len(chosen)))
        assert looks(some) == {run.name: seen[run.name] for run in some}
        request = Request((some[0],), palette_runs=tuple(chosen))
        assert list(styles(request).values()) == [seen[some[0].name]]


@settings(deadline=None)
@given(st.lists(NAMES, unique=True), st.lists(NAMES, unique=True))
def test_the_order_of_runs_has_no_effect_and_lines_are_shared_only_when_all_are_taken(first, second):
    shuffled = random.Random(0).sample(second, len(second))
    lines = theme.with_lines(second, theme.with_lines(first, {}))
    assert lines == theme.with_lines(shuffled, theme.with_lines(first[::-1], {}))
    taken = Counter((theme.style_on_line(name, line).colour, line) for name, line in lines.items())
    for color in {color for color, _ in taken}:
        counts = [taken[color, line] for line in range(len(theme.LINES))]
        assert max(counts) - min(counts) <= 1


def test_more_runs_of_a_color_than_lines_still_differ_where_they_are_chosen_together(tmp_path):
    names = [f"{place:02}/transformer" for place in range(2 * len(theme.LINES))]
    run_styles.keep(tmp_path, names)
    shown = looks(_runs(tmp_path, [names[0], names[len(theme.LINES)], names[1]]))
    assert len(set(_pairs(shown))) == 3
    assert shown[names[0]] == looks(_runs(tmp_path, names[:1]))[names[0]]


def test_a_name_alone_gives_the_color_and_a_lone_run_looks_as_before():
    for name in ("demo/transformer", "demo/future-cost-2", "mine/of-my-own"):
        (line,) = theme.with_lines([name], {}).values()
        assert theme.style_on_line(name, line) == theme.style_of(name.rpartition("/")[2])


def test_runs_of_a_folder_can_be_told_apart_without_color():
    exhibits = [
        "exhibits-documents/document-transformer", "exhibits-documents/qcn-reg", "exhibits/coverage",
        "exhibits/dynamic-routing", "exhibits/em-routing", "exhibits/future-cost-1", "exhibits/future-cost-2",
        "exhibits/gdr-bow-bca", "exhibits/pfrnn-loss", "exhibits/rnnsearch", "exhibits/transformer",
    ]  # fmt: skip
    before = theme.with_lines(exhibits, {})
    demo = ["demo/transformer", "demo/rnnsearch", "demo/future-cost-1", "demo/future-cost-2"]
    lines = theme.with_lines(demo, before)
    assert {name: lines[name] for name in before} == before
    for folder in ("exhibits/", "exhibits-documents/", "demo/"):
        of_folder = [line for name, line in lines.items() if name.startswith(folder)]
        assert len(set(of_folder)) == len(of_folder)
    for name in ("transformer", "future-cost-1", "future-cost-2"):
        assert theme.style_on_line(name, lines[f"exhibits/{name}"]) == theme.style_of(name)


def test_commands_know_the_run_by_its_folder_and_exhibits_by_their_name(tmp_path, monkeypatch):
    run_styles.keep(tmp_path, ["demo/transformer", "exhibits/transformer", "mine/transformer"])
    by_page = looks(_runs(tmp_path, ["demo/transformer", "exhibits/transformer", "mine/transformer"]))
    assert len(set(_pairs(by_page))) == 3
    by_command = looks([Run(tmp_path / "mine" / "transformer", "transformer")])
    assert by_command["transformer"] == by_page["mine/transformer"]
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    unpacked = Run(tmp_path.parent / "cache" / "exhibits" / "transformer", "exhibits/transformer")
    assert looks([unpacked])[unpacked.name] == by_page[unpacked.name]
    checkpoint = replace(_runs(tmp_path, ["mine/transformer"])[0], name="mine/transformer@100", step="100")
    assert run_styles.lines_of([checkpoint]) == {}


def test_read_only_the_look_lasts_as_long_as_the_process_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv(read_only.READ_ONLY, "1")
    run_styles.keep(tmp_path, ["a/transformer"])
    first = looks(_runs(tmp_path, ["a/transformer"]))
    run_styles.keep(tmp_path, ["0/transformer", "a/transformer"])
    both = looks(_runs(tmp_path, ["0/transformer", "a/transformer"]))
    assert both["a/transformer"] == first["a/transformer"]
    assert len(set(_pairs(both))) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("broken", ["{", "[]", '{"version": 1, "lines": {"mine/gdr": 99, "mine/qcn": true}}'])
def test_a_broken_file_is_as_none_and_is_written_anew(tmp_path, broken):
    file = tmp_path / run_styles.FILE
    file.write_text(broken)
    runs = _runs(tmp_path, ["mine/gdr"])
    assert run_styles.lines_of(runs) == {}
    run_styles.keep(tmp_path, ["mine/gdr"])
    assert json.loads(file.read_text())["lines"] == run_styles.lines_of(runs)
