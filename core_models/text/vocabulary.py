"""The SentencePiece vocabulary: training, segmentation, subword sampling.

A joint vocabulary is trained on the lines of both languages.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from core_models.files.atomic_files import atomic_replace
from core_models.files.run_files import VOCABULARY, read_bytes

from . import vocabulary_training
from .parallel import TextError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
CONTROL = ("<pad>", "<unk>", "<s>", "</s>")  # their pieces
KINDS = ("unigram", "bpe")
# SentencePiece scores an unknown character this far below the rarest piece (unigram_model.cc, kUnkPenalty).
_UNKNOWN_PENALTY = 10.0
# Lines used in training; more change little and cost hours and tens of gigabytes.
_TRAINING_LINES = 2_000_000
_TRAINING_LINE_BYTES = 65_536  # by default SentencePiece silently skips lines above 4,192 bytes
_KILLED = -9  # Linux kills the largest process when memory runs out
_NO_MEMORY = ("bad_alloc", "memoryerror", "cannot allocate memory", "failed to map segment")
_SPACE = "▁"


class Vocabulary:
    """A SentencePiece model whose pieces 0 to 3 are PAD, UNK, BOS and EOS."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = (self._processor.pad_id(), self._processor.unk_id(), self._processor.bos_id(), self._processor.eos_id())
        if ids != (PAD, UNK, BOS, EOS):
            raise TextError(
                f"the SentencePiece model numbers (pad, unk, bos, eos) {ids}, the workbench {(PAD, UNK, BOS, EOS)}: "
                "train it with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3."
            )

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        size: int,
        kind: str = "unigram",
        character_coverage: float = 1.0,
        seed: int = 1,
    ) -> Vocabulary:
        """Train a vocabulary of `size` pieces, including the four control pieces; a function of the lines in order.

        seed: for sampling of lines if there are more than two million. Raises TextError if the text does not allow this
        number of pieces, and MemoryError if memory runs out.
        """
        if kind not in KINDS:
            raise TextError(f"vocabulary kind {kind!r}: choose one of {', '.join(KINDS)}.")
        if size <= EOS + 1:
            raise TextError(f"{size} pieces were asked for: {EOS + 1} are control pieces, so ask for more.")
        settings = {
            "vocab_size": size,
            "model_type": kind,
            "character_coverage": character_coverage,
            "pad_id": PAD,
            "unk_id": UNK,
            "bos_id": BOS,
            "eos_id": EOS,
            "num_threads": 1,  # another order of summation would give another model
            "max_sentence_length": _TRAINING_LINE_BYTES,
            "minloglevel": 2,
        }
        return cls(_trained(_reservoir(lines, _TRAINING_LINES, seed), settings))

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a `.model` file; TextError if it is missing or is no SentencePiece model."""
        try:
            model = read_bytes(path, VOCABULARY)
        except FileNotFoundError:
            raise TextError(f"{path}: no such vocabulary.") from None
        except OSError as error:
            raise TextError(f"{path}: the vocabulary cannot be read ({error.strerror}).") from None
        try:
            if not model:
                raise TextError("the file is empty; copy it again from where it was made.")
            return cls(model)
        except TextError as error:
            raise TextError(f"{path}: not a usable SentencePiece model: {error}") from None
        except RuntimeError:  # its message is a line of C++
            raise TextError(
                f"{path}: not a usable SentencePiece model: it is cut short or something else; copy it again from "
                "where it was made."
            ) from None

    def save(self, path: str | Path) -> None:
        """Write the model file atomically."""
        with atomic_replace(Path(path)) as unfinished:
            unfinished.write_bytes(self.model)

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def __reduce__(self) -> tuple[type[Vocabulary], tuple[bytes]]:
        return Vocabulary, (self.model,)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the model, in hexadecimal."""
        return hashlib.sha256(self.model).hexdigest()

    @cached_property
    def kind(self) -> str:
        """The model type, `unigram` or `bpe`."""
        # A BPE model scores its merges 0, -1, -2, … by rank; a unigram model stores log probabilities.
        scores = self._scores[EOS + 1 :]
        return "bpe" if np.array_equal(scores, -np.arange(len(scores))) else "unigram"

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Segment each line in the best way; no BOS, no EOS."""
        return self._processor.encode(list(lines), out_type=int)

    def decode(self, ids_lists: Iterable[Sequence[int]]) -> list[str]:
        """Join pieces to text, one line for each list, without PAD, BOS and EOS."""
        return [self._processor.decode([int(i) for i in ids if i not in (PAD, BOS, EOS)]) for ids in ids_lists]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces in SentencePiece's notation, with `▁` for a space."""
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def sample(
        self, line: str, alpha: float, generator: random.Random | np.random.Generator, nbest: int = 64
    ) -> list[int]:
        """Sample one segmentation with `generator`; SentencePiece's sampling would use a hidden global state.

        Unigram: one of the `nbest` best with probability proportional to P(segmentation) ** alpha (Kudo 2018, Eq. 8);
        alpha 0 is uniform, large alpha the best. BPE: each merge is dropped with probability alpha, `nbest` is not used
        (Provilkov et al. 2020, Algorithm 1); alpha 0 is the deterministic segmentation, alpha 1 single characters.
        """
        if self.kind == "bpe":
            if not 0 <= alpha <= 1:
                raise TextError(
                    f"sampling alpha {alpha}: with BPE it is the probability of leaving a merge out, 0 to 1."
                )
            return self._merge_with_dropout(line, alpha, generator)
        candidates = self._processor.nbest_encode([line], out_type=int, nbest_size=nbest)[0]
        if len(candidates) < 2:
            return self.encode([line])[0]
        log_weights = alpha * np.array([self._scores[ids].sum() for ids in candidates])
        cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
        drawn = np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right")
        return candidates[min(int(drawn), len(candidates) - 1)]

    @cached_property
    def _scores(self) -> np.ndarray:
        scores = np.array([self._processor.get_score(i) for i in range(len(self))])
        scores[UNK] = scores.min() - _UNKNOWN_PENALTY
        return scores

    @cached_property
    def _merge_scores(self) -> dict[str, float]:
        return {self._processor.id_to_piece(i): float(self._scores[i]) for i in range(EOS + 1, len(self))}

    def _merge_with_dropout(
        self, line: str, dropout: float, generator: random.Random | np.random.Generator
    ) -> list[int]:
        # SentencePiece never merges across a space at the start of a piece, so words are merged separately.
        words = re.findall(f"{_SPACE}*[^{_SPACE}]*", self._normalized(line))
        ids = [
            self._processor.piece_to_id(piece)
            for word in words
            for piece in _merged(list(word), self._merge_scores, dropout, generator)
        ]
        # Consecutive unknown characters are one UNK, as in SentencePiece's output.
        return [i for before, i in zip([PAD, *ids], ids, strict=False) if not i == before == UNK]

    def _normalized(self, line: str) -> str:
        normalized = self._processor.normalize(line)
        return normalized.replace(" ", _SPACE)


def _merged(
    symbols: list[str], scores: dict[str, float], dropout: float, generator: random.Random | np.random.Generator
) -> list[str]:
    """Merge the best adjacent pair until none is left; in each step each pair is dropped with probability `dropout`."""
    while len(symbols) > 1:
        pairs = (
            (scores[pair], -position)
            for position, pair in enumerate(map(str.__add__, symbols, symbols[1:]))
            if pair in scores and (dropout == 0 or generator.random() >= dropout)
        )
        best = max(pairs, default=None)
        if best is None:
            break
        position = -best[1]
        symbols[position : position + 2] = [symbols[position] + symbols[position + 1]]
    return symbols


def _reservoir(lines: Iterable[str], most: int, seed: int) -> list[str]:
    """Sample at most `most` of the non-empty lines, each equally likely (Vitter 1985, Algorithm R)."""
    generator, seen = random.Random(seed), 0
    kept: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        seen += 1
        if len(kept) < most:
            kept.append(line)
        elif (index := generator.randrange(seen)) < most:
            kept[index] = line
    if not kept:
        raise TextError("there is no text to learn a vocabulary from: every line is empty.")
    return kept


def _trained(lines: list[str], settings: Mapping[str, Any]) -> bytes:
    """Train a SentencePiece model in a subprocess with the same module path."""
    process = subprocess.run(
        [sys.executable, "-P", vocabulary_training.__file__],
        input=pickle.dumps((lines, settings)),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path))},
    )
    if process.returncode == 0:
        return process.stdout
    size, kind = settings["vocab_size"], settings["model_type"]
    if process.returncode == vocabulary_training.REFUSED:
        raise TextError(_explain_training(process.stdout.decode(), size, kind))
    stderr = process.stderr.decode(errors="replace")
    if process.returncode == _KILLED or any(sign in stderr.lower() for sign in _NO_MEMORY):
        raise MemoryError(f"SentencePiece was learning {size} pieces from {len(lines)} lines; give it fewer lines")
    last = stderr.strip().rpartition("\n")[2]
    raise TextError(f"SentencePiece could not learn {size} pieces ({kind}): exit code {process.returncode}. {last}")


def _explain_training(message: str, size: int, kind: str) -> str:
    if match := re.search(r"set it to a value <= (\d+)", message):
        return (
            f"{size} pieces were asked for, but the text holds only {match[1]} ({kind}): ask for {match[1]} or fewer."
        )
    if match := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"{size} pieces were asked for, but the characters alone need {match[1]}: ask for more pieces or lower "
            "character_coverage."
        )
    return f"SentencePiece could not learn {size} pieces ({kind}): {message}"
