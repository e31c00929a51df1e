"""Which operators the time of training and of beam search goes to, on the shape of the benchmark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from workbench.benchmark.speed import measure_decoding, measure_training
from workbench.benchmark.workload import Shape


class Profile(NamedTuple):
    """operators: a row an operator: work (training, decoding), operator, share (of the time in operators themselves),
    calls; recurrence: the share of training in steps that wait for each other, their backward passes included (weights'
    gradients are made after them: `core_models.layers.deferred_linear`)."""

    operators: list[dict[str, Any]]
    recurrence: float


def profile(
    name: str, shape: Shape, precision: str = "float32", device: str = "cpu", threads: int = 0, fewest: float = 0.01
) -> Profile:
    """Operators with less than the share `fewest` are one row, "others". Warm-up steps are in it: take one with few."""
    import torch

    from core_models.system_builder import build

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(1)
    system = build(name, shape.vocabulary).to(device)
    works = {"training": measure_training, "decoding": measure_decoding}
    events = {work: _events(partial(measure, system, shape, precision), device) for work, measure in works.items()}
    rows = [{"work": work, **row} for work, own in events.items() for row in _shares(own, fewest)]
    return Profile(rows, _recurrent(events["training"]))


class _Event(NamedTuple):
    """A call of an operator: its own time (µs), the places of the calls around it, the outermost last, and the number
    that a forward and its backward call share."""

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
    found = list(profiler.events())
    places = {id(one): place for place, one in enumerate(found)}

    def around(one: Any) -> Iterator[int]:
        while (one := one.cpu_parent) is not None:
            yield places[id(one)]

    return [
        _Event(
            one.key,
            float(one.self_device_time_total if on_gpu else one.self_cpu_time_total),
            tuple(around(one)),
            one.sequence_nr,
        )
        for one in found
    ]


def _shares(events: Sequence[_Event], fewest: float) -> list[dict[str, Any]]:
    spent, calls = defaultdict[str, float](float), Counter(one.name for one in events)
    for one in events:
        spent[one.name] += one.time
    whole = sum(spent.values())
    rows: list[dict[str, Any]] = [
        {"operator": name, "share": time / whole, "calls": calls[name]}
        for name, time in sorted(spent.items(), key=lambda item: -item[1])
        if time / whole >= fewest
    ]
    others = calls.total() - sum(row["calls"] for row in rows)
    return [*rows, {"operator": "others", "share": 1 - sum(row["share"] for row in rows), "calls": others}]


def _recurrent(events: Sequence[_Event]) -> float:
    """The share of what is called within a recurrence, or is the backward call of that."""
    from core_models.layers.deferred_linear import LATE
    from core_models.layers.recurrent import RECURRENCE

    def within(marked: set[int]) -> set[int]:
        return {place for place, one in enumerate(events) if place in marked or not marked.isdisjoint(one.around)}

    forward = within({place for place, one in enumerate(events) if str(one.name) == RECURRENCE})
    numbers = {events[place].sequence for place in forward if events[place].name != LATE} - {-1}
    engine = "autograd::engine::evaluate_function"
    calls = {place for place, one in enumerate(events) if one.name.startswith(engine)}
    backward = within({place for place in calls if events[place].sequence in numbers})
    return sum(events[place].time for place in forward | backward) / sum(one.time for one in events)
