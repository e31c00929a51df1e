"""Fonts on paper: the families of each typeface for Matplotlib, and characters without a glyph."""

from __future__ import annotations

import io
import logging
from functools import cache, lru_cache
from pathlib import Path

from core_models.files.atomic_files import write_atomic
from workbench.plotting.grammar import Figure, Font

FONT_NAMES: dict[Font, str] = {"sans": "Sans serif", "times": "Times", "computer-modern": "Computer Modern"}
_COMPUTER_MODERN = "Computer Modern Roman"  # of `_add_computer_modern`
# Of each typeface: families that papers are set in, then those that come with Matplotlib.
_TYPEFACES: dict[Font, tuple[str, ...]] = {
    "sans": (),
    "times": ("Times New Roman", "STIXGeneral"),
    "computer-modern": ("CMU Serif", "Latin Modern Roman", _COMPUTER_MODERN, "STIXGeneral"),
}
_BASE = "DejaVu Sans"  # comes with Matplotlib: the same picture on every machine
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Noto Sans CJK JP",
    "Noto Sans",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Tamil",
    "Noto Sans Thai",
    "Noto Sans Symbols",
    "Noto Sans Symbols 2",
    "Noto Emoji",
    "Arial Unicode MS",
    "FreeSans",
)
_PACKAGES = (
    (0x0590, 0x08FF, "fonts-noto-core (Hebrew, Arabic)"),
    (0x0900, 0x1AFF, "fonts-noto-core (Indic and South-East Asian scripts)"),
    (0x2E80, 0x9FFF, "fonts-noto-cjk or fonts-wqy-microhei (Chinese, Japanese)"),
    (0xAC00, 0xD7AF, "fonts-noto-cjk (Korean)"),
    (0xF900, 0xFAFF, "fonts-noto-cjk (Chinese)"),
    (0x1F000, 0x1FAFF, "fonts-noto-extra or fonts-symbola (pictures)"),
    (0x20000, 0x3FFFF, "fonts-noto-cjk-extra (rare Chinese)"),
)


class MissingGlyphs(ValueError):
    """Raised for characters that no installed font draws: they would be exported as empty boxes."""

    def __init__(self, characters: list[str]) -> None:
        self.characters = characters
        listed = ", ".join(f"{character} (U+{ord(character):04X})" for character in characters[:12])
        more = f" and {len(characters) - 12} more" if len(characters) > 12 else ""
        packages = sorted({_package(character) for character in characters})
        super().__init__(
            f"No installed font draws {listed}{more}; the file would show empty boxes. "
            f"Install {' and '.join(packages)} and export again; no restart is needed."
        )


def _package(character: str) -> str:
    for first, last, package in _PACKAGES:
        if first <= ord(character) <= last:
            return package
    return "a font of the Noto family that covers them (fonts-noto)"


@lru_cache(maxsize=8)
def _families(paths: frozenset[str], font: Font) -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    # Matplotlib's list of fonts is cached on disk and lacks fonts installed since.
    for path in paths - {entry.fname for entry in fontManager.ttflist}:
        try:
            fontManager.addfont(path)
        except (RuntimeError, OSError) as error:
            logging.getLogger(__name__).warning("Font %s cannot be read and is left out: %s", path, error)
    if font == "computer-modern":
        _add_computer_modern()
    present = {entry.name for entry in fontManager.ttflist}
    # Matplotlib embeds an OpenType font with PostScript outlines as if it were TrueType, which not every reader takes.
    truetype = {entry.name for entry in fontManager.ttflist if Path(entry.fname).suffix.lower() != ".otf"}
    typeface = (family for family in _TYPEFACES[font] if family in truetype)
    return (*typeface, _BASE, *(family for family in _FALLBACKS if family in present))


@cache
def _add_computer_modern() -> None:
    """Make Matplotlib's Computer Modern known under its characters of Unicode.

    The file that comes with Matplotlib has the places of TeX: it draws ¡ for <, a raised dot for _, a dash for |.
    """
    import matplotlib
    from fontTools.agl import toUnicode
    from fontTools.ttLib import TTFont
    from matplotlib.font_manager import fontManager

    written = io.BytesIO()
    with TTFont(Path(matplotlib.get_data_path(), "fonts", "ttf", "cmr10.ttf"), recalcTimestamp=False) as cmr10:
        characters = {name: toUnicode(name) for name in cmr10.getGlyphOrder()}
        glyphs = {ord(character): name for name, character in characters.items() if len(character) == 1}
        glyphs |= {ord("Δ"): "Delta", ord("Ω"): "Omega"}  # whose glyph names stand for the increment and the ohm
        cmr10["cmap"].tables = [table for table in cmr10["cmap"].tables if table.isUnicode()]
        for table in cmr10["cmap"].tables:
            table.cmap.clear()
            table.cmap.update(glyphs)
        for record in cmr10["name"].names:
            record.string = record.toUnicode().replace("cmr10", _COMPUTER_MODERN)
        cmr10.save(written)
    path = Path(matplotlib.get_cachedir(), "computer-modern-roman.ttf")
    fontManager.addfont(write_atomic(path, written.getvalue()))


def families(font: Font = "sans") -> tuple[str, ...]:
    """Installed families of a typeface in Matplotlib's order of fallback, those of other scripts last."""
    from matplotlib.font_manager import findSystemFonts

    return _families(frozenset(findSystemFonts()), font)


@lru_cache(maxsize=32)
def _characters(family: str) -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=family), fallback_to_default=False)).get_charmap())


def _printed(figure: Figure) -> list[str]:
    """The characters of a figure's texts, sorted; line breaks and spaces need no glyph."""
    return sorted({character for text in figure.texts() for character in text if not character.isspace()})


def missing_glyphs(figure: Figure) -> list[str]:
    """The characters of a figure's texts that no installed family draws, sorted."""
    drawable: set[int] = set()
    for family in families(figure.font):
        drawable |= _characters(family)
    return [character for character in _printed(figure) if ord(character) not in drawable]


def substitution_note(figure: Figure) -> str:
    """Which characters its typeface lacks and which families draw them, as a sentence; "" where it lacks none.

    Nothing is said of the sans serif, in which every figure is drawn unless told.
    """
    if figure.font == "sans":
        return ""
    typeface, *others = families(figure.font)
    drawn_by: dict[str, list[str]] = {}
    for character in _printed(figure):
        family = next((name for name in (typeface, *others) if ord(character) in _characters(name)), typeface)
        drawn_by.setdefault(family, []).append(character)
    drawn_by.pop(typeface, None)
    listed = [f"{' '.join(characters)} from {family}" for family, characters in drawn_by.items()]
    return f"{typeface} lacks some characters, which are taken from others: {'; '.join(listed)}." if listed else ""
