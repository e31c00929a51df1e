"""A heat map of any matrix, for tests of what draws heat maps."""

from collections.abc import Sequence

import numpy as np

from workbench.plotting.axes import matrix_table
from workbench.plotting.grammar import Heat


def heat_of(
    matrix: np.ndarray,
    x_tokens: Sequence[str] | None = None,
    y_tokens: Sequence[str] | None = None,
    x: str = "x",
    y: str = "y",
    value: str = "value",
    **options,
) -> Heat:
    """A heat map of a matrix[rows, columns]; `options` are those of `Heat` (role, limits, label, hover)."""
    return Heat(matrix_table(matrix, x_tokens, y_tokens, x, y, value), x, y, value=value, **options)
