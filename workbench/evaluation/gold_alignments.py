"""What the controlled corpus knows of its test sets: which words belong together. Knows truth records and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from analyses.alignment import Link


def has_truth(run: Run, test: str) -> bool:
    """Does the test set say itself which words of the reference belong to which source words?"""
    truth = run.translations(test).truth or []
    return bool(truth) and all("alignment" in record for record in truth)


@dataclass(frozen=True)
class Truth:
    """The true links of a reference and the source words that have none; words are what blanks part."""

    source_words: int
    target_words: int
    links: frozenset[Link]
    without: frozenset[int]

    def fits(self, source_words: int, target_words: int) -> bool:
        """Are these as many words as the truth counts?"""
        return (source_words, target_words) == (self.source_words, self.target_words)


def truths(run: Run, test: str) -> list[Truth]:
    """The truth of every sentence of the controlled corpus; raises RunError for other test sets."""
    if not has_truth(run, test):
        raise RunError(f"the test set {test!r} has no truth, which only the controlled corpus knows")
    found = run.translations(test)
    texts = zip(found.test_set.sources, found.test_set.references or [], found.truth or [], strict=True)
    return [truth_of(source, reference, record) for source, reference, record in texts]


def truth_of(source: str, reference: str, record: Mapping[str, Any]) -> Truth:
    """The truth of one sentence, from its record (`core_models.text.controlled`)."""
    return Truth(
        len(source.split()),
        len(reference.split()),
        frozenset((int(i), int(j)) for i, j in record["alignment"]),
        frozenset(map(int, record.get("unaligned_source", ()))),
    )
