"""Where a color scale ends: at a value that was asked for, or at the largest one that is drawn."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

AUTO: Literal["auto"] = "auto"
_OUTLYING = 2.0  # a largest value more than so many times what almost all rows reach
_ALMOST_ALL = 0.95


def rounded_up(value: float) -> float:
    """The smallest number of two digits that is not below a positive value; 1 if the value is not positive."""
    if value <= 0:
        return 1.0
    digits = 1 - math.floor(math.log10(value))
    return round(math.ceil(value * 10.0**digits * (1 - 1e-6)) / 10.0**digits, digits)


def scale_end(row_maxima: np.ndarray, limit: float | Literal["auto"], differences: bool = False) -> tuple[float, str]:
    """The end of a scale from 0 for rows with these largest values, and a sentence that says it.

    auto: the largest value, rounded up; if it is more than twice what 95 % of the rows do not exceed, the latter.
    differences: the scale reaches as far below 0; the values are sizes of differences.
    """
    ordered = np.sort(row_maxima[np.isfinite(row_maxima)])
    largest = float(ordered[-1]) if len(ordered) else 0.0
    common = float(ordered[int(_ALMOST_ALL * (len(ordered) - 1))]) if len(ordered) else 0.0
    if limit != AUTO:
        end, why = limit, ""
    elif largest > _OUTLYING * common > 0:
        end, why = rounded_up(common), ", which 95 % of the rows do not exceed"
    else:
        end, why = rounded_up(largest), ", the largest value rounded up"
    reach = f"Differences reach from −{end:g} to {end:g}" if differences else f"Colors reach from 0 to {end:g}"
    above = f"; larger values, up to {largest:.2g}, have the last color" if largest > end * (1 + 1e-6) else ""
    return end, f"{reach}{why}{above}."
