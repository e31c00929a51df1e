"""Figure of attention to the context of one force-decoded sentence (Zhang 2018, Miculicich 2018, Maruf 2019).

Runs that attend to no context words are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.evaluation.document_context import attending, of_translations, reads_after
from workbench.figures.options import AUTO_LIMIT, MAX_CELLS, ForcedOptions, Limit, MeanOrNumber, number_up_to
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError
from workbench.views.document_context.figures import passes

if TYPE_CHECKING:
    import numpy as np

    from workbench.evaluation.live_trace import SentenceTrace
    from workbench.plotting.grammar import Figure

_POSITIONS = {"encoder": "source", "decoder": "target"}


class ContextAttentionOptions(ForcedOptions):
    """Options of the figure `context-attention`."""

    side: Literal["encoder", "decoder"] | None = Field(
        None, description="Which positions attend; the first side on which some run does unless told"
    )
    layer: MeanOrNumber = Field("mean", description="The layer, from 1")
    head: MeanOrNumber = Field("mean", description="The head, from 1")
    over: Literal["words", "sentences"] = Field("words", description="What is attended to")
    limit: Limit = AUTO_LIMIT


def sides(runs: list[Run]) -> list[str]:
    """Sides ("encoder", "decoder") on which some run attends to the context."""
    attending_sides = {side for run in runs for _, side in attending(run)}
    return [side for side in _POSITIONS if side in attending_sides]


@figure("context-attention", scope="sentence", options=ContextAttentionOptions)
def _attention(request: Request, options: ContextAttentionOptions) -> Figure:
    """Attention to the sentences before one, word by word or sentence by sentence."""
    import pandas as pd

    from workbench.plotting.axes import matrix_table
    from workbench.views.attention.plots import attention_maps

    compatible_runs = [run for run in request.runs if attending(run)]
    if not compatible_runs:
        raise RunError(
            f"{request.runs[0].name} attends to no words before the sentence; choose a run of document-transformer, "
            "han or san"
        )
    side, over = options.side or sides(compatible_runs)[0], options.over
    if side not in sides(compatible_runs):
        raise RunError(f"side {side!r}: choose {', '.join(sides(compatible_runs))}")
    compatible_runs = [run for run in compatible_runs if side in sides([run])]
    tables, read = [], {}
    for name, trace in passes(request, options, compatible_runs):
        queries = list(trace.source if side == "encoder" else trace.target)
        mechanisms = [mechanism for mechanism, attending_side in attending(trace.run) if attending_side == side]
        for mechanism in mechanisms:
            weights, keys = _attended(options, trace, mechanism, side)
            if weights.size > MAX_CELLS:
                raise RunError(f"{weights.size} cells are too many for a map; look at the sentences, over=sentences")
            panel = name if len(mechanisms) == 1 else f"{name}, {mechanism.replace('_', ' ')}"
            read[panel] = "their translations" if of_translations(mechanism, side) else "sources"
            tables.append(matrix_table(weights, keys, queries, x="key", y="query", value="weight").assign(panel=panel))
    around = f"the sentences {'around' if any(map(reads_after, compatible_runs)) else 'before'} it"
    keys_read = around if over == "sentences" else f"the words of {around}, as they stand in the document"
    same_texts = len(set(read.values())) == 1
    read_texts = (
        next(iter(read.values())) if same_texts else ", ".join(f"{name}: {lines}" for name, lines in read.items())
    )
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        title="Attention to the context",
        labels=(f"context ({read_texts})" if same_texts else "context", _POSITIONS[side]),
        columns=1,
        caption=f"Shares of {keys_read} ({read_texts}), from each {_POSITIONS[side]} position, a mean over what is not "
        f"chosen of layers and heads; each sentence ends in </s>; along {options.target_text}. Sparse shares of "
        "sentences may be nothing.",
        name="context-attention",
        limit=options.limit,
        sides=(None, "source" if side == "encoder" else "target"),
    )


def _attended(
    options: ContextAttentionOptions, trace: SentenceTrace, mechanism: str, side: str
) -> tuple[np.ndarray, list[str]]:
    """Attention weights [queries, keys] of one mechanism, and the labels of the keys."""
    import numpy as np

    from analyses import attention
    from analyses.documents import how_far

    array = trace.array(f"{mechanism}.{side}.attention")
    weights = array if array.ndim == 4 else array[None]  # [layer, head, query, key]
    layer = number_up_to(options, "layer", weights.shape[0])
    head = number_up_to(options, "head", weights.shape[1])
    shares = attention.average(weights, layer, head)
    tokens, prefix = trace.context, "context"
    if of_translations(mechanism, side):
        tokens, prefix = trace.context_outputs, "context_output"
    if options.over == "words":
        return shares, list(tokens)
    distances = trace.array(f"{prefix}.distance")
    ordered = sorted(set(distances.tolist()), reverse=True)
    return np.stack([shares[:, distances == distance].sum(1) for distance in ordered], axis=1), [
        how_far(distance) for distance in ordered
    ]
