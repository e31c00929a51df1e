"""The score table of a paper, against one written by hand."""

import pandas as pd
from typer.testing import CliRunner

from tests.workbench.papers.written_runs import written_run
from workbench import cli
from workbench.evaluation import scoring
from workbench.export.latex import case_latex, score_table_latex

NAMES = {"a_b": 12, "better": 1}  # runs, and how many of their sentences are spoiled

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
WRITTEN = r"""% needs \usepackage{booktabs}
% BLEU: b
% TER: t
% dagger: differs from base_line, p < 0.05 after Holm (sign)
\begin{tabular}{lrr}
\toprule
System & BLEU & TER $\downarrow$ \\
\midrule
base\_line & 25.00 & \textbf{50.00} \\
new & \textbf{26.12}\rlap{$^\dagger$} & \textbf{50.00} \\
\bottomrule
\end{tabular}"""


def test_best_scores_are_bold_and_differences_have_a_dagger():
    assert score_table_latex(SCORES, TESTS, "base_line") == WRITTEN


def test_a_score_that_is_not_there_is_a_dash():
    assert "new & -- & " in score_table_latex(SCORES.drop(index=1)).replace("\\textbf{", "").replace("}", "")


def test_a_case_has_its_words_marked_that_are_not_in_the_reference():
    texts = {"source": "the 1_dog", "reference": "der Hund & die Katze", "a": "der Hund und, die 2 % Katze.", "b": ""}
    assert (
        case_latex(texts, "reference")
        == r"""% needs \usepackage{booktabs} \usepackage{array}
% underlined: not in reference
\begin{tabular}{l>{\raggedright\arraybackslash}p{0.78\linewidth}}
\toprule
source & the 1\_dog \\
reference & der Hund \& die Katze \\
\midrule
a & der Hund \underline{und,} die \underline{2} \underline{\%} Katze\underline{.} \\
b & \textit{(empty)} \\
\bottomrule
\end{tabular}"""
    )


def test_compare_prints_the_table_of_its_runs(prepared, tmp_path):
    runs = [
        written_run(tmp_path, name, "transformer:preset=tiny", prepared, spoiled) for name, spoiled in NAMES.items()
    ]
    folders = [str(run.folder) for run in runs]
    done = CliRunner().invoke(cli.app, ["compare", *folders, "--metrics", "bleu,chrf", "--latex"])
    assert done.exit_code == 0, done.output
    scores = scoring.score_table(runs, "test", ["bleu", "chrf"]).set_index(["metric", "system"])["score"]
    for name, printed in (("a_b", r"a\_b"), ("better", "better")):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{printed} &")]
        assert all(f"{scores[metric, name]:.2f}" in line for metric in ("bleu", "chrf"))
    assert "% dagger: differs from a_b, p < 0.05 after Holm" in done.stdout
