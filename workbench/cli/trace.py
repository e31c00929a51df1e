"""workbench trace."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.arrays import (
    AT_ONCE,
    CPUS,
    GPUS,
    LOCAL,
    SLURM_TIME,
    TASKS,
    AtOnce,
    Cluster,
    Cpus,
    Gpus,
    JobParameters,
    Launcher,
    Partition,
    SlurmTime,
    Tasks,
    array_settings,
    submit_works,
)
from workbench.cli.shared import MOST_DIGITS, Device, RunPath, TestName, app, bar, comma_list, refuse
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank

if TYPE_CHECKING:
    from workbench.store.translations import Translations


@app.command()
def trace(
    run: RunPath,
    test: TestName = "test",
    arrays: Annotated[str, typer.Option(help="Names of trace arrays, or patterns, comma-separated")] = "*",
    sentences: Annotated[str, typer.Option(help="Numbers of sentences, e.g. 0-9,17; all by default")] = "",
    device: Device = "cpu",
    launcher: Launcher = LOCAL,
    tasks: Tasks = TASKS,
    cluster: Cluster = None,
    partition: Partition = None,
    slurm_time: SlurmTime = SLURM_TIME,
    gpus: Gpus = GPUS,
    cpus: Cpus = CPUS,
    at_once: AtOnce = AT_ONCE,
    job: JobParameters = None,
) -> None:
    """Force a run's own translations of a test set and keep what happened inside (attention, gates, costs, ...).

    What an earlier call kept of this test set, also of other sentences, is replaced.
    With --launcher submitit tasks of an array share the sentences, and the last one writes the traces.
    """
    from workbench.evaluation.dealt import Tracing
    from workbench.evaluation.translate import trace_test
    from workbench.store.runs import open_run

    opened = open_run(run)
    translations = opened.translations(test)
    ranges = [_range(part, translations) for part in comma_list(sentences)]
    rows = list(dict.fromkeys(itertools.chain(*ranges))) or None
    settings = array_settings(launcher, cluster, partition, slurm_time, gpus, cpus, at_once, job, tasks)
    if settings is not None:
        work = Tracing(test, device, settings.cpus, tasks, comma_list(arrays), rows)
        submit_works({str(run): [work]}, "trace", settings)
        return
    with bar(f"tracing {test}") as show:
        folder = trace_test(
            opened,
            translations,
            comma_list(arrays),
            rows,
            device,
            step=show,
        )
    if rank() == 0:
        say(str(folder))


def _range(part: str, translations: Translations) -> range:
    """The requested sentences as a range, checked against the test set before it is expanded."""
    first, dash, last = part.partition("-")
    numbers = [
        int(number) for number in (first, last if dash else first) if number.isdecimal() and len(number) < MOST_DIGITS
    ]
    if len(numbers) < 2 or numbers[0] > numbers[1]:
        refuse(f"--sentences {part[:MOST_DIGITS]!r}: write numbers from 0 such as 3 or 0-9")
    if numbers[1] >= len(translations):
        refuse(f"--sentences {part!r}: {translations.test} has sentences 0 to {len(translations) - 1}")
    return range(numbers[0], numbers[1] + 1)
