"""Probe of PAST and FUTURE in a run's frozen hidden states, cached in the run's folder.

The probe is trained on sentences of the controlled corpus, generated with a separate seed and without the sentences of
the test set, and applied to the references of the test set. Imports no figure code.
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

LESSONS, SEED = 2000, 977  # number of training sentences of the probe, and their seed
AT_ONCE = 20  # sentences per batch


def read_by_probe(
    run: Run, test: str, rows: Sequence[int], present: Present = "out", lessons: int = LESSONS
) -> list[np.ndarray]:
    """Probability of PAST [steps, source words] for sentences of a test set; one step for each word and for </s>.

    rows: sentences whose pieces join to the words of the truth; lessons: number of training sentences. Raises RunError
    without references or truth.
    """
    question = {"rows": list(rows), "present": present, "lessons": lessons, "seed": SEED}

    def ask() -> list[np.ndarray]:
        return [np.round(probabilities, 5) for probabilities in _predicted(run, test, rows, present, lessons)]

    return PROBE.cached(run, {**of_forced_references(run, test), **question}, ask, test)


def _parse(content: Mapping[str, Any]) -> list[np.ndarray]:
    sentences = [np.array(probabilities, dtype=np.float64) for probabilities in content["past"]]
    if not all(probabilities.ndim == 2 and np.isfinite(probabilities).all() for probabilities in sentences):
        raise ValueError("not probabilities of steps and words")
    return sentences


PROBE = ResultCache(
    "probe/{}.json", lambda sentences: {"past": [probabilities.tolist() for probabilities in sentences]}, _parse
)


def labels_of(truth: Truth, sources: Sequence[str], targets: Sequence[str], present: Present) -> np.ndarray:
    """Labels [target pieces, source pieces], both with </s>: 1 for PAST, 0 for FUTURE, -1 for neither."""
    steps, words = truth.target_words + 1, truth.source_words + 1
    table = cells(truth.links, truth.source_words, steps, present)
    labels = np.full((steps, words), -1, dtype=np.int8)
    labels[table["step"], table["word"]] = table["past"]
    return labels[np.ix_(word_numbers(targets), word_numbers(sources))]


def _predicted(run: Run, test: str, rows: Sequence[int], present: Present, lessons: int) -> Iterator[np.ndarray]:
    import torch

    import core_models
    from core_models.inspection.probing import predict, taught

    translator = core_models.load(run.reference)
    if translator.context.joined:
        raise RunError(
            f"{run.name} reads the sentences before and the sentence as one text, and a probe would be of their words "
            "too; choose a run that reads them apart, such as qcn, or single sentences"
        )
    test_set, references = run.translations(test).test_set, references_of(run, test)
    examples = []
    for features, sources, targets, truth in _read_states(translator, _lessons(lessons, set(test_set.sources))):
        labels = torch.full((len(truth), features.states.shape[1], features.memory.shape[1]), -1, dtype=torch.int8)
        for index, sentence_truth in enumerate(truth):
            sentence_labels = labels_of(sentence_truth, sources[index], targets[index], present)
            labels[index, : sentence_labels.shape[0], : sentence_labels.shape[1]] = torch.from_numpy(sentence_labels)
        examples.append((features, labels))
    probe = taught(examples)
    text = _Text(test_set.sources, references, test_set.documents, truths(run, test), rows)
    for features, sources, targets, truth in _read_states(translator, text):
        past = predict(probe, features).numpy()
        for index in range(len(truth)):
            steps, words = len(targets[index]), len(sources[index])
            yield of_words(past[index, :steps, :words, None], targets[index], sources[index])[:, :-1, 0]


class _Text(NamedTuple):
    """Sentences with documents, translations and truth, and the rows that are used."""

    sources: Sequence[str]
    targets: Sequence[str]
    documents: Sequence[str] | None
    truth: Mapping[int, Truth] | Sequence[Truth]
    rows: Sequence[int]


def _lessons(count: int, left_out: set[str]) -> _Text:
    """Training sentences of the probe."""
    from core_models.text.controlled import generate

    text = generate(count, 1, 1, seed=SEED).train
    rows = [row for row, source in enumerate(text.sources) if source not in left_out]
    truth = {row: truth_of(text.sources[row], text.targets[row], text.truth[row]) for row in rows}
    return _Text(text.sources, text.targets, text.documents, truth, rows)


def _read_states(
    translator: Translator, text: _Text
) -> Iterator[tuple[Features, list[list[str]], list[list[str]], list[Truth]]]:
    """Hidden states of batches of sentences, with their source and target pieces (including </s>) and truth."""
    from core_models.decoding.inputs import EncodedInputs
    from core_models.inspection.probing import features

    (system,) = translator.systems
    vocabularies = translator.source_vocabulary, translator.target_vocabulary
    inputs, targets = EncodedInputs(translator.context, vocabularies, text.sources, text.documents), list(text.targets)
    written = vocabularies[1].encode(targets)
    for row, ids in enumerate(written):
        inputs.add_output(row, ids)
    for begin in range(0, len(text.rows), AT_ONCE):
        batch = text.rows[begin : begin + AT_ONCE]
        states = features(system, inputs.batch(batch, [written[row] for row in batch]))
        from_pieces, to_pieces = (
            [[*vocabulary.pieces(ids[row]), END] for row in batch]
            for vocabulary, ids in zip(vocabularies, (inputs.pieces, written), strict=True)
        )
        yield states, from_pieces, to_pieces, [text.truth[row] for row in batch]
