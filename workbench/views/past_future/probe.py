"""What a probe reads of PAST and FUTURE in a run's frozen states, kept beside the run.

The probe learns from sentences of the controlled corpus that are drawn with a seed of their own, those of the test set
left out, and is asked about the references of the test set. Knows runs and truth, no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analyses.attention import END, word_numbers
from analyses.past_future import of_words
from analyses.past_future_gold import Present, cells
from workbench.evaluation.forced_decoding import references_of
from workbench.evaluation.gold_alignments import Truth, truth_of, truths
from workbench.evaluation.result_cache import ResultCache, of_forced_references
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from core_models.inspection.probing import Features
    from core_models.translator import Translator

LESSONS, SEED = 2000, 977  # sentences that a probe learns from, and the seed they are drawn with
AT_ONCE = 20  # sentences of a batch


def read_by_probe(
    run: Run, test: str, rows: Sequence[int], present: Present = "out", lessons: int = LESSONS
) -> list[np.ndarray]:
    """The probability of PAST [steps, source words] of sentences of a test set; a step for each word and for </s>.

    rows: sentences whose pieces join to the words that the truth counts; lessons: how many it learns from. Raises
    RunError without references or truth.
    """
    question = {"rows": list(rows), "present": present, "lessons": lessons, "seed": SEED}

    def ask() -> list[np.ndarray]:
        return [np.round(one, 5) for one in _asked(run, test, rows, present, lessons)]

    return PROBE.cached(run, {**of_forced_references(run, test), **question}, ask, test)


def _parse(content: Mapping[str, Any]) -> list[np.ndarray]:
    sentences = [np.array(one, dtype=np.float64) for one in content["past"]]
    if not all(one.ndim == 2 and np.isfinite(one).all() for one in sentences):
        raise ValueError("not probabilities of steps and words")
    return sentences


PROBE = ResultCache("probe/{}.json", lambda sentences: {"past": [one.tolist() for one in sentences]}, _parse)


def labels_of(truth: Truth, sources: Sequence[str], targets: Sequence[str], present: Present) -> np.ndarray:
    """1 for PAST, 0 for FUTURE, -1 for what is neither: [target pieces, source pieces], </s> of either among them."""
    steps, words = truth.target_words + 1, truth.source_words + 1
    table = cells(truth.links, truth.source_words, steps, present)
    labels = np.full((steps, words), -1, dtype=np.int8)
    labels[table["step"], table["word"]] = table["past"]
    return labels[np.ix_(word_numbers(targets), word_numbers(sources))]


def _asked(run: Run, test: str, rows: Sequence[int], present: Present, lessons: int) -> Iterator[np.ndarray]:
    import torch

    import core_models
    from core_models.inspection.probing import predict, taught

    translator = core_models.load(run.reference)
    if translator.context.joined:
        raise RunError(
            f"{run.name} reads the sentences before and the sentence as one text, and a probe would be of their words "
            "too; choose a run that reads them apart, such as qcn, or single sentences"
        )
    own, references = run.translations(test).test_set, references_of(run, test)
    examples = []
    for read, sources, targets, truth in _read_states(translator, _lessons(lessons, set(own.sources))):
        labels = torch.full((len(truth), read.states.shape[1], read.memory.shape[1]), -1, dtype=torch.int8)
        for place, one in enumerate(truth):
            made = labels_of(one, sources[place], targets[place], present)
            labels[place, : made.shape[0], : made.shape[1]] = torch.from_numpy(made)
        examples.append((read, labels))
    probe = taught(examples)
    asked = _Text(own.sources, references, own.documents, truths(run, test), rows)
    for read, sources, targets, truth in _read_states(translator, asked):
        past = predict(probe, read).numpy()
        for place in range(len(truth)):
            steps, words = len(targets[place]), len(sources[place])
            yield of_words(past[place, :steps, :words, None], targets[place], sources[place])[:, :-1, 0]


class _Text(NamedTuple):
    """Sentences in their documents, their translations and truth, and which rows of them count."""

    sources: Sequence[str]
    targets: Sequence[str]
    documents: Sequence[str] | None
    truth: Mapping[int, Truth] | Sequence[Truth]
    rows: Sequence[int]


def _lessons(count: int, left_out: set[str]) -> _Text:
    """What the probe learns from."""
    from core_models.text.controlled import generate

    text = generate(count, 1, 1, seed=SEED).train
    rows = [row for row, source in enumerate(text.sources) if source not in left_out]
    truth = {row: truth_of(text.sources[row], text.targets[row], text.truth[row]) for row in rows}
    return _Text(text.sources, text.targets, text.documents, truth, rows)


def _read_states(
    translator: Translator, text: _Text
) -> Iterator[tuple[Features, list[list[str]], list[list[str]], list[Truth]]]:
    """What the system's states say of some sentences at a time, and their pieces, </s> among them."""
    from core_models.decoding.inputs import EncodedInputs
    from core_models.inspection.probing import features

    (system,) = translator.systems
    vocabularies = translator.source_vocabulary, translator.target_vocabulary
    read, targets = EncodedInputs(translator.context, vocabularies, text.sources, text.documents), list(text.targets)
    written = vocabularies[1].encode(targets)
    for row, ids in enumerate(written):
        read.found(row, ids)
    for begin in range(0, len(text.rows), AT_ONCE):
        here = text.rows[begin : begin + AT_ONCE]
        found = features(system, read.batch(here, [written[row] for row in here]))
        from_pieces, to_pieces = (
            [[*vocabulary.pieces(ids[row]), END] for row in here]
            for vocabulary, ids in zip(vocabularies, (read.pieces, written), strict=True)
        )
        yield found, from_pieces, to_pieces, [text.truth[row] for row in here]
