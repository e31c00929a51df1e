"""A GPU, shown without one: tensors that say `device == cuda:0` and are computed on the CPU.

Inside `FakeCuda` whatever asks for CUDA gets such tensors. As on a GPU, an operation on them raises if a tensor of the
CPU with dimensions takes part, `numpy()` does too, and the host waits where it reads a value. Which lines make it wait
is counted. A copy to page-locked memory that nobody waits for arrives when an event recorded after it is waited for.
Not shown: kernels, their speed and rounding, autocast, streams and memory.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
from torch.utils._python_dispatch import return_and_correct_aliasing

CUDA = torch.device("cuda:0")
BACKWARD = "backward"
OURS = ("core_models.", "analyses.", "workbench.")
aten, sdpa = torch.ops.aten, torch.nn.functional.scaled_dot_product_attention
# Operators whose CUDA kernels tell the host a number: the shape of the result, or whether it is valid.
WAITING = {
    aten._local_scalar_dense.default: "reads a number",
    aten.nonzero.default: "nonzero",
    aten.masked_select.default: "masked_select",
    aten.equal.default: "equal",
    aten.multinomial.default: "multinomial",
    aten._unique2.default: "unique",
}
INDEXING = (
    *(aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default),
    *(aten._unsafe_index.Tensor, aten._unsafe_index_put.default),
)


class MeetingOfDevices(RuntimeError):
    """What a GPU refuses: an operation on its tensors with a tensor of the CPU."""


class FakeCudaTensor(Tensor):
    """A tensor on the pretended GPU; `values` are its numbers, on the CPU. Autograd knows it as a tensor of the CPU."""

    values: Tensor
    gpu: FakeCuda

    @staticmethod
    def __new__(cls, values: Tensor, gpu: FakeCuda) -> FakeCudaTensor:
        assert not isinstance(values, FakeCudaTensor)
        with torch.inference_mode(False):  # else autograd refuses views of tensors that were made outside of that mode
            shown = Tensor._make_wrapper_subclass(
                cls,
                values.shape,
                strides=values.stride(),
                storage_offset=values.storage_offset(),
                dtype=values.dtype,
                device=values.device,
            )
        shown.values, shown.gpu = values, gpu
        return shown

    def __repr__(self) -> str:
        return f"FakeCudaTensor({self.values})"

    def __tensor_flatten__(self) -> tuple[list[str], FakeCuda]:
        return ["values"], self.gpu

    @staticmethod
    def __tensor_unflatten__(inner: Mapping[str, Tensor], gpu: FakeCuda, size: Any, stride: Any) -> FakeCudaTensor:
        return FakeCudaTensor(inner["values"], gpu)

    @property
    def device(self) -> torch.device:
        return CUDA

    @property
    def is_cuda(self) -> bool:
        return True

    @property
    def is_cpu(self) -> bool:
        return False

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        self.gpu.wait("reads a list")
        return self.values.tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.gpu.wait("saves")
        return self.values.__reduce_ex__(protocol)

    def cpu(self, *_: Any, **__: Any) -> Tensor:
        return self.to("cpu")

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        device, dtype, non_blocking = _destination(*args, **kwargs)
        moved = self if dtype is None else torch.Tensor.to(self, dtype, copy=kwargs.get("copy", False))
        if device is None or device.type == "cuda":
            return moved
        assert not (torch.is_grad_enabled() and self.requires_grad), "no gradient goes through this copy"
        if not non_blocking:
            self.gpu.wait("copies to the host")
        return moved.values.clone()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled():  # leaves operators whole that are made of others
            parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        tensors: list[Tensor] = []

        def values_of(tensor: Tensor) -> Tensor:
            tensors.append(tensor)
            return tensor.values if isinstance(tensor, FakeCudaTensor) else tensor

        inner = _mapped(values_of, args), _mapped(values_of, kwargs)
        gpu = next(tensor.gpu for tensor in tensors if isinstance(tensor, FakeCudaTensor))
        gpu.check(func, args, kwargs, tensors)
        if func is aten.copy_.default and gpu.is_behind(*args):
            gpu.copy_later(*inner[0][:2])
            return args[0]
        values = func(*inner[0], **inner[1])
        gpu.take_memory(values)
        return return_and_correct_aliasing(func, args, kwargs, _mapped(gpu.show, values))


def _mapped(change: Callable[[Tensor], Any], value: Any) -> Any:
    """Arguments or results of an operator with their tensors changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(change, each) for each in value)
    if isinstance(value, dict):
        return {name: _mapped(change, each) for name, each in value.items()}
    return value


def _pinned(tensor: Tensor) -> Tensor:
    """A copy in page-locked memory, which needs a GPU; here it only says so."""
    copied = tensor.clone()
    copied.pinned = True  # type: ignore[attr-defined]
    return copied


def _grouped(tensors: Any, with_indices: bool = False) -> dict:
    """PyTorch's groups of tensors, whose devices it reads where Python does not come."""
    groups = _group_tensors_by_device_and_dtype(tensors, with_indices)
    return {(members[0][0][0].device, dtype): members for (_, dtype), members in groups.items()}


def _destination(*args: Any, copy: bool = False, **kwargs: Any) -> tuple[torch.device | None, torch.dtype | None, bool]:
    """What the arguments of `Tensor.to` ask for: the device, the type, and whether the host goes on meanwhile."""
    if isinstance(args[0] if args else None, Tensor):
        return args[0].device, args[0].dtype, kwargs.get("non_blocking", False)
    device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
    return device, dtype, non_blocking


class FakeEvent:
    """A mark between operations of the pretended GPU, which the host waits for."""

    def __init__(self, gpu: FakeCuda) -> None:
        self._gpu = gpu
        self._before: list[Callable[[], Any]] = []

    def record(self) -> None:
        self._before = [*self._gpu.copies]

    def synchronize(self) -> None:
        self._gpu.wait("waits for an event")
        for copy in self._before:
            if copy in self._gpu.copies:
                copy()
                self._gpu.copies.remove(copy)


class FakeCuda(TorchFunctionMode):
    """Within this context CUDA is there. `waits` counts what the host waits for, by line of our code and reason.

    What another thread than the one that entered it waits for is not counted. A copy from ordinary memory to the GPU is
    counted in `uploads`. room: the most numbers of a tensor that is computed; `largest`: the most there were.
    """

    def __init__(self, room: float = math.inf) -> None:
        super().__init__()
        self.room, self.largest = room, 0
        self.waits: Counter[str] = Counter()
        self.uploads: Counter[str] = Counter()
        self.copies: list[Callable[[], Any]] = []  # to the host, asked for and not there yet
        self._thread = threading.get_ident()

    def __enter__(self) -> FakeCuda:
        self._patches = ExitStack()
        for name, replaced in {
            "torch.nn.utils.clip_grad._group_tensors_by_device_and_dtype": _grouped,
            "torch.cuda.get_rng_state": lambda *_: torch.get_rng_state(),
            "torch.cuda.set_rng_state": lambda state, *_: torch.set_rng_state(state),
            "torch.cuda.mem_get_info": lambda *_: (0, 0),
            "torch.cuda.Event": partial(FakeEvent, self),
            "torch.Tensor.pin_memory": _pinned,
        }.items():
            self._patches.enter_context(patch(name, replaced))
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._patches.close()

    def __torch_function__(self, func: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.to and not isinstance(args[0], FakeCudaTensor):
            return self._moved(*args, **kwargs)
        if func is sdpa and kwargs.get("is_causal"):  # whose CPU form with dropout makes this mask itself, on the CPU
            query, key, value, _, dropout = args
            causal = query.new_ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
            return sdpa(query, key, value, causal, dropout)
        if kwargs.get("device") is None or torch.device(kwargs["device"]).type != "cuda":
            return func(*args, **kwargs)
        if func in (torch.tensor, torch.as_tensor):
            self.upload("torch.tensor")
        return self.show(func(*args, **{**kwargs, "device": "cpu"}))

    def _moved(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor of the CPU where `to` asks it to be."""
        device, dtype, non_blocking = _destination(*args, **kwargs)
        if device is None or device.type != "cuda":
            return tensor.to(*args, **kwargs)
        if not (non_blocking and hasattr(tensor, "pinned")):
            self.upload("to")
        assert not (torch.is_grad_enabled() and tensor.requires_grad), "no gradient goes through this copy"
        return self.show(tensor.detach().to(dtype=dtype, copy=True))

    def show(self, values: Tensor) -> FakeCudaTensor:
        return FakeCudaTensor(values, self)

    def check(self, func: Any, args: Any, kwargs: Mapping[str, Any], tensors: Iterable[Tensor]) -> None:
        """Raise MeetingOfDevices for what a GPU refuses; count what it makes the host wait for."""
        host = [tensor for tensor in tensors if not isinstance(tensor, FakeCudaTensor) and tensor.dim()]
        if host and _line() == BACKWARD:
            host = []  # zeros that autograd made itself, where it takes the gradient to be
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != "cuda":
            raise MeetingOfDevices(f"{func} draws on the GPU with a generator of the CPU")
        if func in INDEXING:
            self._check_index(func, args)
        elif func is aten.copy_.default:
            self._check_copy(*args)
        elif host:
            raise MeetingOfDevices(f"{func} of a tensor of the GPU and one of the CPU, {list(host[0].shape)}")
        elif func is aten.repeat_interleave.Tensor and kwargs.get("output_size") is None:
            self.wait("repeat_interleave")
        elif func in WAITING:
            self.wait(WAITING[func])

    def _check_index(self, func: Any, args: Any) -> None:
        """An index of the CPU is uploaded; a mask is turned into positions, whose number the host must know."""
        target, indices = args[:2]
        value = args[2] if len(args) > 2 else None
        of_host = value is not None and not isinstance(value, FakeCudaTensor)
        if not isinstance(target, FakeCudaTensor) or (of_host and value.dim()):
            raise MeetingOfDevices(f"{func} of a tensor of the CPU and one of the GPU")
        given = [index for index in indices if index is not None]
        masks = [index for index in given if index.dtype in (torch.bool, torch.uint8)]
        for _ in range(sum(not isinstance(index, FakeCudaTensor) for index in given)):
            self.upload("index")
        if of_host and len(masks) == len(indices) == 1:
            return  # a number at the places of one mask: PyTorch calls `masked_fill`, which needs no positions
        for _ in masks:
            self.wait("index by a mask")

    def is_behind(self, into: Tensor, source: Tensor, non_blocking: bool = False) -> bool:
        """True for a copy to page-locked memory that the host does not wait for."""
        return non_blocking and hasattr(into, "pinned")

    def copy_later(self, into: Tensor, values: Tensor) -> None:
        """Copy the values of now into memory of the host when an event that is recorded from now on is waited for."""
        self.copies.append(partial(into.copy_, values.clone()))

    def _check_copy(self, into: Tensor, source: Tensor, non_blocking: bool = False) -> None:
        if self.is_behind(into, source, non_blocking):
            return
        if not isinstance(into, FakeCudaTensor):
            self.wait("copies to the host")
        elif not isinstance(source, FakeCudaTensor) and source.dim():
            self.upload("copy_")

    def take_memory(self, values: Any) -> None:
        """Raise an error, as an allocator does, for a tensor with more numbers than `room`."""
        size = values.numel() if isinstance(values, Tensor) else 0
        self.largest = max(self.largest, size)
        if size > self.room:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} numbers")

    def wait(self, reason: str) -> None:
        if threading.get_ident() == self._thread:
            self.waits[f"{_line()} {reason}"] += 1

    def upload(self, reason: str) -> None:
        self.uploads[f"{_line()} {reason}"] += 1


def _line() -> str:
    """The function of our code that is running, `module.function`; what the backward pass runs has none of its own."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "torch.autograd.graph":
            return BACKWARD
        if module.startswith(OURS):
            return f"{module}.{frame.f_code.co_qualname.split('.<locals>')[0]}"
        frame = frame.f_back
    return "elsewhere"
