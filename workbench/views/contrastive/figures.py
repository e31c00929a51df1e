"""The drawing of contrastive scoring: the accuracy of runs by a tag of the items.

Options: `name`, the contrastive test set (the only one, unless told), and `tag`, by which the accuracy is split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.figures.registry import drawing
from workbench.figures.request import Request, styles
from workbench.store.runs import RunError, short_names
from workbench.views.contrastive import measure

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure
    from workbench.views.contrastive.measure import Contrast


def contrasts(request: Request) -> dict[str, Contrast]:
    """What each run of a request says of the contrastive test set, by its short name."""
    name = request.options.get("name") or _only(request)
    short = short_names(request.runs)
    return {short[run]: found for run, found in measure.read_all(request.runs, str(name)).items()}


def _only(request: Request) -> str:
    known = sorted({name for run in request.runs for name in measure.names(run)})
    if len(known) != 1:
        there = f"there are {', '.join(known)}" if known else "score one: workbench contrastive-eval FILE --run RUN"
        raise RunError(f"name a contrastive test set: --option name=NAME; {there}")
    return known[0]


def accuracy_table(request: Request) -> pd.DataFrame:
    """`measure.accuracy_table` of the runs of a request, beside it the `majority` (NaN where none is)."""
    tag, found = request.options.get("tag"), contrasts(request)
    by = None if tag is None else str(tag)
    table = measure.accuracy_table(found, by)
    return table.assign(majority=table["tag"].map(majority_of(next(iter(found.values())), by)).astype(float))


def majority_of(contrast: Contrast, tag: str | None) -> dict[str, float]:
    """`analyses.contrastive.majority` of the items, by the values of a tag."""
    from analyses.contrastive import majority

    return majority([item.tags for item in contrast.items], tag)


@drawing("contrastive", options=("name", "tag"))
def _contrastive(request: Request) -> Figure:
    from workbench.views.contrastive.plots import contrastive_accuracy

    found, tag = contrasts(request), request.options.get("tag")
    table = accuracy_table(request)
    first = next(iter(found.values()))
    ties = int(table["ties"].sum())
    reading = ", ".join(f"{name} reads {_reach(one)}" for name, one in found.items() if one.read)
    unread = (
        f" {first.context} items have a context, which systems of single sentences do not see"
        f"{f'; {reading}' if reading else ''}."
        if first.context
        else ""
    )
    bound = majority_of(first, None if tag is None else str(tag))
    grey = " Grey: the commonest right pronoun throughout." if bound else ""
    caption = (
        f"{first.name} ({first.origin}, {first.digest}): items whose right translation is more probable (log P) than "
        f"every wrong one, with 95% Wilson intervals; a tie counts as wrong ({ties} of {int(table['n'].sum())}). "
        f"Dotted: guessing.{grey}{unread}"
    )
    return contrastive_accuracy(table, "" if tag is None else str(tag), caption, styles(request), bound)


def _reach(contrast: Contrast) -> str:
    """How many sentences a run reads before an item and, where it reads these, after it."""
    return f"{contrast.read} before" + (f" and {contrast.after} after" if contrast.after else "")
