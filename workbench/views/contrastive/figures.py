"""Figure of contrastive scoring: accuracy of runs by a tag of the items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from workbench.figures.options import FigureOptions
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import RunError, short_names
from workbench.views.contrastive import measure

if TYPE_CHECKING:
    import pandas as pd

    from workbench.plotting.grammar import Figure
    from workbench.views.contrastive.measure import Contrast


class ContrastiveOptions(FigureOptions):
    """Options of the figure `contrastive`."""

    name: str | None = Field(None, description="The contrastive test set; unless told the only one")
    tag: str | None = Field(None, description="The tag of the items by which accuracy is split")


def contrasts(request: Request, options: ContrastiveOptions) -> dict[str, Contrast]:
    """Scores of the contrastive test set by each run of a request, by short name."""
    name = options.name or _only_test_set(request)
    short = short_names(request.runs)
    return {short[run]: contrast for run, contrast in measure.read_all(request.runs, name).items()}


def _only_test_set(request: Request) -> str:
    available = sorted({name for run in request.runs for name in measure.scored_names(run)})
    if len(available) != 1:
        hint = (
            f"there are {', '.join(available)}" if available else "score one: workbench contrastive-eval FILE --run RUN"
        )
        raise RunError(f"name a contrastive test set: --option name=NAME; {hint}")
    return available[0]


def accuracy_table(request: Request, options: ContrastiveOptions) -> pd.DataFrame:
    """`measure.accuracy_table` of the runs of a request, with a column `majority` (NaN: none)."""
    by_system = contrasts(request, options)
    table = measure.accuracy_table(by_system, options.tag)
    return table.assign(
        majority=table["tag"].map(majority_of(next(iter(by_system.values())), options.tag)).astype(float)
    )


def majority_of(contrast: Contrast, tag: str | None) -> dict[str, float]:
    """`analyses.contrastive.majority` of the items, by the values of a tag."""
    from analyses.contrastive import majority

    return majority([item.tags for item in contrast.items], tag)


@figure("contrastive", scope="runs", options=ContrastiveOptions)
def _contrastive(request: Request, options: ContrastiveOptions) -> Figure:
    """Share of items whose right translation is more probable than the wrong ones, by run and tag."""
    from workbench.views.contrastive.plots import contrastive_accuracy

    by_system = contrasts(request, options)
    table = accuracy_table(request, options)
    first = next(iter(by_system.values()))
    ties = int(table["ties"].sum())
    reading = ", ".join(f"{name} reads {_reach(contrast)}" for name, contrast in by_system.items() if contrast.before)
    unread = (
        f" {first.items_with_context} items have a context, which systems of single sentences do not see"
        f"{f'; {reading}' if reading else ''}."
        if first.items_with_context
        else ""
    )
    bound = majority_of(first, options.tag)
    grey = " Grey: the commonest right pronoun throughout." if bound else ""
    caption = (
        f"{first.name} ({first.origin}, {first.digest}): items whose right translation is more probable (log P) than "
        f"every wrong one, with 95% Wilson intervals; a tie counts as wrong ({ties} of {int(table['n'].sum())}). "
        f"Dotted: guessing.{grey}{unread}"
    )
    return contrastive_accuracy(table, options.tag or "", caption, styles(request), bound)


def _reach(contrast: Contrast) -> str:
    """Text with the number of sentences that a run reads before and, if any, after an item."""
    return f"{contrast.before} before" + (f" and {contrast.after} after" if contrast.after else "")
