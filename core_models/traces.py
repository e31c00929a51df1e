"""Traces: internal arrays of a system for one sentence, with names and named axes.

`TraceWriter` collects the arrays of a batch during a forced pass and splits them by sentence; `write_traces` and
`TraceStore` store them on disk, memory-mapped. A record has its name, axes and the axis it sums to one along.
"""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from core_models.files.atomic_files import atomic_replace
from core_models.files.npy import map_array
from core_models.files.run_files import RESULT, read_json

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1
# Axes that are padded within a batch, and the length that each is cut to.
PADDED_AXES = {
    **dict.fromkeys(("source", "source_key"), "source"),
    **dict.fromkeys(("target", "target_key"), "target"),
    **{axis: axis for axis in ("context", "context_output")},  # words of context sentences, of their translations
}


@dataclass(frozen=True)
class TraceArray:
    """One array of one sentence: `axes` name its dimensions; along `sums_to_one`, if given, it is a distribution."""

    axes: tuple[str, ...]
    values: np.ndarray
    sums_to_one: str | None = None

    def check(self, name: str, tolerance: float = 1e-3) -> None:
        """Raise ValueError if axes and shape disagree or a distribution does not sum to one."""
        if len(self.axes) != self.values.ndim:
            raise ValueError(
                f"trace {name!r} has {self.values.ndim} dimensions and names {len(self.axes)} axes: {self.axes}"
            )
        if self.sums_to_one is not None:
            error = np.abs(self.values.astype(np.float64).sum(self.axes.index(self.sums_to_one)) - 1).max(initial=0)
            if error > tolerance:
                raise ValueError(f"trace {name!r} should sum to one along {self.sums_to_one!r} and is {error:.2g} off")


Trace = dict[str, TraceArray]


class TraceWriter:
    """Collects the arrays of one batch. names: of the arrays to record, or patterns such as "decoder.*"."""

    def __init__(self, names: Sequence[str]) -> None:
        self.patterns = tuple(names)
        self.arrays: dict[str, tuple[tuple[str, ...], Tensor, str | None]] = {}

    def wants(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)

    def record(self, name: str, axes: Sequence[str], value: Tensor, sums_to_one: str | None = None) -> None:
        """Store `value`, with the sentence axis first, then `axes`; `sentences` moves the axis `iteration` first."""
        if not self.wants(name):
            return
        if value.dim() != len(axes) + 1:
            raise ValueError(f"trace {name!r}: {value.dim()} dimensions recorded, the sentence and {tuple(axes)} named")
        if name in self.arrays:
            raise ValueError(f"trace {name!r} is recorded twice in one pass; give each its own name")
        self.arrays[name] = (tuple(axes), value.detach(), sums_to_one)

    def sentences(self, lengths: Mapping[str, Sequence[int]]) -> list[Trace]:
        """Split the arrays by sentence without padding.

        lengths: the real length of each sentence of the batch for source and target, and for context and context_output
        if they are recorded.
        """
        traces: list[Trace] = [{} for _ in next(iter(lengths.values()))]
        for name, (axes, value, sums) in self.arrays.items():
            # Word numbers and ranks stay integers: half precision would round those above 2,048.
            values = (value.float() if value.is_floating_point() else value).cpu().numpy()
            order = tuple(sorted(range(len(axes)), key=lambda i: axes[i] != "iteration"))
            for row, trace in enumerate(traces):
                cut = tuple(
                    slice(lengths[PADDED_AXES[axis]][row]) if axis in PADDED_AXES else slice(None) for axis in axes
                )
                trace[name] = TraceArray(tuple(axes[i] for i in order), values[row][cut].transpose(order).copy(), sums)
        return traces


def write_traces(folder: Path, traces: Mapping[int, Trace], half: bool = True) -> None:
    """Write the traces of sentences into `folder`: one flat .npy per array name, then index.json."""

    def named(name: str) -> dict[int, TraceArray]:
        return {number: trace[name] for number, trace in sorted(traces.items()) if name in trace}

    _write(folder, {name for trace in traces.values() for name in trace}, named, half)


def join_traces(folder: Path, stores: Sequence[TraceStore]) -> None:
    """Write traces of different sentences into one folder, the same bytes as `write_traces` writes of all together.

    One array is in memory at a time.
    """

    def named(name: str) -> dict[int, TraceArray]:
        of = {number: store for store in stores for number in store.having(name)}
        return {number: of[number].array(name, number) for number in sorted(of)}

    _write(folder, {name for store in stores for name in store.names}, named)


def _write(
    folder: Path, names: Iterable[str], named: Callable[[str], Mapping[int, TraceArray]], half: bool = True
) -> None:
    """Write arrays one after another; named: gives those of a name, by sentence in ascending order."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, dict] = {}
    for name in sorted(names):
        present = named(name)
        first = next(iter(present.values()))
        flat = np.concatenate([array.values.ravel() for array in present.values()])
        dtype = np.int32 if np.issubdtype(flat.dtype, np.integer) else np.float16 if half else np.float32
        np.save(folder / f"{name}.npy", flat.astype(dtype), allow_pickle=False)
        starts = np.cumsum([0] + [array.values.size for array in present.values()]).tolist()
        arrays[name] = {
            "axes": first.axes,
            "sums_to_one": first.sums_to_one,
            "sentences": {
                str(number): [start, *array.values.shape]
                for (number, array), start in zip(present.items(), starts, strict=False)
            },
        }
    with atomic_replace(folder / "index.json") as unfinished:
        unfinished.write_text(json.dumps({"format": FORMAT, "arrays": arrays}), encoding="utf-8")


_STORED_AS = (np.float16, np.float32, np.int32)
_Name = Annotated[str, Field(pattern=r"^[^./\\\x00][^/\\\x00]*$")]  # also a file name
_Place = Annotated[list[Annotated[int, Field(ge=0, le=1 << 40)]], Field(min_length=1)]  # start, shape


class _Array(BaseModel):
    axes: list[str]
    sums_to_one: str | None
    sentences: dict[Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,11})$")], _Place]


class _Index(BaseModel):
    """The content of index.json."""

    model_config = ConfigDict(strict=True)

    arrays: dict[_Name, _Array]


class TraceError(ValueError):
    """Traces on disk that cannot be read; the message names the file and what to do."""


class TraceStore(Mapping[int, Trace]):
    """Traces on disk, read on access: store[sentence][name].values. Raises TraceError if they are incomplete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            index = read_json(folder / "index.json", RESULT)
            version = index.get("format")
            if version == FORMAT:
                _Index.model_validate(index)
            self._arrays = index["arrays"] if version == FORMAT else {}
            self._sentences = sorted({int(number) for array in self._arrays.values() for number in array["sentences"]})
        except (OSError, ValueError, AttributeError) as error:
            raise TraceError(f"{folder / 'index.json'}: {_cause(error)}; trace the run again") from None
        if version != FORMAT:
            raise TraceError(
                f"{folder}: traces of format {version!r}; this version reads {FORMAT}: trace the run again"
            )

    @property
    def names(self) -> list[str]:
        return list(self._arrays)

    def having(self, name: str) -> list[int]:
        """The sentences that have an array of this name."""
        return [int(number) for number in self._arrays.get(name, {"sentences": ()})["sentences"]]

    def __len__(self) -> int:
        return len(self._sentences)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sentences)

    def __getitem__(self, sentence: int) -> Trace:
        if sentence not in self._sentences:
            raise KeyError(f"{self.folder}: sentence {sentence} is not traced")
        return {
            name: self.array(name, sentence)
            for name, array in self._arrays.items()
            if str(sentence) in array["sentences"]
        }

    def array(self, name: str, sentence: int) -> TraceArray:
        entry = self._arrays[name]
        try:
            start, *shape = entry["sentences"][str(sentence)]
            flat = map_array(self.folder / f"{name}.npy")
            if flat.dtype not in _STORED_AS or flat.ndim != 1:
                raise ValueError(f"{flat.ndim} dimensions of {flat.dtype}")
            if len(shape) != len(entry["axes"]) or entry["sums_to_one"] not in (None, *entry["axes"]):
                raise ValueError(f"shape {shape} and axes {entry['axes']} do not fit")
            whole = np.issubdtype(flat.dtype, np.integer)
            values = np.asarray(flat[start : start + math.prod(shape)], dtype=None if whole else np.float32)
            values = values.reshape(shape)
            return TraceArray(tuple(entry["axes"]), values, entry["sums_to_one"])
        except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
            raise TraceError(
                f"{self.folder}: {name} of sentence {sentence}: {_cause(error)}; trace the run again"
            ) from None


def _cause(error: Exception) -> str:
    message = " ".join(str(error).split())[:300]  # pydantic's messages have several lines
    return f"not readable ({type(error).__name__}: {message})"
