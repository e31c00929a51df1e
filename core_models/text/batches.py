"""Batches of sentences with their context as tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import torch

from .documents import Ids
from .parallel import TextError
from .vocabulary import BOS, EOS, PAD


class WordOrder(NamedTuple):
    """The words of a grid [S, K, C] as one sequence in document order: n real words, then padding."""

    mask: torch.Tensor  # [S, n] bool
    distance: torch.Tensor  # [S, n] int64: of a word's sentence, 1 … before, -1 … after; 0 for padding
    places: torch.Tensor  # [S, n] int64: position in the flattened grid

    @classmethod
    def of(cls, mask: torch.Tensor, after: int = 0, longest: int | None = None) -> WordOrder:
        """The order of the words in mask [S, K, C], whose last `after` entries are following sentences.

        n: the length of the longest sequence, at least one; `longest`, if the host knows it and need not read the mask.
        """
        entries, width = mask.shape[1:]
        grid = torch.arange(entries * width, device=mask.device).view(entries, width)
        reading = torch.cat([grid[: entries - after].flip(0), grid[entries - after :]]).flatten()
        real = mask.flatten(1)[:, reading]
        longest = int(real.sum(1).max()) if longest is None else longest
        order = torch.argsort((~real).byte(), dim=1, stable=True)[:, : max(1, longest)]
        grid_positions, is_word = reading[order], real.gather(1, order)
        entry = grid_positions // width
        distance = torch.where(entry < entries - after, entry + 1, entries - after - 1 - entry)
        return cls(is_word, distance * is_word, grid_positions)

    def gather(self, grid: torch.Tensor) -> torch.Tensor:
        """Reorder values of a grid [S, K, C, ...] to [S, n, ...]; zero for padding."""
        flat = grid.flatten(1, 2)
        index = self.places.view(*self.places.shape, *[1] * (flat.dim() - 2))
        gathered = flat.gather(1, index.expand(-1, -1, *flat.shape[2:]))
        return gathered * self.mask.view(index.shape).to(gathered.dtype)


@dataclass(frozen=True)
class Context:
    """The context sentences of each sentence of a batch.

    Entry k on axis 1 is the sentence k + 1 before; following sentences, if read, come after these, the next one first.
    outputs, outputs_mask: their translations, if these are read.
    """

    words: torch.Tensor  # [S, K, C] int64: pieces, EOS, then PAD
    mask: torch.Tensor  # [S, K, C] bool: a piece or EOS stands here
    present: torch.Tensor  # [S, K] bool: there is such a sentence in the same document
    outputs: torch.Tensor | None = None  # [S, K, O] int64: pieces, EOS, then PAD
    outputs_mask: torch.Tensor | None = None  # [S, K, O] bool

    longest: int | None = None  # real words of the sentence with the most of them, if the host knows

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Context:
        """The same with every tensor changed by a function that leaves the words of a sentence as they are."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: change(v) for name, v in values.items() if isinstance(v, torch.Tensor)})

    def order(self) -> WordOrder:
        """The order of all words, sentences after this one among those before."""
        return WordOrder.of(self.mask, longest=self.longest)

    def in_order(self) -> tuple[torch.Tensor, WordOrder]:
        """All words as one sequence [S, n], and their order."""
        order = self.order()
        return order.gather(self.words), order

    def reaching(self, sentences: int) -> Context:
        """The same with `sentences` entries: farther ones are dropped, missing ones are absent."""
        missing = sentences - self.words.shape[1]

        def pad(value: torch.Tensor) -> torch.Tensor:
            more = value.new_zeros(value.shape[0], max(missing, 0), *value.shape[2:])  # PAD is 0, False too
            return torch.cat([value[:, :sentences], more], dim=1)

        if not missing:
            return self
        return replace(self.changed(pad), longest=self.longest if missing > 0 else None)

    @classmethod
    def none(cls, batch: Batch, sentences: int) -> Context:
        """An empty context for the sentences of a batch."""
        words = batch.source.new_full((len(batch), sentences, 1), PAD)
        mask = torch.zeros_like(words, dtype=torch.bool)
        return cls(words, mask, mask[..., 0], words, mask, longest=0)


@dataclass(frozen=True)
class Batch:
    """A batch of sentences. Without targets the target tensors have T = 0."""

    source: torch.Tensor  # [S, I] int64: pieces, EOS, then PAD
    source_mask: torch.Tensor  # [S, I] bool
    target_in: torch.Tensor  # [S, T] int64: BOS, y_1, …, then PAD
    target: torch.Tensor  # [S, T] int64: y_1, …, EOS, then PAD
    target_mask: torch.Tensor  # [S, T] bool: of target_in and of target
    indices: torch.Tensor  # [S] int64: which sentences of the text
    context: Context | None
    source_tokens: int  # real ones, EOS included
    target_tokens: int
    sentences: int | None = None  # real ones, if others fill the batch up to the shape of its bucket

    def __len__(self) -> int:
        return self.source.shape[0]

    @property
    def real_sentences(self) -> int:
        return len(self) if self.sentences is None else self.sentences

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return self._changed(lambda value: value.to(device, non_blocking=True))

    def part(self, rows: slice) -> Batch:
        """Some of its sentences, padded as they were; the batch lies on the host."""
        cut = self._changed(lambda value: value[rows])
        sentences = None if self.sentences is None else len(range(self.sentences)[rows])
        source_tokens, target_tokens = int(cut.source_mask.sum()), int(cut.target_mask.sum())
        return replace(cut, source_tokens=source_tokens, target_tokens=target_tokens, sentences=sentences)

    def pinned(self) -> Batch:
        """The same batch in page-locked memory, from which it is copied to a GPU while the host goes on."""
        return self._changed(lambda value: value.pin_memory())

    def _changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed = {name: change(value) for name, value in values.items() if isinstance(value, torch.Tensor)}
        return replace(self, **changed, context=None if self.context is None else self.context.changed(change))


def collate(
    sources: Sequence[Ids],
    targets: Sequence[Ids] | None = None,
    contexts: Sequence[Sequence[Ids | None]] | None = None,
    indices: Sequence[int] | np.ndarray | None = None,
    outputs: Sequence[Sequence[Ids | None]] | None = None,
) -> Batch:
    """Pad piece numbers (without BOS and EOS) to a batch.

    contexts: for each sentence K entries, entry k the pieces of the sentence k + 1 before, or None where there is none;
    outputs: the same of their translations.
    """
    given_lists = (("targets", targets), ("contexts", contexts), ("outputs", outputs), ("indices", indices))
    for what, values in given_lists:
        if values is not None and len(values) != len(sources):
            raise TextError(f"collate: {len(sources)} sources but {len(values)} {what}; need one for each.")
    source, source_mask, _ = _pad(sources)
    target, target_mask, target_in = _pad(targets) if targets is not None else _no_words(len(sources))
    numbers = np.arange(len(sources)) if indices is None else np.array(indices)
    return Batch(
        source=torch.from_numpy(source),
        source_mask=torch.from_numpy(source_mask),
        target_in=torch.from_numpy(target_in),
        target=torch.from_numpy(target),
        target_mask=torch.from_numpy(target_mask),
        indices=torch.from_numpy(numbers.astype(np.int64)),
        context=None if contexts is None else _collate_context(contexts, outputs),
        source_tokens=int(source_mask.sum()),
        target_tokens=int(target_mask.sum()),
    )


def context_lengths(batch: Batch) -> dict[str, list[int]]:
    """The number of context words of each sentence, and of their translations, by the names of trace axes."""
    context, none = batch.context, [0] * len(batch)
    if context is None:
        return {"context": none, "context_output": none}
    outputs = none if context.outputs_mask is None else context.outputs_mask.sum((1, 2)).tolist()
    return {"context": context.mask.sum((1, 2)).tolist(), "context_output": outputs}


def _pad(sentences: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words with EOS, their mask, and the words shifted right after BOS: [S, longest + 1] each."""
    lengths = np.fromiter((len(ids) for ids in sentences), dtype=np.int64, count=len(sentences))
    pieces = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sentences]) if len(sentences) else lengths
    positions = np.arange(lengths.max(initial=0) + 1)
    before_end = positions < lengths[:, None]
    words = np.full(before_end.shape, PAD, dtype=np.int64)
    words[before_end] = pieces
    words[np.arange(len(words)), lengths] = EOS
    shifted = np.full_like(words, PAD)
    shifted[:, 0] = BOS
    shifted[:, 1:][before_end[:, :-1]] = pieces
    return words, positions <= lengths[:, None], shifted


def _no_words(sentences: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    words = np.empty((sentences, 0), dtype=np.int64)
    return words, words.astype(bool), words


def _collate_context(
    contexts: Sequence[Sequence[Ids | None]], outputs: Sequence[Sequence[Ids | None]] | None
) -> Context:
    words, mask, present = _grid(contexts)
    longest = int(mask.sum((1, 2)).max()) if len(mask) else 0
    if outputs is None:
        return Context(words, mask, present, longest=longest)
    output_words, output_mask, _ = _grid(outputs)
    if output_words.shape[:2] != words.shape[:2]:
        raise TextError("collate: there are not as many translations of context sentences as context sentences.")
    return Context(words, mask, present, output_words, output_mask, longest)


def _grid(contexts: Sequence[Sequence[Ids | None]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words [S, K, C], their mask [S, K, C], and which sentences exist [S, K]."""
    reach = len(contexts[0])
    if any(len(entries) != reach for entries in contexts):
        raise TextError("collate: every sentence needs the same number of context entries; None where there is none.")
    entries = [ids for sentence in contexts for ids in sentence]
    present = np.array([ids is not None for ids in entries], dtype=bool)
    words, mask, _ = _pad([() if ids is None else ids for ids in entries])
    words[~present], mask[~present] = PAD, False
    shape = (len(contexts), reach)
    return (
        torch.from_numpy(words.reshape(*shape, -1)),
        torch.from_numpy(mask.reshape(*shape, -1)),
        torch.from_numpy(present.reshape(shape)),
    )
