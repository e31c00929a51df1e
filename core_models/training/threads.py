"""PyTorch's threads while a training shares its processors with other processes.

Threads of one step wait for each other. Where another process takes one of the processors, all wait for the thread that
has none, and two threads are slower than one. So a training on a CPU takes as many threads as processors are left.
"""

from __future__ import annotations

import os
import time

import psutil
import torch

from core_models.resources import processors

_IDLE = ("idle", "iowait", "guest", "guest_nice")  # guests are in user and nice already


class ThreadsByLoad:
    """Sets the number of PyTorch's threads by what other processes use of the processors that this one may use.

    Only where nobody has chosen a number: by OMP_NUM_THREADS or `torch.set_num_threads`. The order of sums, and so the
    last bits of what is trained, depends on the number.
    """

    def __init__(self, device: torch.device, processes: int = 1) -> None:
        """processes: that train together; several keep their numbers."""
        chosen = "OMP_NUM_THREADS" in os.environ or torch.get_num_threads() != processors()
        self.adapts = device.type == "cpu" and processes == 1 and not chosen and processors() > 1
        self._before = _times() if self.adapts else (0.0, 0.0, 0.0)
        self._initial = torch.get_num_threads()

    def adapt(self) -> int | None:
        """Set the number by the load since the last call; returns it if it has changed."""
        if not self.adapts:
            return None
        now = _times()
        wall, others, own = (after - before for after, before in zip(now, self._before, strict=True))
        self._before = now
        threads = threads_for(processors(), max(0.0, others - own) / wall)
        if threads == torch.get_num_threads():
            return None
        torch.set_num_threads(threads)
        return threads

    def restore(self) -> None:
        """Set the number that was found at first: of what this process does after the training, and its next one."""
        if self.adapts:
            torch.set_num_threads(self._initial)


def threads_for(processors: int, others: float) -> int:
    """The number of threads on so many processors, of which others keep `others` busy; at least one."""
    return max(1, processors - round(others))


def _times() -> tuple[float, float, float]:
    """Seconds so far: of the clock, of all processes on the processors of this one, and of this process.

    Processes of a lower priority give way, and do not count.
    """
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(processors())
    idle = _IDLE if os.name != "posix" or os.getpriority(os.PRIO_PROCESS, 0) > 0 else (*_IDLE, "nice")
    by_processor = [times._asdict() for number, times in enumerate(psutil.cpu_times(percpu=True)) if number in usable]
    busy = sum(seconds for times in by_processor for kind, seconds in times.items() if kind not in idle)
    return time.perf_counter(), busy, time.process_time()
