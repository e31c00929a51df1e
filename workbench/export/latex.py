"""Tables as LaTeX text: booktabs, the best score of each metric bold, a dagger where a test found a difference."""

from __future__ import annotations

import pandas as pd

from workbench.export.files import tex_text
from workbench.figures.scores import LOWER_IS_BETTER


def score_table_latex(
    scores: pd.DataFrame, tests: pd.DataFrame | None = None, baseline: str = "", alpha: float = 0.05
) -> str:
    """The score table of a paper: a row a system, a column a metric, signatures and test in comments above.

    scores: system, metric, score, signature. tests: system, metric, p_holm, method; p_holm below `alpha` gives a
    dagger. What rounds to the best score is bold. Needs booktabs.
    """
    values = scores.pivot(index="system", columns="metric", values="score")
    values = values.loc[list(dict.fromkeys(scores["system"])), list(dict.fromkeys(scores["metric"]))]
    lower = [str(metric).upper() in LOWER_IS_BETTER for metric in values]
    best = [values[metric].min() if low else values[metric].max() for metric, low in zip(values, lower, strict=True)]
    found = set() if tests is None else set(tests[tests["p_holm"] < alpha].set_index(["system", "metric"]).index)
    rows = []
    for system, row in values.iterrows():
        columns = zip(values, row, best, strict=True)
        cells = [_cell(score, top, (system, metric) in found) for metric, score, top in columns]
        rows.append(" & ".join([tex_text(str(system)), *cells]) + r" \\")
    arrows = [
        tex_text(str(metric)) + (r" $\downarrow$" if low else "") for metric, low in zip(values, lower, strict=True)
    ]
    signatures = scores.drop_duplicates("metric")
    said = [f"% {metric}: {text}" for metric, text in zip(signatures["metric"], signatures["signature"], strict=True)]
    if tests is not None and found:
        said.append(f"% dagger: differs from {baseline}, p < {alpha:g} after Holm ({tests['method'].iloc[0]})")
    body = [r"\toprule", " & ".join(["System", *arrows]) + r" \\", r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*said, rf"\begin{{tabular}}{{l{'r' * values.shape[1]}}}", *body])


def _cell(score: float, best: float, differs: bool) -> str:
    if pd.isna(score):
        return "--"
    printed = f"{score:.2f}"
    bold = rf"\textbf{{{printed}}}" if printed == f"{best:.2f}" else printed
    return bold + (r"$^\dagger$" if differs else "")
