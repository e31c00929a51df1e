"""Tables as LaTeX text: booktabs, scores with intervals, bold where significantly better than the baseline."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analyses.scores import LOWER_IS_BETTER
from analyses.sentences import REFERENCE, SOURCE, Difference, word_diff
from workbench.export.tex import comment, remarks, tex_text

_DAGGER = r"$^\dagger$"


def score_table_latex(
    scores: pd.DataFrame, tests: pd.DataFrame | None = None, baseline: str = "", alpha: float = 0.05
) -> str:
    """The score table of a paper with its note: one row per system, one column per metric, 95 % intervals in brackets.

    scores: system, metric, score, low, high, signature; for several test sets also `test`: then a column is a test set,
    or a test set under a metric. A mean over test sets has neither interval nor signature. tests: system, metric
    (test), delta, p_holm, method. A score is bold if it is better than the baseline's with p_holm below `alpha`, and
    has a dagger if it is worse. Needs booktabs; `tex.document` sets it.
    """
    scores = scores.assign(column=_columns(scores))
    metrics = scores.drop_duplicates("column").set_index("column")["metric"]
    lower = {column: str(metric).upper() in LOWER_IS_BETTER for column, metric in metrics.items()}
    better, worse = _significant(tests, lower, alpha)
    cells = {(record["system"], record["column"]): _cell(record, better, worse) for record in scores.to_dict("records")}
    rows = [
        _row(tex_text(str(system)), *(cells.get((system, column), "--") for column in lower))
        for system in dict.fromkeys(scores["system"])
    ]
    heads = [tex_text(str(column)) + (r" $\downarrow$" if is_lower else "") for column, is_lower in lower.items()]
    table = _tabular("l" + "r" * len(lower), _row("System", *heads), rows)
    sentences = [r"In brackets: 95\,\% bootstrap intervals."]
    if tests is not None and len(tests):
        sentences += _tests_in_words(tests, baseline, alpha, bool(worse))
    signatures = "; ".join(_signatures(scores))
    note = rf"\parbox{{0.95\linewidth}}{{\raggedright\footnotesize {' '.join(sentences)} {signatures}.}}"
    source = f"{table}\n\n\\smallskip\n{note}"
    return "\n".join([*remarks(source), source])


def _significant(
    tests: pd.DataFrame | None, lower: Mapping[Hashable, bool], alpha: float
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The cells (system, column) that are better than the baseline with a corrected p below alpha, and the worse."""
    if tests is None:
        return set(), set()
    found = tests.assign(column=_columns(tests))[tests["p_holm"] < alpha]
    gains = {
        (record["system"], record["column"]): record["delta"] * (-1 if lower[record["column"]] else 1)
        for record in found.to_dict("records")
    }
    return {cell for cell, gain in gains.items() if gain > 0}, {cell for cell, gain in gains.items() if gain < 0}


def _tests_in_words(tests: pd.DataFrame, baseline: str, alpha: float, with_dagger: bool) -> list[str]:
    """The test, its correction, and what bold and the dagger say, as sentences of LaTeX."""
    method, family = str(tests["method"].iloc[0]), tests.groupby("metric").size().max()
    corrected = f"Holm's correction over {family} differences" if family > 1 else "one difference, so no correction"
    return [
        tex_text(f"Bold: better than {baseline} with p < {alpha:g} ({method}, two-sided; {corrected})."),
        *([rf"{_DAGGER}: worse, by the same test."] if with_dagger else []),
    ]


def _signatures(scores: pd.DataFrame) -> list[str]:
    """The signature of each column as LaTeX, with breaks between its parts; equal ones of several test sets once."""
    columns = scores.dropna(subset=["signature"]).drop_duplicates(["metric", "signature"])  # a mean has no signature
    several = columns.duplicated("metric", keep=False)
    return [
        tex_text(f"{_named(record) if with_test else record['metric']}: {record['signature']}").replace(
            r"\textbar{}", r"\textbar\allowbreak{}"
        )
        for record, with_test in zip(columns.to_dict("records"), several, strict=True)
    ]


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


def _cell(record: Mapping[Hashable, Any], better: set[tuple[str, str]], worse: set[tuple[str, str]]) -> str:
    cell = record["system"], record["column"]
    if pd.isna(record["score"]):
        return "--"
    printed = f"{record['score']:.2f}"
    marked = rf"\textbf{{{printed}}}" if cell in better else printed + (_DAGGER if cell in worse else "")
    interval = "" if pd.isna(record["low"]) else rf" {{\scriptsize[{record['low']:.1f}, {record['high']:.1f}]}}"
    return marked + interval


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
