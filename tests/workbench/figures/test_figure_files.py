"""Every drawing of runs is a vector file on paper too, written by the command that its page prints."""

import shlex

import pytest

from tests.kinds import sampled
from tests.workbench.figures.test_drawing import CASES, SHORT
from workbench import cli
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.figures.spec import figure_command
from workbench.store.runs import open_run, short_names


def check_printed_command(name, request, tmp_path):
    """The command that a page prints draws the same series of the runs, and no bitmap."""
    names = short_names(request.runs).values()
    shown, words = set(draw(name, request).table.series), shlex.split(figure_command(name, request))
    assert words[:3] == ["workbench", "figure", name]
    words[words.index("--out") + 1] = str(tmp_path / "figure.svg")
    cli.app(words[1:], standalone_mode=False)
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "<image" not in drawn
    assert [series for series in names if series in shown and series not in drawn] == []


@pytest.mark.parametrize("name", sampled(CASES, every=3))
def test_the_printed_command_writes_what_the_page_shows_without_bitmaps(name, demo_runs, tmp_path):
    chosen, options, _, _ = CASES[name]
    runs = tuple(open_run(f"demo/{short}", demo_runs) for short in SHORT)[chosen]
    check_printed_command(name, Request(runs, sentence=4, options=options), tmp_path)
