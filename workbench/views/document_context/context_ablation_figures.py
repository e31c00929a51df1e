"""Figure of the change of a translation's log P by its context.

Runs without context for the sentence are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.evaluation.document_context import context_aware_runs
from workbench.figures.options import ForcedOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request
from workbench.store.runs import RunError
from workbench.views.document_context.figures import passes

if TYPE_CHECKING:
    from workbench.plotting.grammar import Figure


@figure("context-changes", scope="sentence", options=ForcedOptions)
def _changes(request: Request, options: ForcedOptions) -> Figure:
    """Change of log P of a translation without words or sentences of its context."""
    import pandas as pd

    from analyses.documents import how_far
    from workbench.views.document_context.context_ablation import WORD, changes
    from workbench.views.document_context.context_ablation_plots import context_changes

    compatible_runs = context_aware_runs(request.runs)
    if not compatible_runs:
        raise RunError(f"{request.runs[0].name} reads no context; choose a run of qcn, han or san")
    tables = [
        changes(trace.run, request.test, request.sentence, *options.forced_target).iloc[1:].assign(system=name)
        for name, trace in passes(request, options, compatible_runs)
    ]
    table = pd.concat(tables, ignore_index=True)
    is_word = table["what"] == WORD
    words, wholes = table[is_word], table[~is_word]
    positions = words.groupby(["system", "side"], sort=False).cumcount()
    labels = [
        f"without the sentence {how_far(distance)}" if distance else str(what)
        for what, distance in zip(wholes["what"], wholes["distance"], strict=True)
    ]
    return context_changes(
        words.assign(at=positions),
        wholes.assign(label=labels),
        f"Change of log P along {options.target_text} where a word of the context is left out (words as blanks part "
        "them), a whole sentence, all of them; with as many sentences of another document; with the words of each "
        "sentence backwards, with the sentences in the other order. Couplings moved: half the sum of absolute "
        "differences of c in the last iteration, a mean over the words that are left; not known of a context with "
        "other words. To leave a word out of a set is to mask it; a system that reads the order sees a sentence "
        "without it.",
    )
