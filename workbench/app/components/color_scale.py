"""The control for the end of the color scale of attention maps."""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator


def color_scale_maximum(column: DeltaGenerator) -> object:
    """A control for the option `limit` of figures; in the URL numbers are as they were before there was auto."""
    return column.selectbox(
        "Color scale maximum", ["auto", 1.0, 0.5, 0.25, 0.1], format_func=lambda limit: str(limit).capitalize(),
        key="limit", bind="query-params", help="The weight that gets the darkest color; auto: the largest one",
    )  # fmt: skip
