"""workbench benchmark scale-...: what large data costs in time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.numbers import Resamples
from workbench.cli.shared import Metrics, benchmark_app, comma_list, need_folder, print_table, refuse, whole_numbers

Threads = Annotated[int, typer.Option(help="Number of threads of matrix libraries", min=1, max=1024)]


@benchmark_app.command("scale-corpus")
def scale_corpus(
    pairs: Annotated[
        int, typer.Option(help="Number of sentence pairs; WMT14 English-French has 36 million", min=1000)
    ] = 36_000_000,
    token_budget: Annotated[int, typer.Option(help="Maximum number of tokens of a batch", min=1)] = 4096,
    batches: Annotated[int, typer.Option(help="Number of batches to iterate", min=2)] = 3000,
    folder: Annotated[Path | None, typer.Option(help="Folder to write to meanwhile: 20 bytes a pair")] = None,
    threads: Threads = 1,
) -> None:
    """Open a corpus of many pairs, plan an epoch, iterate, seek. Its tokens are holes in files, its index is real."""
    import pandas as pd

    from workbench.benchmark.scale.corpus import measure_corpus

    print_table(pd.DataFrame(measure_corpus(pairs, token_budget, batches, folder, threads)))


@benchmark_app.command("scale-testset")
def scale_testset(
    segments: Annotated[int, typer.Option(help="Number of segments of the test set", min=10)] = 100_000,
    systems: Annotated[int, typer.Option(help="Number of systems", min=2)] = 10,
    metrics: Metrics = "bleu,chrf",
    n_resamples: Resamples = 1000,
    processes: Annotated[
        int, typer.Option(help="Number of processes that extract statistics; their memory is not in the table", min=1)
    ] = 1,
    threads: Threads = 1,
) -> None:
    """Score made-up systems on a large test set: statistics, intervals, bands and differences in length buckets."""
    import pandas as pd

    from workbench.benchmark.scale.test_set import measure_testset
    from workbench.evaluation.scoring import metric_names

    print_table(
        pd.DataFrame(measure_testset(segments, systems, metric_names(metrics), n_resamples, processes, threads))
    )


@benchmark_app.command("scale-significance")
def scale_significance(
    segments: Annotated[str, typer.Option(help="Test set sizes in segments, comma-separated")] = "3003,20000,100000",
    paired_bs_n: Annotated[int, typer.Option(help="Number of paired bootstrap resamples", min=1, max=1_000_000)] = 1000,
    paired_ar_n: Annotated[int, typer.Option(help="Number of approximate randomization trials", min=1)] = 10_000,
    threads: Threads = 1,
) -> None:
    """Paired bootstrap, approximate randomization and sign test of two made-up systems, beside sacreBLEU's own."""
    import pandas as pd

    from workbench.benchmark.scale.significance import measure_significance

    sizes = whole_numbers(segments, "--segments", least=10)
    print_table(pd.DataFrame(measure_significance(sizes, paired_bs_n, paired_ar_n, threads)))


@benchmark_app.command("scale-app")
def scale_app_command(
    segments: Annotated[int, typer.Option(help="Number of segments of the test set", min=10)] = 100_000,
    systems: Annotated[int, typer.Option(help="Number of systems on disk; the app shows six of them", min=2)] = 10,
    rounds: Annotated[int, typer.Option(help="Number of rounds; the table has their medians", min=1)] = 10,
    processes: Annotated[
        int, typer.Option(help="Number of processes that extract statistics beforehand", min=1, max=1024)
    ] = 1,
    threads: Threads = 1,
) -> None:
    """Open the app on a large test set in a browser: the first page, changes of page, order and filter of Sentences."""
    import pandas as pd

    from workbench.benchmark.scale.app import measure_app

    print_table(pd.DataFrame(measure_app(segments, systems, rounds, processes, threads)))


@benchmark_app.command("scale-null-rates")
def scale_null_rates(
    reference: Annotated[Path, typer.Argument(help="File of reference translations, one per line, plain or .gz")],
    outputs: Annotated[
        list[Path], typer.Argument(help="Files of the outputs of two or more systems on the same segments")
    ],
    metrics: Metrics = "bleu,chrf",
    n_datasets: Annotated[
        int, typer.Option(help="Number of data sets in which two systems are equally good", min=1)
    ] = 2000,
    segments: Annotated[
        int, typer.Option(help="Number of segments of a data set, sampled anew each time", min=2)
    ] = 300,
    n_resamples: Annotated[
        int, typer.Option(help="Number of bootstrap resamples and of randomization trials", min=40)
    ] = 1000,
    csv: Annotated[Path | None, typer.Option(help="File to write the table to as well")] = None,
) -> None:
    """Measure false positives of the significance tests, on pairs of systems with randomly exchanged outputs."""
    import itertools

    import pandas as pd

    from analyses import calibration, scores
    from core_models.files.atomic_files import write_atomic
    from core_models.text.parallel import read_lines
    from workbench.evaluation.scoring import metric_names
    from workbench.store.csv_cells import csv_text

    if len(outputs) < 2:
        raise typer.BadParameter(f"{outputs[0]} alone: two outputs are exchanged; name another one")
    need_folder(csv, "--csv")
    names, references = metric_names(metrics), read_lines(reference)
    texts = {str(path): read_lines(path) for path in outputs}
    if uneven := [f"{path} has {len(lines):,}" for path, lines in texts.items() if len(lines) != len(references)]:
        refuse(f"{reference} has {len(references):,} lines, {', '.join(uneven)}; all need a line a segment")
    tables = []
    for metric in names:
        extracted = scores.extract_all(texts, [references], metric)
        pairs = list(itertools.combinations(extracted.values(), 2))
        tables.append(calibration.null_rates(pairs, n_datasets, segments, n_resamples))
        print_table(tables[-1])
    if csv is not None:
        write_atomic(csv, csv_text(pd.concat(tables), "%.4f"))


@benchmark_app.command("scale-seed-intervals")
def scale_seed_intervals(
    seeds: Annotated[int, typer.Option(help="Number of seeds per system", min=2)] = 3,
    deviations: Annotated[
        str, typer.Option(help="Standard deviations of the true score over seeds, in points, comma-separated")
    ] = ("0,0.05,0.1,0.15,0.2,0.3,0.4"),
    sentence_error: Annotated[float, typer.Option(help="Standard error that sentences give a score, in points")] = 0.08,
    n_simulations: Annotated[int, typer.Option(help="Number of simulated systems of each deviation", min=1)] = 4000,
    csv: Annotated[Path | None, typer.Option(help="File to write the table to as well")] = None,
) -> None:
    """Simulate the coverage of 95% intervals over seeds, and their width over one that knew the spreads."""
    import pandas as pd

    from analyses.calibration import seed_coverage
    from core_models.files.atomic_files import write_atomic
    from workbench.store.csv_cells import csv_text

    need_folder(csv, "--csv")
    try:
        numbers = [float(deviation) for deviation in comma_list(deviations)]
    except ValueError:
        refuse(f"--deviations {deviations!r}: write numbers, with commas between")
    table = pd.DataFrame([seed_coverage(deviation, sentence_error, seeds, n_simulations) for deviation in numbers])
    print_table(table)
    if csv is not None:
        write_atomic(csv, csv_text(table, "%.4f"))


@benchmark_app.command("scale-runs")
def scale_runs(
    runs: Annotated[int, typer.Option(help="Number of runs, made meanwhile: 50 kB each", min=1)] = 10_000,
) -> None:
    """List many made-up runs: for the first time, again, and once one of them has changed."""
    import pandas as pd

    from workbench.benchmark.scale.runs import measure_runs

    print_table(pd.DataFrame(measure_runs(runs)))
