"""Frequencies of words and pieces in the training text of a run; counted once per process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from workbench.evaluation.translate import prepared_of
from workbench.store.runs import Run

COUNTED = {"test": "the test set", "training": "the training text of the baseline"}


def of_training(run: Run, side: str, tokenize: str = "13a", lowercase: bool = False) -> Mapping[str, int]:
    """The frequencies of source or target words in a run's training text. Raises RunError if the text is missing."""
    prepared = prepared_of(run)
    return _counted(prepared.folder, prepared.digest, side, tokenize, lowercase)


def unseen_of(run: Run, side: str, lines: Sequence[str]) -> float:
    """The share of words in source or target lines that are not in a run's training text, case-sensitive.

    Raises RunError if that text is missing.
    """
    from analyses.tokenization import tokenized
    from analyses.words import unseen

    return unseen(tokenized(lines), of_training(run, side))


def target_pieces(run: Run) -> Mapping[str, int]:
    """The frequencies of target pieces, </s> among them, in a run's training text. Raises RunError if it is missing."""
    prepared = prepared_of(run)
    return _counted_pieces(prepared.folder, prepared.digest)


@lru_cache(maxsize=4)
def _counted_pieces(folder: Path, _digest: str) -> Mapping[str, int]:
    import numpy as np

    from analyses.attention import END
    from core_models.text.prepared import Prepared

    prepared = Prepared.open(folder)
    train, vocabulary = prepared.split("train"), prepared.target_vocabulary
    counts = np.zeros(len(vocabulary), dtype=np.int64)
    for row in range(len(train)):
        np.add.at(counts, train.target(row), 1)
    seen = np.flatnonzero(counts)
    return {**dict(zip(vocabulary.pieces(seen), counts[seen].tolist(), strict=True)), END: len(train)}


@lru_cache(maxsize=4)
def _counted(folder: Path, _digest: str, side: str, tokenize: str, lowercase: bool) -> Mapping[str, int]:
    from analyses.tokenization import tokenized
    from analyses.words import frequencies
    from core_models.text.prepared import Prepared

    train = Prepared.open(folder).split("train")
    line = train.source_text if side == "source" else train.target_text
    return frequencies(tokenized([line(row) for row in range(len(train))], tokenize, lowercase))
