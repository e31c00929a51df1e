"""Coverage of installed fonts: the family list for Matplotlib, and characters without a glyph."""

from __future__ import annotations

import logging
from functools import lru_cache

from workbench.plotting.grammar import Figure

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


@lru_cache(maxsize=4)
def _families(paths: frozenset[str]) -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    # Matplotlib's list of fonts is cached on disk and lacks fonts installed since.
    for path in paths - {entry.fname for entry in fontManager.ttflist}:
        try:
            fontManager.addfont(path)
        except (RuntimeError, OSError) as error:
            logging.getLogger(__name__).warning("Font %s cannot be read and is left out: %s", path, error)
    present = {entry.name for entry in fontManager.ttflist}
    return (_BASE, *(family for family in _FALLBACKS if family in present))


def families() -> tuple[str, ...]:
    """Installed families in Matplotlib's order of fallback."""
    from matplotlib.font_manager import findSystemFonts

    return _families(frozenset(findSystemFonts()))


@lru_cache(maxsize=32)
def _characters(family: str) -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=family), fallback_to_default=False)).get_charmap())


def missing_glyphs(figure: Figure) -> list[str]:
    """The characters of a figure's texts that no installed family draws, sorted; line breaks need no glyph."""
    characters = {character for text in figure.texts() for character in text if not character.isspace()}
    drawable: set[int] = set()
    for family in families():
        drawable |= _characters(family)
    return sorted(character for character in characters if ord(character) not in drawable)
