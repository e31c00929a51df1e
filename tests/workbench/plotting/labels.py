"""The labels of an axis as they are drawn."""

from __future__ import annotations

from matplotlib.axis import Axis


def paper_labels(axis: Axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]
