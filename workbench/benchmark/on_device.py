"""Tests and speed of systems on a device at real sizes: finiteness of training steps, and speed by batch size.

Each measurement is a row of one CSV file, written at once. Rows without a problem are not measured again, so an
interrupted call can be resumed. The options: `python -m workbench.benchmark.on_device WORK --help`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.benchmark.workload import SHAPES, Shape, training_pairs

if TYPE_CHECKING:
    import torch

    from core_models.system import System
    from core_models.text.batches import Batch

Row = dict[str, Any]
PRECISIONS = ("float32", "tf32", "bfloat16")


class Work(StrEnum):
    FINITE = "finite"
    TRAINING = "training"
    DECODING = "decoding"


@dataclass(frozen=True)
class Task:
    """One measurement. size: target tokens of a training batch, or sentences of a decoding batch."""

    work: str
    system: str
    precision: str
    size: int


def with_gaps(system: System, sources: list[list[int]], targets: list[list[int]]) -> Batch:
    """A batch with gaps in the context: of every four sentences one lacks the nearest one before it, one has none.

    Attention kernels have failed on completely masked rows.
    """
    from core_models.text.batches import collate
    from core_models.text.documents import Ids, prepend_context

    use = system.context
    if not use.sentences:
        return collate(sources, targets)

    def before(lines: list[list[int]]) -> list[list[Ids | None]]:
        return [
            [None if row % 4 == 0 or (row % 4 == 1 and k == 0) else lines[(row - 1 - k) % len(lines)]
             for k in range(use.entries)]
            for row in range(len(lines))
        ]  # fmt: skip

    contexts = before(sources)
    if use.joined:
        return collate([prepend_context(*both) for both in zip(sources, contexts, strict=True)], targets)
    return collate(sources, targets, contexts, outputs=before(targets) if use.outputs else None)


def finite_steps(system: System, shape: Shape, precision: str) -> Row:
    """Run training steps on random text; returns the first and the last loss per target token, or the problem.

    Stops at the first step whose losses or gradients are not finite; `problem` then names them.
    """
    import torch

    from core_models.training.loss_module import Objective, total_loss

    objective = Objective(system.train(), shape.label_smoothing)
    optimizer = torch.optim.AdamW(system.parameters(), lr=3e-4)
    losses: list[float] = []
    for number, pair in enumerate(training_pairs(shape), start=1):
        batch = with_gaps(system, *pair).to(system.device)
        with torch.autocast(system.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            terms = objective(batch)
        loss = total_loss(terms) / batch.target_tokens
        loss.backward()
        losses.append(loss.item())
        if broken := [*_broken(terms.items()), *_broken(_gradients(system))]:
            rest = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
            return {"steps": number, "problem": f"step {number}: not finite: {', '.join(broken[:3])}{rest}"}
        torch.nn.utils.clip_grad_norm_(system.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return {"steps": len(losses), "first_loss": losses[0], "last_loss": losses[-1]}


def _gradients(system: System) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in system.named_parameters():
        if parameter.grad is not None:
            yield f"gradient of {name}", parameter.grad


def _broken(tensors: Iterable[tuple[str, torch.Tensor]]) -> list[str]:
    return [name for name, tensor in tensors if not bool(tensor.isfinite().all())]


def measure(task: Task, shape: Shape, device: str) -> Row:
    """The row of a task; an error, such as out of memory, is its `problem`."""
    import torch

    from core_models.system_builder import build
    from workbench.benchmark.speed import measure_decoding, measure_training

    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high" if task.precision == "tf32" else "highest")
    on_cuda = device.startswith("cuda")
    if on_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    try:
        system = build(task.system, shape.vocabulary).to(device)
        if task.work == Work.FINITE:
            measured_values: Row = finite_steps(system, replace(shape, batch_tokens=task.size), task.precision)
        elif task.work == Work.TRAINING:
            measured_values = {**measure_training(system, replace(shape, batch_tokens=task.size), task.precision)}
        else:
            measured_values = {**measure_decoding(system, replace(shape, batch_sentences=task.size), task.precision)}
    except (RuntimeError, ValueError) as error:  # torch.OutOfMemoryError is a RuntimeError
        measured_values = {"problem": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"}
    finally:
        torch.set_float32_matmul_precision("highest")
    memory = {"peak_memory_bytes": torch.cuda.max_memory_allocated(device)} if on_cuda else {}
    return {**asdict(task), "problem": "", **measured_values, **memory}


def measured(tasks: Iterable[Task], shape: Shape, device: str, csv: Path) -> Iterator[tuple[Row, bool]]:
    """Yield the row of every task and whether it was stored already; each is in the file before it is yielded."""
    import pandas as pd

    from core_models.files.atomic_files import write_atomic

    rows: list[Row] = []
    if csv.exists():
        rows = pd.read_csv(csv, keep_default_na=False).to_dict("records")  # type: ignore[assignment]
    for task in tasks:
        key = {name: str(value) for name, value in asdict(task).items()}
        same = [row for row in rows if all(str(row[name]) == value for name, value in key.items())]
        if same and not same[-1]["problem"]:
            yield same[-1], True
            continue
        rows = [row for row in rows if row not in same]
        rows.append(measure(task, shape, device))
        write_atomic(csv, pd.DataFrame(rows).to_csv(index=False))
        yield rows[-1], False


def main(
    work: Annotated[Work, typer.Argument(help="finite: losses and gradients of training steps; else speeds")],
    csv: Annotated[Path, typer.Option(help="Where rows are kept; what is there is not measured again")],
    system: Annotated[list[str] | None, typer.Option(help="May be repeated; all of the catalogue if not given")] = None,
    precision: Annotated[list[str] | None, typer.Option(help=f"{', '.join(PRECISIONS)}; may be repeated")] = None,
    size: Annotated[list[int] | None, typer.Option(help="Target tokens a batch, or sentences; repeatable")] = None,
    preset: str = "base",
    vocabulary: int = 32000,
    steps: int = 10,
    sentences: Annotated[int, typer.Option(help="That are decoded")] = 400,
    device: str = "cuda",
) -> None:
    """Measure each system at each size in each precision, one after the other in this process."""
    from core_models.devices import check_device
    from core_models.system_catalogue import catalogue

    check_device(device)
    shape = replace(SHAPES.get(preset, Shape()), vocabulary=vocabulary, steps=steps, sentences=sentences)
    shape = replace(shape, warmup=0) if work is Work.FINITE else shape
    tasks = [
        Task(work.value, f"{name}{',' if ':' in name else ':'}preset={preset}", kind, tokens)
        for tokens in size or [4096]
        for kind in precision or ["bfloat16"]
        for name in system or catalogue()
    ]
    problems = 0
    for row, was_stored in measured(tasks, shape, device, csv):
        problems += bool(row["problem"])
        shown = {name: value for name, value in row.items() if value != "" and name != "work"}
        typer.echo(f"{'kept ' if was_stored else ''}{shown}")
    if problems:
        typer.echo(f"{problems} of {len(tasks)} had a problem; they are measured again when this is called again")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
