"""Options of the commands that can deal their work over an array of jobs on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.shared import pairs, refuse
from workbench.cli.terminal import say
from workbench.evaluation.distributed import world

if TYPE_CHECKING:
    from workbench.evaluation.dealt import Work
    from workbench.evaluation.job_array import ArraySettings

LOCAL = "local"  # the default launcher

Launcher = Annotated[
    str, typer.Option(help="Launcher: local (this process), or submitit (an array of jobs, on a cluster)")
]
Tasks = Annotated[
    int, typer.Option(help="Number of tasks of the array for each run, each with its share (submitit)", min=1, max=256)
]
Cluster = Annotated[str | None, typer.Option(help="Cluster of submitit: slurm or local; detected by default")]
Partition = Annotated[str | None, typer.Option(help="Slurm partition (submitit)")]
SlurmTime = Annotated[
    int, typer.Option(help="Time limit of a job in minutes; it is queued again until done (submitit)", min=1)
]
Gpus = Annotated[int, typer.Option(help="GPUs of a job (submitit)", min=0)]
Cpus = Annotated[int, typer.Option(help="CPUs of a job (submitit)", min=1)]
AtOnce = Annotated[int, typer.Option(help="Tasks of the array that run at once (submitit)", min=1)]
JobParameters = Annotated[
    list[str] | None,
    typer.Option("--job", help="Parameter of submitit as key=value, e.g. slurm_account=mine; may be repeated"),
]


# What these options are where they are not given.
TASKS, SLURM_TIME, GPUS, CPUS, AT_ONCE = 16, 720, 0, 4, 256


def array_settings(
    launcher: str,
    cluster: str | None,
    partition: str | None,
    slurm_time: int,
    gpus: int,
    cpus: int,
    at_once: int,
    job: list[str] | None,
    tasks: int = TASKS,
) -> ArraySettings | None:
    """What these options ask of a cluster; None for the local launcher, beside which they are refused."""
    from workbench.evaluation.job_array import ArraySettings

    if launcher == LOCAL:
        given = {"cluster": cluster, "partition": partition, "job": job, "tasks": tasks != TASKS}
        of_a_job = {"slurm-time": slurm_time != SLURM_TIME, "gpus": gpus != GPUS, "cpus": cpus != CPUS}
        idle = [f"--{name}" for name, value in {**given, **of_a_job, "at-once": at_once != AT_ONCE}.items() if value]
        if idle:
            refuse(f"{', '.join(idle)} would change nothing here; they are for a cluster: --launcher submitit")
        return None
    if launcher != "submitit":
        refuse(f"--launcher {launcher!r}: choose local or submitit")
    if world() > 1:
        refuse("--launcher submitit is for one process: start it without torchrun")
    parameters = {
        "timeout_min": slurm_time,
        "gpus_per_node": gpus,
        "cpus_per_task": cpus,
        "slurm_array_parallelism": at_once,
        **pairs(job, "--job"),
    }
    return ArraySettings(cluster, parameters | ({"slurm_partition": partition} if partition else {}))


def submit_works(works: Mapping[str, Sequence[Work]], name: str, settings: ArraySettings) -> bool:
    """Submit what is to be done on runs, by their references; returns False if all of it is done."""
    from workbench.evaluation.dealt import submit

    jobs = submit(works, name, settings, say)
    say("all is done" if not jobs else f"{len(jobs)} tasks; if some fail, the same command again does what is missing")
    return bool(jobs)
