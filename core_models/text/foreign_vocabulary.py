"""A tokenizer of Hugging Face as a vocabulary: its pieces by our numbers, PAD, UNK, BOS and EOS first."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from core_models.text.parallel import TextError
from core_models.text.vocabulary import BOS, CONTROL, EOS, PAD, Vocabulary

SPACE, BYTE_SPACE = "▁", "Ġ"
_ONE_SIDE = threading.Lock()  # a tokenizer of both sides is switched from one to the other


def continued(tokenizer: Any, lead: str, lines: Sequence[str]) -> list[list[int]]:
    """The pieces of each line as they are behind `lead`, whose last spaces are the line's, in the tokenizer's numbers.

    A tokenizer may put a space before a text, but not within one: so the line is cut with the lead before it.
    """
    start = lead.rstrip(" ")
    space = lead[len(start) :]
    texts = [start or " ", *(lead + line for line in lines), *(space + line for line in lines)]
    known, *found = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    known = known if start else []
    return [
        [] if not line else whole[len(known) :] if whole[: len(known)] == known else apart
        for line, whole, apart in zip(lines, found[: len(lines)], found[len(lines) :], strict=True)
    ]


class ForeignVocabulary(Vocabulary):
    """The vocabulary of one side of a model; numbers beyond the tokenizer are pieces that it never makes."""

    def __init__(
        self, tokenizer: Any, numbers: Sequence[int], digest: str, is_target: bool, lead: str | None = None
    ) -> None:
        """numbers: the tokenizer's number of each of ours; digest: of its files.

        is_target: whether it reads target texts, which a tokenizer of both sides may segment by another model. lead:
        what stands before each text.
        """
        self.tokenizer, self._theirs, self._digest, self._lead = tokenizer, list(numbers), digest, lead
        self._reads = "text_target" if is_target else "text"
        self._ours = {theirs: ours for ours, theirs in enumerate(self._theirs)}
        self.kind = "foreign"

    def save(self, path: Any) -> None:
        raise TextError("a foreign vocabulary lies in its model's folder; it is not copied")

    def __len__(self) -> int:
        return len(self._theirs)

    def __reduce__(self) -> tuple[Any, ...]:
        return ForeignVocabulary, (
            self.tokenizer, self._theirs, self._digest, self._reads == "text_target", self._lead
        )  # fmt: skip

    @property
    def digest(self) -> str:  # type: ignore[override]
        return self._digest

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Segment each line as the tokenizer does, without the words that it adds around a text."""
        if not lines:
            return []
        if self._lead is None:
            texts = {self._reads: list(lines)}
            with _ONE_SIDE:
                found = self.tokenizer(**texts, add_special_tokens=False, verbose=False)["input_ids"]
        else:
            found = continued(self.tokenizer, self._lead, lines)
        return [[self._ours[number] for number in ids] for ids in found]

    def decode(self, ids_lists: Iterable[Sequence[int]]) -> list[str]:
        """Join pieces to text, one line for each list, without control pieces.

        Behind a template, line breaks and NUL become spaces, and there are none at the ends.
        """
        known = len(self.tokenizer)
        texts = [
            self.tokenizer.decode(
                [self._theirs[int(i)] for i in ids if i not in (PAD, BOS, EOS) and self._theirs[int(i)] < known],
                skip_special_tokens=True,
            )
            for ids in ids_lists
        ]
        return texts if self._lead is None else [" ".join(text.replace("\0", " ").split()) for text in texts]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces with `▁` for a space, each with a name of its own."""
        return [self._names[int(i)] for i in ids]

    @cached_property
    def _names(self) -> list[str]:
        known = len(self.tokenizer)
        texts = self.tokenizer.convert_ids_to_tokens([number for number in self._theirs if number < known])
        by_number = dict(zip((number for number in self._theirs if number < known), texts, strict=True))
        names: list[str] = list(CONTROL)
        taken = set(CONTROL)
        for number in self._theirs[len(CONTROL) :]:
            name = (by_number.get(number) or f"<{number}>").replace(BYTE_SPACE, SPACE)
            if name in taken:
                name = f"{name}<{number}>"
            taken.add(name)
            names.append(name)
        return names

    def sample(self, *_: Any, **__: Any) -> list[int]:
        raise TextError("a foreign vocabulary samples no segmentations")
