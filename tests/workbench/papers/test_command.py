"""`workbench experiment papers`: the list, a paper's tables as printed, the checks, and a paper that is not there."""

import sys

import pytest
from typer.testing import CliRunner

from workbench import cli
from workbench.cli.shared import print_table
from workbench.papers.load import library

pytestmark = pytest.mark.long


def _printed(*arguments: str) -> list[str]:
    found = CliRunner().invoke(cli.app, ["experiment", "papers", *arguments])
    assert found.exit_code == 0, f"{found.output}\n{found.exception!r}"
    return found.stdout.splitlines()


def test_the_list_has_every_table_of_every_paper():
    listed = [tuple(line.split("\t")[:3:2]) for line in _printed()[1:]]
    assert listed == [(name, table.id) for name, paper in library().items() for table in paper.tables]


def test_the_tables_of_a_paper_are_printed_digit_by_digit():
    lines = _printed("zheng-2018")
    assert lines[0].startswith("table-1b: ")
    (row,) = (line.split("\t") for line in lines if line.startswith("2 + FRNN"))
    scores = ["36.70", "37.81", "38.59", "35.10", "32.60", "36.16", "1.03"]
    assert row == ["2 + FRNN (GRU-o)", "frnn-gru-o", *scores]


def test_checks_can_be_those_of_one_paper():
    everything, one = _printed("--checks"), _printed("zheng-2019", "--checks")
    assert one[0] == everything[0]
    assert one[1:] == [line for line in everything if line.startswith("zheng-2019\t")]
    assert len(one) == 1 + len(library()["zheng-2019"].checks)


def test_a_paper_that_is_not_there_is_refused_with_the_nearest_name(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["workbench", "papers", "zeng-2018"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "there is no paper 'zeng-2018'; did you mean 'zheng-2018'?" in capsys.readouterr().err


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize(
    ("paper", "name"), [("zheng-2018", "table-2"), ("zheng-2018", "table-3"), ("zheng-2019", "table-1")]
)
def test_a_narrow_terminal_shows_every_number_whole(capsys, monkeypatch, paper, name, width):
    table = library()[paper].table(name)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(table.printed())
    said = capsys.readouterr().out
    assert all(line.endswith(("│", "┤", "┩", "┘", "┓", "┃")) for line in said.splitlines()), "the last column is there"
    shown = set(said.replace("│", " ").split())
    for row in table.rows:
        assert {str(value) for value in row.values.values()} <= shown, row.key
