"""workbench rerank: stored n-best lists, scored by every head of a run and chosen from anew."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli.shared import Device, RunPaths, TestName, app, bar, print_table
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank


@app.command()
def rerank(
    runs: RunPaths,
    test: TestName = "test",
    dev: Annotated[
        str | None, typer.Option(help="Name of a test set whose n-best lists the weights are tuned on")
    ] = None,
    weights: Annotated[
        str,
        typer.Option(help="Comma-separated NAME=WEIGHT pairs, e.g. past=0.5,length=0.1; by default 1 each, length 0"),
    ] = "",
    device: Device = "cpu",
) -> None:
    """Rerank stored n-best lists (translate --n-best) by PAST, FUTURE and other scores; no decoding.

    The page Reranking shows what is kept.
    """
    from workbench.figures.options import read
    from workbench.figures.request import Request
    from workbench.store.runs import open_runs
    from workbench.views.reranking import measure as rescoring
    from workbench.views.reranking.figures import WeightsOptions, weights_table

    if rank() != 0:
        return  # one process does it all
    opened = open_runs(runs)
    for run in opened:
        for name in filter(None, (test, dev)):
            if rescoring.is_measured(run, name):
                continue
            with bar(f"scoring the lists of {run.name}, {name}") as show:
                path = rescoring.measure(run, name, device, show)
            say(str(path), err=True)
    options = read(WeightsOptions, {"dev": dev or "", "weights": weights or ""}, "rescore")
    print_table(weights_table(Request(tuple(opened), test), options))
