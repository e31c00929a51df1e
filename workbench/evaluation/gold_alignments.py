"""Gold word alignments of the controlled corpus's test sets. Knows truth records and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from analyses.alignment import Link


def has_truth(run: Run, test: str) -> bool:
    """Return True if the test set has true links between words of sources and references."""
    truth = run.translations(test).truth or []
    return bool(truth) and all("alignment" in record for record in truth)


@dataclass(frozen=True)
class Truth:
    """The true links of a reference and the source words without a link; words are split at blanks."""

    source_words: int
    target_words: int
    links: frozenset[Link]
    without: frozenset[int]

    def fits(self, source_words: int, target_words: int) -> bool:
        """Return True if these numbers of words are those of the truth."""
        return (source_words, target_words) == (self.source_words, self.target_words)


def truths(run: Run, test: str) -> list[Truth]:
    """The truth of every sentence of the controlled corpus; raises RunError for other test sets."""
    if not has_truth(run, test):
        raise RunError(f"the test set {test!r} has no truth, which only the controlled corpus knows")
    translations = run.translations(test)
    texts = zip(
        translations.test_set.sources, translations.test_set.references or [], translations.truth or [], strict=True
    )
    return [truth_of(source, reference, record) for source, reference, record in texts]


def truth_of(source: str, reference: str, record: Mapping[str, Any]) -> Truth:
    """The truth of one sentence, from its record (`core_models.text.controlled`)."""
    return Truth(
        len(source.split()),
        len(reference.split()),
        frozenset((int(i), int(j)) for i, j in record["alignment"]),
        frozenset(map(int, record.get("unaligned_source", ()))),
    )
