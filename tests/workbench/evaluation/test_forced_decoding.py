"""What is forced says what the translator says of it, in its document, however many sentences go at once."""

import operator
import shutil
from collections import OrderedDict

import numpy as np
import pytest

import core_models
from tests.workbench.views.app_pages import runs_of
from workbench.evaluation import forced_decoding
from workbench.evaluation.forced_decoding import Target, force, force_in_documents, opened, stamp, targets_of
from workbench.store.runs import RunError, open_run

NAMES = ["log_prob", "decoder.cross_attention"]


@pytest.fixture(params=["alone", "in documents"])
def run(demo_runs, context_runs, request):
    """One that reads its sentence alone, one that reads those before and its translations of them."""
    return runs_of(demo_runs, "transformer")[0] if request.param == "alone" else context_runs[1]


@pytest.mark.parametrize("kind", ["own", "reference"])
@pytest.mark.parametrize("at_once", [1, 5])
def test_a_forced_pass_is_the_translators_own(run, kind, at_once):
    translations, translator = run.translations("test"), core_models.load(run.reference)
    test_set = translations.test_set
    if kind == "reference":
        wanted = translator.score(test_set.sources, test_set.references, test_set.documents, trace=NAMES)
        wanted = [(one.source_tokens, one.tokens, one.trace) for one in wanted]
    else:
        tokens = [detail["tokens"] for detail in translations.details]
        contexts, outputs = translator.contexts(test_set.sources, test_set.documents, translations.hypotheses)
        traces = translator.trace(test_set.sources, tokens, NAMES, contexts=contexts, context_outputs=outputs)
        read = [one.source_tokens for one in translator.score(test_set.sources, test_set.sources)]
        wanted = list(zip(read, tokens, traces, strict=True))
    targets = targets_of(run, "test", kind, 12)
    rows = []
    for one in force_in_documents(run, targets, NAMES, at_once):
        source_tokens, tokens, trace = wanted[one.target.row]
        assert (one.source_tokens, one.tokens) == (source_tokens, tokens)
        for name in NAMES:
            np.testing.assert_allclose(one.trace[name].values, trace[name].values, atol=1e-5)
        if kind == "reference":
            assert one.log_prob == pytest.approx(trace["log_prob"].values.sum(), abs=1e-3)
        rows.append(one.target.row)
    assert rows == list(targets.pieces) == list(range(12))


def test_texts_need_no_arrays_and_stand_alone_where_nothing_is_before_them(run):
    source, text = "the dog sleeps .", "der Hund schläft ."
    (found,) = force(opened(run.reference, stamp(run)), [Target(0, source, text)])
    (wanted,) = core_models.load(run.reference).score([source], [text])
    assert (found.tokens, found.trace) == (wanted.tokens, {})
    assert found.log_prob == pytest.approx(wanted.log_prob, abs=1e-5)


def test_a_run_is_opened_once_until_it_is_trained_on(demo_runs, tmp_path):
    run = open_run(shutil.copytree(demo_runs / "demo" / "transformer", tmp_path / "run"))
    first = opened(run.reference, stamp(run))
    assert opened(run.reference, stamp(run)) is first
    run.weights.write_bytes(run.weights.read_bytes())
    assert opened(run.reference, stamp(run)) is not first
    assert [reference for reference, _ in forced_decoding._models].count(run.reference) == 1, "of the last weights"
    run.weights.unlink()
    with pytest.raises(RunError, match="has no weights yet; train it: workbench resume"):
        stamp(run)


def test_models_stay_loaded_as_long_as_they_are_small(demo_runs, monkeypatch):
    runs = runs_of(demo_runs, "transformer", "future-cost-1", "future-cost-2")

    def open_all():
        return [opened(run.reference, stamp(run)) for run in runs]

    def stay():
        return list(map(operator.is_, open_all(), open_all()))

    monkeypatch.setattr(forced_decoding, "_models", OrderedDict())
    assert stay() == [True, True, True]
    monkeypatch.setattr(forced_decoding, "_models", OrderedDict())
    sizes = [
        sum(p.nbytes for p in opened(run.reference, stamp(run)).translator.systems[0].parameters()) for run in runs
    ]
    for kept, expected in ((sum(sizes), [True] * 3), (sum(sizes) - 1, [False] * 3), (1, [False] * 3)):
        monkeypatch.setattr(forced_decoding, "_models", OrderedDict())
        monkeypatch.setattr(forced_decoding, "KEPT_BYTES", kept)
        assert stay() == expected  # where not all fit, each was opened after those that took its place
    runs = runs[:1]
    assert stay() == [True]


def test_what_a_measurement_is_of_changes_with_all_that_is_forced_and_the_run_it_is_forced_through(demo_runs):
    run, other = runs_of(demo_runs, "transformer", "future-cost-1")
    several = [targets_of(run, "test", *what) for what in (("own", None), ("own", 3), ("reference", None))]
    inputs = [targets.inputs(through) for targets in several for through in (run, other)]
    assert all(one != two for place, one in enumerate(inputs) for two in inputs[:place])
    assert several[0].inputs(run) == targets_of(run, "test", "own", None).inputs(run)


def test_what_cannot_be_forced_is_said_and_what_is_empty_is_left_out(demo_runs, tmp_path):
    run = open_run(shutil.copytree(demo_runs / "demo" / "transformer", tmp_path / "run"))
    with pytest.raises(RunError, match="target 'typed': choose own or reference"):
        targets_of(run, "test", "typed", None)
    references = run.folder / "translations" / "test" / "references.txt"
    lines = references.read_text(encoding="utf-8").splitlines()
    references.write_text("".join(f"{line}\n" for line in ["", *lines[1:]]), encoding="utf-8")
    run = open_run(run.folder)
    assert list(targets_of(run, "test", "reference", 3).pieces) == [1, 2]
    with pytest.raises(RunError, match="nothing of 'test' that could be forced; translate it again"):
        targets_of(run, "test", "reference", 1)
    references.unlink()
    with pytest.raises(RunError, match="has no references that could be forced"):
        targets_of(open_run(run.folder), "test", "reference", None)
