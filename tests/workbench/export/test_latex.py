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
        ("base_line", "BLEU", 25.0, 24.04, 26.0, "b|v:2"),
        ("new", "BLEU", 26.123, 25.0, 27.0, "b|v:2"),
        ("newest", "BLEU", 28.0, 23.0, 31.0, "b|v:2"),
        ("base_line", "TER", 50.0, 49.0, 51.0, "t"),
        ("new", "TER", 48.0, 47.0, 49.0, "t"),
        ("newest", "TER", 53.0, 52.0, 54.0, "t"),
    ],
    columns=["system", "metric", "score", "low", "high", "signature"],
)
TESTS = pd.DataFrame(
    [
        ("new", "BLEU", 1.1, 0.01, "sign test"),
        ("newest", "BLEU", 3.0, 0.2, "sign test"),
        ("new", "TER", -2.0, 0.01, "sign test"),
        ("newest", "TER", 3.0, 0.01, "sign test"),
    ],
    columns=["system", "metric", "delta", "p_holm", "method"],
)
WRITTEN = r"""% needs \usepackage{booktabs}
\begin{tabular}{lrr}
\toprule
System & BLEU & TER $\downarrow$ \\
\midrule
base\_line & 25.00 {\scriptsize[24.0, 26.0]} & 50.00 {\scriptsize[49.0, 51.0]} \\
new & \textbf{26.12} {\scriptsize[25.0, 27.0]} & \textbf{48.00} {\scriptsize[47.0, 49.0]} \\
newest & 28.00 {\scriptsize[23.0, 31.0]} & 53.00$^\dagger$ {\scriptsize[52.0, 54.0]} \\
\bottomrule
\end{tabular}

\smallskip
\parbox{0.95\linewidth}{\raggedright\footnotesize In brackets: 95\,\% bootstrap intervals. """
WRITTEN += r"Bold: better than base\_line with p \textless{} 0.05 (sign test, two-sided; Holm's correction over 2 "
WRITTEN += r"differences). $^\dagger$: worse, by the same test. BLEU: b\textbar\allowbreak{}v:2; TER: t.}"


def test_only_what_is_significantly_better_is_bold_however_large_another_is():
    assert score_table_latex(SCORES, TESTS, "base_line") == WRITTEN


def test_without_a_test_nothing_is_bold():
    made = score_table_latex(SCORES)
    assert r"\textbf" not in made
    assert "Bold" not in made
    assert made.count(r"{\scriptsize[") == len(SCORES)


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
    scores = scoring.score_table(runs, "test", ["bleu", "chrf"]).set_index(["metric", "system"])
    for name, printed in (("a_b", r"a\_b"), ("better", "better")):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{printed} &")]
        for metric in ("bleu", "chrf"):
            row = scores.loc[metric, name]
            shown = rf"\textbf{{{row.score:.2f}}}" if name == "better" else f"{row.score:.2f}"
            assert rf"{shown} {{\scriptsize[{row.low:.1f}, {row.high:.1f}]}}" in line
    assert r"Bold: better than a\_b with p \textless{} 0.05 (paired bootstrap" in done.stdout
