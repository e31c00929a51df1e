"""What fits into a GPU's memory, found before the first step: the dearest batches are tried, and cut until they fit.

The batch of an update stays the configured one, whose gradients its parts add up to. So the GPU's size changes no more
than the draws of dropout and rounding, and a run that goes on elsewhere is tried there anew. What REINFORCE samples is
not tried.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from core_models.decoding.memory_batching import release_memory
from core_models.text.batch_loader import BatchLoader
from core_models.text.batches import Batch
from core_models.training.fitting_batches import FittingBatches
from core_models.training.loss_module import total_loss

SPARE = 0.1  # of the free memory, for what the allocator cannot use


def limit_of_memory(
    objective: nn.Module, optimizer: torch.optim.Optimizer, loader: BatchLoader, epoch: int, device: torch.device
) -> tuple[float, str]:
    """The most padded words of a batch that fits, infinite if all do, and the allocator's message.

    The generators of random numbers stay as they are. Decides nothing on a CPU, nor if not even single sentences fit.
    """
    if device.type != "cuda":
        return math.inf, ""
    cuts: list[tuple[float, str]] = []
    trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def forget() -> None:
        optimizer.zero_grad(set_to_none=True)

    def work(parts: list[Batch]) -> None:
        kept = torch.empty(_kept_bytes(optimizer, trained, device), dtype=torch.uint8, device=device)
        for part in parts:
            total_loss(objective(part.to(device))).backward()
        del kept

    with torch.random.fork_rng([device]):
        try:
            FittingBatches(lambda words, cause: cuts.append((words, cause))).run(
                dearest_batches(loader, epoch), work, forget
            )
        except torch.OutOfMemoryError:
            cuts.clear()
    forget()
    release_memory()
    return cuts[-1] if cuts else (math.inf, "")


def dearest_batches(loader: BatchLoader, epoch: int) -> list[Batch]:
    """The batches of the epoch with the most padded words, and with the most pairs of them, which attention takes.

    With context also those with the most words of context, and with the most pairs of them with words of the sentences,
    whether or not they count in the token budget. Of lengths as they are stored.
    """
    plan, (sources, targets, widths) = loader.plan(epoch), loader.lengths()

    def sizes(number: int) -> tuple[int, int, int]:
        rows = plan[number]
        longest = 1 + max(int(sources[rows].max()), int(targets[rows].max()))
        return len(rows), longest, 0 if widths is None else int(widths[rows].max())

    costs = [
        (count * longest, count * longest**2, count * context, count * longest * context)
        for count, longest, context in map(sizes, range(len(plan)))
    ]
    kinds = range(2 if widths is None else 4)
    numbers = {max(range(len(plan)), key=lambda number: costs[number][kind]) for kind in kinds}
    return [loader.batch(epoch, number) for number in sorted(numbers)]


def _kept_bytes(optimizer: torch.optim.Optimizer, trained: list[Tensor], device: torch.device) -> int:
    """What a step keeps besides: the gradients of batches before, moments that are not made yet, and spare room."""
    copies = 1 if optimizer.state else 3
    spare = int(SPARE * torch.cuda.mem_get_info(device)[0])
    return copies * sum(parameter.numel() * parameter.element_size() for parameter in trained) + spare
