"""Drawings and page of words, on runs that translate differently well."""

import numpy as np
import pytest

from analyses import words
from tests.workbench.views.app_pages import codes, open_page, texts
from workbench.evaluation import translate
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError
from workbench.views.words import figures as word_drawings


@pytest.fixture
def opened(graded_runs, monkeypatch):
    """The translations of the graded runs; the first two swap every other line, so that each is sometimes better."""
    monkeypatch.setenv("WORKBENCH_RUNS", str(graded_runs[0].folder.parents[1]))
    files = [run.folder / "translations" / "test" / "hypotheses.txt" for run in graded_runs[:2]]
    sides = [path.read_text(encoding="utf-8").splitlines() for path in files]
    sides[0][::2], sides[1][::2] = sides[1][::2], sides[0][::2]
    for path, lines in zip(files, sides, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {run.name: run.translations("test") for run in graded_runs}


@pytest.fixture
def expected(opened):
    """The n-grams of the first and the second run, straight from the analysis."""
    first, second, _ = opened.values()
    return words.ngram_differences(first.hypotheses, second.hypotheses, first.test_set.references, (2, 3))


def test_ngrams_are_drawn_as_the_analysis_counts_them(graded_runs, opened, expected):
    figure = draw("ngram-differences", Request(tuple(graded_runs[:2]), options={"orders": [2, 3], "most": 4}))
    points = figure.table[figure.table.mark == "points"]
    assert len(points) == 16
    counts = dict(zip(expected.ngram, zip(expected["first"], expected.second, strict=True), strict=True))
    for row in points.itertuples():
        assert (row.first if row.series.endswith("transformer") else row.second) in counts[row.ngram]
    drawn = points[points.series.str.endswith("transformer")]
    assert drawn.ngram.tolist()[0] == word_drawings.ahead(expected, 1).ngram[0]
    assert drawn["first"].tolist() == [counts[ngram][0] for ngram in drawn.ngram]


def test_frequencies_of_the_training_text_are_those_of_its_lines(graded_runs, opened):
    table = word_drawings.f_measure_table(
        Request(tuple(graded_runs)), word_drawings.WordFMeasureOptions(counts="training"), samples=10
    )
    train = translate.prepared_of(graded_runs[0]).split("train")
    counts = words.frequencies([train.target_text(row) for row in range(len(train))])
    reference = next(iter(opened.values())).test_set.references
    system = table.system.iloc[0]
    wanted = words.by_frequency({system: next(iter(opened.values())).hypotheses}, reference, counts, samples=10)
    np.testing.assert_allclose(table[table.system == system].score, wanted.score)
    assert table.n.sum() == 3 * sum(len(line.split()) for line in reference)


def test_what_cannot_be_counted_is_said(graded_runs):
    with pytest.raises(RunError, match="counts 'web': choose test, training"):
        draw("word-f-measure", Request(tuple(graded_runs), options={"counts": "web"}))
    with pytest.raises(RunError, match="there is no run 'x' beside the baseline; choose"):
        draw("ngram-differences", Request(tuple(graded_runs), options={"beside": "x"}))
    with pytest.raises(RunError, match="there is no option 'count'"):
        draw("word-f-measure", Request(tuple(graded_runs), options={"count": "test"}))
    with pytest.raises(RunError, match="nothing to draw"):
        draw("ngram-differences", Request((graded_runs[0], graded_runs[1]), options={"most": 0}))


def test_the_page_lists_ngrams_with_examples_and_keeps_the_command(opened):
    at = open_page("words", sentence="2")
    first, second, _ = opened.values()
    reference = first.test_set.references
    wanted = words.ngram_differences(first.hypotheses, second.hypotheses, reference)
    tables = [frame.value for frame in at.dataframe if "examples" in frame.value]
    for table, sign in zip(tables, (1, -1), strict=True):
        rows = word_drawings.ahead(wanted, sign).head(200)
        assert table.ngram.tolist() == rows.ngram.tolist()
        assert table.reference.tolist() == rows.reference.tolist()
    assert reference[2] in texts(at)
    assert any("workbench figure word-f-measure" in code for code in codes(at))
    alone = open_page("words", runs=["demo/transformer"])
    assert any("choose a second one" in text for text in texts(alone))
