"""workbench scale: what large data costs in time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import app, print_table

scale_app = typer.Typer(help="Measure what large data costs in time and memory.", no_args_is_help=True)
app.add_typer(scale_app, name="scale")

Threads = Annotated[int, typer.Option(help="Threads for matrices", min=1)]


@scale_app.command("corpus")
def scale_corpus(
    pairs: Annotated[
        int, typer.Option(help="Sentence pairs; WMT14 English-French has 36 million", min=1000)
    ] = 36_000_000,
    token_budget: Annotated[int, typer.Option(help="Of a batch", min=1)] = 4096,
    batches: Annotated[int, typer.Option(help="How many are iterated", min=2)] = 3000,
    folder: Annotated[
        Path | None, typer.Option(help="Where to write, for as long as it takes: 20 bytes a pair")
    ] = None,
    threads: Threads = 1,
) -> None:
    """Open a corpus of many pairs, plan an epoch, iterate, seek. Its tokens are holes in files, its index is real."""
    import pandas as pd

    from workbench.scale.corpus import measure_corpus

    print_table(pd.DataFrame(measure_corpus(pairs, token_budget, batches, folder, threads)))


@scale_app.command("testset")
def scale_testset(
    segments: Annotated[int, typer.Option(min=10)] = 100_000,
    systems: Annotated[int, typer.Option(min=2)] = 10,
    metrics: Annotated[str, typer.Option(help="bleu, chrf, chrf++, ter, with commas between")] = "bleu,chrf",
    samples: Annotated[int, typer.Option(help="Bootstrap resamples", min=1)] = 1000,
    processes: Annotated[
        int, typer.Option(help="That extract statistics; their memory is not in the table", min=1)
    ] = 1,
    threads: Threads = 1,
) -> None:
    """Score made-up systems on a large test set: statistics, intervals, bands and differences in length buckets."""
    import pandas as pd

    from workbench.cli.comparing import known_metrics
    from workbench.scale.testset import measure_testset

    print_table(pd.DataFrame(measure_testset(segments, systems, known_metrics(metrics), samples, processes, threads)))


@scale_app.command("significance")
def scale_significance(
    segments: Annotated[str, typer.Option(help="Sizes of test sets, with commas between")] = "3003,20000,100000",
    samples: Annotated[int, typer.Option(help="Bootstrap resamples", min=1)] = 1000,
    trials: Annotated[int, typer.Option(help="Trials of the randomisation", min=1)] = 10_000,
    threads: Threads = 1,
) -> None:
    """Paired bootstrap, approximate randomisation and sign test of two made-up systems, beside sacreBLEU's own."""
    import pandas as pd

    from workbench.scale.significance import measure_significance

    sizes = segments.split(",")
    if not all(size.isdecimal() and int(size) >= 10 for size in sizes):
        raise typer.BadParameter(f"{segments!r}: write whole numbers from 10, with commas between")
    print_table(pd.DataFrame(measure_significance([int(size) for size in sizes], samples, trials, threads)))


@scale_app.command("app")
def scale_app_command(
    segments: Annotated[int, typer.Option(min=10)] = 100_000,
    systems: Annotated[int, typer.Option(help="On disk; the app shows six of them", min=2)] = 10,
    rounds: Annotated[int, typer.Option(help="Of which the median is taken", min=1)] = 10,
    processes: Annotated[int, typer.Option(help="That extract statistics, before anything is measured", min=1)] = 1,
    threads: Threads = 1,
) -> None:
    """Open the app on a large test set in a browser: the first page, changes of page, order and filter of Sentences."""
    import pandas as pd

    from workbench.scale.app import measure_app

    print_table(pd.DataFrame(measure_app(segments, systems, rounds, processes, threads)))
