"""Previews of a figure as on a grey printer, or as seen without green receptors (deuteranopia).

Simulation: Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
"""

from __future__ import annotations

import io
from typing import Literal, get_args

import numpy as np

from workbench.plotting.grammar import Figure
from workbench.plotting.matplotlib_renderer import paper_settings, to_matplotlib

View = Literal["paper", "grey", "deuteranopia"]
VIEWS: tuple[View, ...] = get_args(View)
_DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def preview(figure: Figure, view: View = "paper", width: str | float | None = None, dpi: float = 150.0) -> bytes:
    """The figure at its size on paper as PNG bytes; "grey" and "deuteranopia" are simulations."""
    if view not in VIEWS:
        raise ValueError(f"there is no preview {view!r}; choose paper, grey or deuteranopia")
    pixels = _painted(figure, view == "grey", width, dpi)
    return _png(deuteranopia(pixels) if view == "deuteranopia" else pixels)


def previews(figure: Figure, width: str | float | None = None, dpi: float = 150.0) -> dict[View, bytes]:
    """Every preview of a figure, in the order of `VIEWS`; it is drawn twice."""
    colored = _painted(figure, False, width, dpi)
    return {
        "paper": _png(colored),
        "grey": _png(_painted(figure, True, width, dpi)),
        "deuteranopia": _png(deuteranopia(colored)),
    }


def _painted(figure: Figure, grey: bool, width: str | float | None, dpi: float) -> np.ndarray:
    """Pixels [row, column, RGB] in 0..1."""
    canvas = to_matplotlib(figure, width, grey=grey)
    with paper_settings(figure.font):
        canvas.set_dpi(dpi)
        canvas.canvas.draw()
        return np.asarray(canvas.canvas.buffer_rgba())[..., :3] / 255.0  # type: ignore[attr-defined]


def _png(pixels: np.ndarray) -> bytes:
    from matplotlib.image import imsave

    file = io.BytesIO()
    imsave(file, pixels, format="png")
    return file.getvalue()


def deuteranopia(colors: np.ndarray) -> np.ndarray:
    """Colors [..., 3] in sRGB 0..1 as seen without green receptors."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ _DEUTERANOPIA.T, 0.0, 1.0)
    return np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055)
