"""Tables as LaTeX text: booktabs, the best score of each metric bold, a dagger where a test found a difference."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from workbench.export.tex import comment, remarks, tex_text
from workbench.figures.scores import LOWER_IS_BETTER

_DAGGER = r"\rlap{$^\dagger$}"  # without width, so that the digits of a column stay below each other


def score_table_latex(
    scores: pd.DataFrame, tests: pd.DataFrame | None = None, baseline: str = "", alpha: float = 0.05
) -> str:
    """The score table of a paper: a row a system, a column a metric, packages, signatures and test in comments above.

    scores: system, metric, score, signature. tests: system, metric, p_holm, method; p_holm below `alpha` gives a
    dagger. What rounds to the best score is bold. Needs booktabs; `tex.document` sets it as it is.
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
        rows.append(_row(tex_text(str(system)), *cells))
    heads = [
        tex_text(str(metric)) + (r" $\downarrow$" if low else "") for metric, low in zip(values, lower, strict=True)
    ]
    signatures = scores.drop_duplicates("metric")
    said = [comment(f"{one.metric}: {one.signature}") for one in signatures.itertuples()]
    if tests is not None and found:
        said.append(comment(f"dagger: differs from {baseline}, p < {alpha:g} after Holm ({tests['method'].iloc[0]})"))
    table = _tabular("l" + "r" * values.shape[1], _row("System", *heads), rows)
    return "\n".join([*remarks(table), *said, table])


def _tabular(columns: str, head: str, rows: list[str]) -> str:
    body = [r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def _row(*cells: str) -> str:
    return rf"{' & '.join(cells)} \\"


def _cell(score: float, best: float, differs: bool) -> str:
    if pd.isna(score):
        return "--"
    printed = f"{score:.2f}"
    bold = rf"\textbf{{{printed}}}" if printed == f"{best:.2f}" else printed
    return bold + (_DAGGER if differs else "")


def beside_latex(rows: pd.DataFrame, origins: str) -> str:
    """Ours beside printed as a table: a line for each number of ours, below where it is from and what differs there.

    rows: as `papers.beside.beside` makes them. Needs booktabs and array.
    """
    lines = []
    for key, part in rows.groupby(["test", "where", "differs"], sort=False):
        test, place, differs = map(str, key)
        data = f"{part['data'].iloc[0]}, {test}" if test else place
        said = tex_text("; ".join(filter(None, (f"Ours: {data}", differs))))
        lines += [r"\addlinespace", rf"\multicolumn{{4}}{{p{{0.9\linewidth}}}}{{\textit{{{said}}}}} \\"]
        lines += [_beside(one) for one in part.to_dict("records")]
    wrapped = r">{\raggedright\arraybackslash}p"
    columns = rf"l{wrapped}{{0.22\linewidth}}{wrapped}{{0.23\linewidth}}r"
    table = _tabular(columns, _row("Row", "Measure", "Printed", "Ours"), lines)
    return "\n".join([*remarks(table), comment(f"Ours is of other data and no reproduction: {origins}"), table])


def _beside(one: dict[Hashable, Any]) -> str:
    interval = "" if pd.isna(one["low"]) else f" [{one['low']:.1f}, {one['high']:.1f}]"
    return _row(*(tex_text(one[name]) for name in ("row", "measure", "printed")), f"{one['ours']:.2f}{interval}")
