"""Write, read and check the optimizer's moments and all random states, RUN/state/step-*/optimizer.pt.

The file is read with `weights_only`, so only tensors are unpickled, and every tensor is checked against its parameter
before the optimizer uses it, whose kernels trust shapes and strides.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core_models.checkpoint import CheckpointError, whole_file
from core_models.files.run_files import TENSORS, open_file

OPTIMIZER = "optimizer.pt"
_MOMENTS = ("exp_avg", "exp_avg_sq")
_PRECISIONS = (torch.float32, torch.float64)


def write_optimizer(folder: Path, optimizer: Mapping[str, Any], random: Mapping[str, Tensor]) -> None:
    """Write optimizer.pt of a state; optimizer: its state_dict; random: by device type, [processes, bytes]."""
    with whole_file(folder / OPTIMIZER) as path, path.open("wb") as file:
        torch.save({"optimizer": dict(optimizer), "random": dict(random)}, file)


def load_optimizer(folder: Path, optimizer: torch.optim.Optimizer, processes: int) -> dict[str, Tensor]:
    """Load the moments of a state into an optimizer; returns the random states by device type, [processes, bytes].

    Betas and weight decay stay the optimizer's, as the configuration may have changed. Raises CheckpointError if the
    file is of other parameters or invalid.
    """
    stored = _read(folder)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    try:
        moments, groups, states = _parts(stored)
        trained = _trained(groups)
        if trained != len(parameters):
            raise CheckpointError(
                f"{folder}: {trained} tensors were trained here and now {len(parameters)} are, by other settings or an "
                "older version, so the optimiser's numbers are of others; begin from its weights: init_from"
            )
        if unlike := _unlike(groups, optimizer):
            raise CheckpointError(
                f"{folder}: {unlike} was trained here and now is not (trainable_params), so the optimiser's numbers "
                "are of others; begin from its weights: init_from"
            )
        if not all(type(index) is int and 0 <= index < trained for index in moments):
            raise ValueError("there are moments of no parameter")
        checked = {index: _moments(values, parameters[index], index) for index, values in moments.items()}
        random = {kind: _random(state, processes) for kind, state in states.items()}
        if "cpu" not in random:
            raise ValueError("there is no random state")
    except CheckpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise unreadable(folder, error) from None
    param_groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": checked, "param_groups": param_groups})
    return random


def unreadable(state: Path, error: Exception) -> CheckpointError:
    """The error for a state that cannot be read."""
    why = " ".join(str(error).split())[:300]
    return CheckpointError(
        f"{state}: this state cannot be read ({why}); move the folder away to go on from the state before it"
    )


def _read(folder: Path) -> Any:
    try:
        with open_file(folder / OPTIMIZER, TENSORS) as file:
            with zipfile.ZipFile(file) as archive:  # torch.save does not compress; compressed data may be a zip bomb
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                    raise ValueError(f"{OPTIMIZER} is compressed")
            file.seek(0)
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's reader of a spoiled file fails in as many ways as there are bytes
        raise unreadable(folder, error) from None


def _parts(stored: Any) -> tuple[dict[Any, Any], list[Any], dict[Any, Any]]:
    """The moments by parameter, the groups of parameters, and the random states; raises ValueError."""
    match stored:
        case {"optimizer": {"state": dict(moments), "param_groups": list(groups)}, "random": dict(states)}:
            return moments, groups, states
    raise ValueError("it holds something else than an optimizer and random states")


def _trained(groups: list[Any]) -> int:
    """The number of tensors in the groups; raises ValueError unless they are numbered consecutively."""
    indices = [index for group in groups for index in dict(group)["params"]]
    if indices != list(range(len(indices))):
        raise ValueError("the parameters of the optimizer are not in order")
    return len(indices)


def _unlike(groups: list[Any], optimizer: torch.optim.Optimizer) -> str | None:
    """The name of a stored parameter whose place another one has now; states of earlier versions have no names."""
    stored = [name for group in groups for name in dict(group).get("param_names", ())]
    if not stored:
        return None
    now = [name for group in optimizer.param_groups for name in group["param_names"]]
    return next((name for name, other in zip(stored, now, strict=True) if name != other), None)


def _moments(values: Mapping[str, Any], parameter: Tensor, index: int) -> dict[str, Tensor]:
    """A checked copy of AdamW's moments of a parameter; raises ValueError for anything else."""
    if dict(values).keys() != {"step", *_MOMENTS}:
        raise ValueError(f"parameter {index} has other moments than {', '.join(_MOMENTS)}")
    moments = {"step": _plain(values["step"], _PRECISIONS, f"step of parameter {index}")}
    if moments["step"].dim() or not 0 <= float(moments["step"]) < 1 << 53:
        raise ValueError(f"step of parameter {index} is no number of steps")
    for name in _MOMENTS:
        tensor = _plain(values[name], _PRECISIONS, f"{name} of parameter {index}")
        if tensor.shape != parameter.shape:
            raise ValueError(
                f"{name} of parameter {index} is {list(tensor.shape)}, the parameter {list(parameter.shape)}"
            )
        moments[name] = tensor.to(parameter.dtype).clone(memory_format=torch.contiguous_format)
        if not bool(moments[name].isfinite().all()) or (name == "exp_avg_sq" and bool((moments[name] < 0).any())):
            raise ValueError(f"{name} of parameter {index} holds numbers that no moment can be")
    return moments


def _random(value: Any, processes: int) -> Tensor:
    """Random states [processes, bytes] uint8; those of a single process may lack the first axis."""
    states = torch.atleast_2d(_plain(value, (torch.uint8,), "random state"))
    if states.dim() != 2 or len(states) != processes:
        raise ValueError(f"the random states are {list(states.shape)}, of {processes} processes")
    return states


def _plain(value: Any, kinds: tuple[torch.dtype, ...], what: str) -> Tensor:
    """Check that a value is a strided CPU tensor of one of these types."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type != "cpu":
        raise ValueError(f"{what} is no tensor")
    if value.dtype not in kinds:
        raise ValueError(f"{what} is stored as {str(value.dtype).removeprefix('torch.')}")
    return value
