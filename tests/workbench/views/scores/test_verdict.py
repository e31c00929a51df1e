"""Verdicts on differences to a baseline: who is better, who is worse, and who may be neither."""

import pandas as pd
import pytest

from workbench.views.scores.verdict import verdict

COLUMNS = ["system", "metric", "delta", "low", "high", "p_holm"]
ROWS = [
    ("a", 1.25, 0.4, 2.1, 0.012),
    ("b", -3.0, -4.0, -2.0, 0.004),
    ("c", 2.5, 1.5, 3.5, 0.004),
    ("d", 0.3, -0.2, 0.8, 0.3),
    ("e", 0.9, 0.0, 1.8, 0.05),
]


def _table(metric, rows=ROWS):
    return pd.DataFrame([(name, metric, *numbers) for name, *numbers in rows], columns=COLUMNS)


def test_systems_stand_by_their_difference_with_interval_and_p():
    assert verdict(_table("BLEU"), "base") == (
        "Better than base in BLEU: c (+2.5, 95% CI +1.5 to +3.5, p = 0.004), a (+1.2, 95% CI +0.4 to +2.1, p = 0.012). "
        "Worse than base in BLEU: b (−3.0, 95% CI −4.0 to −2.0, p = 0.004). "
        "No significant difference in BLEU (p < 0.05 after Holm): e, d."
    )


def test_less_is_better_where_the_metric_counts_errors():
    said = verdict(_table("TER"), "base")
    assert said.startswith("Better than base in TER: b (−3.0,")
    assert "Worse than base in TER: a (+1.2, 95% CI +0.4 to +2.1, p = 0.012), c (+2.5," in said


@pytest.mark.parametrize(
    ("row", "words"), [(ROWS[3], "No significant"), (ROWS[0], "Better than base"), (ROWS[1], "Worse")]
)
def test_what_is_not_there_is_not_mentioned(row, words):
    said = verdict(_table("BLEU", [row]), "base")
    assert said.startswith(words)
    assert sum(word in said for word in ("No significant", "Better", "Worse")) == 1


def test_the_name_of_a_system_keeps_its_hyphen():
    assert "gdr-bow (−3.0," in verdict(_table("BLEU", [("gdr-bow", *ROWS[1][1:])]), "base")


def test_a_test_without_intervals_gives_p_alone():
    rows = [("a", 1.0, float("nan"), float("nan"), 0.01)]
    assert verdict(_table("chrF", rows), "base") == "Better than base in chrF: a (+1.0, p = 0.010)."
