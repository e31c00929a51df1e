"""PAST and FUTURE over a test set: what is measured is what the model did; figures show the analyses' numbers."""

import shutil
from collections import Counter

import numpy as np
import pytest

import core_models
from analyses import overlap, past_future, past_future_gold
from analyses.attention import joined
from core_models.text.prepared import Prepared
from core_models.text.vocabulary import EOS
from core_models.traces import TraceArray
from core_models.translator import Translator
from tests.workbench.views.app_pages import runs_of
from workbench.evaluation.adequacy import aligner_of, by_sentence
from workbench.evaluation.gold_alignments import truths
from workbench.evaluation.translate import trace_test
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.past_future import measure as measuring
from workbench.views.past_future.corpus_figures import UnderTranslationOptions, remainder_table
from workbench.views.past_future.gold_figures import POSITION, TruthOptions, against_truth

NAMES = ["guided_capsules.mass", "decoder.cross_attention", "*_bag.rank"]


@pytest.fixture
def run(guided_run, tmp_path):
    """A copy of the run, to be measured beside."""
    return open_run(shutil.copytree(guided_run.folder, tmp_path / "gdr-bow-bca"))


@pytest.fixture
def plain(demo_runs, tmp_path):
    folder = shutil.copytree(runs_of(demo_runs, "transformer")[0].folder, tmp_path / "transformer")
    return open_run(folder)


@pytest.fixture
def forced(run):
    """The references of the first six sentences, by the translator's own account."""
    test_set = run.translations("test").test_set
    return core_models.load(run.reference).score(test_set.sources[:6], test_set.references[:6], trace=NAMES)


def test_what_is_measured_is_what_the_forced_passes_did(run, forced):
    found = measuring.measured(run, "test", "reference", 6)
    assert [one.row for one in found] == list(range(6))
    for one, wanted in zip(found, forced, strict=True):
        assert one.target == tuple(joined(wanted.tokens))
        mass = wanted.trace["guided_capsules.mass"].values
        np.testing.assert_allclose(one.mass, past_future.of_words(mass, wanted.tokens, wanted.source_tokens), atol=1e-6)
        np.testing.assert_allclose(one.mass.sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(one.attention.sum(-1), 1, atol=1e-5)
        ranks = [wanted.trace[f"{side}_bag.rank"].values for side in ("past", "future")]
        past, future = overlap.overlaps(*ranks, wanted.tokens)
        np.testing.assert_allclose(one.overlap("past"), past, atol=1e-6)
        np.testing.assert_allclose(one.overlap("future"), future, atol=1e-6)


def test_a_stored_trace_says_the_same_to_its_half_precision(run):
    live = measuring.measured(run, "test", "own", 5)
    shutil.rmtree(run.statistics)
    trace_test(run, run.translations("test"), NAMES)
    stored = measuring.measured(run, "test", "own", 5)
    for one, other in zip(live, stored, strict=True):
        assert (one.source, one.target) == (other.source, other.target)
        np.testing.assert_allclose(one.mass, other.mass, atol=1e-3)
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-3)
        np.testing.assert_array_equal(one.past_overlap, other.past_overlap)
    assert any((one.mass != other.mass).any() for one, other in zip(live, stored, strict=True))


def test_a_measurement_is_kept_and_made_again_where_it_cannot_be_read(run):
    found = measuring.measured(run, "test", "own", 3)
    (kept,) = run.statistics.glob("past-future-*.npz")
    with np.load(kept) as stored:
        np.savez(kept, **{**stored, "mass": stored["mass"] + 1})
    for one, other in zip(found, measuring.measured(run, "test", "own", 3), strict=True):
        np.testing.assert_array_equal(other.mass, one.mass + 1)
        np.testing.assert_array_equal(other.attention, one.attention)
    kept.write_bytes(b"half of it")
    again = measuring.measured(run, "test", "own", 3)
    np.testing.assert_array_equal(again[0].mass, found[0].mass)


@pytest.mark.parametrize("types", [True, False])
@pytest.mark.parametrize("end", [True, False])
def test_overlap_rates_of_types_and_of_tokens_with_and_without_the_end(run, forced, types, end):
    found = measuring.measured(run, "test", "reference", 6)
    wanted = []
    for one, wrote in zip(found, forced, strict=True):
        count = len(wrote.tokens) - (not end)
        assert wrote.tokens[-1] == "</s>"
        ranks = [wrote.trace[f"{side}_bag.rank"].values[:count, :count] for side in ("past", "future")]
        past, future = overlap.overlaps(*ranks, wrote.tokens[:count], types)
        np.testing.assert_allclose(one.overlap("past", types, end), past, atol=1e-6)
        np.testing.assert_allclose(one.overlap("future", types, end), future, atol=1e-6)
        wanted.append(past.mean())
    figure = draw("overlap", Request((run,), "test", options={"sentences": 6, "tokens": not types, "end": end}))
    mean = figure.table[(figure.table.series == "PAST") & (figure.table.mark == "points")].value.tolist()
    assert mean == pytest.approx([np.mean(wanted)], abs=1e-6)
    assert ("without </s>" in figure.caption) != end


@pytest.mark.parametrize(("system", "groups", "axis"), [("clf-bow-bca", 3, -1), ("attn-bow-bca", 2, 1)])
def test_the_simple_baselines_have_their_masses(prepared, system, groups, axis):
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    built = core_models.build(f"{system}:preset=tiny", len(vocabularies[0])).eval()
    (one,) = Translator(built, *vocabularies).score(
        ["the old dog sees the tree"], ["der alte Hund sieht der Baum"], trace=NAMES
    )
    found = measuring.reduced(0, one.source_tokens, one.tokens, one.trace)
    assert (found.source_words, found.target_words, found.mass.shape[-1]) == (6, 6, groups)
    np.testing.assert_allclose(found.mass.sum(axis), 1, atol=1e-5)
    assert len(found.attended()) == 6
    assert len(found.overlap("past")) == len(one.tokens) == len(found.overlap("future")) + 1


def test_mean_coverage_is_a_sum_over_pieces_not_over_words():
    """The first word has three pieces of attention 0.9 each, so 2.7 when it is written; then one of 0.1."""
    values = np.array([[0.9], [0.9], [0.9], [0.7]])  # the mean over the pieces so far
    trace = {measuring.COVERAGE: TraceArray(("target", "source"), values)}
    found = measuring.reduced(0, ["▁a"], ["▁x", "y", "z", "▁w"], trace, "mean")
    assert found.coverage[:, 0].tolist() == pytest.approx([2.7, 2.8])
    assert measuring.reduced(0, ["▁a"], ["▁x", "y", "z", "▁w"], trace).coverage[:, 0].tolist() == pytest.approx(
        [0.9, 0.7]
    )


def test_the_course_is_that_of_words_without_the_end(run):
    table = draw("past-future-course", Request((run,), "test", options={"sentences": 6})).table
    masses = [one.mass[:, : one.source_words] for one in measuring.measured(run, "test", "reference", 6)]
    wanted = past_future.course(masses)
    for side in past_future.GROUPS:
        assert table[table.series == side.upper()].value.tolist() == wanted[wanted.side == side].value.tolist()


def test_flips_stand_beside_true_counterparts(run):
    figure = draw("flip-times", Request((run,), "test", options={"sentences": 8}))
    found = measuring.measured(run, "test", "reference", 8)
    links = [known.links for known in truths(run, "test")[:8]]
    table = past_future.flip_table([one.mass for one in found], links)
    wanted = past_future.distribution(table.distance.to_numpy())
    drawn = figure.table[figure.table.series == "gdr-bow-bca"]
    assert drawn[drawn.mark == "line"].share.tolist() == wanted.share[:-1].tolist()
    assert drawn[drawn.mark == "points"].n.tolist() == wanted.n[-1:].tolist()
    assert "8 sentences, references, by true links" in figure.caption
    own = draw("flip-times", Request((run,), "test", options={"sentences": 8, "target": "own"}))
    assert "its own translations, by the word attended to most" in own.caption


def test_overlap_rates_stand_beside_printed_ones(run, forced):
    figure = draw("overlap", Request((run,), "test", options={"sentences": 6}))
    table = figure.table
    for side, printed in (("PAST", 0.72), ("FUTURE", 0.70)):
        assert table[table.series == f"{side}, reported"].value.tolist() == [printed]
        rates = [
            overlap.overlaps(*(one.trace[f"{s}_bag.rank"].values for s in ("past", "future")), one.tokens)
            for one in forced
        ]
        mean = table[(table.series == side) & (table.mark == "points")].value.tolist()
        assert mean == pytest.approx([np.mean([rate[side == "FUTURE"].mean() for rate in rates])], abs=1e-6)
    plain = draw("overlap", Request((run,), "test", options={"sentences": 6, "printed": False, "frequency": False}))
    assert set(plain.table.series) == {"PAST", "FUTURE"}
    assert "frequent" not in plain.caption


def test_overlap_rates_of_the_most_frequent_pieces_alone(guided_run, run, forced, monkeypatch):
    """The 5 t most frequent target pieces of the training text, counted anew, beside the pieces of the references."""
    without = set(draw("overlap", Request((run,), "test", options={"sentences": 6})).table.series)
    assert without == {"PAST", "FUTURE", "PAST, reported", "FUTURE, reported"}, "the text is not beside the copy"
    folder = guided_run.config.data_folder(guided_run.folder)
    monkeypatch.setattr(type(run.config), "data_folder", lambda *_: folder)
    prepared = Prepared.open(folder)
    train, vocabulary, counts = prepared.split("train"), prepared.target_vocabulary, Counter()
    for row in range(len(train)):
        counts.update([*vocabulary.encode([train.target_text(row)])[0], EOS])
    frequent = vocabulary.pieces(sorted(counts, key=lambda piece: (-counts[piece], piece)))
    rates = {"PAST": [], "FUTURE": []}
    for one in forced:
        words, of_steps = one.tokens, {"PAST": [], "FUTURE": []}
        for step in range(1, len(words) + 1):
            for side, bag in (("PAST", words[:step]), ("FUTURE", words[step:])):
                if bag:
                    of_steps[side].append(len(set(frequent[: 5 * len(bag)]) & set(bag)) / len(set(bag)))
        for side, values in of_steps.items():
            rates[side].append(np.mean(values))
    table = draw("overlap", Request((run,), "test", options={"sentences": 6})).table
    for side, values in rates.items():
        assert table[table.series == f"{side}, by frequency"].value.tolist() == pytest.approx([np.mean(values)])


def test_a_run_whose_training_text_is_gone_stands_beside_one_with_frequent_pieces(
    guided_run, run, tmp_path, monkeypatch
):
    other = open_run(shutil.copytree(run.folder, tmp_path / "other"))
    here = guided_run.config.data_folder(guided_run.folder)
    monkeypatch.setattr(type(run.config), "data_folder", lambda _, folder: here if folder == run.folder else tmp_path)
    figure = draw("overlap", Request((run, other), "test", options={"sentences": 2}))
    frequent = figure.table[figure.table.series.str.endswith("by frequency")]
    assert set(frequent.panel) == {"gdr-bow-bca"}
    assert figure.summary.count("the most frequent pieces alone") == 1


def test_the_truth_beside_runs_and_rules(run, plain):
    request = Request((plain, run), "test", options={"sentences": 10})
    figure, found = draw("past-future-truth", request), against_truth(request, TruthOptions(sentences=10))
    assert found.systems == ("gdr-bow-bca",)
    assert found.rules == ("rule: attention of transformer", POSITION)
    known = truths(run, "test")
    scores, past = {"gdr-bow-bca": [], POSITION: [], found.rules[0]: []}, []
    of_run, of_plain = (measuring.measured(one, "test", "reference", 10) for one in (run, plain))
    for one, other, true in zip(of_run, of_plain, known, strict=False):
        for cell in past_future_gold.cells(true.links, true.source_words, true.target_words).itertuples():
            mass = one.mass[cell.step, cell.word]
            scores["gdr-bow-bca"].append(mass[0] / (mass[0] + mass[1]))
            scores[POSITION].append((cell.step + 1) / true.target_words - (cell.word + 1) / true.source_words)
            scores[found.rules[0]].append(other.attention.mean(0)[: cell.step, cell.word].sum())
            past.append(cell.past)
    drawn = figure.table[(figure.table.panel == "all words") & (figure.table.mark == "points")].set_index("series")
    for name, values in scores.items():
        wanted = past_future_gold.area_under_curve(np.array(values), np.array(past))
        assert drawn.auc[name] == pytest.approx(wanted, abs=1e-4)
        assert drawn.n[name] == len(past)
    delta = drawn.auc["gdr-bow-bca"] - drawn.auc[POSITION]
    assert f"gdr-bow-bca over position all words {delta:+.3f}".replace("-0", "−0") in figure.caption
    redundant = figure.table[figure.table.panel == "words with"]
    assert redundant.n.sum() == sum(true.source_words for true in known[:10])


def test_a_layer_of_the_rule_and_another_present(run, plain):
    whole, first, later = (
        against_truth(Request((plain, run), "test"), TruthOptions(sentences=5, **options)).areas.table
        for options in ({}, {"layer": 1}, {"present": "future"})
    )
    rule = whole.system == "rule: attention of transformer"
    assert (whole[~rule].auc.dropna() == first[~rule].auc.dropna()).all()
    assert later.n[0] > whole.n[0]


def test_sentences_are_ranked_by_what_is_left(run):
    request = Request((run,), "test", options={"sentences": 12})
    table, figure = remainder_table(request, UnderTranslationOptions(sentences=12)), draw("under-translation", request)
    assert table.left.is_monotonic_decreasing
    for row in table.head(3).itertuples():
        (one,) = [one for one in measuring.measured(run, "test", "own", 12) if one.row == row.sentence]
        left = one.mass[-1, : one.source_words, 1]
        assert (row.left, row.mean) == pytest.approx((left.sum(), left.mean()), abs=1e-5)
        assert row.word == one.source[left.argmax()]
    assert figure.table.left.tolist() == table.left.tolist()
    assert figure.panels[0].y.texts[0].startswith(f"{table.sentence.iloc[0]}  {table.source.iloc[0][:10]}")
    by_most = remainder_table(request, UnderTranslationOptions(sentences=12, by="most"))
    assert by_most.most.is_monotonic_decreasing


def test_what_is_left_stands_beside_what_the_aligner_misses(run):
    request = Request((run,), "test", options={"sentences": 12, "aligned": True})
    caption, table = (
        draw("under-translation", request).caption,
        remainder_table(request, UnderTranslationOptions(sentences=12)),
    )
    sentences = by_sentence([run], "test", aligner_of([run], "test")[0])[run.name]
    missed = np.array([sentences.missed[row] > 0 for row in table.sentence])
    assert f"{missed.sum()} of them leave out a word" in caption
    left, length = (past_future_gold.area_under_curve(table[column], missed) for column in ("left", "words"))
    said = f"as a sign of that: {left:.3f}, of the length of the source alone: {length:.3f}"
    assert ("no AUC" if missed.all() else said) in caption


def test_what_cannot_be_measured_is_said(run, plain):
    for name, options, message in (
        ("flip-times", {"sentences": 0}, "sentences 0: write all, or a number from 1"),
        ("flip-times", {"links": "aligner"}, "links 'aligner': choose truth, attention"),
        ("flip-times", {"links": "truth", "target": "own"}, "the truth has links of references"),
        ("overlap", {"target": "typed"}, "target 'typed': choose own, reference"),
        ("past-future-truth", {"present": "past"}, "present 'past': choose out, future"),
        ("under-translation", {"by": "length"}, "by 'length': choose left, mean, most"),
        (
            "under-translation",
            {"aligned": True, "target": "reference"},
            "aligned: the aligner is asked about a run's own",
        ),
        ("under-translation", {"sentense": 5}, "there is no option 'sentense'"),
    ):
        with pytest.raises(RunError, match=message):
            draw(name, Request((run,), "test", options=options))
    for name in ("past-future-course", "flip-times", "overlap", "under-translation"):
        with pytest.raises(RunError, match="transformer separates no PAST and FUTURE; choose a run of gdr"):
            draw(name, Request((plain,), "test"))
    with pytest.raises(RunError, match="layer 9 of transformer: write mean, or a number from 1 to"):
        draw("past-future-truth", Request((run, plain), "test", options={"layer": 9, "sentences": 2}))
    (run.folder / "translations" / "test" / "truth.jsonl").unlink()
    with pytest.raises(RunError, match="the test set 'test' has no truth"):
        draw("past-future-truth", Request((run,), "test"))
