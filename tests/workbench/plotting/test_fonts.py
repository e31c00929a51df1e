"""A typeface on paper: its own glyphs under the right characters, and words on what it lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from fontTools.agl import toUnicode
from matplotlib.font_manager import FontProperties, findfont, get_font

from workbench.export.files import save
from workbench.plotting.fonts import FONT_NAMES, families, missing_glyphs, substitution_note
from workbench.plotting.grammar import Axis, Figure, Font, Line, Panel

pytestmark = pytest.mark.long

ASCII = [chr(code) for code in range(0x21, 0x7F)]


def figure_of(text: str, font: Font) -> Figure:
    import pandas as pd

    line = Line(pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]}), "x", "y")
    return Figure("one", "One", (Panel((line,), Axis(text)),), font=font)


def test_every_font_has_a_name():
    assert set(FONT_NAMES) == set(get_args(Font))


@pytest.mark.parametrize("font", list(FONT_NAMES))
def test_a_typeface_draws_every_character_by_the_glyph_of_its_name(font):
    """Computer Modern as it comes with Matplotlib draws ¡ for <, and a raised dot for _."""
    drawn = get_font(findfont(FontProperties(family=families(font)[0]), fallback_to_default=False))
    glyphs = drawn.get_charmap()
    names = {character: drawn.get_glyph_name(glyphs[ord(character)]) for character in ASCII if ord(character) in glyphs}
    assert {"a", "Z", "0", ",", "(", "="} <= set(names)
    assert [character for character, name in names.items() if toUnicode(name) != character] == []


@pytest.mark.parametrize("font", list(FONT_NAMES))
def test_a_pdf_embeds_the_typeface(tmp_path, font):
    from pypdf import PdfReader

    page = PdfReader(save(figure_of("log P <b> _ é Δ", font), tmp_path / "one.pdf")).pages[0]
    embedded = {}
    for item in page["/Resources"]["/Font"].values():
        (descendant,) = item.get_object()["/DescendantFonts"]
        descriptor = descendant.get_object()["/FontDescriptor"].get_object()
        embedded[descriptor["/FontName"].partition("+")[2]] = "/FontFile2" in descriptor
    assert all(embedded.values())
    wanted = get_font(findfont(FontProperties(family=families(font)[0]))).postscript_name
    assert wanted in embedded, embedded


def test_what_a_typeface_lacks_is_drawn_by_others_and_said():
    figure = figure_of("a < b, é ▁ Δ", "computer-modern")
    assert missing_glyphs(figure) == []
    note = substitution_note(figure)
    assert all(character in note for character in "<é▁")
    assert "Δ" not in note
    assert substitution_note(replace(figure, font="sans")) == ""
    assert substitution_note(figure_of("plain words", "computer-modern")) == ""


@pytest.mark.parametrize("font", list(FONT_NAMES))
def test_no_typeface_draws_less_than_the_sans_serif(font):
    assert set(families()) <= set(families(font))
