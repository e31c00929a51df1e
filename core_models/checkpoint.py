"""The files of a trained system: write, read, validate. Nothing is ever unpickled from them.

RUN/{config.yaml, weights.safetensors}  RUN/vocabulary/{source,target}.model  RUN/checkpoints/step-*.safetensors
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from core_models.config import CONFIG, RunConfig, read_config, split_reference, weights_path
from core_models.files.atomic_folders import anything, atomic_replace_folder
from core_models.files.run_files import TENSORS, check
from core_models.foreign import open_model
from core_models.settings import ConfigError, write_yaml
from core_models.system import System
from core_models.system_builder import build
from core_models.text.dictionary_vocabulary import load_vocabulary
from core_models.text.vocabulary import Vocabulary


class CheckpointError(ValueError):
    """Files of a run that are missing, broken or made for something else; the message names file and tensor."""


@dataclass
class Trained:
    """A trained system with its vocabularies and configuration."""

    folder: Path
    config: RunConfig
    system: System
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    weights: Path


def begin_run(folder: Path, config: RunConfig, source: Vocabulary, target: Vocabulary) -> None:
    """Create a run folder atomically, with its configuration and a copy of the vocabularies.

    Raises FolderError if the folder is not empty.
    """
    config = config.model_copy(update={"vocabulary": {"source": source.digest, "target": target.digest}})
    with atomic_replace_folder(folder, "train", anything) as part:
        (part / "vocabulary").mkdir()
        source.save(part / "vocabulary" / "source.model")
        target.save(part / "vocabulary" / "target.model")
        write_yaml(part / CONFIG, config.model_dump(mode="json", exclude_none=True))


def vocabularies_of(folder: Path) -> tuple[Vocabulary, Vocabulary]:
    """A run's copies of the source and target vocabulary; raises TextError if one is missing or invalid."""
    source, target = (load_vocabulary(folder / "vocabulary" / f"{side}.model") for side in ("source", "target"))
    return source, target


def weights_of(system: System) -> dict[str, Tensor]:
    """All parameters by name, tied ones once."""
    return {name: parameter.detach() for name, parameter in system.named_parameters()}


def write_weights(path: Path, system: System) -> None:
    """Write all parameters to `path`, atomically."""
    write_tensors(path, weights_of(system))


class SharedWeights:
    """Weights by name, written to any number of paths: once, then as hard links to that file."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self._weights = weights
        self._written: Path | None = None

    def write(self, path: Path) -> None:
        """Write `path` atomically; on a disk without hard links it becomes a copy of the first."""
        if self._written is None:
            write_tensors(path, self._weights)
            self._written = path
            return
        with whole_file(path) as part:
            try:
                os.link(self._written, part)
            except OSError:
                shutil.copyfile(self._written, part)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    with whole_file(path) as part:
        save_file(
            {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, part, metadata={"format": "pt"}
        )


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name; the file written there is synced and renamed to `path` at the end.

    Until then an existing file stays unchanged. Raises OSError that names `path`; a partial file is removed.
    """
    part = path.with_name(path.name + ".part")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)  # left by a killed process, it may be a link to a whole file
            yield part
            with part.open("r+b") as file:
                os.fsync(file.fileno())  # a network disk may say only now that it is full
            os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert errors of writing `path`, by any library, to an OSError that names it."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        # torch.save wraps the system's error in its own, safetensors has its number in the message.
        cause = error if isinstance(error, OSError) else error.__context__
        match = re.search(r"\(os error (\d+)\)", str(error))
        number = cause.errno if isinstance(cause, OSError) else int(match[1]) if match else None
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


# Types that weights may be stored in; a system converts them to its precision.
STORED_AS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a weights file.

    Raises CheckpointError if it is missing or invalid, or holds anything but finite numbers of one of STORED_AS.
    """
    with _opened(path) as stored:
        shapes = _shapes(path, stored)
        return {name: _finite(stored.get_tensor(name), path, name) for name in shapes}


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a safetensors file; raises CheckpointError if it is missing or invalid, also while it is read."""
    if not path.is_file():
        raise CheckpointError(f"{path}: there are no weights here; train the run, or copy it again")
    try:
        check(path, TENSORS)
        with safe_open(path, framework="pt") as stored:
            yield stored
    except CheckpointError:
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: not a readable safetensors file ({error}); it may be cut short, or a pickle, which "
            "this program never opens; copy it again"
        ) from None


def _shapes(path: Path, stored: Any) -> dict[str, list[int]]:
    """The shape of every tensor, read from the header only; raises CheckpointError for other types than STORED_AS."""
    shapes = {}
    for name in stored.keys():  # noqa: SIM118
        entry = stored.get_slice(name)
        if entry.get_dtype() not in STORED_AS:
            raise CheckpointError(
                f"{path}: {name} is stored as {entry.get_dtype()}, and weights are stored as one of "
                f"{', '.join(STORED_AS)}; copy the file again"
            )
        shapes[name] = entry.get_shape()
    return shapes


def _finite(tensor: Tensor, path: Path, name: str) -> Tensor:
    if not bool(torch.isfinite(tensor).all()):
        raise CheckpointError(
            f"{path}: {name} holds numbers that are not finite (NaN or infinite), so nothing can be computed with it; "
            "copy the file again, or take an earlier checkpoint: RUN@STEP"
        )
    return tensor


def load_weights(path: Path, system: System) -> None:
    """Load weights into a system; all names and shapes must match, except for parts that the system leaves out.

    Raises CheckpointError with the first mismatches, and as `read_tensors` does.
    """
    with _opened(path) as stored, torch.no_grad():
        _check_fit(path, system, _shapes(path, stored))  # by the header, before any tensor is read
        for name, parameter in system.named_parameters():
            # In the parameter's own precision: what float64 can hold may be infinite in float32.
            parameter.copy_(_finite(stored.get_tensor(name).to(parameter.dtype), path, name))


def _check_fit(path: Path, system: System, shapes: Mapping[str, list[int]]) -> None:
    left_out = _left_out(system)
    expected = {name: list(parameter.shape) for name, parameter in system.named_parameters()}
    problems = [f"{name} is missing" for name in expected if name not in shapes]
    problems += [
        f"{name} belongs to another system" for name in shapes if name not in expected and not name.startswith(left_out)
    ]
    tables = [f"{name}.weight" for name, module in system.named_modules() if isinstance(module, nn.Embedding)]
    problems += [
        f"{name} is {shapes[name]}, the configuration asks for {expected[name]}"
        + (" (a row a piece, so the vocabulary beside it may be another's)" if name in tables else "")
        for name in expected
        if name in shapes and shapes[name] != expected[name]
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise CheckpointError(
            f"{path} does not fit the configuration beside it: {'; '.join(problems[:3])}{more}; copy both from one run"
        )


def _left_out(system: System) -> tuple[str, ...]:
    """Prefixes of the parameters of submodules that are set to None."""
    return tuple(
        f"{name}.{part}."
        for name, module in system.named_modules()
        for part, child in module._modules.items()
        if child is None
    )


def resolve(reference: str | Path) -> tuple[Path, Path]:
    """Resolve RUN or RUN@step to (folder, weights file). Raises CheckpointError that lists the known checkpoints."""
    folder, step = split_reference(reference)
    path = weights_path(folder, step)
    if step and not os.path.isfile(path):  # also of a name too long for a file
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.safetensors"))) or "none"
        raise CheckpointError(f"{folder} has no checkpoint {step!r}; it has: {known}")
    return folder, path


def open_trained(reference: str | Path, device: str | torch.device = "cpu") -> Trained:
    """Open a run or RUN@step for use: raises CheckpointError or ConfigError with what is wrong."""
    folder, weights = resolve(reference)
    config = read_config(folder)
    if config.foreign is not None:
        opened = open_model(config.foreign, device)
        vocabularies = opened.source_vocabulary, opened.target_vocabulary
        return Trained(folder, config, opened.system, *vocabularies, folder / CONFIG)
    source, target = vocabularies_of(folder)
    for side, vocabulary in (("source", source), ("target", target)):
        if config.vocabulary.get(side, vocabulary.digest) != vocabulary.digest:
            raise CheckpointError(
                f"{folder / 'vocabulary' / side}.model: not the vocabulary that this run was trained with, so its "
                "weights mean other pieces; copy the run again, or its vocabulary"
            )
    system = build(config.model, len(source), len(target))
    load_weights(weights, system)
    return Trained(folder, config, system.to(device).eval(), source, target, weights)


def other_vocabulary(folder: Path, vocabularies: tuple[Vocabulary, Vocabulary]) -> str:
    """The side, `source` or `target`, whose vocabulary in a run's folder differs from the given one; "" if none."""
    for side, stored, own_vocabulary in zip(("source", "target"), vocabularies_of(folder), vocabularies, strict=True):
        if stored.digest != own_vocabulary.digest:
            return side
    return ""


# Must agree, since equal names and shapes do not imply equal meaning of the weights.
ARCHITECTURE = (
    "backbone",
    "norm",
    "position_embedding",
    "tie_embeddings",
    "heads",
    "rnn_cell",
    "encoder",
    "activation_function",
)


def initialize_from(
    system: System,
    reference: str | Path,
    vocabularies: tuple[Vocabulary, Vocabulary],
    only: Sequence[str] = (),
) -> list[str]:
    """Copy every tensor of another run whose name and shape match; returns the names that were not matched.

    vocabularies: this system's, source and target. only: patterns of the names to copy. The code of Zheng 2019 copies
    backbone.encoder*, backbone.*_table* and, if it is no table, backbone.vocabulary*; the decoder's blocks start anew.
    That of Zheng 2018 copies from its baseline everything but the decoder's units and attention (D9):
    backbone.*_table*, backbone.vocabulary*, backbone.forward_unit*, backbone.backward_unit*, backbone.first_state* and
    backbone.read_*. Raises ConfigError for another architecture (if backbone, norm placement, positions, tying, heads
    or vocabularies differ, names would match and the weights would be wrong), and for patterns without a match.
    """
    folder, weights = resolve(reference)
    other = read_config(folder).model
    differing = [
        f"{key} ({getattr(other, key)} there, {getattr(system.config, key)} here)"
        for key in ARCHITECTURE
        if getattr(other, key) != getattr(system.config, key)
    ]
    if differing:
        raise ConfigError(
            f"init_from {reference}: another architecture: {', '.join(differing)}; begin from a run that has the same, "
            "or change this one"
        )
    if side := other_vocabulary(folder, vocabularies):
        raise ConfigError(
            f"init_from {reference}: another {side} vocabulary, so its embeddings mean other pieces; train "
            "both runs on the same prepared data"
        )
    tensors = read_tensors(weights)
    if unknown := [pattern for pattern in only if not fnmatch.filter(tensors, pattern)]:
        raise ConfigError(f"init_params: no tensor of {reference} is called {unknown[0]}; give patterns of their names")
    taken = {name for pattern in only or ("*",) for name in fnmatch.filter(tensors, pattern)}
    unmatched = []
    with torch.no_grad():
        for name, parameter in system.named_parameters():
            if name in taken and tensors[name].shape == parameter.shape:
                parameter.copy_(_finite(tensors[name].to(parameter.dtype), weights, name))
            else:
                unmatched.append(name)
    for name, mechanism in system.named_mechanisms.items():
        prefix = f"mechanisms.{name}."
        fresh = [parameter.removeprefix(prefix) for parameter in unmatched if parameter.startswith(prefix)]
        mechanism.begin_from(system.backbone.spec(), fresh)
    return unmatched


def average(references: list[Path], path: Path) -> None:
    """Write the mean of several checkpoints of one run to `path` (Vaswani 2017, section 6.1)."""
    if not references:
        raise CheckpointError("no checkpoints to average; train with keep_last or keep_every")
    first = read_tensors(references[0])
    sums = {name: tensor.double() for name, tensor in first.items()}
    shapes = {name: tensor.shape for name, tensor in first.items()}
    for reference in references[1:]:
        tensors = read_tensors(reference)
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise CheckpointError(
                f"{reference} holds other tensors than {references[0]}; average checkpoints of one run"
            )
        for name, tensor in tensors.items():
            sums[name] += tensor.double()
    write_tensors(path, {name: (tensor / len(references)).to(first[name].dtype) for name, tensor in sums.items()})
