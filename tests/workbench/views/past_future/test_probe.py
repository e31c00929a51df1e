"""A probe of a run's states: its lessons are the truth, its answers are kept as long as run and texts are the same."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from analyses.past_future_gold import areas, cells
from workbench.evaluation.gold_alignments import Truth, truths
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.past_future.probe import PROBE, labels_of, read_by_probe


def test_labels_are_those_of_the_words_that_pieces_belong_to():
    truth = Truth(3, 2, frozenset({(0, 1), (1, 0)}), frozenset({2}))
    sources, targets = ["▁a", "▁b", "b", "▁c", "</s>"], ["▁x", "x", "▁y", "</s>"]
    labels = labels_of(truth, sources, targets, "out")
    # word a is written at step 1 (y), b at step 0 (x, two pieces), c never; at </s> both are PAST
    assert labels.tolist() == [[0, -1, -1, -1, -1], [0, -1, -1, -1, -1], [-1, 1, 1, -1, -1], [1, 1, 1, -1, -1]]
    taken = labels_of(truth, sources, targets, "future")
    assert taken[:, 0].tolist() == [0, 0, 0, 1]
    assert taken[:, 1].tolist() == [0, 0, 1, 1]


@pytest.fixture(scope="module")
def run(guided_run, tmp_path_factory):
    return open_run(shutil.copytree(guided_run.folder, tmp_path_factory.mktemp("probe") / "gdr-bow-bca"))


@pytest.fixture(scope="module")
def read(run):
    return read_by_probe(run, "test", range(8), lessons=200)


def test_it_tells_past_from_future_better_than_chance(run, read):
    known = truths(run, "test")[:8]
    rows = [cells(one.links, one.source_words, one.target_words).assign(sentence=row) for row, one in enumerate(known)]
    scores = np.concatenate([said[own.step, own.word] for said, own in zip(read, rows, strict=True)])
    table = areas(pd.concat(rows), {"probe": scores}, 100).table.set_index("words")
    assert table.low["all"] > 0.6
    assert all(said.shape == (one.target_words + 1, one.source_words) for said, one in zip(read, known, strict=True))


@pytest.mark.slow
def test_answers_are_kept_for_the_same_question_only(run, read):
    path = PROBE.path(run, "test")
    assert json.loads(path.read_bytes())["of"]["rows"] == list(range(8))
    for one, other in zip(read_by_probe(run, "test", range(8), lessons=200), read, strict=True):
        np.testing.assert_array_equal(one, other)
    path.write_text(path.read_text().replace('"present": "out"', '"present": "future"'))
    again = read_by_probe(run, "test", range(8), lessons=200)
    np.testing.assert_allclose(again[0], read[0], atol=1e-3)
    assert json.loads(path.read_bytes())["of"]["present"] == "out"


@pytest.mark.exhaustive
def test_the_figure_shows_probes_beside_systems_and_rules(run):
    figure = draw("past-future-truth", Request((run,), "test", options={"sentences": 4, "probe": 100}))
    assert "probe: states of gdr-bow-bca" in set(figure.table.series)
    assert "Probes: a small network" in figure.caption
    assert "Probes" not in draw("past-future-truth", Request((run,), "test", options={"sentences": 4})).caption
    with pytest.raises(RunError, match="probe 'some': write a number from 1, or true or false"):
        draw("past-future-truth", Request((run,), "test", options={"sentences": 4, "probe": "some"}))
