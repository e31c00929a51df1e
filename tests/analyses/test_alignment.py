"""Alignment error rate against hand-worked cases; links from attention."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from analyses import alignment, buckets, pharaoh, seeds
from core_models.text.controlled import generate
from tests.paths import ROOT

GOLD = Path(os.environ.get("NMT_WORKBENCH_DATA", ROOT.parent / "shared" / "data")) / "align-gold"
needs_gold = pytest.mark.skipif(
    not GOLD.is_dir(), reason="gold alignments are not here; set NMT_WORKBENCH_DATA to the folder that holds align-gold"
)


def gold_lines(name: str) -> list[str]:
    """The lines of a file of the gold alignments."""
    return (GOLD / name).read_text(encoding="utf-8").split("\n")[:-1]


PREDICTED = {(0, 0), (1, 2), (2, 1)}
SURE = {(0, 0), (2, 1), (3, 3)}
POSSIBLE = SURE | {(1, 2)}


def test_worked_case():
    """1 - (2 + 3) / (3 + 3)."""
    assert alignment.alignment_error_rate([PREDICTED], [SURE], [POSSIBLE]) == pytest.approx(1 / 6)


def test_sure_links_are_possible_without_being_listed_twice():
    assert alignment.alignment_error_rate([PREDICTED], [SURE], [{(1, 2)}]) == pytest.approx(1 / 6)


def test_corpus_rate_adds_counts_over_sentences():
    """With a second sentence of one right and one wrong link: 1 - (5 + 1 + 1) / (6 + 2 + 1)."""
    rate = alignment.alignment_error_rate([PREDICTED, {(0, 0), (1, 0)}], [SURE, {(0, 0)}], [POSSIBLE, {(0, 0)}])
    assert rate == pytest.approx(2 / 9)


def test_limits():
    assert alignment.alignment_error_rate([SURE], [SURE]) == 0.0
    assert alignment.alignment_error_rate([{(9, 9)}], [SURE]) == 1.0
    assert math.isnan(alignment.alignment_error_rate([set()], [set()]))
    with pytest.raises(ValueError, match=r"2 \(predicted\), 1 \(sure\)"):
        alignment.alignment_error_rate([SURE, SURE], [SURE])


def test_attention_links_each_target_word_once_and_ties_to_the_first():
    weights = np.array([[0.2, 0.7, 0.1], [0.4, 0.2, 0.4]])
    assert alignment.from_attention(weights) == {(1, 0), (0, 1)}
    with pytest.raises(ValueError, match="average heads first"):
        alignment.from_attention(np.zeros((2, 3, 4)))


def test_any_link_of_pieces_links_their_words():
    assert alignment.to_words({(0, 0), (1, 1), (2, 1)}, source_words=[0, 0, 1], target_words=[0, 0]) == {(0, 0), (1, 0)}


def test_threshold_curve_worked_by_hand():
    """Two target words, three source words; sure {(0, 0)}, possible {(1, 0)} too."""
    weights = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]])
    table = alignment.threshold_curve([weights], [{(0, 0), (1, 1)}], [{(1, 0)}], thresholds=(0.25, 0.55))
    assert table["links"].tolist() == [4, 1, 2]
    assert table["precision"].tolist() == pytest.approx([3 / 4, 1.0, 1.0])
    assert table["recall"].tolist() == pytest.approx([1.0, 1 / 2, 1.0])
    assert table["aer"].tolist() == pytest.approx([1 - (2 + 3) / (4 + 2), 1 - (1 + 1) / (1 + 2), 0.0])
    assert math.isnan(table["threshold"].iloc[-1]), "the last row is argmax"


@needs_gold
@pytest.mark.parametrize(("tool", "percent"), [("fastalign", 27.7), ("giza", 20.6)])
def test_published_rates_of_others_on_gold_alignments(tool, percent):
    """German-English of lilt/alignment-scripts: what the repository prints for the outputs it ships."""
    gold = pharaoh.parse(gold_lines("de-en.gold.talp"))
    predicted = pharaoh.parse(gold_lines(f"baseline.{tool}.de-en.gdf.talp")).possible
    rate = alignment.alignment_error_rate(predicted, gold.sure, gold.possible)
    assert round(100 * rate, 1) == percent


def test_error_statistics_of_a_part_are_its_error_rate():
    predicted = [PREDICTED, {(0, 0), (1, 0)}, set()]
    sure, possible = [SURE, {(0, 0)}, {(0, 0)}], [POSSIBLE, {(0, 0)}, {(0, 0), (1, 1)}]
    found = alignment.error_statistics(predicted, sure, possible)
    assert found.values.tolist() == [[5, 6], [2, 3], [0, 1]]
    assert found.total == pytest.approx(100 * alignment.alignment_error_rate(predicted, sure, possible))
    assert found.subset(np.array([1])).total == pytest.approx(100 / 3)
    assert not found.higher_is_better
    assert math.isnan(alignment.error_statistics([set()], [set()]).total)


def test_an_error_is_compared_over_seeds_and_sentences():
    """Four sentences of four sure links: half of them found, or three; both by one system, a seed each."""
    sure = [{(i, i) for i in range(4)}] * 4
    half, most = (
        alignment.error_statistics([{(i, int(i < right) * i) for i in range(4)}] * 4, sure) for right in (2, 3)
    )
    table = seeds.beside_baseline({"base": {1: half, 2: half}, "all": {1: most, 2: most}, "one": {1: most}}, "base")
    by_system = table.set_index("system")
    assert by_system["score"].tolist() == [50, 25, 25]
    assert by_system.loc["all", ["delta", "delta_low", "delta_high"]].tolist() == [-25, -25, -25]
    assert (by_system.loc[["all", "one"], "p_holm"] < 0.01).all()
    mixed = seeds.beside_baseline({"base": {1: half, 2: half}, "mixed": {1: half, 2: most}}, "base").iloc[1]
    assert (mixed["score"], mixed["delta"]) == (37.5, -12.5)
    assert mixed["spread"] == pytest.approx(25 / math.sqrt(2))
    reach = student.ppf(0.975, 1) * 25 / 2  # two differences, 0 and -25: their standard error is 12.5
    assert (mixed["delta_low"], mixed["delta_high"]) == pytest.approx((-12.5 - reach, -12.5 + reach))


def test_the_truth_has_no_error_against_itself_whatever_the_threshold():
    """Of the controlled corpus, as attention that lies on the links of each target word in equal parts."""
    test = generate(sentences=20, dev=20, test=60, seed=3).test
    truth = [{(i, j) for i, j in record["alignment"]} for record in test.truth]
    assert alignment.error_statistics(truth, truth).total == 0.0
    single = [{(min(i for i, k in links if k == j), j) for _, j in links} for links in truth]
    weights = []
    for source, target, links in zip(test.sources, test.targets, single, strict=True):
        own = np.zeros((len(target.split()), len(source.split())))
        own[[j for _, j in links], [i for i, _ in links]] = 1.0
        weights.append(own)
    table = alignment.threshold_curve(weights, single)
    assert (table["aer"].iloc[:-1] == 0.0).all()
    buckets_of = buckets.from_edges([len(source.split()) for source in test.sources], [8])
    by_length = buckets.scores({"truth": alignment.error_statistics(single, single)}, buckets_of, samples=5)
    assert (by_length["score"] == 0.0).all()
    assert by_length["n"].sum() == 60


@needs_gold
def test_error_rates_by_length_add_up_to_that_of_the_corpus():
    gold = pharaoh.parse(gold_lines("de-en.gold.talp"))
    predicted = pharaoh.parse(gold_lines("baseline.fastalign.de-en.gdf.talp")).possible
    found = alignment.error_statistics(predicted, gold.sure, gold.possible)
    grouped = buckets.preset([len(line.split()) for line in gold_lines("de-en.de")], "gdr")
    table = buckets.scores({"fast_align": found}, grouped, samples=20)
    links = np.array([found.values[grouped.rows(bucket), 1].sum() for bucket in range(len(grouped))])
    assert round(float((table["score"] * links).sum() / links.sum()), 1) == 27.7
