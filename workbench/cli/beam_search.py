"""workbench beam-sweep: what a run's translations become as the beam widens."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli.shared import Device, RunPaths, TestName, app, bar, print_table, whole_numbers
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank


@app.command()
def beam_sweep(
    runs: RunPaths,
    test: TestName = "test",
    sizes: Annotated[str, typer.Option(help="Beam sizes, comma-separated")] = "1,2,4,8,16,32,64",
    exact_max_words: Annotated[
        int, typer.Option(help="Maximum source length for exact search as well, in words", min=1)
    ] = 8,
    exact_max_sentences: Annotated[
        int, typer.Option(help="Maximum number of sentences for exact search, from the first", min=0)
    ] = 50,
    max_nodes: Annotated[int, typer.Option(help="Maximum number of nodes that one exact search expands", min=1)] = 5000,
    length_penalty: Annotated[
        float | None, typer.Option(help="Length penalty of the beam searches; the run's own by default")
    ] = None,
    device: Device = "cpu",
) -> None:
    """Measure BLEU, output length, empty outputs and search errors by beam size; the page Beam sizes shows them."""
    from workbench.evaluation.translate import test_set
    from workbench.figures.request import Request
    from workbench.store.runs import open_runs
    from workbench.views.beam_size.figures import sizes_table
    from workbench.views.beam_size.measure import measure

    if rank() != 0:
        return  # one process does it all
    beams = whole_numbers(sizes, "--sizes")
    opened = open_runs(runs)
    for run in opened:
        prepared_set, _ = test_set(run, test)
        with bar(f"beams of {run.name}") as show:
            path = measure(
                run, prepared_set, beams, exact_max_words, exact_max_sentences, max_nodes,
                length_penalty, device, step=show,
            )  # fmt: skip
        say(str(path), err=True)
    print_table(sizes_table(Request(tuple(opened), test)).drop(columns="signature"))
