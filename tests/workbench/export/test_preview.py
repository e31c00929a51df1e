"""What remains of the colours for those who do not see them all."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from workbench.export.preview import deuteranopia, preview
from workbench.plotting import theme
from workbench.plotting.grammar import Figure, Line, Panel


def lab(color: np.ndarray) -> np.ndarray:
    """CIE L*a*b* under D65 (CIE 15:2004), from sRGB."""
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ linear / np.array([0.9505, 1.0, 1.089])
    curve = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * curve[1] - 16, 500 * (curve[0] - curve[1]), 200 * (curve[1] - curve[2])])


def figure() -> Figure:
    table = pd.DataFrame({"x": [0.0, 1.0], "past": [0.0, 1.0], "future": [1.0, 0.0]})
    marks = (
        Line(table, "x", "past", "PAST", theme.MODEL_1),
        Line(table, "x", "future", "FUTURE", theme.MODEL_2),
    )
    return Figure("roles", "Roles", (Panel(marks),))


def test_greys_look_the_same_without_green():
    greys = np.linspace(0, 1, 11)[:, None].repeat(3, axis=1)
    np.testing.assert_allclose(deuteranopia(greys), greys, atol=2e-3)


def test_past_and_future_stay_apart_without_green_and_without_colour():
    past, future = (np.array(to_rgb(color)) for color in (theme.PAST, theme.FUTURE))
    assert np.linalg.norm(lab(deuteranopia(past)) - lab(deuteranopia(future))) > 75
    assert abs(lab(past)[0] - lab(future)[0]) > 24
    assert lab(past)[0] == pytest.approx(46, abs=1)
    assert lab(future)[0] == pytest.approx(71, abs=1)


@pytest.mark.long
def test_the_grey_preview_has_no_colour_and_the_paper_one_has():
    seen = {view: imread(io.BytesIO(preview(figure(), view)))[..., :3] for view in ("paper", "grey", "deuteranopia")}
    assert np.ptp(seen["grey"], axis=-1).max() == 0
    assert np.ptp(seen["paper"], axis=-1).max() > 0.5
    assert seen["paper"].shape == seen["deuteranopia"].shape
    assert seen["paper"].shape[1] == pytest.approx(3.03 * 150, abs=1)


def test_an_unknown_preview_is_refused():
    with pytest.raises(ValueError, match="choose paper, grey or deuteranopia"):
        preview(figure(), "sepia")
