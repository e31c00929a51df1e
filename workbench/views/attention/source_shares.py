"""What attention to the source is for a decoder-only run: to its place in the prompt, beside its share."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.evaluation.live_trace import SentenceTrace


def shares_caption(traces: Mapping[str, SentenceTrace]) -> str:
    """What attention to the source is for decoder-only runs, and its mean share beside those of other words."""
    said = [
        f"{name} source {shares[0]:.0%}, template {shares[1]:.0%}, words before {shares[2]:.0%}"
        for name, trace in traces.items()
        if "source_share" in trace.trace
        for shares in [[trace.array(f"{part}_share").mean() for part in ("source", "template", "prefix")]]
    ]
    if not said:
        return ""
    return (
        " Of a decoder-only model it is attention to the source span of the prompt, divided by its share; mean shares "
        f"over all layers and heads: {'; '.join(said)}."
    )
