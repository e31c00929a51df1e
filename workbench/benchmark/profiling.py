"""Profile of operators in training and beam search, on the shape of the benchmark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from workbench.benchmark.speed import measure_decoding, measure_training
from workbench.benchmark.workload import Shape


class Profile(NamedTuple):
    """Time by operator, and the share of recurrence in training.

    operators: one row each with work (training, decoding), operator, share (of the operators' own time) and calls.
    recurrence: the share of sequential steps with their backward passes, without the weights' gradients, which are
    computed later (`core_models.layers.deferred_linear`).
    """

    operators: list[dict[str, Any]]
    recurrence: float


def profile(
    name: str, shape: Shape, precision: str = "float32", device: str = "cpu", threads: int = 0, fewest: float = 0.01
) -> Profile:
    """Profile training and decoding of a system; a shape with few warm-up steps is best, since these count too.

    Operators with a share below `fewest` are summed up in one row, "others".
    """
    import torch

    from core_models.system_builder import build

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(1)
    system = build(name, shape.vocabulary).to(device)
    works = {"training": measure_training, "decoding": measure_decoding}
    events = {work: _events(partial(measure, system, shape, precision), device) for work, measure in works.items()}
    rows = [{"work": work, **row} for work, work_events in events.items() for row in _shares(work_events, fewest)]
    return Profile(rows, _recurrent(events["training"]))


class _Event(NamedTuple):
    """A call of an operator.

    time: its own time in µs. around: indices of the enclosing calls, the outermost last. sequence: the common number
    of a forward and its backward call.
    """

    name: str
    time: float
    around: tuple[int, ...]
    sequence: int


def _events(work: Callable[[], object], device: str) -> list[_Event]:
    from torch.profiler import ProfilerActivity, profile

    on_gpu = device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as profiler:
        work()
    calls = list(profiler.events())
    indices = {id(call): index for index, call in enumerate(calls)}

    def around(call: Any) -> Iterator[int]:
        while (call := call.cpu_parent) is not None:
            yield indices[id(call)]

    return [
        _Event(
            call.key,
            float(call.self_device_time_total if on_gpu else call.self_cpu_time_total),
            tuple(around(call)),
            call.sequence_nr,
        )
        for call in calls
    ]


def _shares(events: Sequence[_Event], fewest: float) -> list[dict[str, Any]]:
    spent, calls = defaultdict[str, float](float), Counter(event.name for event in events)
    for event in events:
        spent[event.name] += event.time
    total = sum(spent.values())
    rows: list[dict[str, Any]] = [
        {"operator": name, "share": time / total, "calls": calls[name]}
        for name, time in sorted(spent.items(), key=lambda item: -item[1])
        if time / total >= fewest
    ]
    others = calls.total() - sum(row["calls"] for row in rows)
    return [*rows, {"operator": "others", "share": 1 - sum(row["share"] for row in rows), "calls": others}]


def _recurrent(events: Sequence[_Event]) -> float:
    """The time share of calls within a recurrence and their backward calls."""
    from core_models.layers.deferred_linear import LATE
    from core_models.layers.recurrent import RECURRENCE

    def within(marked: set[int]) -> set[int]:
        return {index for index, event in enumerate(events) if index in marked or not marked.isdisjoint(event.around)}

    forward = within({index for index, event in enumerate(events) if str(event.name) == RECURRENCE})
    numbers = {events[index].sequence for index in forward if events[index].name != LATE} - {-1}
    engine = "autograd::engine::evaluate_function"
    calls = {index for index, event in enumerate(events) if event.name.startswith(engine)}
    backward = within({index for index in calls if events[index].sequence in numbers})
    return sum(events[index].time for index in forward | backward) / sum(event.time for event in events)
