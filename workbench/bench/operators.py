"""Which operators the time of training and of beam search goes to, on the shape of the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from workbench.bench.ours import measure_decoding, measure_training
from workbench.bench.shape import Shape


def profile(
    name: str, shape: Shape, precision: str = "float32", device: str = "cpu", threads: int = 0, fewest: float = 0.01
) -> list[dict[str, Any]]:
    """A row an operator: work (training, decoding), operator, share (of the time in operators themselves), calls.

    Operators with less than the share `fewest` are one row, "others". Warm-up steps are in it: take a shape with few.
    """
    import torch

    from core_models.systems import build

    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(1)
    system = build(name, shape.vocabulary).to(device)
    works = {"training": measure_training, "decoding": measure_decoding}
    return [
        {"work": work, **row}
        for work, measure in works.items()
        for row in _shares(partial(measure, system, shape, precision), device, fewest)
    ]


def _shares(work: Callable[[], object], device: str, fewest: float) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    on_gpu = device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as profiler:
        work()
    spent = {
        one.key: (float(one.self_device_time_total if on_gpu else one.self_cpu_time_total), one.count)
        for one in profiler.key_averages()
    }
    whole = sum(time for time, _ in spent.values())
    ordered = sorted(spent.items(), key=lambda item: -item[1][0])
    rows = [
        {"operator": key, "share": time / whole, "calls": calls}
        for key, (time, calls) in ordered
        if time / whole >= fewest
    ]
    named = {row["operator"] for row in rows}
    calls = sum(count for key, (_, count) in spent.items() if key not in named)
    return [*rows, {"operator": "others", "share": 1 - sum(row["share"] for row in rows), "calls": calls}]
