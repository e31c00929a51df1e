"""Tables as LaTeX text: booktabs, the best score of each metric bold, a dagger for significant differences."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analyses.scores import LOWER_IS_BETTER
from analyses.sentences import REFERENCE, SOURCE, Difference, word_diff
from workbench.export.tex import comment, remarks, tex_text

_DAGGER = r"\rlap{$^\dagger$}"  # of zero width, so that the digits of a column are aligned


def score_table_latex(
    scores: pd.DataFrame, tests: pd.DataFrame | None = None, baseline: str = "", alpha: float = 0.05
) -> str:
    """The score table of a paper: one row per system, one column per metric, notes in comments above.

    scores: system, metric, score, signature; for several test sets also `test`: then a column is a test set, or a test
    set under a metric. tests: system, metric (test), p_holm, method; p_holm below `alpha` gives a dagger. Scores that
    round to the best one are bold. Comments name packages, signatures and test. Needs booktabs; `tex.document` sets
    it.
    """
    scores = scores.assign(column=_columns(scores))
    metrics = scores.drop_duplicates("column").set_index("column")["metric"]
    values = scores.pivot(index="system", columns="column", values="score")
    values = values.loc[list(dict.fromkeys(scores["system"])), list(metrics.index)]
    lower = [str(metric).upper() in LOWER_IS_BETTER for metric in metrics]
    best = [values[column].min() if low else values[column].max() for column, low in zip(values, lower, strict=True)]
    significant = set()
    if tests is not None:
        significant = set(
            tests.assign(column=_columns(tests))[tests["p_holm"] < alpha].set_index(["system", "column"]).index
        )
    rows = []
    for system, row in values.iterrows():
        columns = zip(values, row, best, strict=True)
        cells = [_cell(score, top, (system, column) in significant) for column, score, top in columns]
        rows.append(_row(tex_text(str(system)), *cells))
    heads = [
        tex_text(str(column)) + (r" $\downarrow$" if low else "") for column, low in zip(values, lower, strict=True)
    ]
    with_signature = scores.dropna(subset=["signature"]).drop_duplicates("column")  # a mean has no signature
    notes = [comment(f"{_named(record)}: {record['signature']}") for record in with_signature.to_dict("records")]
    if tests is not None and significant:
        notes.append(comment(f"dagger: differs from {baseline}, p < {alpha:g} after Holm ({tests['method'].iloc[0]})"))
    table = _tabular("l" + "r" * values.shape[1], _row("System", *heads), rows)
    return "\n".join([*remarks(table), *notes, table])


def _columns(table: pd.DataFrame) -> list[str]:
    """The column of each row: its metric; with several test sets its test set, under each metric."""
    if "test" not in table:
        return list(table["metric"])
    several = table["metric"].nunique() > 1
    return [f"{row.test} {row.metric}" if several else str(row.test) for row in table.itertuples()]


def _named(score: Mapping[Hashable, Any]) -> str:
    """Metric and test set of a score in words."""
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
    """A translation example as a table, one row per text: source and reference, then a rule and the systems' outputs.

    Words of a system that are not in the text called `base` are underlined. Needs booktabs and array.
    """
    source_rows = [_row(tex_text(name), tex_text(texts[name])) for name in (SOURCE, REFERENCE) if name in texts]
    systems = [name for name in texts if name not in (SOURCE, REFERENCE)]
    written = [_row(tex_text(name), _marked(texts[base], texts[name])) for name in systems]
    wrapped = r">{\raggedright\arraybackslash}p{0.78\linewidth}"
    table = _tabular(f"l{wrapped}", "\n".join(source_rows), written)
    return "\n".join([*remarks(table), comment(f"underlined: not in {base}"), table])


def _marked(base: str, text: str) -> str:
    """A text with words underlined that are not in another, each by itself, since TeX breaks no line in a group."""
    return " ".join("".join(map(_set, word_diff(base, text))).split()) or r"\textit{(empty)}"


def _set(piece: Difference) -> str:
    look = "{}" if piece.equal else r"\underline{{{}}}"
    return re.sub(r"\S+", lambda word: look.format(tex_text(word[0])), piece.second)


def beside_latex(rows: pd.DataFrame, origins: str) -> str:
    """Our results beside published ones as a table: one line for each of our numbers, under its origin and differences.

    rows: from `papers.comparison.compared`. Needs booktabs and array.
    """
    lines = []
    for key, part in rows.groupby(["test", "where", "differs"], sort=False):
        test, origin, differs = map(str, key)
        data = f"{part['data'].iloc[0]}, {test}" if test else origin
        note = tex_text("; ".join(filter(None, (f"Ours: {data}", differs))))
        lines += [r"\addlinespace", rf"\multicolumn{{4}}{{p{{0.9\linewidth}}}}{{\textit{{{note}}}}} \\"]
        lines += [_beside(record) for record in part.to_dict("records")]
    wrapped = r">{\raggedright\arraybackslash}p"
    columns = rf"l{wrapped}{{0.22\linewidth}}{wrapped}{{0.23\linewidth}}r"
    table = _tabular(columns, _row("Row", "Measure", "Reported", "This work"), lines)
    return "\n".join([*remarks(table), comment(f"Ours is of other data and no reproduction: {origins}"), table])


def _beside(record: dict[Hashable, Any]) -> str:
    interval = "" if pd.isna(record["low"]) else f" [{record['low']:.1f}, {record['high']:.1f}]"
    return _row(*(tex_text(record[name]) for name in ("row", "measure", "reported")), f"{record['ours']:.2f}{interval}")
