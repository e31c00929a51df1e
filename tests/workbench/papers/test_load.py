"""The papers' files: all of them load, name systems and figures that there are, and a slip is refused by its place."""

import re

import pytest

from core_models.resources import data_folder
from core_models.settings import ConfigError
from core_models.system_catalogue import catalogue
from workbench.figures.registry import load as drawings
from workbench.papers.load import library, load

FOLDER = data_folder() / "papers"
PAPERS = {"dou-2019": "DLA", "duan-2020": "FC", "yang-2019": "QCN", "zheng-2018": "PFRNN", "zheng-2019": "GDR"}
# The names that command line, catalogue, files and figures share; NAME+aol is one that was trained towards adequacy.
SYSTEMS = {*catalogue(), "rnnsearch+aol", "transformer+aol"}
SMALL = """
[paper]
title = "T"
authors = ["A"]
year = 2020
venue = "V"
name = "S"
[[table]]
id = "table-1"
what = "scores"
columns = [{ key = "dev", label = "Dev" }, { key = "test", label = "Test" }]
[[table.row]]
key = "ours"
label = "Ours"
values = { dev = 39.10, test = 40 }
[[claim]]
id = "gain"
where = "abstract"
value = 0.90
what = "gain"
[[check]]
id = "gain"
what = "the gain"
printed = "claim/gain"
recompute = "[table-1/ours/test] - [table-1/ours/dev]"
agrees = true
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str, name: str = "small-2020"):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_every_file_is_a_paper_of_the_library():
    assert {name: paper.heading.name for name, paper in library().items()} == PAPERS
    assert [path.stem for path in sorted(FOLDER.iterdir())] == list(library())


@pytest.mark.parametrize("name", PAPERS)
def test_it_names_systems_and_figures_that_there_are(name):
    paper = library()[name]
    rows = [row for table in paper.tables for row in table.rows]
    named = [row.system for row in rows] + [claim.system for claim in paper.claims]
    named += [system for case in paper.cases for system in case.systems]
    assert {system.partition(":")[0] for system in named if system} <= SYSTEMS
    assert {table.drawing for table in paper.tables if table.drawing} <= set(drawings())


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_cited_is_no_number_of_its_own(name):
    """A row of another paper says of which: by authors and year."""
    cited = [row.cited for table in library()[name].tables for row in table.rows if row.cited]
    assert all(re.fullmatch(r".*\b(19|20)\d\d[a-z]?\b.*", text) for text in cited)


def test_a_row_with_an_average_has_all_that_is_averaged():
    averaged = [(table, row) for paper in library().values() for table in paper.tables for row in table.rows]
    averaged = [(table, row) for table, row in averaged if "average" in row.values]
    assert len(averaged) >= 22  # the twelve systems of Zheng 2018 and the ten of Zheng 2019
    for table, row in averaged:
        units = {column.key: column.unit for column in table.columns}
        parts = {key for key, unit in units.items() if unit == units["average"]}
        assert len(parts) > 2
        assert parts <= set(row.values), f"{table.id}, {row.key}"


@pytest.mark.parametrize("name", PAPERS)
def test_a_column_has_the_measure_that_its_unit_says(name):
    """A Meteor and a difference are no measure of ours."""
    for column in (column for table in library()[name].tables for column in table.columns):
        kind = column.unit.partition(",")[0]
        assert (column.measure == "bleu") == (kind == "BLEU")
        assert (column.measure or "").startswith("parameters") == kind.startswith("millions")
        assert column.measure is None or not kind.startswith(("Meteor", "difference"))


def test_a_row_is_relative_to_the_baseline_above_it():
    table = library()["duan-2020"].table("table-1")
    found = {row.key: table.baseline_of(row) for row in table.rows}
    assert found["vaswani-big"] is None
    assert [found[key].key for key in ("transformer", "model-2", "model-2-big")] == [
        "transformer", "transformer", "transformer-big",
    ]  # fmt: skip


def test_a_number_keeps_the_digits_it_is_printed_with(written):
    table = load(written(SMALL)).table("table-1")
    assert str(table.value("ours", "dev")) == "39.10"
    (row,) = table.printed().to_dict("records")
    assert row == {"row": "Ours", "system": "", "settings": "", "Dev": "39.10", "Test": "40", "cited": ""}
    coverage = library()["zheng-2018"].table("table-3").printed().set_index("row").loc["Coverage"]
    assert coverage["Over-Trans Δ"] == "-11.8"
    assert library()["zheng-2018"].table("table-3").printed().set_index("row").loc["Base", "Over-Trans Δ"] == ""


SLIPS = {
    "an unknown key of a row": (
        'label = "Ours"',
        'lable = "Ours"',
        "table table-1: row ours: unknown key 'lable'; did ",
    ),
    "an unknown key at the top": ("[[claim]]", "[[clam]]", "unknown key 'clam'; did you mean 'claim'?"),
    "an unknown key of a check": ("agrees = true", "agree = true", "check gain: unknown key 'agree'; did you mean"),
    "a key that stands twice": ("year = 2020", "year = 2020\nyear = 2021", "not readable as TOML: Cannot overwrite"),
    "a value of no column": ("dev = 39.10", "def = 39.10", "row ours: there is no column 'def'; did you mean 'dev'?"),
    "a word for a number": ("test = 40", 'test = "high"', "row ours: values.test: input should be a valid decimal"),
    "an infinite number": ("test = 40", "test = inf", "row ours: values.test: input should be a finite number"),
    "a reference to no row": (
        "[table-1/ours/test]",
        "[table-1/our/test]",
        "check gain: there is no row of table-1 'our'",
    ),
    "a reference to no claim": ('"claim/gain"', '"claim/gian"', "there is no claim 'gian'; did you mean 'gain'?"),
    "a word for a reference": ('"claim/gain"', '"gain"', "check gain: 'gain' is no reference; write TABLE/ROW/COLUMN"),
    "a check unexplained": ("agrees = true", "agrees = false", "a check that does not agree says why: give a note"),
    "an agreeing contradiction": ("agrees = true", 'agrees = true\nknown = "A13"', "cannot be the known contradiction"),
    "a table that is none": ("[[claim]]", "[claim]", "claim must be a list of entries; write [[claim]] before each"),
    "no such baseline": (
        'what = "scores"',
        'what = "scores"\nbaselines = ["our"]',
        "baselines: there is no row 'our'; did you mean 'ours'?",
    ),
    "a speed without a baseline": (
        'label = "Dev" }',
        'label = "Dev", measure = "train-speed" }',
        "column dev: it is measured against a baseline; name its row in `baselines`",
    ),
    "an unknown measure": ('label = "Dev" }', 'label = "Dev", measure = "blue" }', "columns.measure"),
    "no heading": ("[paper]", "[[case]]", "paper: title is missing"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_refused_naming_file_and_field(written, slip):
    right, wrong, message = SLIPS[slip]
    assert right in SMALL
    with pytest.raises(ConfigError) as refused:
        load(written(SMALL.replace(right, wrong, 1)))
    assert message in str(refused.value)
    assert all("small-2020.toml: " in line for line in str(refused.value).splitlines())


@pytest.mark.parametrize(
    ("again", "what"),
    [
        ("[[claim]]" + SMALL.partition("[[claim]]")[2].partition("[[check]]")[0], "claim 'gain'"),
        ("[[check]]" + SMALL.partition("[[check]]")[2], "check 'gain'"),
        ("[[table]]" + SMALL.partition("[[table]]")[2].partition("[[claim]]")[0], "table 'table-1'"),
    ],
)
def test_a_name_that_stands_twice_is_refused(written, again, what):
    with pytest.raises(ConfigError, match=f"the {what} is there twice"):
        load(written(SMALL + again))


def test_another_paper_is_referred_to_by_its_file(written, tmp_path):
    other = SMALL.replace('"claim/gain"', '"small-2020:claim/gain"')
    written(SMALL)
    written(other, "other-2021")
    assert list(library(tmp_path)) == ["other-2021", "small-2020"]
    lost = written(other.replace("small-2020:", "smal-2020:"), "other-2021").parent
    library.cache_clear()
    with pytest.raises(ConfigError, match=r"other-2021.toml: check gain: there is no paper 'smal-2020'; did you mean"):
        library(lost)
