"""The basket keeps what was asked for, whoever else writes; a bundle holds every format of it, or nothing."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
from pypdf import PdfReader
from typer.testing import CliRunner

from core_models.files.file_marks import MARK
from workbench import cli
from workbench.export import collection
from workbench.export.bundle import VENUES, width_at, write_bundle
from workbench.export.files import save, table_digest
from workbench.figures import from_spec, spec
from workbench.figures.from_spec import DrawnFigure
from workbench.figures.request import Request
from workbench.figures.spec import Recipe
from workbench.plotting import theme
from workbench.plotting.fonts import MissingGlyphs
from workbench.plotting.grammar import Axis, Figure, Line, Panel
from workbench.store.runs import RunError, open_run

CURVES = Recipe(drawing="training-curves", runs=("demo/transformer", "demo/future-cost-2"), test="test")
TREE = Recipe(drawing="beam-tree", runs=("demo/transformer",), sentence=4, options={"node_cap": 50}, width="page")
FORMATS = ("csv", "json", "pdf", "png", "svg", "tex")


def test_what_is_put_in_comes_out_in_its_order_after_a_restart(tmp_path):
    path = collection.file_of(tmp_path)
    others = [Recipe(drawing=f"figure {number}") for number in range(3)]
    for one in (CURVES, TREE, CURVES, *others):
        collection.add(path, one)
    assert collection.read(path) == [CURVES, TREE, *others]
    collection.move(path, others[0], -1)
    collection.move(path, CURVES, -1)
    collection.move(path, others[2], 5)
    assert collection.read(path) == [CURVES, others[0], TREE, others[1], others[2]]
    collection.replace(path, TREE, TREE.model_copy(update={"width": "column"}))
    collection.remove(path, CURVES)
    collection.remove(path, CURVES)
    assert [one.width for one in collection.read(path)] == ["", "column", "", ""]
    collection.clear(path)
    assert collection.read(path) == []


def test_a_recipe_of_a_request_is_the_request_again(demo_runs):
    runs = tuple(open_run(f"demo/{name}", demo_runs) for name in ("future-cost-1", "transformer"))
    options = {"steps": (1, 3), "pruned": True, "minimum_probability": 0.5}
    request = Request(runs, "test", 7, "demo/transformer", {**options, "node_cap": 400})
    made = spec.recipe_of("beam-diff", request)
    read = Recipe.model_validate_json(made.model_dump_json())
    assert read == made
    again = from_spec.request_of(read, demo_runs)
    assert replace(again, options={}) == replace(request, options={})
    assert again.options == {**options, "steps": [1, 3]}, "without the default"
    assert spec.recipe_of("scores", replace(request, options={})).sentence == 0, (
        "a figure of a whole test set shows no sentence"
    )


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    path = collection.file_of(tmp_path)

    def put_in(writer: int) -> None:
        for number in range(10):
            collection.add(path, Recipe(drawing=f"{writer}-{number}"))

    writers = [threading.Thread(target=put_in, args=(writer,)) for writer in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(one.drawing for one in collection.read(path)) == sorted(
        f"{w}-{n}" for w in range(3) for n in range(10)
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "it is not JSON"),
        ("[]", "no list of figures"),
        ('{"version": 1, "figures": [{"name": "x"}]}', "each with its recipe"),
        ('{"version": 2, "figures": []}', "its version is 2, not 1"),
        ('{"version": 1, "figures": [{"recipe": {"drawing": 3}}]}', "figure 1: drawing: input should be a valid"),
        ('{"version": 1, "figures": [{"recipe": {"drawing": "x", "run": "y"}}]}', "did you mean 'runs'"),
    ],
)
def test_another_file_is_refused_and_left_as_it_is(tmp_path, content, said):
    path = collection.file_of(tmp_path)
    path.write_text(content)
    with pytest.raises(RunError, match=said):
        collection.add(path, CURVES)
    assert path.read_text() == content


def test_a_runs_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "runs").write_text("no folder")  # root writes where permissions forbid it, but not into a file
    with pytest.raises(RunError, match=r"the figure collection cannot be kept here .*needs to write"):
        collection.add(collection.file_of(tmp_path / "runs"), CURVES)


@pytest.fixture(scope="module")
def drawn(demo_runs) -> list[DrawnFigure]:
    """Scores in two metrics, the second across the page."""
    asked = {"drawing": "scores", "runs": ("demo/transformer", "demo/future-cost-2")}
    wanted = (Recipe(**asked, options={"metrics": "bleu"}), Recipe(**asked, options={"metrics": "ter"}, width="page"))
    return [from_spec.draw(one, demo_runs) for one in wanted]


@pytest.mark.slow
def test_a_bundle_holds_every_format_of_every_figure_and_can_be_drawn_again(drawn, demo_runs, tmp_path):
    (path,) = write_bundle(drawn, tmp_path / "paper.zip")
    with ZipFile(path) as archive:
        content = {name.removeprefix("paper/"): archive.read(name) for name in archive.namelist()}
    names = ("scores", "scores-2")
    assert set(content) == {f"{name}.{ending}" for name in names for ending in FORMATS} | {
        "manifest.json",
        "README.txt",
    }
    assert r"\includegraphics[width=\columnwidth]{scores.pdf}" in content["scores.tex"].decode()
    assert r"\includegraphics[width=\textwidth]{scores-2.pdf}" in content["scores-2.tex"].decode()
    manifest = json.loads(content["manifest.json"])
    for name, entry, one in zip(names, manifest["figures"], drawn, strict=True):
        assert entry["files"] == [f"{name}.{ending}" for ending in ("pdf", "svg", "png", "csv", "json", "tex")]
        assert entry["table_sha256"] == table_digest(one.figure)
        read = pd.read_csv(io.BytesIO(content[f"{name}.csv"]))
        assert read["score"].dropna().tolist() == one.figure.table["score"].dropna().tolist()
    (tmp_path / "manifest.json").write_bytes(content["manifest.json"])
    told = CliRunner().invoke(
        cli.app,
        [
            "export",
            "bundle",
            str(tmp_path / "again"),
            "--collection",
            str(tmp_path / "manifest.json"),
            *("--runs", str(demo_runs)),
        ],
    )
    assert told.exit_code == 0, told.output
    written = [path for path in (tmp_path / "again").iterdir() if path.name != MARK]
    again = {path.name: path.read_bytes() for path in written}
    assert again == content, "the same runs give the same bytes"


def _plain(label: str = "x", width: str = "column") -> Figure:
    table = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    return replace(Figure("plain", "Plain", (Panel((Line(table, "x", "y"),), Axis(label)),)), width=width)


@pytest.mark.parametrize("venue", list(VENUES))
@pytest.mark.parametrize("width", ["column", "page"])
def test_a_figure_is_as_wide_as_the_venue_wants(tmp_path, venue, width):
    figure = _plain(width=width)
    file = save(figure, tmp_path / "plain.pdf", width_at(venue, figure))
    inches = float(PdfReader(file).pages[0].mediabox.width) / 72
    assert inches == pytest.approx(theme.PAPER_WIDTHS[VENUES[venue][width]], abs=0.01)


def test_a_missing_glyph_is_named_before_anything_is_written(drawn, tmp_path):
    with pytest.raises(MissingGlyphs, match=r"U\+E0FFF.*Install"):
        write_bundle([drawn[0], replace(drawn[0], figure=_plain("\U000e0fff"))], tmp_path / "paper.zip")
    assert list(tmp_path.iterdir()) == []


def _refused(*arguments: object) -> str:
    told = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert told.exit_code == 2
    return told.stderr


def test_what_cannot_be_bundled_is_one_sentence(tmp_path):
    assert "there is no figure in it; add figures" in _refused("export", "bundle", tmp_path / "out", "--runs", tmp_path)
    assert "--venue ACK: there is none of this name; did you mean 'ACL'" in _refused(
        "bundle", tmp_path / "out", "--venue", "ACK"
    )
    assert "there is no folder" in _refused("export", "bundle", tmp_path / "no" / "out.zip", "--runs", tmp_path)
    assert not Path(tmp_path / "out").exists()
