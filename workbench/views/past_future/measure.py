"""PAST and FUTURE of a run over a test set, live or from a stored trace: RESULTS/scores/past-future-*.npz.

Masses and attention are reduced to words, and ranks of bags to overlap rates, a few sentences at a time; the result is
small and cached in the run's folder. Runs without guided capsules have their attention only. Imports no figure code;
torch is imported by the first measurement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses import attention, overlap, past_future
from analyses.alignment import Link, from_attention
from analyses.attention import END, joined
from analyses.content_states import covered_words
from analyses.npz_cache import checked_numbers
from workbench.evaluation.document_context import strip_context, strip_context_pieces
from workbench.evaluation.forced_decoding import Targets, force_in_documents, targets_of
from workbench.evaluation.result_cache import ResultCache
from workbench.store.runs import Run, RunError
from workbench.store.trace_index import stored_traces

if TYPE_CHECKING:
    from core_models.traces import Trace, TraceStore

MECHANISM = "guided_capsules"
MASS, ASSIGNMENTS = f"{MECHANISM}.mass", f"{MECHANISM}.assignments"
CROSS = "decoder.cross_attention"
COVERAGE = "coverage.coverage"
RANKS = ("past_bag.rank", "future_bag.rank")
COUNTED = ((True, True), (True, False), (False, True), (False, False))  # of overlap rates: as types? with </s>?
_ARRAYS = ("mass", "attention", "past_overlap", "future_overlap", "coverage")
_OVERLAPS = ("past_overlap", "future_overlap")


def options_of(run: Run) -> dict[str, Any] | None:
    """Configured options of a run's guided capsules; None without guided capsules."""
    return run.mechanism_options.get(MECHANISM)


def coverage_form(run: Run) -> str | None:
    """Form of a run's coverage (Tu 2016), one number for each word unless "neural"; None without coverage."""
    options = run.mechanism_options.get("coverage")
    return None if options is None else str(options.get("form", "additive"))


def coverage_units(run: Run) -> int:
    """Number of units of a word's neural coverage; 0 for a run without it."""
    if coverage_form(run) != "neural":
        return 0
    from core_models.mechanisms.coverage import CoverageOptions

    return CoverageOptions(**run.mechanism_options["coverage"]).units


def _counts_coverage(run: Run) -> bool:
    return coverage_form(run) not in (None, "neural")


def separates(run: Run) -> bool:
    """Return True if the run separates PAST and FUTURE."""
    return options_of(run) is not None


def guided(runs: Sequence[Run]) -> list[Run]:
    """The runs that separate PAST and FUTURE."""
    return list(filter(separates, runs))


def require_guided(run: Run) -> None:
    """Raises RunError where a run does not separate PAST and FUTURE."""
    if not separates(run):
        raise RunError(f"{run.name} separates no PAST and FUTURE; choose a run of gdr, clf or attn")


def has_bags(run: Run) -> bool:
    """Return True if the run predicts bags of words, which overlap rates need."""
    return "bow" in (options_of(run) or {}).get("losses", ())


@dataclass(frozen=True, eq=False)
class Sentence:
    """One forced sentence by words, </s> among them where it was written.

    mass [T, I, G] (G = 0 without guided capsules); attention [layers, T, I], a mean over heads (no layer without
    attention); past_overlap, future_overlap: rates of the steps of pieces, [4, steps] as `COUNTED` (NaN where there is
    no such step), without any step where there are no bags of words; coverage [T, I] after each step (T = 0: none),
    of the form "mean" as a sum.
    """

    row: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    mass: np.ndarray
    attention: np.ndarray
    past_overlap: np.ndarray
    future_overlap: np.ndarray
    coverage: np.ndarray

    @property
    def source_words(self) -> int:
        """Number of source words without </s>."""
        return len(self.source) - (self.source[-1] == END)

    @property
    def target_words(self) -> int:
        return len(self.target) - (self.target[-1] == END)

    @property
    def words(self) -> tuple[int, int]:
        """Numbers of source and target words without </s>."""
        return self.source_words, self.target_words

    def overlap(self, side: str, types: bool = True, end: bool = True) -> np.ndarray:
        """Overlap rates of the steps of a side ("past", "future"), with words counted as types or as tokens."""
        rates = getattr(self, f"{side}_overlap")[COUNTED.index((types, end))]
        return rates[~np.isnan(rates)]

    def attended(self) -> set[Link]:
        """Links of each target word to its most attended source word (mean over layers); </s> has none."""
        if not len(self.attention):
            return set()
        return from_attention(self.attention.mean(0)[: self.target_words, : self.source_words])


def measured(run: Run, test: str, target: str, sentences: int | None = None) -> list[Sentence]:
    """Force-decode translations or references of the first `sentences` sentences of a test set (None: all).

    Empty sentences are left out. The result is cached in the run's folder. Own translations come from the stored
    trace if there is one. Raises RunError, and the errors of loading.
    """
    targets = targets_of(run, test, target, sentences)

    def measure() -> list[Sentence]:
        store = _stored(run, targets) if target == "own" else None
        return list(_live(run, targets) if store is None else _from_store(run, store, targets))

    inputs = targets.inputs(run)
    if coverage_form(run) == "mean":
        inputs = {**inputs, "coverage": "a sum"}  # earlier versions kept the mean
    return CACHE.cached(run, inputs, measure)


def _live(run: Run, targets: Targets) -> Iterator[Sentence]:
    for forced in force_in_documents(run, targets, [MASS, CROSS, COVERAGE, *RANKS]):
        yield reduced(forced.target.row, forced.source_tokens, forced.tokens, forced.trace, coverage_form(run))


def reduced(
    row: int, sources: Sequence[str], targets: Sequence[str], trace: Trace, form: str | None = None
) -> Sentence:
    """Reduce the trace of one forced sentence, given its pieces, to words; form: that of the run's coverage."""
    words = joined(targets), joined(sources)
    mass, weights = np.zeros((*map(len, words), 0)), np.zeros((0, *map(len, words)))
    if MASS in trace:
        mass = past_future.of_words(trace[MASS].values, targets, sources, trace[MASS].sums_to_one)
    if CROSS in trace:
        weights = np.stack([attention.to_words(layer, targets, sources) for layer in trace[CROSS].values.mean(1)])
    covered = np.zeros((0, len(words[1])))
    if COVERAGE in trace and trace[COVERAGE].axes == ("target", "source"):
        values = trace[COVERAGE].values
        if form == "mean":  # over the pieces so far
            values = values * np.arange(1, len(values) + 1)[:, None]
        covered = covered_words(values, targets, sources)
    overlaps = np.zeros((len(COUNTED), 0)), np.zeros((len(COUNTED), 0))
    if set(RANKS) <= set(trace):
        past, future = (trace[name].values for name in RANKS)
        overlaps = _overlaps(past, future, targets)
    arrays = [array.astype(np.float32) for array in (mass, weights, *overlaps, covered)]
    return Sentence(row, tuple(words[1]), tuple(words[0]), *arrays)


def _overlaps(past: np.ndarray, future: np.ndarray, targets: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Overlap rates of all steps for each way of counting (`COUNTED`): [4, T] and [4, T - 1]."""
    overlap_rates = [np.full((len(COUNTED), max(0, len(targets) - after)), np.nan) for after in (0, 1)]
    for way, (types, end) in enumerate(COUNTED):
        count = len(targets) - (not end and targets[-1] == END)
        if count:
            rates = overlap.overlaps(past[:count, :count], future[:count, :count], targets[:count], types)
            for array, values in zip(overlap_rates, rates, strict=True):
                array[way, : len(values)] = values
    return overlap_rates[0], overlap_rates[1]


def _stored(run: Run, targets: Targets) -> TraceStore | None:
    """Stored trace of the run, if it has all needed arrays."""
    masses, covered = [MASS] * (options_of(run) is not None), [COVERAGE] * _counts_coverage(run)
    needed = [CROSS, *masses, *covered, *(RANKS if has_bags(run) else ())]
    return stored_traces(run, targets.test, needed, targets.pieces)


def _from_store(run: Run, store: TraceStore, targets: Targets) -> Iterator[Sentence]:
    details = run.translations(targets.test).details
    names = [name for name in (MASS, CROSS, COVERAGE, *RANKS) if name in store.names]
    for sentence in targets.sentences:
        source_pieces = strip_context_pieces(details[sentence.row]["source_tokens"])
        trace = {name: store.array(name, sentence.row) for name in names}
        yield reduced(
            sentence.row, source_pieces, sentence.pieces, strip_context(trace, len(source_pieces)), coverage_form(run)
        )


def _dump(sentences: Sequence[Sentence]) -> dict[str, Any]:
    """Sentences as flat arrays, concatenated by name."""
    headers = [
        {"row": sentence.row, "source": sentence.source, "target": sentence.target,
         "shapes": {name: getattr(sentence, name).shape for name in _ARRAYS}}
        for sentence in sentences
    ]  # fmt: skip
    arrays = {name: np.concatenate([getattr(sentence, name).ravel() for sentence in sentences]) for name in _ARRAYS}
    return {"headers": np.array(json.dumps(headers)), **arrays}


def _parse(arrays: Mapping[str, Any]) -> list[Sentence]:
    headers = json.loads(str(arrays["headers"]))
    flat = {name: checked_numbers(arrays, {name: "N"}, _OVERLAPS)[name] for name in _ARRAYS}
    parts = {name: _split(flat[name], [record["shapes"][name] for record in headers]) for name in _ARRAYS}
    sentences = [
        Sentence(
            record["row"], tuple(record["source"]), tuple(record["target"]), *(parts[name][index] for name in _ARRAYS)
        )
        for index, record in enumerate(headers)
    ]
    for sentence in sentences:
        words = len(sentence.target), len(sentence.source)
        if sentence.mass.shape[:2] != words or sentence.attention.shape[1:] != words:
            raise ValueError(f"masses {sentence.mass.shape} and attention {sentence.attention.shape} of {words} words")
    return sentences


def _split(flat: np.ndarray, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Split a flat array into arrays of the given shapes; raises ValueError if the sizes differ."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    if sum(sizes) != len(flat):
        raise ValueError(f"{len(flat)} numbers are not {sum(sizes)}")
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


CACHE = ResultCache("scores/past-future-{}.npz", _dump, _parse)
