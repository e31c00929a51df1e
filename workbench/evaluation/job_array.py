"""An array of jobs on a cluster by submitit: one callable, called with other arguments in each task.

Knows submitit and its settings, not what the tasks do. A task near its time limit is queued again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.store.errors import RunError

if TYPE_CHECKING:
    import submitit

REQUEUES = 100  # times that a job out of time is queued again: weeks of work in jobs of hours


@dataclass(frozen=True)
class ArraySettings:
    """What an array asks of the cluster.

    cluster: slurm, local, or None for automatic detection. parameters: of `submitit.AutoExecutor.update_parameters`
    (timeout_min, gpus_per_node, slurm_partition, slurm_array_parallelism, …).
    """

    cluster: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cpus(self) -> int:
        """The processors of a task; one if they are not given."""
        cpus = self.parameters.get("cpus_per_task")
        return cpus if isinstance(cpus, int) and cpus > 0 else 1


class Again:
    """A task that is queued again is called as before: what it does must go on where it was."""

    def checkpoint(self, *arguments: Any) -> submitit.helpers.DelayedSubmission:
        """Return the same task for submitit to queue again, before a timeout or preemption."""
        import submitit

        task: Any = self
        return submitit.helpers.DelayedSubmission(task, *arguments)


def executor_of(folder: Path, name: str, settings: ArraySettings) -> submitit.AutoExecutor:
    """What submits an array; its logs are in `folder`. Raises RunError without the extra or for wrong settings."""
    try:
        import submitit
    except ImportError:
        raise RunError("--launcher submitit needs the extra: pip install 'nmt-workbench[cluster]'") from None
    try:
        executor = submitit.AutoExecutor(folder.resolve(), cluster=settings.cluster, slurm_max_num_timeout=REQUEUES)
        executor.update_parameters(**settings.parameters)
    except (RuntimeError, NameError, TypeError, ValueError) as error:
        raise RunError(f"submitit rejects the settings: {error}") from None
    executor.update_parameters(name=name)
    return executor


def submit_array(
    executor: submitit.AutoExecutor, task: Callable[..., str], calls: Sequence[tuple[Any, ...]]
) -> list[submitit.Job[str]]:
    """Submit an array with a task for each tuple of arguments; none without any. The nodes must see the same paths."""
    return executor.map_array(task, *zip(*calls, strict=True)) if calls else []
