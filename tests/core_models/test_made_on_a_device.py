"""What a system makes anew says on which device: else a GPU's tensors would meet the CPU's. No test here has both."""

import sys
from types import FrameType

import pytest
import torch
from torch.overrides import TorchFunctionMode

from core_models.config import SearchConfig
from core_models.decoding import beam_search
from core_models.decoding.sampling import sample
from core_models.system_catalogue import catalogue
from core_models.text.batches import Batch
from tests.core_models.laws import DEVICE, backward, batch_of, random_sentences, random_system

MAKERS = (
    *(torch.arange, torch.zeros, torch.ones, torch.full, torch.empty, torch.eye, torch.tensor, torch.linspace),
    *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.from_numpy),
)

pytestmark = pytest.mark.long
# What a GPU is given to drop by is drawn where it lies; the CPU has a way of its own (see the module).
CPU_ONLY = ("core_models.layers.dropout",)


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


class _MadeWithoutDevice(TorchFunctionMode):
    """Notes each line of core_models that makes a tensor and does not say where."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: set[str] = set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in MAKERS and kwargs.get("device") is None and kwargs.get("out") is None:
            frame = sys._getframe(1)
            while frame is not None and _module(frame).startswith("torch"):
                frame = frame.f_back
            if frame is not None and _module(frame).startswith("core_models.") and _module(frame) not in CPU_ONLY:
                self.lines.add(f"{_module(frame)}:{frame.f_lineno} {func.__name__}")
        return func(*args, **kwargs)


@pytest.mark.parametrize("name", catalogue())
def test_every_tensor_made_in_training_and_search_says_where(name):
    system = random_system(name, torch.float32)
    batch: Batch = batch_of(system, random_sentences([5, 2, 3], 1), random_sentences([2, 6, 0], 2))
    limits = torch.tensor([4, 5, 6], device=DEVICE)
    with _MadeWithoutDevice() as made:
        backward(system, batch)
        with torch.no_grad():
            beam_search(system, system.encode(batch), limits, SearchConfig(beam=3), record=True)
            sample(system, system.encode(batch), limits, 2)
    assert not made.lines
