"""Theme of all figures: styles of roles and systems, color scales, sizes on paper. Knows no data.

Blue (PAST) and orange (FUTURE) differ by more than 75 (CIE76) for readers without green receptors and by 24 in
lightness, so they survive a grey printer (tested); every series also has a dash and a marker.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.plotting.grammar import ColorRole, Dash, Heat, Marker, SeriesStyle

BLACK = "#000000"
WHITE = "#FFFFFF"
NEUTRAL = "#777777"
PAST = "#0072B2"
FUTURE = "#E69F00"
REDUNDANT = "#D9D9D9"

# Widths in inches; check the author kit of the year before a submission.
PAPER_WIDTHS = {
    "column": 3.03,  # ACL, EMNLP, TACL
    "page": 6.30,
    "aaai-column": 3.30,
    "aaai-page": 7.00,
    "ijcai-column": 3.375,
    "ijcai-page": 7.00,
}
TEXT_POINTS = 7.0
TICK_POINTS = 6.5
RULE_POINTS = 0.6
RESOLUTION_DPI = 300
RASTER_DPI = 600
MOST_VECTOR_CELLS = 20_000
SCREEN_PIXELS_PER_INCH = 150.0

BASELINE = SeriesStyle(BLACK, "dash", "circle")
MODEL_1 = SeriesStyle(PAST, "solid", "square")
MODEL_2 = SeriesStyle(FUTURE, "dashdot", "triangle-up", size=4.5)
RECURRENT = SeriesStyle("#D55E00", "dash", "circle")
REPORTED = SeriesStyle(NEUTRAL, "none", "circle", hollow=True, size=4.5)
BOUND = SeriesStyle(NEUTRAL, "none", "diamond", size=5.0)  # the score of a simple rule that is no system

BASELINES = ("baseline", "transformer", "rnnsearch")  # systems without a mechanism, in no order

_FIXED = {
    "baseline": BASELINE,
    "transformer": BASELINE,
    "rnnsearch": RECURRENT,
    "future-cost-1": MODEL_1,
    "future-cost-2": MODEL_2,
}
# Further systems of the catalogue, in an order in which those of one paper differ and so do the exhibits.
SYSTEMS = (
    "linear-combination", "dynamic-combination", "dynamic-routing", "em-routing", "gdr", "gdr-bow", "gdr-bca",
    "clf-bow-bca", "gdr-bow-bca-no-redundant", "gdr-bow-bca", "attn-bow-bca", "rnnsearch-2dec", "rnnsearch-3dec",
    "coverage", "pfrnn-loss", "frnn-gru-o", "frnn-gru-i", "frnn-gru-i-loss", "prnn", "prnn-loss", "pfrnn",
    "transformer-reg", "gdr-rnn", "frnn-gru", "qcn", "qcn-reg", "document-transformer", "han-encoder", "han-decoder",
    "han", "san-encoder", "san", "concatenation", "d2gpo", "head-aggregation", "biarn",
)  # fmt: skip
_CATALOGUE = (*_FIXED, *SYSTEMS)
_CYCLE: tuple[tuple[str, Dash, Marker], ...] = (
    (PAST, "solid", "square"),
    (FUTURE, "dashdot", "triangle-up"),
    ("#009E73", "longdash", "diamond"),
    ("#D55E00", "dot", "triangle-down"),
    ("#CC79A7", "solid", "cross"),
    ("#56B4E9", "longdashdot", "pentagon"),
    ("#7A4F00", "dash", "x"),
    ("#5D3A9B", "dashdot", "hexagon"),
    ("#555555", "longdash", "star"),
)
# The dashes and markers of runs by number; files store the numbers, so new ones go to the end.
LINES: tuple[tuple[Dash, Marker], ...] = (*((dash, marker) for _, dash, marker in _CYCLE), ("dash", "circle"))


def style_of(name: str) -> SeriesStyle:
    """The style of a system or run by its name alone: fixed for systems of the catalogue, else a hash of the name."""
    if name in _FIXED:
        return _FIXED[name]
    return _in_cycle(2 + SYSTEMS.index(name) if name in SYSTEMS else zlib.crc32(name.encode()))


def _in_cycle(position: int) -> SeriesStyle:
    color, dash, marker = _CYCLE[position % len(_CYCLE)]
    return SeriesStyle(color, dash, marker)


def run_styles(names: Sequence[str], fixed: Mapping[str, SeriesStyle] | None = None) -> dict[str, SeriesStyle]:
    """A style for every run; the last part of its name alone decides its color, whatever else is drawn.

    If runs share a color or a dash and marker, one keeps its own (a system of the catalogue before others, then by
    name); the others take a free dash and marker while there are any. `fixed` styles stay.
    """
    chosen = {name: style for name, style in (fixed or {}).items() if name in names}
    default_styles = {name: _default_style(name) for name in names}
    waiting = sorted(set(names) - set(chosen), key=lambda name: (not _is_known(name), name))
    used_lines = {_line(style) for style in chosen.values()}
    colors = {style.colour for style in chosen.values()}
    for name in list(waiting):
        if default_styles[name].colour not in colors and _line(default_styles[name]) not in used_lines:
            chosen[name] = default_styles[name]
            waiting.remove(name)
            used_lines.add(_line(default_styles[name]))
            colors.add(default_styles[name].colour)
    for name in waiting:
        dash, marker = next((line for line in LINES if line not in used_lines), _line(default_styles[name]))
        chosen[name] = replace(default_styles[name], dash=dash, marker=marker)
        used_lines.add((dash, marker))
    return {name: chosen[name] for name in names}


def with_lines(names: Iterable[str], kept: Mapping[str, int]) -> dict[str, int]:
    """The kept lines of runs, and one for every further run: a number of `LINES`.

    A further run gets the line of its own name unless a run of the same color or of the same folder has it (systems of
    the catalogue choose first); then the first that the fewest of the same color have, and of these the fewest of its
    folder.
    """
    lines = dict(kept)
    taken_in_color, taken_in_folder = Counter[tuple[str, int]](), Counter[tuple[str, int]]()

    def take(name: str, line: int) -> None:
        lines[name] = line
        taken_in_color[_default_style(name).colour, line] += 1
        taken_in_folder[_folder(name), line] += 1

    for name, line in kept.items():
        take(name, line)
    waiting = sorted(set(names) - set(kept), key=lambda name: (_place_in_catalogue(name), name))
    for name in list(waiting):
        style = _default_style(name)
        own = LINES.index(_line(style))
        if not taken_in_color[style.colour, own] and not taken_in_folder[_folder(name), own]:
            take(name, own)
            waiting.remove(name)
    for name in waiting:
        color, folder = _default_style(name).colour, _folder(name)
        counts = [(taken_in_color[color, line], taken_in_folder[folder, line]) for line in range(len(LINES))]
        take(name, counts.index(min(counts)))
    return lines


def style_on_line(name: str, line: int) -> SeriesStyle:
    """The style of a run: the color of the last part of its name, and the dash and marker of a line."""
    dash, marker = LINES[line]
    return replace(_default_style(name), dash=dash, marker=marker)


def _default_style(name: str) -> SeriesStyle:
    return style_of(name.rpartition("/")[2])


def _is_known(name: str) -> bool:
    return name.rpartition("/")[2] in _CATALOGUE


def _place_in_catalogue(name: str) -> int:
    """The place of a run's system among those of the catalogue, baselines first; others come after all of them."""
    system = name.rpartition("/")[2]
    return _CATALOGUE.index(system) if system in _CATALOGUE else len(_CATALOGUE)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _line(style: SeriesStyle) -> tuple[Dash, Marker]:
    return style.dash, style.marker


def styles(names: Sequence[str], fixed: dict[str, SeriesStyle] | None = None) -> dict[str, SeriesStyle]:
    """A style for every name, no two the same while the cycle lasts; `fixed` styles (of runs) stay."""
    chosen = {name: style for name, style in (fixed or {}).items() if name in names}
    used_colors = {style.colour for style in chosen.values()}
    for name in names:
        if name in _FIXED and name not in chosen and _FIXED[name].colour not in used_colors:
            chosen[name] = _FIXED[name]
            used_colors.add(_FIXED[name].colour)
    free = [index for index, (color, _, _) in enumerate(_CYCLE) if color not in used_colors] or list(range(len(_CYCLE)))
    waiting = [name for name in dict.fromkeys(names) if name not in chosen]
    for position, name in enumerate(waiting):
        chosen[name] = _in_cycle(free[position % len(free)])
    return {name: chosen[name] for name in names}


def pale(style: SeriesStyle, opacity: float = 0.3) -> SeriesStyle:
    """The style of the same series in the background."""
    return replace(style, opacity=opacity)


@dataclass(frozen=True)
class Page:
    """The colors of the page under a figure."""

    text: str
    grid: str
    ground: str


LIGHT = Page("#1F1F1F", "#E6E6E6", "#FFFFFF")
DARK = Page("#E8E8E8", "#3A3A3A", "#0E1117")
_ON_DARK = {PAST: "#4BA6E0", "#56B4E9": "#A6DCFF", "#7A4F00": "#C89B4A", "#5D3A9B": "#A98BE0"}


def on_page(color: str, dark: bool) -> str:
    """A color of white paper adapted to the page: on a dark page greys are inverted and deep colors lightened."""
    if not dark:
        return color
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    if red == green == blue:
        level = round(242 - 0.65 * red)
        return f"#{level:02X}{level:02X}{level:02X}"
    return _ON_DARK.get(color.upper(), color)


def as_grey(color: str) -> str:
    """The grey that a grey printer prints for a color (Rec. 709 luma)."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    level = round(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return f"#{level:02X}{level:02X}{level:02X}"


@dataclass(frozen=True)
class ColorScale:
    """A map from values to shades: `low` and `high` in shaded units (log2 for ratios), ticks of the color bar."""

    map_name: str
    low: float
    high: float
    ticks: tuple[float, ...]
    texts: tuple[str, ...]

    def stops(self, count: int = 17) -> list[list[float | str]]:
        """[[0, "#rrggbb"], …, [1, …]]: the same map for Plotly."""
        from matplotlib import colormaps
        from matplotlib.colors import to_hex

        return [
            [float(position), to_hex(colormaps[self.map_name](position))] for position in np.linspace(0.0, 1.0, count)
        ]


# On a screen and on paper; more is bluer. Blues darkens all the way, so that it survives a grey printer.
_MAPS: dict[ColorRole, str] = {"probability": "Blues", "signed": "RdBu", "relative": "RdBu"}


def color_scale(role: ColorRole, limits: tuple[float, float], grey: bool = False) -> ColorScale:
    """The scale of a role between fixed limits, the same on a screen and on paper; `grey`: as on a grey printer.

    A probability is white at 0, a signed scale too, a relative one at 1, for all limits.

    Raises ValueError for empty limits and for a ratio whose limits are not positive.
    """
    low, high = limits
    if not low < high:
        raise ValueError(f"color limits {limits} are empty: the first must be below the second")
    name = "Greys" if grey else _MAPS[role]
    if role == "relative":
        if low <= 0:
            raise ValueError(f"limits {limits} of a ratio must be positive, such as (1/8, 8)")
        reach = max(abs(math.log2(low)), abs(math.log2(high)))
        step = max(1, math.ceil(reach / 4))
        powers = [power for power in range(-math.floor(reach), math.floor(reach) + 1) if power % step == 0]
        texts = tuple(f"×{2**p}" if p >= 0 else f"×1/{2**-p}" for p in powers)
        return ColorScale(name, -reach, reach, tuple(float(p) for p in powers), texts)
    if role == "signed":
        reach = max(abs(low), abs(high))
        low, high = -reach, reach
    ticks = tuple(float(tick) for tick in np.linspace(low, high, 3))
    return ColorScale(name, low, high, ticks, tuple(f"{tick:.3g}".replace("-", "−") for tick in ticks))


def shades(heat: Heat) -> np.ndarray:
    """The cells [rows, columns] in shaded units, clipped into the limits; missing cells stay NaN."""
    matrix, _, _ = heat.cells()
    scale = color_scale(heat.role, heat.limits)
    if heat.role == "relative":
        matrix = np.log2(np.maximum(matrix, 2.0 ** (scale.low - 1)))
    return np.clip(matrix, scale.low, scale.high)


def luminance(colors: np.ndarray) -> np.ndarray:
    """The relative luminance of colors [n, (red, green, blue)] from 0 to 1 (WCAG 2.2)."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def ink(
    values: np.ndarray,
    grey: bool = False,
    role: ColorRole = "probability",
    limits: tuple[float, float] = (0.0, 1.0),
) -> list[str]:
    """Black or white for texts on cells of these values, whichever contrasts more (always above 4.5).

    role: of the cells, "probability" or "signed".
    """
    from matplotlib import colormaps

    scale = color_scale(role, limits, grey)
    places = (np.nan_to_num(values) - scale.low) / (scale.high - scale.low)
    light = luminance(colormaps[scale.map_name](np.clip(places, 0.0, 1.0))[:, :3])
    return [_ink_on(one) for one in light]


def text_on(color: str) -> str:
    """Black or white for a text on a color (#RRGGBB), whichever contrasts more (always above 4.5)."""
    shares = np.array([[int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]])
    return _ink_on(float(luminance(shares)[0]))


def _ink_on(light: float) -> str:
    return BLACK if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else WHITE
