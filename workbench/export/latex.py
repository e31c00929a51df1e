"""Tables as LaTeX text: booktabs, the best score of each metric bold, a dagger where a test found a difference."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analyses.scores import LOWER_IS_BETTER
from analyses.sentences import REFERENCE, SOURCE, Difference, word_diff
from workbench.export.tex import comment, remarks, tex_text

_DAGGER = r"\rlap{$^\dagger$}"  # without width, so that the digits of a column stay below each other


def score_table_latex(
    scores: pd.DataFrame, tests: pd.DataFrame | None = None, baseline: str = "", alpha: float = 0.05
) -> str:
    """The score table of a paper: a row a system, a column a metric, packages, signatures and test in comments above.

    scores: system, metric, score, signature; of several test sets also `test`: then a column is a test set, or a test
    set under a metric. tests: system, metric (test), p_holm, method; p_holm below `alpha` gives a dagger. What rounds
    to the best score is bold. Needs booktabs; `tex.document` sets it as it is.
    """
    scores = scores.assign(column=_columns(scores))
    metrics = scores.drop_duplicates("column").set_index("column")["metric"]
    values = scores.pivot(index="system", columns="column", values="score")
    values = values.loc[list(dict.fromkeys(scores["system"])), list(metrics.index)]
    lower = [str(metric).upper() in LOWER_IS_BETTER for metric in metrics]
    best = [values[column].min() if low else values[column].max() for column, low in zip(values, lower, strict=True)]
    found = set()
    if tests is not None:
        found = set(tests.assign(column=_columns(tests))[tests["p_holm"] < alpha].set_index(["system", "column"]).index)
    rows = []
    for system, row in values.iterrows():
        columns = zip(values, row, best, strict=True)
        cells = [_cell(score, top, (system, column) in found) for column, score, top in columns]
        rows.append(_row(tex_text(str(system)), *cells))
    heads = [
        tex_text(str(column)) + (r" $\downarrow$" if low else "") for column, low in zip(values, lower, strict=True)
    ]
    signed = scores.dropna(subset=["signature"]).drop_duplicates("column")  # a mean has no signature
    said = [comment(f"{_named(one)}: {one['signature']}") for one in signed.to_dict("records")]
    if tests is not None and found:
        said.append(comment(f"dagger: differs from {baseline}, p < {alpha:g} after Holm ({tests['method'].iloc[0]})"))
    table = _tabular("l" + "r" * values.shape[1], _row("System", *heads), rows)
    return "\n".join([*remarks(table), *said, table])


def _columns(table: pd.DataFrame) -> list[str]:
    """The column that each row stands in: its metric's; of several test sets its test set's, under each metric."""
    if "test" not in table:
        return list(table["metric"])
    several = table["metric"].nunique() > 1
    return [f"{row.test} {row.metric}" if several else str(row.test) for row in table.itertuples()]


def _named(score: Mapping[Hashable, Any]) -> str:
    """What a score is of, in words."""
    return " ".join(str(score[name]) for name in ("test", "metric") if name in score)


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


def case_latex(texts: Mapping[str, str], base: str) -> str:
    """A translation case as a table: source and reference, below a rule what systems wrote, a row a text.

    Words of a system that the text called `base` has not are underlined. Needs booktabs and array.
    """
    given = [_row(tex_text(name), tex_text(texts[name])) for name in (SOURCE, REFERENCE) if name in texts]
    systems = [name for name in texts if name not in (SOURCE, REFERENCE)]
    written = [_row(tex_text(name), _marked(texts[base], texts[name])) for name in systems]
    wrapped = r">{\raggedright\arraybackslash}p{0.78\linewidth}"
    table = _tabular(f"l{wrapped}", "\n".join(given), written)
    return "\n".join([*remarks(table), comment(f"underlined: not in {base}"), table])


def _marked(base: str, text: str) -> str:
    """A text whose words that another has not are underlined, each by itself: TeX breaks no line within one."""
    return " ".join("".join(map(_set, word_diff(base, text))).split()) or r"\textit{(empty)}"


def _set(piece: Difference) -> str:
    look = "{}" if piece.equal else r"\underline{{{}}}"
    return re.sub(r"\S+", lambda word: look.format(tex_text(word[0])), piece.second)


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
    table = _tabular(columns, _row("Row", "Measure", "Reported", "This work"), lines)
    return "\n".join([*remarks(table), comment(f"Ours is of other data and no reproduction: {origins}"), table])


def _beside(one: dict[Hashable, Any]) -> str:
    interval = "" if pd.isna(one["low"]) else f" [{one['low']:.1f}, {one['high']:.1f}]"
    return _row(*(tex_text(one[name]) for name in ("row", "measure", "printed")), f"{one['ours']:.2f}{interval}")
