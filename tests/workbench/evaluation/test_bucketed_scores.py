"""Buckets of a test set: every sentence in one and scored as if alone; by length, frequency, label and document."""

from collections import Counter

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from analyses import buckets as analysis
from workbench.evaluation import bucketed_scores, translate
from workbench.evaluation.bucketed_scores import Grouping
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError


def _lines(run, name):
    """The lines of a file of the run, read without the workbench."""
    return (run.folder / "translations" / "test" / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    ("scheme", "measure"), [("tens", "source"), ("width:4", "reference"), ("quantiles:3", "source"), ("", "output")]
)
def test_length_buckets_hold_every_sentence_once_and_are_scored_alone(graded_runs, scheme, measure):
    grouping = Grouping(measure, scheme)
    table, differences, said = bucketed_scores.tables(graded_runs, "test", grouping, samples=50)
    assert said == f"{measure} length (words)"
    run = graded_runs[0]
    files = {"source": "sources.txt", "reference": "references.txt", "output": "hypotheses.txt"}
    lengths = np.array([len(line.split()) for line in _lines(run, files[measure])])
    assert set(table.groupby("system").n.sum()) == {len(lengths)}
    for row in table[(table.system == run.name) & (table.n > 0)].itertuples():
        inside = np.flatnonzero((lengths > row.low_edge) & (lengths <= row.high_edge))
        assert row.n == len(inside)
        hypotheses, wanted = ([_lines(run, name)[i] for i in inside] for name in ("hypotheses.txt", "references.txt"))
        assert row.score == pytest.approx(BLEU().corpus_score(hypotheses, [wanted]).score)
        assert row.mean_output_length == pytest.approx(np.mean([len(line.split()) for line in hypotheses]))
    assert set(differences.system) == {"future-cost-1", "future-cost-2"}
    scores = table.set_index(["system", "bucket"]).score
    for row in differences.dropna(subset=["delta"]).itertuples():
        assert row.delta == pytest.approx(scores[row.system, row.bucket] - scores["transformer", row.bucket])


def test_length_ratio_and_output_length_are_compared_as_scores_are(graded_runs):
    for metric, of in (("length-ratio", "length_ratio"), ("output-length", "mean_output_length")):
        table, differences, _ = bucketed_scores.tables(
            graded_runs, "test", Grouping(scheme="short"), metric, samples=50
        )
        filled = table[table.n > 0]
        np.testing.assert_allclose(filled.score, filled[of])
        assert ((filled.low <= filled.score) & (filled.score <= filled.high)).all()
        # The graded systems differ in words, not in lengths.
        assert (differences.dropna(subset=["delta"]).delta == 0).all()
        assert (differences.dropna(subset=["delta"]).p_value == 1).all()


@pytest.mark.parametrize("counts", ["test", "training"])
@pytest.mark.parametrize("side", ["source", "reference"])
def test_sentences_fall_by_their_rarest_word(graded_runs, side, counts):
    table, _, said = bucketed_scores.tables(
        graded_runs[:1], "test", Grouping(f"{side}-frequency", counts=counts), samples=10
    )
    lines = _lines(graded_runs[0], f"{side}s.txt")
    counted = lines
    if counts == "training":
        train = translate.prepared_of(graded_runs[0]).split("train")
        counted = [(train.source_text if side == "source" else train.target_text)(row) for row in range(len(train))]
    frequency = Counter(word for line in counted for word in line.split())
    rarest = [min(frequency[word] for word in line.split()) for line in lines]
    ends = {"0": (0, 0), "1–4": (1, 4), "5–9": (5, 9), "10–99": (10, 99), "100–999": (100, 999), "≥1000": (1000, 1e9)}
    assert table.bucket.tolist() == list(ends)
    assert table.n.tolist() == [sum(low <= one <= high for one in rarest) for low, high in ends.values()]
    assert said == f"frequency of the rarest {side} word"


def test_labels_come_from_a_file_or_are_the_documents(graded_runs, tmp_path):
    path = tmp_path / "domain.txt"
    path.write_text("".join("news\n" if row % 3 else "\n" for row in range(30)), encoding="utf-8")
    request = Request(tuple(graded_runs), options={"labels": str(path), "metric": "chrf"})
    figure = draw("length-scores", request)
    assert figure.panels[0].x.label == "domain"
    assert figure.panels[0].x.texts == ("news", "(none)")
    assert figure.table[figure.table.mark == "bars"].n.tolist() == [20, 10]
    path = tmp_path / "topic.txt"
    path.write_text("".join("\n" if row == 7 else f"{row % 2 + 1}\n" for row in range(30)), encoding="utf-8")
    table, _, _ = bucketed_scores.tables(graded_runs[:1], "test", Grouping(labels=str(path)), samples=10)
    assert sorted(table.bucket) == ["(none)", "1", "2"], "whole numbers, though one is missing"
    path = tmp_path / "human.csv"
    path.write_text("mqm,who\n" + "".join(f"{row},rater {row % 2}\n" for row in range(30)), encoding="utf-8")
    table, _, said = bucketed_scores.tables(graded_runs[:1], "test", Grouping(labels=str(path), column="human: who"))
    assert (table.bucket.tolist(), said) == (["rater 0", "rater 1"], "human: who")
    documents = graded_runs[0].translations("test").test_set.documents
    table, _, _ = bucketed_scores.tables(graded_runs[:1], "test", Grouping(labels="document"), samples=10)
    assert table.n.sum() == 30
    assert len(table) == min(12, len(set(documents)))


def test_one_run_has_no_differences(graded_runs):
    assert bucketed_scores.tables(graded_runs[:1], "test", samples=10)[1] is None


@pytest.mark.parametrize("scheme", ["width:abc", "width:0", "quantiles:x", "no"])
def test_a_scheme_that_there_is_not_is_said(graded_runs, scheme):
    with pytest.raises(RunError, match=f"buckets '{scheme}': "):
        bucketed_scores.tables(graded_runs[:1], "test", bucketed_scores.Grouping(scheme=scheme), samples=10)


def test_what_cannot_be_grouped_is_said(graded_runs, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("a\nb\n", encoding="utf-8")
    for options, said in (
        ({"scheme": "no"}, f"'no': choose one of {next(iter(analysis.PRESETS))}"),
        ({"measure": "sourc"}, "measure 'sourc': choose source, reference, output"),
        ({"measure": "label"}, "name it: --option labels=FILE"),
        ({"measure": "source-frequency", "counts": "web"}, "counts 'web': choose test, training"),
        ({"labels": str(short)}, "short: has 2 lines but the test set has 30 segments"),
        ({"meazure": "source"}, "there is no option 'meazure' of length-scores; there is metric, measure"),
    ):
        with pytest.raises(RunError, match=said):
            draw("length-scores", Request(tuple(graded_runs), options=options))
