"""A vocabulary of words, such as a dict.txt of fairseq, with the BPE codes of subword-nmt if its words are pieces.

A piece that the next one continues ends in `@@`. Without codes a text is already segmented, and is put out so.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from core_models.files.run_files import VOCABULARY, parse_json, read_bytes

from .parallel import TextError, read_lines
from .vocabulary import BOS, CONTROL, EOS, PAD, UNK, Vocabulary

CONTINUED = "@@"
KIND = "dictionary"
OVERWRITE = "#fairseq:overwrite"  # of a word that is there already: the later one is found


class DictionaryVocabulary(Vocabulary):
    """The control pieces, then words in their order; stored as JSON."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        try:
            stored = parse_json(model)
            self.words: list[str] = stored["words"]
            self.codes: list[str] = stored["codes"]
            fits = stored["kind"] == KIND and all(isinstance(text, str) for text in (*self.words, *self.codes))
        except (ValueError, KeyError, TypeError):
            fits = False
        if not fits:
            raise TextError("not a stored dictionary; copy it again from where it was made.")
        self._numbers = {word: number for number, word in enumerate(self.words, start=len(CONTROL))}
        self._bpe = _bpe(self.codes) if self.codes else None

    @classmethod
    def of(cls, words: Sequence[str], codes: Sequence[str] = ()) -> DictionaryVocabulary:
        """A vocabulary of words, with the lines of subword-nmt's codes; raises TextError if these are none."""
        stored = {"kind": KIND, "words": list(words), "codes": list(codes)}
        return cls(json.dumps(stored, ensure_ascii=False).encode())

    def __len__(self) -> int:
        return len(CONTROL) + len(self.words)

    def __reduce__(self) -> tuple[Any, ...]:
        return DictionaryVocabulary, (self.model,)

    @property
    def kind(self) -> str:  # type: ignore[override]
        return KIND

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Cut each line at white space, and each word by the codes if there are any; no BOS, no EOS."""
        found = []
        for line in lines:
            words = line.split()
            pieces = words if self._bpe is None else self._bpe.segment_tokens(words)
            found.append([self._numbers.get(piece, UNK) for piece in pieces])
        return found

    def decode(self, ids_lists: Iterable[Sequence[int]]) -> list[str]:
        """Join pieces to text, one line for each list, without PAD, BOS and EOS; with codes `@@` joins too."""
        names = (*CONTROL, *self.words)
        lines = [" ".join(names[int(i)] for i in ids if i not in (PAD, BOS, EOS)) for ids in ids_lists]
        if self._bpe is None:
            return lines
        return [f"{line} ".replace(f"{CONTINUED} ", "").rstrip() for line in lines]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The words of the dictionary, each with a name of its own."""
        return [self._names[int(i)] for i in ids]

    @cached_property
    def _names(self) -> list[str]:
        names = list(CONTROL)
        for number, word in enumerate(self.words, start=len(CONTROL)):
            found = word not in CONTROL and self._numbers[word] == number
            names.append(word if found else f"{word}<{number}>")
        return names

    def sample(self, *_: Any, **__: Any) -> list[int]:
        raise TextError("a dictionary samples no segmentations; leave subword_alpha out")


def _bpe(codes: Sequence[str]) -> Any:
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError:
        raise TextError(
            "this vocabulary's pieces are cut by subword-nmt, which is not installed; install it: "
            "pip install 'nmt-workbench[fairseq]'"
        ) from None
    return BPE(io.StringIO("\n".join(codes)), separator=CONTINUED)


def load_vocabulary(path: str | Path) -> Vocabulary:
    """Read a run's `.model` file, SentencePiece's or a stored dictionary; TextError if it is missing or neither."""
    try:
        model = read_bytes(path, VOCABULARY)
    except OSError:
        return Vocabulary.load(path)  # says what is wrong
    if not model.startswith(b"{"):
        return Vocabulary.load(path)
    try:
        return DictionaryVocabulary(model)
    except TextError as error:
        raise TextError(f"{path}: {error}") from None


def read_dictionary(path: Path) -> list[str]:
    """The words of a dict.txt of fairseq, `WORD COUNT` a line; raises TextError for another line, or a word twice."""
    words: list[str] = []
    known: set[str] = set()
    for number, line in enumerate(read_lines(path), start=1):
        text = line.rstrip()
        overwrites = text.endswith(f" {OVERWRITE}")
        word, sign, count = text.removesuffix(OVERWRITE).rstrip().rpartition(" ")
        if not sign or not word or not count.isdecimal():
            raise TextError(f"{path}: line {number} is not `WORD COUNT`; give a dict.txt of fairseq")
        if word in known and not overwrites:
            raise TextError(f"{path}: line {number} has {word!r} again; give the dict.txt of the model's own training")
        known.add(word)
        words.append(word)
    return words


def read_codes(path: Path) -> list[str]:
    """The lines of a file of BPE codes in subword-nmt's form; fastBPE's have a count more, which is dropped.

    Raises TextError for a line that is no merge of two pieces.
    """
    lines = read_lines(path)
    has_version = lines[0].startswith("#version:")
    if has_version and lines[0].split()[-1] not in ("0.1", "0.2"):
        raise TextError(f"{path}: codes of {lines[0][1:]}; only those of version 0.1 and 0.2 are known")
    merges = [line.rstrip().split(" ") for line in lines[has_version:]]
    for number, merge in enumerate(merges, start=1 + has_version):
        counted = len(merge) == 3 and merge[2].isdecimal() and not has_version
        if len(merge) != 2 and not counted:
            raise TextError(f"{path}: line {number} is not two pieces; give the codes of subword-nmt or fastBPE")
    counted = bool(merges) and len(merges[0]) == 3
    # fastBPE joins the end of a word to its last character, as version 0.2 does.
    header = ["#version: 0.2"] if counted else lines[:has_version]
    return [*header, *(f"{first} {second}" for first, second, *_ in merges)]
