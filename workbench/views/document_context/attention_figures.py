"""The drawing of attention to the sentences before one, which is forced through the runs, live (Zhang 2018, Miculicich
2018, Maruf 2019). Runs that attend to no words before the sentence are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.evaluation.document_context import attending, of_translations, reads_after
from workbench.figures.options import MOST_CELLS, ForcedOptions, MeanOrNumber, Shade, up_to
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
    limit: Shade = Field(1.0, description="The share that has the last shade")


def sides(runs: list[Run]) -> list[str]:
    """The sides on which some run attends to the context."""
    found = {side for run in runs for _, side in attending(run)}
    return [side for side in _POSITIONS if side in found]


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
    for name, looked in passes(request, options, compatible_runs):
        queries = list(looked.source if side == "encoder" else looked.target)
        kinds = [kind for kind, own in attending(looked.run) if own == side]
        for kind in kinds:
            weights, keys = _attended(options, looked, kind, side)
            if weights.size > MOST_CELLS:
                raise RunError(f"{weights.size} cells are too many for a map; look at the sentences, over=sentences")
            panel = name if len(kinds) == 1 else f"{name}, {kind.replace('_', ' ')}"
            read[panel] = "their translations" if of_translations(kind, side) else "sources"
            tables.append(matrix_table(weights, keys, queries, x="key", y="query", value="weight").assign(panel=panel))
    around = f"the sentences {'around' if any(map(reads_after, compatible_runs)) else 'before'} it"
    what = around if over == "sentences" else f"the words of {around}, as they stand in the document"
    alike = len(set(read.values())) == 1
    whose = next(iter(read.values())) if alike else ", ".join(f"{name}: {lines}" for name, lines in read.items())
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        title="Attention to the context",
        labels=(f"context ({whose})" if alike else "context", _POSITIONS[side]),
        columns=1,
        caption=f"Shares of {what} ({whose}), from each {_POSITIONS[side]} position, a mean over what is not chosen of "
        f"layers and heads; each sentence ends in </s>; along {options.spoken}. Sparse shares of sentences may be "
        "nothing.",
        name="context-attention",
        limit=options.limit,
    )


def _attended(
    options: ContextAttentionOptions, looked: SentenceTrace, kind: str, side: str
) -> tuple[np.ndarray, list[str]]:
    """The shares [queries, keys] of one attention of a pass, and what the keys are called."""
    import numpy as np

    from analyses import attention
    from analyses.documents import how_far

    found = looked.array(f"{kind}.{side}.attention")
    weights = found if found.ndim == 4 else found[None]  # [layer, head, query, key]
    layer = up_to(options, "layer", weights.shape[0])
    head = up_to(options, "head", weights.shape[1])
    shares = attention.average(weights, layer, head)
    tokens, prefix = looked.context, "context"
    if of_translations(kind, side):
        tokens, prefix = looked.context_outputs, "context_output"
    if options.over == "words":
        return shares, list(tokens)
    at = looked.array(f"{prefix}.distance")
    apart = sorted(set(at.tolist()), reverse=True)
    return np.stack([shares[:, at == one].sum(1) for one in apart], axis=1), [how_far(one) for one in apart]
