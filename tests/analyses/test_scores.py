"""Scores from summed statistics are sacreBLEU's corpus scores, and the cache returns what was extracted."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from analyses import scores
from tests.analyses.corpora import noisy_copy, reference_lines

pytestmark = pytest.mark.long

REFERENCES = reference_lines(60)
OTHER = [noisy_copy(REFERENCES, seed, 0.3) for seed in (7, 8)]
HYPOTHESES = noisy_copy(REFERENCES, 3, 0.4)
CASES = [
    ("bleu", {}, BLEU()),
    ("bleu", {"lowercase": True}, BLEU(lowercase=True)),
    ("bleu", {"tokenize": "char"}, BLEU(tokenize="char")),
    ("bleu", {"smooth_method": "floor", "smooth_value": 0.3}, BLEU(smooth_method="floor", smooth_value=0.3)),
    ("bleu", {"smooth_method": "add-k"}, BLEU(smooth_method="add-k")),
    ("bleu", {"smooth_method": "none"}, BLEU(smooth_method="none")),
    ("bleu", {"max_ngram_order": 2, "effective_order": True}, BLEU(max_ngram_order=2, effective_order=True)),
    ("chrf", {}, CHRF()),
    ("chrf", {"lowercase": True, "beta": 3}, CHRF(lowercase=True, beta=3)),
    ("chrf", {"char_order": 3}, CHRF(char_order=3)),
    ("chrf", {"eps_smoothing": True}, CHRF(eps_smoothing=True)),
    ("chrf++", {}, CHRF(word_order=2)),
    ("ter", {}, TER()),
    ("ter", {"lowercase": False}, TER(case_sensitive=True)),
]


@pytest.mark.parametrize("references", [[REFERENCES], [REFERENCES, *OTHER]], ids=["one", "three"])
@pytest.mark.parametrize(("metric", "options", "judge"), CASES)
def test_total_is_sacrebleus_corpus_score(metric, options, judge, references):
    statistics = scores.extract(HYPOTHESES, references, metric, **options)
    assert statistics.total == judge.corpus_score(HYPOTHESES, references).score
    assert statistics.signature == str(judge.get_signature())


@pytest.mark.parametrize(("metric", "options", "judge"), CASES)
def test_any_subset_is_the_corpus_score_of_that_subset(metric, options, judge):
    """Single segments too: there n-gram orders run out and smoothing decides."""
    statistics = scores.extract(HYPOTHESES, REFERENCES, metric, **options)
    subsets = [np.array([i]) for i in range(60)] + [np.arange(0, 60, 7), np.arange(30)]
    sums = np.stack([statistics.values[rows].sum(axis=0) for rows in subsets])
    expected = [
        judge.corpus_score([HYPOTHESES[i] for i in rows], [[REFERENCES[i] for i in rows]]).score for rows in subsets
    ]
    assert [statistics.subset(rows).total for rows in subsets] == expected
    np.testing.assert_allclose(statistics.scores(sums), expected, rtol=1e-13, atol=1e-11)


def test_missing_references_are_left_out_segment_by_segment():
    partial = [line if i % 2 else None for i, line in enumerate(OTHER[0])]
    statistics = scores.extract(HYPOTHESES, [REFERENCES, partial], "bleu")
    assert statistics.total == BLEU().corpus_score(HYPOTHESES, [REFERENCES, partial]).score


@pytest.mark.parametrize("metric", ["bleu", "chrf++", "ter"])
def test_systems_chunks_and_processes_change_nothing(metric, monkeypatch):
    """Sixty segments in chunks of 25: what one call extracts in one piece, and sacreBLEU's signature of the whole."""
    systems = {"good": OTHER[0], "bad": HYPOTHESES}
    references = [REFERENCES, [line if i < 25 else None for i, line in enumerate(OTHER[1])]]
    whole = {name: scores.extract(lines, references, metric) for name, lines in systems.items()}
    monkeypatch.setattr(scores, "_CHUNK", 25)
    judge = {"bleu": BLEU(), "chrf++": CHRF(word_order=2), "ter": TER()}[metric]
    for processes in (1, 2) if metric == "bleu" else (1,):
        found = scores.extract_all(systems, references, metric, processes)
        for name, lines in systems.items():
            np.testing.assert_array_equal(found[name].values, whole[name].values)
            assert found[name].total == judge.corpus_score(lines, references).score
            assert found[name].signature == whole[name].signature == str(judge.get_signature())
    assert "nrefs:var" in str(judge.get_signature())


def test_score_table_holds_each_system_under_each_metric():
    table = scores.score_table(
        {"good": REFERENCES, "bad": HYPOTHESES}, REFERENCES, {"bleu": {"lowercase": True}, "ter": {}}
    )
    assert list(table.columns) == ["system", "metric", "score", "signature", "n"]
    assert list(zip(table.system, table.metric, strict=True)) == [
        (system, metric) for system in ("good", "bad") for metric in ("bleu", "ter")
    ]
    assert table.score[0] == pytest.approx(100)
    assert table.score[1] == 0
    assert "case:lc" in table.signature[0]


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="Reference 1 has 1 lines but there are 2"):
        scores.extract(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="Did you mean 'bleu'"):
        scores.extract(["a"], ["a"], "blue")
    with pytest.raises(ValueError, match="does not take the options"):
        scores.extract(["a"], ["a"], "chrf", tokenise="13a")
