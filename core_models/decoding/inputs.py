"""Encoded source sentences with their context sentences and, as further context, earlier translations.

Collects context sentences by document id or takes given ones, builds batches of any rows, and determines the order of
translation if the context includes earlier translations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from core_models.decoding.memory_batching import batches
from core_models.decoding.outputs import TranslatorError
from core_models.text.batches import Batch, collate
from core_models.text.documents import ContextUse, Ids, context_entries, document_rows, prepend_context
from core_models.text.parallel import TextError
from core_models.text.vocabulary import Vocabulary

Texts = Sequence[Sequence[str | None]]  # for each sentence, entry k: the context sentence k + 1 before it, or None


class EncodedInputs:
    """Encoded sentences. pieces: the encoder's input for each row, with the context if the system joins it."""

    def __init__(
        self,
        use: ContextUse,
        vocabularies: tuple[Vocabulary, Vocabulary],
        sources: Sequence[str],
        documents: Sequence[str] | None = None,
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
    ) -> None:
        """Encode sources; context by documents (an id per sentence) or contexts (given sentences), or none.

        Raises TranslatorError for contexts that this system does not read, or that do not fit it; TextError for
        documents that are not contiguous, and for context sentences that are too long.
        """
        self.use = use
        self._source, self._target = vocabularies
        self.pieces = self._source.encode(list(sources))
        self.documents: Sequence[str] | None = None
        self._contexts: list[list[Ids | None]] | None = None
        self._context_outputs: list[list[Ids | None]] | None = None
        self._context_rows: list[list[int | None]] = []
        self._translations: list[list[int] | None] = [None] * len(self.pieces)
        _check_contexts(use, contexts, context_outputs, documents)
        if use.sentences and contexts is not None:
            self._contexts = self._encode(contexts, self._source)
            if use.outputs and context_outputs is not None:
                self._context_outputs = self._encode(context_outputs, self._target)
        elif use.sentences and documents is not None:
            self.documents = documents
            self._context_rows = context_entries(range(len(self.pieces)), documents, use.sentences, use.after)
            self._contexts = [
                [None if row is None else self._fit(self.pieces[row], number) for row in rows]
                for number, rows in enumerate(self._context_rows)
            ]
        if use.joined and self._contexts is not None:
            self.pieces = [
                prepend_context(ids, context) for ids, context in zip(self.pieces, self._contexts, strict=True)
            ]

    def _encode(self, contexts: Texts, vocabulary: Vocabulary) -> list[list[Ids | None]]:
        flat = iter(vocabulary.encode([text for texts in contexts for text in texts if text is not None]))
        encoded: list[list[Ids | None]] = []
        for number, texts in enumerate(contexts):
            if len(texts) > self.use.entries:
                after = f" and the {self.use.after} after it" if self.use.after else ""
                raise TranslatorError(
                    f"sentence {number + 1} is given {len(texts)} context sentences; this run reads the "
                    f"{self.use.sentences} before a sentence{after}: leave the farther ones out, or train with a "
                    "larger context_sentences"
                )
            ids = [None if text is None else self._fit(next(flat), number) for text in texts]
            encoded.append([*ids, *[None] * (self.use.entries - len(texts))])
        return encoded

    def _fit(self, ids: Ids, number: int) -> Ids:
        return self.use.fit(ids, f"sentence {number + 1}")

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def is_sequential(self) -> bool:
        """True if earlier sentences of a document must be translated before later ones."""
        return self.use.outputs and self.documents is not None

    def add_output(self, row: int, ids: list[int]) -> None:
        """Store the translation of a row; other rows may read it as context."""
        self._translations[row] = ids

    def batch(self, rows: Sequence[int], targets: Sequence[Ids] | None = None) -> Batch:
        """The rows as a batch, with their contexts."""
        sources = [self.pieces[row] for row in rows]
        if self._contexts is None or self.use.joined:
            return collate(sources, targets)
        outputs = [self._outputs_of_context(row) for row in rows] if self.use.outputs else None
        return collate(sources, targets, [self._contexts[row] for row in rows], outputs=outputs)

    def _outputs_of_context(self, row: int) -> list[Ids | None]:
        if self._context_outputs is not None:
            return self._context_outputs[row]
        outputs: list[Ids | None] = []
        for earlier in self._context_rows[row]:
            ids = None if earlier is None else self._translations[earlier]
            if earlier is not None and ids is None:
                raise ValueError(
                    f"row {row} needs the translation of row {earlier} as context: call add_output for it first"
                )
            # The limit of outputs may exceed that of context sentences; the same truncation applies when forced.
            outputs.append(None if ids is None else ids[: self.use.longest])
        return outputs

    def costs(self, width: int) -> list[int]:
        """Pieces per hypothesis of each row, with EOS; contexts, stored once, are divided by the `width` hypotheses."""
        contexts = self._contexts if self._contexts is not None and not self.use.joined else [()] * len(self.pieces)
        sizes = (sum(len(ids) + 1 for ids in context if ids is not None) for context in contexts)
        return [len(ids) + 1 + math.ceil(size / width) for ids, size in zip(self.pieces, sizes, strict=True)]

    def groups(self, budget: int, width: int) -> list[list[list[int]]]:
        """Groups of rounds of rows: groups are independent, the rounds of a group are translated in order.

        If sentences read earlier translations, a group is as many documents as a batch has room for, and round j has
        sentence j of each; otherwise all rows are one round.
        """
        if not self.is_sequential:
            return [[list(range(len(self.pieces)))]]
        documents, costs = document_rows(self.documents or ()), self.costs(width)
        grouped = batches([max(costs[row] for row in rows) for rows in documents], budget, width)
        return [_rounds([documents[number] for number in sorted(group)]) for group in grouped]


def _rounds(documents: Sequence[Sequence[int]]) -> list[list[int]]:
    longest = max(map(len, documents))
    return [[rows[number] for rows in documents if number < len(rows)] for number in range(longest)]


def _check_contexts(
    use: ContextUse, contexts: Texts | None, context_outputs: Texts | None, documents: Sequence[str] | None
) -> None:
    if contexts is None and context_outputs is None:
        return
    if not use.sentences:
        raise TranslatorError(
            "contexts were given, but this run was trained on single sentences; leave them out, or train a system that "
            "reads context, such as qcn"
        )
    if documents is not None:
        raise TranslatorError("documents and contexts were given; give only one of them")
    if use.outputs and (contexts is None or context_outputs is None):
        raise TranslatorError(
            "this run reads the sentences before and their translations: give contexts and context_outputs together, "
            "or documents"
        )
    if context_outputs is not None and not use.outputs:
        raise TranslatorError("this run reads no translations of the sentences before; leave context_outputs out")
    for number, (texts, outputs) in enumerate(zip(contexts or (), context_outputs or (), strict=False)):
        if [text is None for text in texts] != [text is None for text in outputs]:
            raise TextError(f"sentence {number + 1}: context sentences and their translations do not match one to one.")
