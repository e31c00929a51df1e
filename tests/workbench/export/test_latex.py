"""The score table of a paper, against one written by hand."""

import pandas as pd

from workbench.export.latex import score_table_latex

SCORES = pd.DataFrame(
    [
        ("base_line", "BLEU", 25.0, "b"),
        ("new", "BLEU", 26.123, "b"),
        ("base_line", "TER", 50.0, "t"),
        ("new", "TER", 50.004, "t"),
    ],
    columns=["system", "metric", "score", "signature"],
)
TESTS = pd.DataFrame(
    [("new", "BLEU", 0.01, "sign"), ("new", "TER", 0.9, "sign")], columns=["system", "metric", "p_holm", "method"]
)
WRITTEN = r"""% BLEU: b
% TER: t
% dagger: differs from base_line, p < 0.05 after Holm (sign)
\begin{tabular}{lrr}
\toprule
System & BLEU & TER $\downarrow$ \\
\midrule
base\_line & 25.00 & \textbf{50.00} \\
new & \textbf{26.12}$^\dagger$ & \textbf{50.00} \\
\bottomrule
\end{tabular}"""


def test_best_scores_are_bold_and_differences_have_a_dagger():
    assert score_table_latex(SCORES, TESTS, "base_line") == WRITTEN


def test_a_score_that_is_not_there_is_a_dash():
    assert "new & -- & " in score_table_latex(SCORES.drop(index=1)).replace("\\textbf{", "").replace("}", "")
