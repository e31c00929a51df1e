"""PAST and FUTURE of a run over a test set, live or from a stored trace: RESULTS/scores/past-future-*.npz.

Masses and attention are reduced to words, ranks of bags to overlap rates, a few sentences at a time; what is left is
small and kept beside the run. Of a run without guided capsules there is its attention alone. Knows runs and traces,
no figure; torch comes with the first measurement.
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
    """The options of a run's guided capsules, as its configuration has them; None where it has none."""
    return run.mechanism_options.get(MECHANISM)


def coverage_form(run: Run) -> str | None:
    """The form of a run's coverage (Tu 2016): a number a word, where it is not neural; None where it has none."""
    options = run.mechanism_options.get("coverage")
    return None if options is None else str(options.get("form", "additive"))


def coverage_units(run: Run) -> int:
    """How many units a word's neural coverage has; 0 where a run has none."""
    if coverage_form(run) != "neural":
        return 0
    from core_models.mechanisms.coverage import CoverageOptions

    return CoverageOptions(**run.mechanism_options["coverage"]).units


def _counts_coverage(run: Run) -> bool:
    return coverage_form(run) not in (None, "neural")


def separates(run: Run) -> bool:
    """Does it separate PAST and FUTURE?"""
    return options_of(run) is not None


def guided(runs: Sequence[Run]) -> list[Run]:
    """The runs that separate PAST and FUTURE."""
    return list(filter(separates, runs))


def require_guided(run: Run) -> None:
    """Raises RunError where a run does not separate PAST and FUTURE."""
    if not separates(run):
        raise RunError(f"{run.name} separates no PAST and FUTURE; choose a run of gdr, clf or attn")


def has_bags(run: Run) -> bool:
    """Does it predict bags of words, from which overlap rates are made?"""
    return "bow" in (options_of(run) or {}).get("losses", ())


@dataclass(frozen=True, eq=False)
class Sentence:
    """One forced sentence by words, </s> among them where it was written.

    mass [T, I, G] (G = 0 without guided capsules); attention [layers, T, I], a mean over heads (no layer without
    attention); past_overlap, future_overlap: rates of the steps of pieces, [4, steps] as `COUNTED` (NaN where there is
    no such step), without any step where there are no bags of words; coverage [T, I] after each step (T = 0: none).
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
        """How many there are without the end."""
        return len(self.source) - (self.source[-1] == END)

    @property
    def target_words(self) -> int:
        return len(self.target) - (self.target[-1] == END)

    @property
    def words(self) -> tuple[int, int]:
        """How many of the source and of the target there are without the ends."""
        return self.source_words, self.target_words

    def overlap(self, side: str, types: bool = True, end: bool = True) -> np.ndarray:
        """The overlap rates of the steps of a side ("past", "future"), with words counted as types or as tokens."""
        found = getattr(self, f"{side}_overlap")[COUNTED.index((types, end))]
        return found[~np.isnan(found)]

    def attended(self) -> set[Link]:
        """A link for each target word, to the source word attended to most on average; ends have none."""
        if not len(self.attention):
            return set()
        return from_attention(self.attention.mean(0)[: self.target_words, : self.source_words])


def measured(run: Run, test: str, target: str, sentences: int | None = None) -> list[Sentence]:
    """The first so many sentences of a test set (None: all), their own translations or references forced; those that
    are empty are left out. Kept beside the run; from its stored trace where that has the own translations.

    Raises RunError, and what loading does.
    """
    targets = targets_of(run, test, target, sentences)

    def measure() -> list[Sentence]:
        store = _stored(run, targets) if target == "own" else None
        return list(_live(run, targets) if store is None else _from_store(run, store, targets))

    return CACHE.cached(run, targets.inputs(run), measure)


def _live(run: Run, targets: Targets) -> Iterator[Sentence]:
    for one in force_in_documents(run, targets, [MASS, CROSS, COVERAGE, *RANKS]):
        yield reduced(one.target.row, one.source_tokens, one.tokens, one.trace)


def reduced(row: int, sources: Sequence[str], targets: Sequence[str], trace: Trace) -> Sentence:
    """What is kept of the trace of one forced sentence, given its pieces."""
    words = joined(targets), joined(sources)
    mass, weights = np.zeros((*map(len, words), 0)), np.zeros((0, *map(len, words)))
    if MASS in trace:
        mass = past_future.of_words(trace[MASS].values, targets, sources, trace[MASS].sums_to_one)
    if CROSS in trace:
        weights = np.stack([attention.to_words(layer, targets, sources) for layer in trace[CROSS].values.mean(1)])
    covered = np.zeros((0, len(words[1])))
    if COVERAGE in trace and trace[COVERAGE].axes == ("target", "source"):
        covered = covered_words(trace[COVERAGE].values, targets, sources)
    overlaps = np.zeros((len(COUNTED), 0)), np.zeros((len(COUNTED), 0))
    if set(RANKS) <= set(trace):
        past, future = (trace[name].values for name in RANKS)
        overlaps = _overlaps(past, future, targets)
    arrays = [array.astype(np.float32) for array in (mass, weights, *overlaps, covered)]
    return Sentence(row, tuple(words[1]), tuple(words[0]), *arrays)


def _overlaps(past: np.ndarray, future: np.ndarray, targets: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Overlap rates of all steps, counted in each way: [4, T] and [4, T - 1]."""
    found = [np.full((len(COUNTED), max(0, len(targets) - after)), np.nan) for after in (0, 1)]
    for place, (types, end) in enumerate(COUNTED):
        count = len(targets) - (not end and targets[-1] == END)
        if count:
            rates = overlap.overlaps(past[:count, :count], future[:count, :count], targets[:count], types)
            for whole, own in zip(found, rates, strict=True):
                whole[place, : len(own)] = own
    return found[0], found[1]


def _stored(run: Run, targets: Targets) -> TraceStore | None:
    """The run's own stored trace, if it has all that is needed."""
    masses, covered = [MASS] * (options_of(run) is not None), [COVERAGE] * _counts_coverage(run)
    needed = [CROSS, *masses, *covered, *(RANKS if has_bags(run) else ())]
    return stored_traces(run, targets.test, needed, targets.pieces)


def _from_store(run: Run, store: TraceStore, targets: Targets) -> Iterator[Sentence]:
    details = run.translations(targets.test).details
    names = [name for name in (MASS, CROSS, COVERAGE, *RANKS) if name in store.names]
    for one in targets.sentences:
        own = strip_context_pieces(details[one.row]["source_tokens"])
        trace = {name: store.array(name, one.row) for name in names}
        yield reduced(one.row, own, one.pieces, strip_context(trace, len(own)))


def _dump(sentences: Sequence[Sentence]) -> dict[str, Any]:
    """Sentences as arrays, those of a name one behind the other."""
    said = [
        {"row": one.row, "source": one.source, "target": one.target,
         "shapes": {name: getattr(one, name).shape for name in _ARRAYS}}
        for one in sentences
    ]  # fmt: skip
    arrays = {name: np.concatenate([getattr(one, name).ravel() for one in sentences]) for name in _ARRAYS}
    return {"said": np.array(json.dumps(said)), **arrays}


def _parse(arrays: Mapping[str, Any]) -> list[Sentence]:
    said = json.loads(str(arrays["said"]))
    flat = {name: checked_numbers(arrays, {name: "N"}, _OVERLAPS)[name] for name in _ARRAYS}
    parts = {name: _split(flat[name], [one["shapes"][name] for one in said]) for name in _ARRAYS}
    sentences = [
        Sentence(one["row"], tuple(one["source"]), tuple(one["target"]), *(parts[name][place] for name in _ARRAYS))
        for place, one in enumerate(said)
    ]
    for one in sentences:
        words = len(one.target), len(one.source)
        if one.mass.shape[:2] != words or one.attention.shape[1:] != words:
            raise ValueError(f"masses {one.mass.shape} and attention {one.attention.shape} of {words} words")
    return sentences


def _split(flat: np.ndarray, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Arrays of the given shapes that stand one behind the other; raises ValueError where they do not fill it."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    if sum(sizes) != len(flat):
        raise ValueError(f"{len(flat)} numbers are not {sum(sizes)}")
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


CACHE = ResultCache("scores/past-future-{}.npz", _dump, _parse)
