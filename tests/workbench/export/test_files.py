"""What stands in the files: text as typed, vector cells, embedded fonts, the drawn table, and where it came from."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.workbench.plotting.heat_maps import heat_of
from workbench.export.files import bundle, save
from workbench.plotting import theme
from workbench.plotting.axes import token_axis
from workbench.plotting.fonts import MissingGlyphs, missing_glyphs
from workbench.plotting.grammar import Axis, Figure, Labels, Line, Panel
from workbench.plotting.matplotlib_renderer import to_matplotlib
from workbench.plotting.plotly_renderer import to_plotly

TOKENS = ["<b>", "</s>", "$x$", "**", "the", "the"]
CHINESE = ["我", "喜欢"]
UNASSIGNED = "\U000e0fff"  # no font draws a code point that Unicode has not given away


def figure_of(tokens: list[str]) -> Figure:
    matrix = np.arange(2.0 * len(tokens)).reshape(2, -1) / (2 * len(tokens))
    heat = heat_of(matrix, tokens, ["y_1", "y_2"], "source", "step", "probability", label="P", hover=("source_token",))
    curve = pd.DataFrame({"step": range(len(tokens)), "loss": np.linspace(1, 0, len(tokens)), "word": tokens})
    marks = (
        Line(curve, "step", "loss", "gdr", theme.MODEL_1),
        Labels(curve, "step", "loss", text="word", align="above"),
    )
    return Figure(
        "map",
        "A map",
        (
            Panel((heat,), token_axis(tokens, "source"), token_axis(["y_1", "y_2"], "target"), height=0.5),
            Panel(marks, Axis("step"), Axis("loss", range=(-0.1, 1.3)), height=1.0),
        ),
        caption="A & B at 5 %",
        provenance={"runs": "gdr-1"},
    )


def run(command: str, *arguments: str) -> str:
    if shutil.which(command) is None:
        pytest.skip(f"{command} is not installed (package poppler-utils)")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_pdf_shows_tokens_as_typed(tmp_path):
    text = run("pdftotext", "-layout", str(save(figure_of(TOKENS), tmp_path / "map.pdf")), "-")
    for token in set(TOKENS):
        assert text.count(token) >= 2 * TOKENS.count(token), token


def test_pdf_shows_chinese(tmp_path):
    figure = figure_of(CHINESE)
    if missing_glyphs(figure):
        pytest.skip("no installed font draws Chinese (package fonts-wqy-microhei)")
    text = run("pdftotext", str(save(figure, tmp_path / "map.pdf")), "-")
    assert "我" in text
    assert "喜欢" in text


def test_pdf_holds_no_bitmap_and_embeds_its_fonts(tmp_path):
    path = str(save(figure_of(TOKENS), tmp_path / "map.pdf"))
    assert len(run("pdfimages", "-list", path).splitlines()) == 2  # two lines of header
    fonts = run("pdffonts", path).splitlines()[2:]
    assert fonts
    for line in fonts:
        assert "TrueType" in line
        assert line.split()[-5] == "yes"  # embedded
        assert "LastResort" not in line


def test_a_map_of_too_many_cells_becomes_one_bitmap(tmp_path):
    side = int(theme.MOST_VECTOR_CELLS**0.5) + 1
    figure = Figure("large", "Large", (Panel((heat_of(np.zeros((side, side))),)),))
    path = str(save(figure, tmp_path / "large.pdf"))
    assert len(run("pdfimages", "-list", path).splitlines()) == 3


def test_svg_keeps_text_as_text(tmp_path):
    content = save(figure_of(TOKENS), tmp_path / "map.svg").read_text()
    for escaped in ("&lt;b&gt;", "&lt;/s&gt;", ">$x$<", ">**<"):
        assert escaped in content
    assert "<image" not in content


def test_csv_is_the_drawn_table(tmp_path):
    figure = figure_of(TOKENS)
    read = pd.read_csv(io.StringIO(save(figure, tmp_path / "map.csv").read_text()))
    assert len(read) == len(figure.table) == 12 + 6 + 6
    screen = to_plotly(figure)
    cells = read[read["mark"] == "heat"]["probability"].to_numpy()
    np.testing.assert_allclose(screen.data[0].z.ravel(), cells, atol=1e-7)
    np.testing.assert_allclose(to_matplotlib(figure).axes[0].collections[0].get_array().ravel(), cells)
    np.testing.assert_array_equal(read[read["mark"] == "line"]["loss"], screen.data[1].y)


def test_json_holds_every_mark_with_all_digits_of_what_it_draws(tmp_path):
    figure = figure_of(TOKENS)
    read = json.loads(save(figure, tmp_path / "map.json").read_text())
    for panel, told in zip(figure.panels, read["panels"], strict=True):
        for mark, one in zip(panel.marks, told["marks"], strict=True):
            assert one["kind"] == mark.kind
            table = pd.DataFrame(one["table"]["data"], columns=one["table"]["columns"])
            pd.testing.assert_frame_equal(table, mark.rows().reset_index(drop=True), check_dtype=False, rtol=0, atol=0)


def test_pdf_metadata_says_what_it_was_made_from(tmp_path):
    told = run("pdfinfo", str(save(figure_of(TOKENS), tmp_path / "map.pdf")))
    fields = dict(line.split(":", 1) for line in told.splitlines())
    assert fields["Title"].strip() == "map"
    assert fields["Subject"].strip() == "A & B at 5 %"
    made = json.loads(fields["Keywords"])
    assert made["runs"] == "gdr-1"
    assert made["figure"]["panels"][0]["x"]["texts"] == TOKENS
    assert made["versions"]["matplotlib"]
    assert len(made["table_sha256"]) == 64


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    figure = figure_of(TOKENS)
    assert save(figure, tmp_path / "a.pdf").read_bytes() == save(figure, tmp_path / "b.pdf").read_bytes()


def test_a_missing_glyph_is_named_before_anything_is_written(tmp_path):
    figure = figure_of(["a", UNASSIGNED])
    assert missing_glyphs(figure) == [UNASSIGNED]
    with pytest.raises(MissingGlyphs, match=r"U\+E0FFF.*Install"):
        bundle(figure, tmp_path / "out")
    with pytest.raises(MissingGlyphs):
        save(figure, tmp_path / "map.pdf")
    assert not list(tmp_path.iterdir())


def test_missing_chinese_is_answered_with_a_font_package():
    assert "fonts-noto-cjk" in str(MissingGlyphs(["我"]))


def test_png_has_300_dots_per_inch(tmp_path):
    content = save(figure_of(TOKENS), tmp_path / "map.png", width=3.0).read_bytes()
    assert int.from_bytes(content[16:20], "big") == 900


def test_bundle_writes_all_formats_and_a_snippet(tmp_path):
    paths = bundle(replace(figure_of(TOKENS), width="page"), tmp_path / "out")
    assert sorted(path.name for path in paths) == [f"map.{e}" for e in ("csv", "json", "pdf", "png", "svg", "tex")]
    shown = [path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")]
    assert sorted(shown) == sorted(path.name for path in paths)
    snippet = (tmp_path / "out" / "map.tex").read_text()
    assert r"\begin{figure*}" in snippet
    assert r"\caption{A \& B at 5 \%}" in snippet


def test_an_unknown_ending_is_refused_and_a_failed_write_leaves_the_old_file(tmp_path):
    with pytest.raises(ValueError, match=r"map\.docx.*\.pdf"):
        save(figure_of(TOKENS), tmp_path / "map.docx")
    kept = tmp_path / "map.pdf"
    kept.write_text("old")
    with pytest.raises(ValueError, match="neither inches"):
        save(figure_of(TOKENS), kept, width="poster")
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [kept]


def test_exported_files_are_as_readable_as_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    made = save(figure_of(TOKENS), tmp_path / "map.csv")
    assert stat.S_IMODE(os.stat(made).st_mode) == stat.S_IMODE(os.stat(plain).st_mode)


def test_writing_leaves_the_mask_of_the_process_alone(tmp_path, monkeypatch):
    """It is one for all threads: a file that another one makes while it is 0 would be writable for everybody."""
    asked: list[int] = []
    monkeypatch.setattr(os, "umask", lambda mask: asked.append(mask) or 0o022)
    save(figure_of(TOKENS), tmp_path / "map.csv")
    assert asked == []


@pytest.mark.slow
def test_a_bundle_can_be_grey(tmp_path):
    figure = figure_of(TOKENS)
    bundle(figure, tmp_path / "out", grey=True)
    alone = save(figure, tmp_path / "map.svg", grey=True)
    assert (tmp_path / "out" / "map.svg").read_bytes() == alone.read_bytes()
