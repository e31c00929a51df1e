"""How a figure will look to others: on a grey printer, or without the receptors for green (deuteranopia).

Simulation: Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
"""

from __future__ import annotations

import io
from typing import Literal

import numpy as np

from workbench.figures.grammar import Figure
from workbench.figures.matplotlib_renderer import paper_settings, to_matplotlib

View = Literal["paper", "grey", "deuteranopia"]
_DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def preview(figure: Figure, view: View = "paper", width: str | float | None = None, dpi: float = 150.0) -> bytes:
    """The figure at its size on paper as PNG bytes; "grey" and "deuteranopia" show what remains of the colours."""
    from matplotlib.image import imsave

    if view not in ("paper", "grey", "deuteranopia"):
        raise ValueError(f"there is no preview {view!r}; choose paper, grey or deuteranopia")
    canvas = to_matplotlib(figure, width, grey=view == "grey")
    painted = io.BytesIO()
    with paper_settings():
        canvas.set_dpi(dpi)
        canvas.canvas.draw()
        pixels = np.asarray(canvas.canvas.buffer_rgba())[..., :3] / 255.0  # type: ignore[attr-defined]
    seen = deuteranopia(pixels) if view == "deuteranopia" else pixels
    imsave(painted, seen, format="png")
    return painted.getvalue()


def deuteranopia(colours: np.ndarray) -> np.ndarray:
    """Colours [..., 3] in sRGB 0..1 as seen without the receptors for green."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ _DEUTERANOPIA.T, 0.0, 1.0)
    return np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055)
