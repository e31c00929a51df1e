"""Scores of runs equal sacreBLEU run on their files, comparisons equal the analyses run by hand; caches and traces."""

import json
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

import core_models
from analyses import significance
from analyses.scores import extract
from core_models.traces import TraceStore
from workbench.evaluation import scoring, translate
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.beam_size import measure as beam_sizes
from workbench.views.segments import measure as segments

SCORERS = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}


def _lines(run, name):
    """The lines of a file of the run, read without the workbench."""
    return (run.folder / "translations" / "test" / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def test_scores_are_those_of_sacrebleu_on_the_files(graded_runs):
    table = scoring.score_table(graded_runs, "test", samples=100)
    assert len(table) == 9
    for row in table.itertuples():
        run = next(run for run in graded_runs if run.name == row.system)
        scorer = SCORERS[row.metric]
        expected = scorer.corpus_score(_lines(run, "hypotheses.txt"), [_lines(run, "references.txt")]).score
        assert row.score == pytest.approx(expected, abs=1e-9)
        assert row.signature == str(scorer.get_signature())
        assert row.low <= row.score <= row.high
        assert row.n == len(_lines(run, "hypotheses.txt"))
    bleu = table[table.metric == "bleu"].score.tolist()
    assert 0 < bleu[0] < bleu[1] < bleu[2] < 100, "fewer spoiled words, more BLEU"


@pytest.mark.parametrize("method", list(scoring.TESTS))
def test_comparisons_are_those_of_the_analyses_with_holm_over_the_runs(graded_runs, method):
    found = scoring.comparison_table(graded_runs, "test", "future-cost-1", method, ["bleu", "ter"])
    compare = {
        "bootstrap": significance.paired_bootstrap,
        "randomization": significance.approximate_randomization,
        "sign": significance.sign_test,
        "bootstrap-sacrebleu": partial(significance.paired_bootstrap, rule="sacrebleu"),
    }[method]
    for metric in ("bleu", "ter"):
        extracted = {
            run.name: extract(_lines(run, "hypotheses.txt"), _lines(run, "references.txt"), metric)
            for run in graded_runs
        }
        by_hand = [compare(extracted["future-cost-1"], extracted[name]) for name in ("transformer", "future-cost-2")]
        rows = found[found.metric == metric]
        assert rows.system.tolist() == ["transformer", "future-cost-2"]
        for column, field in (
            ("score", "system_score"),
            ("delta", "delta"),
            ("low", "low"),
            ("high", "high"),
            ("p_value", "p_value"),
        ):
            np.testing.assert_allclose(rows[column], [getattr(one, field) for one in by_hand])
        np.testing.assert_allclose(rows.p_holm, significance.holm([one.p_value for one in by_hand]))
    bleu = found[found.metric == "bleu"].set_index("system").delta
    assert bleu["transformer"] < 0 < bleu["future-cost-2"]


def test_a_baseline_that_is_not_compared_is_refused(graded_runs):
    with pytest.raises(RunError, match="'nobody' is not among the runs compared: transformer, "):
        scoring.comparison_table(graded_runs, "test", "nobody")


def test_references_that_differ_are_refused(graded_runs):
    path = graded_runs[1].folder / "translations" / "test" / "references.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("der", "die", 1), encoding="utf-8")
    with pytest.raises(RunError, match="future-cost-1 and transformer were tested on different versions of test"):
        scoring.score_table(graded_runs, "test")
    path.unlink()
    with pytest.raises(RunError, match="future-cost-1: the test set test has no references"):
        scoring.score_table(graded_runs[1:], "test")


@pytest.mark.parametrize("references", [True, False])
def test_sources_that_differ_are_refused(graded_runs, references):
    """With the same references too, and where there are none, which is no matter to sentences side by side."""
    folders = [run.folder / "translations" / "test" for run in graded_runs]
    for folder in () if references else folders:
        (folder / "references.txt").unlink()
    request = Request(tuple(graded_runs), "test")
    root = graded_runs[0].folder.parent
    assert len(segments.of_request(request, ["bleu"], root)[0]) == 30
    (folders[1] / "sources.txt").write_text("x\n" * 30, encoding="utf-8")
    different = "future-cost-1 and transformer were tested on different versions of test"
    with pytest.raises(RunError, match=different):
        segments.of_request(request, ["bleu"], root)
    with pytest.raises(RunError, match=different if references else "has no references"):
        scoring.score_table(graded_runs, "test")


def test_statistics_are_read_the_second_time_and_a_damaged_cache_is_mended(graded_runs):
    run = graded_runs[0]
    shutil.rmtree(run.statistics)
    first = scoring.statistics(run, run.translations("test"), "bleu")
    (cached,) = run.statistics.glob("*.npz")
    written = cached.stat().st_mtime_ns
    assert np.array_equal(scoring.statistics(run, run.translations("test"), "bleu").values, first.values)
    assert cached.stat().st_mtime_ns == written, "it was counted again"
    made_up = np.arange(first.values.size).reshape(first.values.shape)  # what extraction could never give
    np.savez(cached, values=made_up, digest=np.array(""))
    assert np.array_equal(scoring.statistics(run, run.translations("test"), "bleu").values, first.values)
    assert cached.stat().st_mtime_ns != written
    cached.write_bytes(cached.read_bytes()[:50])
    assert np.array_equal(scoring.statistics(run, run.translations("test"), "bleu").values, first.values)
    with np.load(cached) as stored:
        assert np.array_equal(stored["values"], first.values)


def test_other_translations_have_other_statistics(graded_runs):
    run = graded_runs[0]
    before = scoring.statistics(run, run.translations("test"), "chrf")
    path = run.folder / "translations" / "test" / "hypotheses.txt"
    path.write_text(path.read_text(encoding="utf-8").replace("falsch", "richtig"), encoding="utf-8")
    assert not np.array_equal(before.values, scoring.statistics(run, run.translations("test"), "chrf").values)


def test_translating_a_test_set_gives_what_the_translator_gives_in_the_order_of_the_file(demo_runs):
    run = open_run(demo_runs / "demo" / "future-cost-2")
    sources = _lines(run, "sources.txt")
    found = core_models.load(run.folder).translate(sources)
    assert [one.text for one in found] == _lines(run, "hypotheses.txt")
    details = [json.loads(line) for line in _lines(run, "details.jsonl")]
    assert [one.tokens for one in found] == [detail["tokens"] for detail in details]
    assert sources == (demo_runs / "demo" / "corpus" / "test.en").read_text(encoding="utf-8").splitlines()


def test_traces_are_of_the_pieces_that_the_search_found(copied_runs):
    """Also where the text would be segmented otherwise, and where the search was cut before </s>."""
    run = open_run(copied_runs / "demo" / "future-cost-2")
    path = run.folder / "translations" / "test"
    details = [json.loads(line) for line in _lines(run, "details.jsonl")]
    pieces = [["▁d", "e", "r", "</s>"], ["▁", "d", "e", "r"]]
    for row, tokens in enumerate(pieces):
        details[row] |= {"tokens": tokens}
    (path / "details.jsonl").write_text("".join(json.dumps(detail) + "\n" for detail in details), encoding="utf-8")
    translator = core_models.load(run.folder)
    assert len(translator.target_vocabulary.encode(["der"])[0]) < 3, "the text alone has another segmentation"
    folder = translate.trace_test(run, run.translations("test"), ["log_prob"], [0, 1], translator=translator)
    traced = TraceStore(folder)
    assert list(traced) == [0, 1]
    finished, cut = (traced.array("log_prob", row).values for row in (0, 1))
    assert (len(finished), len(cut)) == (4, 4)
    assert not np.allclose(finished, cut, atol=1e-3)


def test_traced_log_probabilities_are_those_of_the_search(demo_runs):
    for name in ("transformer", "future-cost-1", "future-cost-2"):
        run = open_run(demo_runs / "demo" / name)
        for row, detail in enumerate(run.translations("test").details):
            traced = run.traces("test").array("log_prob", row).values
            np.testing.assert_allclose(traced, detail["token_log_probs"], rtol=2e-3, atol=2e-3)  # traces are float16


def test_tracing_again_replaces_the_traces_whole(copied_runs):
    run = open_run(copied_runs / "demo" / "future-cost-1")
    translate.trace_test(run, run.translations("test"), ["log_prob"], [2])
    assert run.traces("test").names == ["log_prob"]
    assert sorted(path.name for path in (run.folder / "traces" / "test").iterdir()) == [
        "forced.json", "index.json", "log_prob.npy",
    ]  # fmt: skip
    with pytest.raises(RunError, match="sentences 0 to 29, not 30"):
        translate.trace_test(run, run.translations("test"), ["log_prob"], [30])
    assert list(run.traces("test")) == [2]


def test_progress_is_told_up_to_the_last_sentence(copied_runs):
    run = open_run(copied_runs / "demo" / "transformer")
    told = []
    test, truth = translate.test_set(run, "test")
    done = translate.translate_test(run, test, truth, beam=1, max_length=3, step=lambda *at: told.append(at))
    assert told == [(30, 30)]
    assert done.meta["search"]["beam"] == 1
    assert len(done.truth) == 30


def test_data_that_has_gone_is_named(copied_runs):
    shutil.rmtree(copied_runs / "demo" / "data")
    run = open_run(copied_runs / "demo" / "transformer")
    with pytest.raises(RunError, match=r"its data is not at hand .* give the test set as files"):
        translate.test_set(run, "test")
    assert isinstance(scoring.score_table([run], "test", ["chrf"], 10), pd.DataFrame), "scores need the run alone"


def test_a_checkpoint_is_a_system_of_its_own(copied_runs):
    folder = copied_runs / "demo" / "transformer"
    step = next(path.stem.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*.safetensors"))
    before = (folder / "translations" / "test" / "hypotheses.txt").read_bytes()
    whole, part = open_run(folder), open_run(f"{folder}@{int(step)}")
    test, _ = translate.test_set(part, "test")
    translate.translate_test(part, test)

    assert part.name == f"transformer@{int(step)}"
    assert part.tests() == ["test"]
    assert part.translations("test").hypotheses == [
        found.text for found in core_models.load(f"{folder}@{step}").translate(test.sources, test.documents)
    ]
    assert (folder / "translations" / "test" / "hypotheses.txt").read_bytes() == before
    table = scoring.score_table([whole, part], "test", ("bleu",), samples=10)
    assert list(table["system"]) == [whole.name, part.name]
    with pytest.raises(RunError, match=rf"workbench translate \S+/transformer@{int(step)} --test test --save-beams"):
        part.translations("test").tree(0)


def test_beam_sizes_of_a_checkpoint_are_kept_beside_it(copied_runs):
    folder = copied_runs / "demo" / "transformer"
    step = next((folder / "checkpoints").glob("step-*.safetensors")).stem.removeprefix("step-")
    part = open_run(f"{folder}@{int(step)}")
    test, _ = translate.test_set(part, "test")
    beam_sizes.measure(part, test, [1], most_short=0)
    assert [row["size"] for row in beam_sizes.read(part, "test")["sizes"]] == [1]
    assert not beam_sizes.is_measured(open_run(folder), "test")


def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(copied_runs):
    folder = copied_runs / "demo" / "transformer"
    with pytest.raises(RunError, match=r"has no checkpoint '999'; it has: step-0"):
        open_run(f"{folder}@999")


def test_trees_are_refused_of_a_search_that_records_none(copied_runs):
    run = open_run(copied_runs / "demo" / "transformer")
    test, _ = translate.test_set(run, "test")
    before = (run.folder / "translations" / "test" / "trees.jsonl").read_bytes()
    with pytest.raises(
        RunError, match="a search with finished_hypotheses=keep records no trees; translate without --save-beams"
    ):
        translate.translate_test(run, test, trees=True, finished_hypotheses="keep")
    assert (run.folder / "translations" / "test" / "trees.jsonl").read_bytes() == before
