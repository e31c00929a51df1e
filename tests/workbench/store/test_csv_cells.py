"""CSV whose cells are no formulas: what begins like one is a text, numbers stay numbers, and all of it reads back."""

import csv
import io
import shutil

import numpy as np
import pandas as pd
import pytest

from core_models.text.parallel import write_lines
from tests.bad_input.conftest import done as done  # a fixture: a command that ends well
from workbench.store import rating_studies as rating
from workbench.store.csv_cells import csv_text, read_cell
from workbench.store.runs import open_run
from workbench.views.human_evaluation import tables as rating_tables

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
TEXTS = [f"{quotes}{start}{rest}" for start in STARTS for rest in ("", "1+1", "cmd|' /C calc'!A0")
         for quotes in ("", "'", "''")] + ["", "'", "''", "it's", "a=b", " =1", "0", "'s"]  # fmt: skip


def _cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def _is_formula(cell: str) -> bool:
    return cell.startswith(STARTS)


def test_no_cell_begins_like_a_formula_and_every_text_reads_back():
    table = pd.DataFrame({"=text": TEXTS, "kind": pd.Categorical(TEXTS), "string": pd.array(TEXTS, dtype="string")})
    header, *rows = _cells(csv_text(table))
    assert not any(map(_is_formula, [*header, *(cell for row in rows for cell in row)]))
    assert [read_cell(cell) for cell in header] == list(table)
    assert [[read_cell(cell) for cell in row] for row in rows] == [[text] * 3 for text in TEXTS]


def test_numbers_and_what_is_missing_are_as_pandas_writes_them():
    table = pd.DataFrame({
        "float": [-1.5, np.nan, np.inf], "int": [-1, 0, 1], "bool": [True, False, True],
        "nullable": pd.array([-3, None, 3], dtype="Int64"), "mixed": [-2, "a", None],
        "time": pd.to_datetime(["2026-01-01"] * 3),
    })  # fmt: skip
    before = table.copy()
    assert csv_text(table) == table.to_csv(index=False, lineterminator="\n")
    assert csv_text(table, "%.1f") == table.to_csv(index=False, lineterminator="\n", float_format="%.1f")
    pd.testing.assert_frame_equal(table, before)


@pytest.fixture
def hostile(copied_runs):
    """A run whose name and translations begin like formulas."""
    folder = copied_runs / "demo" / "=1+1"
    shutil.move(copied_runs / "demo" / "transformer", folder)
    made = folder / "translations" / "test" / "hypotheses.txt"
    lines = made.read_text(encoding="utf-8").splitlines()
    write_lines(made, [f"{STARTS[row % 4]}HYPERLINK(1)" for row, _ in enumerate(lines)])
    return open_run(folder)


def test_what_commands_write_has_no_formulas(hostile, done, tmp_path):
    said = [done("analyze", "sentences", "--run", hostile.folder)]
    done("figure", "scores", "--run", hostile.folder, "--out", tmp_path / "scores.csv")
    said.append((tmp_path / "scores.csv").read_text(encoding="utf-8"))
    cells = [cell for text in said for row in _cells(text) for cell in row]
    written = [cell for cell in cells if _is_formula(cell)]
    assert not [cell for cell in written if not _is_number(cell)]
    assert {"'=1+1", "'=HYPERLINK(1)", "'@HYPERLINK(1)"} <= set(cells)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_a_form_of_ratings_has_no_formulas_and_comes_back(hostile, copied_runs, tmp_path):
    other = open_run(copied_runs / "demo" / "future-cost-1")
    study = rating.create(copied_runs, "mine", [hostile, other], "test", 5)
    form = rating_tables.form(study, "anna")
    assert any(map(_is_formula, form["translation"]))
    form["quality"] = 4
    file = tmp_path / "form.csv"
    file.write_text(csv_text(form), encoding="utf-8")
    assert not [cell for row in _cells(file.read_text(encoding="utf-8")) for cell in row if _is_formula(cell)]
    read = rating.read_table(file, file.name, rating_tables.FORM)
    assert [row["translation"] for row in read] == list(form["translation"])
    assert [row["source"] for row in read] == list(form["source"])
