"""One split of a parallel text as memory-mapped arrays: the files, their writer and their reader.

Arrays are opened on first access; reading a sentence then reads only its pages.

    {source,target}.tokens.npy          uint16 or uint32 [all pieces], no BOS and no EOS
    {source,target}.token_offsets.npy   int64 [N + 1]: the start of each sentence in the tokens
    {source,target}.lengths.npy         [N]: pieces per sentence; a plan reads these, not the offsets (8 N bytes)
    {source,target}.text.npy            uint8 [all bytes]: the lines as UTF-8, for subword sampling
    {source,target}.text_offsets.npy    int64 [N + 1]
    documents.npy, positions.npy        int32 [N]: the document of a sentence and its position there; absent if unknown
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from core_models.files.npy import map_array
from core_models.files.run_files import ARRAY, open_file

from .parallel import TextError

SIDES = ("source", "target")
_MAX_MAPPED_BYTES = 1 << 26


class BinaryText:
    """The sentences of a split as piece numbers (without BOS and EOS) and as text, read from disk on access."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._source, self._target = (_Side(self.folder, side) for side in SIDES)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> np.ndarray:
        """The piece numbers of sentence `index`: [I] uint16 or uint32."""
        return self._source.tokens(index)

    def target(self, index: int) -> np.ndarray:
        """The piece numbers of the translation of sentence `index`: [T] uint16 or uint32."""
        return self._target.tokens(index)

    def source_text(self, index: int) -> str:
        return self._source.line(index)

    def target_text(self, index: int) -> str:
        return self._target.line(index)

    @property
    def source_lengths(self) -> np.ndarray:
        """The number of pieces of every source [N], memory-mapped."""
        return self._source.lengths

    @property
    def target_lengths(self) -> np.ndarray:
        """The number of pieces of every target [N], memory-mapped."""
        return self._target.lengths

    @cached_property
    def documents(self) -> np.ndarray | None:
        """The document number of every sentence [N] int32, memory-mapped; None if documents are unknown."""
        return _map(self.folder / "documents.npy") if (self.folder / "documents.npy").is_file() else None

    @cached_property
    def _positions(self) -> np.ndarray:
        return _map(self.folder / "positions.npy")

    def before(self, index: int, reach: int) -> list[int | None]:
        """The sentences 1 … `reach` before `index` in its document; None before its start, or if left out."""
        return self._neighbors(index, reach, -1)

    def after(self, index: int, reach: int) -> list[int | None]:
        """The sentences 1 … `reach` after `index` in its document; None after its end, or if left out."""
        return self._neighbors(index, reach, 1)

    def _neighbors(self, index: int, reach: int, step: int) -> list[int | None]:
        """The sentences at distances 1 … `reach` in the direction of `step`, 1 or -1."""
        if self.documents is None:
            raise TextError(f"{self.folder}: no document ids; prepare the text again with a `.docids` file.")
        # Pairs that were too long are not stored: positions in the document give the true distance.
        document, position = self.documents[index], int(self._positions[index])
        numbers: list[int | None] = [None] * reach
        for neighbor in range(index + step, index + step * (reach + 1), step):
            if not 0 <= neighbor < len(self.documents) or self.documents[neighbor] != document:
                break
            distance = abs(int(self._positions[neighbor]) - position)
            if distance > reach:
                break
            numbers[distance - 1] = neighbor
        return numbers

    def context_lengths(self, lengths: np.ndarray, reach: int, after: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Maximal and total length, with EOS, of each sentence's context: [N] int32 each, 0 for none.

        The context is the `reach` sentences before and `after` sentences after. lengths: [N] pieces of every sentence.
        """
        if self.documents is None:
            raise TextError(f"{self.folder}: no document ids; prepare the text again with a `.docids` file.")
        longest, total = np.zeros((2, len(lengths)), dtype=np.int32)
        for offset in range(1, min(max(reach, after), len(lengths) - 1) + 1):
            earlier, later = slice(None, -offset), slice(offset, None)
            distance = self._positions[later] - self._positions[earlier]
            same_document = self.documents[later] == self.documents[earlier]
            for rows, neighbors, max_distance in ((later, earlier, reach), (earlier, later, after)):
                if offset <= max_distance:
                    size = np.where(
                        same_document & (distance <= max_distance), lengths[neighbors].astype(np.int32) + 1, 0
                    )
                    np.maximum(longest[rows], size, out=longest[rows])
                    total[rows] += size
        return longest, total


class _Side:
    def __init__(self, folder: Path, side: str) -> None:
        self._folder, self._side = folder, side

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._side}.{name}.npy"

    @cached_property
    def lengths(self) -> np.ndarray:
        return _map(self._path("lengths"))

    @cached_property
    def _tokens(self) -> _RaggedArray:
        return _RaggedArray(self._path("tokens"), self._path("token_offsets"))

    @cached_property
    def _text(self) -> _RaggedArray:
        return _RaggedArray(self._path("text"), self._path("text_offsets"))

    def tokens(self, index: int) -> np.ndarray:
        return self._tokens[index]

    def line(self, index: int) -> str:
        return self._text[index].tobytes().decode()


class _RaggedArray:
    """Rows of different lengths: concatenated in one file, with their offsets in another."""

    def __init__(self, flat: Path, offsets: Path) -> None:
        self._flat, self._offsets = _SliceReader(flat), _SliceReader(offsets)

    def __getitem__(self, index: int) -> np.ndarray:
        begin, end = self._offsets.read(index, index + 2).tolist()
        return self._flat.read(begin, end)


class _SliceReader:
    """An array on disk for random access to short slices.

    A large array is read, not mapped: access to a mapped page loads its neighbors too, so that after some hundred
    batches a text of gigabytes would count as this process's memory. A small one is mapped, which is faster.
    """

    def __init__(self, path: Path) -> None:
        mapped = _map(path)
        self._array = np.asarray(mapped)  # a plain view: slicing np.memmap takes four times as long
        self._begin = mapped.offset
        self._file: BinaryIO | None = None
        if mapped.nbytes > _MAX_MAPPED_BYTES and hasattr(os, "pread"):  # not on Windows
            self._file = open_file(path, ARRAY)
            weakref.finalize(self, self._file.close)

    def read(self, start: int, stop: int) -> np.ndarray:
        if self._file is None:
            return self._array[start:stop]
        size = self._array.itemsize
        content = os.pread(self._file.fileno(), (stop - start) * size, self._begin + start * size)
        return np.frombuffer(content, dtype=self._array.dtype)


class SideWriter:
    """Writer of one language of a split, chunk by chunk."""

    def __init__(self, folder: Path, side: str, vocabulary_size: int, max_length: int) -> None:
        dtypes: dict[str, Any] = {
            "tokens": np.uint16 if vocabulary_size <= 1 << 16 else np.uint32,
            "token_offsets": np.int64,
            "lengths": np.min_scalar_type(max_length),
            "text": np.uint8,
            "text_offsets": np.int64,
        }
        self._files = {name: _GrowingArray(folder / f"{side}.{name}.npy", dtype) for name, dtype in dtypes.items()}
        for name in ("token_offsets", "text_offsets"):
            self._files[name].append(np.zeros(1))
        self._digest = hashlib.sha256()
        self.token_count = self._byte_count = 0

    def append(self, ids: Sequence[Sequence[int]], lines: Sequence[str]) -> None:
        lengths = np.array([len(sentence) for sentence in ids], dtype=np.int64)
        encoded = [line.encode() for line in lines]
        sizes = np.array([len(line) for line in encoded], dtype=np.int64)
        self._files["tokens"].append(np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum())))
        self._files["token_offsets"].append(self.token_count + np.cumsum(lengths))
        self._files["lengths"].append(lengths)
        self._files["text"].append(np.frombuffer(b"".join(encoded), dtype=np.uint8))
        self._files["text_offsets"].append(self._byte_count + np.cumsum(sizes))
        self._digest.update(b"".join(line + b"\n" for line in encoded))
        self.token_count += int(lengths.sum())
        self._byte_count += int(sizes.sum())

    def close(self) -> str:
        """Finish the files; returns the SHA-256 of the lines."""
        for file in self._files.values():
            file.close()
        return self._digest.hexdigest()


def write_documents(folder: Path, documents: Sequence[str], rows: np.ndarray) -> str:
    """Write document numbers and positions of the kept `rows`; returns the SHA-256 of both."""
    is_first = np.array([i == 0 or documents[i] != documents[i - 1] for i in range(len(documents))], dtype=bool)
    numbers = np.cumsum(is_first) - 1
    positions = np.arange(len(documents)) - np.flatnonzero(is_first)[numbers]
    digest = hashlib.sha256()
    for name, values in (("documents", numbers), ("positions", positions)):
        array = values[rows].astype(np.int32)
        np.save(folder / f"{name}.npy", array)
        digest.update(array.tobytes())
    return digest.hexdigest()


class _GrowingArray:
    """A one-dimensional `.npy` file of unknown length; NumPy's header has padding for the final length."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close(), after many appends
        self._dtype, self._length = np.dtype(dtype), 0
        self._write_header()

    def _write_header(self) -> None:
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": (self._length,)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, values: np.ndarray) -> None:
        self._file.write(values.astype(self._dtype).tobytes())
        self._length += len(values)

    def close(self) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()


def _map(path: Path) -> np.memmap:
    try:
        return map_array(path)
    except ValueError as error:
        raise TextError(f"{error}; prepare the text again.") from None
