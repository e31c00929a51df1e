"""What is kept beside a run is read again without computing, of the same inputs only; whatever is damaged is not."""

import json
import os

import numpy as np
import pandas as pd
import pytest

from analyses.context_routing import ContextSpread
from analyses.npz_cache import read_arrays, write_arrays
from analyses.reranking import Lists
from analyses.routing import RoutingStatistics
from analyses.scores import extract, preset
from analyses.word_coverage import SentenceCoverage
from tests.workbench.papers.written_runs import written_run
from workbench.evaluation import bleu_cache
from workbench.evaluation.adequacy import ADEQUACY, SENTENCE_COUNTS, Adequacy, MeasureScore
from workbench.evaluation.alignment_error import ALIGNMENT_ERROR, AlignmentError
from workbench.evaluation.result_cache import of_forced_references, of_translations
from workbench.store import read_only
from workbench.store.runs import Run, open_run
from workbench.views.adequacy.word_coverage import COUNTERPARTS
from workbench.views.document_context import measure_routing
from workbench.views.layer_routing import measure as layer_routing
from workbench.views.past_future import measure as past_future
from workbench.views.past_future.probe import PROBE
from workbench.views.past_future_layers import measure as past_future_layers
from workbench.views.reranking import measure as reranking

pytestmark = pytest.mark.long

INPUTS = {"model": "0a", "option": 1, "rows": [0, 2]}


def _numbers(*shape):
    return np.random.default_rng(1).uniform(size=shape)


def _lists():
    counts = extract(["a b", "b", "a"], [["a b", "b", "b a"]], "bleu", **preset("default").options("bleu"))
    return Lists(("main", "length"), _numbers(3, 2), np.array([0, 1, 3]), counts)


SENTENCE = past_future.Sentence(
    4, ("the", "dog", "</s>"), ("der", "</s>"), _numbers(2, 3, 4), _numbers(1, 2, 3), _numbers(4, 2), _numbers(4, 1),
    _numbers(2, 3),
)  # fmt: skip
# Of every kind the cache, and a result.
KINDS = {
    "layer routing": (layer_routing.CACHE, RoutingStatistics(
        np.array([3, 2]), _numbers(2, 3, 4), _numbers(2, 3), _numbers(2, 3), _numbers(2, 2), _numbers(3, 8))),
    "context routing": (measure_routing.CACHE, ContextSpread(
        np.array([3, 2]), _numbers(2, 3, 4), _numbers(2, 3, 2, 3))),
    "past and future": (past_future.CACHE, [SENTENCE, SENTENCE]),
    "past and future layers": (past_future_layers.CACHE, [
        {"past.norm": _numbers(3), "system.log_prob": _numbers(3)},
        {"past.norm": _numbers(2), "system.log_prob": _numbers(2)}]),
    "reranking": (reranking.CACHE, _lists()),
    "probe": (PROBE, [_numbers(2, 3), _numbers(4, 1)]),
    "counterparts": (COUNTERPARTS, [SentenceCoverage(3, frozenset({0}), frozenset(), frozenset({1, 2}))]),
    "alignment error": (
        ALIGNMENT_ERROR,
        AlignmentError(aer=0.2, sentences=9, layer="mean", head="1", argmax="words", links="truth"),
    ),
    "adequacy": (
        ADEQUACY, Adequacy(aligner="0b", measures=[MeasureScore(measure="CDR", score=0.5, low=0.4, high=1, n=9)])
    ),
    "adequacy of sentences": (SENTENCE_COUNTS, pd.DataFrame({
        "words": [9, 1], "covered": [8, 1], "missed": [2, 0], "under": [0.25, 0.0], "repeated": [0, 1],
        "over": [0.0, 1.0]})),
    "bleu": (bleu_cache.SCORES, 27.5),
}  # fmt: skip
MAY_BE_NAN = {"diversity", "activations", "far", "past_overlap", "future_overlap", "under", "over"}
OPTIONAL = {"version", "towards"}  # what entries of earlier versions lack: the first of either


class Computing:
    """Counts how often a result is computed."""

    def __init__(self, result):
        self.result, self.times = result, 0

    def __call__(self):
        self.times += 1
        return self.result


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, "one")


def _comparable(cache, result):
    dumped = cache.dump(result)
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in dumped.items()}


def test_what_was_kept_is_read_and_not_computed(kind, run):
    cache, result = kind
    computing = Computing(result)
    for _ in range(2):
        found = cache.cached(run, INPUTS, computing, "test")
        assert _comparable(cache, found) == _comparable(cache, result)
    assert computing.times == 1


@pytest.mark.parametrize("name", ["", "test"])
def test_other_inputs_compute_again(kind, run, name):
    cache, result = kind
    computing = Computing(result)
    several = [INPUTS, {**INPUTS, "model": "0c"}, {**INPUTS, "option": 2}, {**INPUTS, "rows": [0]}, {"model": "0a"}]
    for inputs in several:
        cache.cached(run, inputs, computing, name)
    assert computing.times == len(several)
    for inputs in several:  # without a name all are kept beside each other, with one the last
        cache.cached(run, inputs, computing, name)
    assert computing.times == len(several) * (2 if name else 1)


def _damaged(path):
    """The bytes of what a file might be instead."""
    whole = path.read_bytes()
    yield from (b"", whole[: len(whole) // 2], whole[:-1], b"[]", b"null", b"half of it", whole[1:])
    yield from map(_written(path), _changed(path))


def _changed(path):
    """The content with each part gone, of another kind or form, or with a number that is none."""
    arrays = path.suffix == ".npz"
    content = read_arrays(path) if arrays else json.loads(path.read_bytes())
    yield {**content, "version": np.array(99) if arrays else 99}
    for name in content.keys() - OPTIONAL:
        yield {other: own for other, own in content.items() if other != name}
        yield {**content, name: np.array(["x"]) if arrays else [[["x"]]]}
    if not arrays:
        text = json.dumps(content)
        numbers = [word for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split() if "." in word]
        yield from (json.loads(text.replace(number.rstrip("}"), "NaN", 1)) for number in numbers)
        return
    for name in {name for name, value in content.items() if value.dtype.kind == "f"} - MAY_BE_NAN:
        yield {**content, name: np.full_like(content[name], np.nan)}
    for name in {name for name, value in content.items() if value.ndim}:
        yield {**content, name: content[name][None]}
        yield {**content, name: np.concatenate([content[name], content[name][:1]])}


def _written(path):
    def of(content):
        other = path.with_name(f"other{path.suffix}")
        if path.suffix == ".npz":
            write_arrays(other, **content)
        else:
            other.write_text(json.dumps(content), encoding="utf-8")
        found = other.read_bytes()
        other.unlink()
        return found

    return of


def test_what_is_damaged_is_computed_again_and_healed(kind, run):
    cache, result = kind
    cache.save(run, INPUTS, result, "test")
    path = cache.path(run, "test")
    whole = path.read_bytes()
    for spoiled in _damaged(path):
        path.write_bytes(spoiled)
        computing = Computing(result)
        cache.cached(run, INPUTS, computing, "test")
        assert computing.times == 1, spoiled[:300]
        assert _comparable(cache, cache.load(run, INPUTS, "test")) == _comparable(cache, result)
        path.write_bytes(whole)
    path.unlink()
    os.mkfifo(path)  # for which one could wait without end
    assert cache.load(run, INPUTS, "test") is None


def test_nothing_is_kept_where_runs_are_for_reading_only(kind, run, monkeypatch):
    cache, result = kind
    monkeypatch.setenv(read_only.READ_ONLY, "1")
    read_only.protect(run.folder)
    computing = Computing(result)
    for _ in range(2):
        assert cache.cached(run, INPUTS, computing, "test") is result
    assert computing.times == 2
    assert not any(path.is_file() for path in run.folder.rglob("*"))


@pytest.mark.parametrize("named", ["adequacy", "alignment error", "bleu", "counterparts", "reranking"])
def test_what_an_earlier_version_kept_by_test_set_is_still_read(run, named):
    """Which said no version."""
    cache, result = KINDS[named]
    path = cache.write(run, INPUTS, result, "test")
    content = read_arrays(path) if path.suffix == ".npz" else json.loads(path.read_bytes())
    path.write_bytes(_written(path)({name: own for name, own in content.items() if name not in OPTIONAL}))
    assert _comparable(cache, cache.load(run, INPUTS, "test")) == _comparable(cache, result)


def test_inputs_are_the_texts_and_where_something_is_forced_the_weights(prepared, tmp_path):
    run = written_run(tmp_path / "runs", "rnn", "rnnsearch:preset=tiny", prepared)
    run.weights.write_bytes(b"weights")

    def inputs():
        opened = open_run(run.folder)
        return of_translations(opened, "test"), of_forced_references(opened, "test")

    folder = run.folder / "translations" / "test"
    for file, changes in (("hypotheses", (True, False)), ("references", (True, True)), ("sources", (True, True))):
        before, path = inputs(), folder / f"{file}.txt"
        path.write_text(f"x{path.read_text(encoding='utf-8')}", encoding="utf-8")
        assert tuple(a != b for a, b in zip(before, inputs(), strict=True)) == changes, file
    before = inputs()
    run.weights.write_bytes(b"others!")
    assert tuple(a != b for a, b in zip(before, inputs(), strict=True)) == (False, True)
