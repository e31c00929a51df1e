"""The score table of a paper, against one written by hand."""

import pandas as pd
from typer.testing import CliRunner

from tests.workbench.papers.written_runs import written_run
from workbench import cli, evaluation
from workbench.export.latex import score_table_latex

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


def test_compare_prints_the_table_of_its_runs(prepared, tmp_path):
    runs = [
        written_run(tmp_path, name, "transformer:preset=tiny", prepared, spoiled) for name, spoiled in NAMES.items()
    ]
    folders = [str(run.folder) for run in runs]
    done = CliRunner().invoke(cli.app, ["compare", *folders, "--metrics", "bleu,chrf", "--latex"])
    assert done.exit_code == 0, done.output
    scores = evaluation.score_table(runs, "test", ["bleu", "chrf"]).set_index(["metric", "system"])["score"]
    for name, printed in (("a_b", r"a\_b"), ("better", "better")):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{printed} &")]
        assert all(f"{scores[metric, name]:.2f}" in line for metric in ("bleu", "chrf"))
    assert "% dagger: differs from a_b, p < 0.05 after Holm" in done.stdout
