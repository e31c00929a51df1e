"""HTML report on runs in one file: configuration, scores with tests, figures with their tables and commands.

It opens from disk without any network: plotly.js is embedded once, and the content policy forbids everything else.
Computes nothing: tables come from `evaluation.scoring` and `evaluation.run_table`, figures are drawn already. All text
is escaped.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from core_models.resources import commit
from workbench.evaluation import run_table, scoring
from workbench.export.files import versions
from workbench.figures import spec
from workbench.figures.from_spec import DrawnFigure
from workbench.figures.request import Request
from workbench.plotting.plotly_renderer import to_plotly
from workbench.store.runs import Run, RunError, short_names
from workbench.store.search_settings import search_note, search_of
from workbench.store.training_logs import precision_note

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("bleu", "chrf")
MOST_ROWS = 1000  # of a figure's table
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_STYLE = """
body{max-width:70rem;margin:2rem auto;padding:0 1.5rem;color:#1f1f1f;background:#fff;line-height:1.45;
  font-family:Inter,Helvetica,Arial,'Noto Sans CJK SC','PingFang SC','Microsoft YaHei','WenQuanYi Micro Hei',sans-serif}
h1{font-size:1.7rem}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid #e6e6e6;padding-bottom:.2rem}
figure{margin:1.5rem 0 2.2rem}figcaption{color:#444;font-size:.9rem;margin:.3rem 0 .5rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}
th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid #e6e6e6;unicode-bidi:plaintext;max-width:32rem;
  overflow-wrap:break-word}
th.number,td.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
pre{background:#f5f5f5;padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.82rem}
details{margin:.3rem 0}summary{cursor:pointer;color:#0072b2}.small{color:#555;font-size:.82rem;overflow-wrap:anywhere}
"""
_INTERVAL = {"low": "95% CI lower", "high": "95% CI upper"}


def report(
    title: str, runs: Sequence[Run], test: str, drawn: Sequence[DrawnFigure], left_out: Sequence[str] = ()
) -> str:
    """The report as one HTML document; the first run is the baseline. `left_out`: messages on missing figures."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="small">{escape(_subject(runs, test))}</p>',
        "<h2>Runs</h2>",
        table_html(_runs_table(runs, test)),
        "<h2>Scores</h2>",
        *_scores(runs, test),
        "<h2>Figures</h2>",
        *([] if drawn else ["<p>No figure.</p>"]),
        *(_figure(drawn_figure, first=number == 0, number=number) for number, drawn_figure in enumerate(drawn)),
        *(f"<p>Left out: {escape(message)}</p>" for message in left_out),
        "<h2>Made with</h2>",
        _made_with(),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def default_figures(request: Request) -> tuple[list[DrawnFigure], list[str]]:
    """The default figures of a report, and a message for each that these runs cannot have.

    These are scores, length buckets, training curves and the beam trees of the request's sentence.
    """
    from workbench.figures.drawing import draw

    trees = "beam-trees" if len(request.runs) > 1 else "beam-tree"
    drawn, left_out = [], []
    for name in ("scores", "length-scores", "training-curves", trees):
        try:
            drawn.append(DrawnFigure(spec.recipe_of(name, request), request, draw(name, request)))
        except RunError as error:
            left_out.append(f"{name}: {error}")
    return drawn, left_out


def runs_of(drawn: Sequence[DrawnFigure]) -> list[Run]:
    """The runs of the figures, each once, in order of appearance."""
    return list({run.name: run for drawn_figure in drawn for run in drawn_figure.request.runs}.values())


def table_html(table: pd.DataFrame, formats: Mapping[str, str] | None = None) -> str:
    """A table as HTML with escaped texts; `formats` has the number formats of columns, default `.3f`."""
    numeric = set(table.select_dtypes("number").columns)
    classes = [' class="number"' if name in numeric else "" for name in table]
    head = "".join(f"<th{kind}>{escape(str(name))}</th>" for kind, name in zip(classes, table, strict=True))
    columns = [[_shown(value, (formats or {}).get(str(name), ".3f")) for value in table[name]] for name in table]
    rows = [
        "".join(f"<td{kind}>{escape(text)}</td>" for kind, text in zip(classes, texts, strict=True))
        for texts in zip(*columns, strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _shown(value: object, written: str) -> str:
    import pandas as pd

    if pd.isna(value):  # type: ignore[call-overload]
        return "–"
    is_whole_number = isinstance(value, float) and value.is_integer() and written == ".3f"
    return str(int(value)) if is_whole_number else format(value, written) if isinstance(value, float) else str(value)  # type: ignore[call-overload]


def _subject(runs: Sequence[Run], test: str) -> str:
    names = short_names(runs)
    text = f"Test set {test}. Runs: {', '.join(run.name for run in runs)}."
    return f"{text} Baseline: {names[runs[0].name]}." if len(runs) > 1 else text


def _runs_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """The runs with a summary of their configurations."""
    import pandas as pd

    table = run_table.runs_table(runs, test).drop(columns=["problem", "tests", "bleu"])
    table = table.rename(columns={"of": "planned", "dev_loss": "dev loss (nats/token)"})
    seeds = [None if run.outside else run.config.training.seed for run in runs]
    return table.assign(seed=pd.array(seeds, dtype="Int64"), search=[_search(run, test) for run in runs])


def _search(run: Run, test: str) -> str:
    """The search that found a run's translations of a test set; "" where it has none, or they were made elsewhere."""
    search = search_of(run, test) if test in run.tests() else {}
    if not search:
        return ""
    by = "" if search["engine"] == "workbench" else f", {search['engine']}"
    return f"beam {search['beam']}, {search['penalty']} length penalty {search['length_penalty']:g}{by}"


def _scores(runs: Sequence[Run], test: str) -> list[str]:
    """HTML of scores and differences to the first run, or of the error message."""
    names = short_names(runs)
    try:
        scores = scoring.score_table(runs, test, METRICS)
        tests = scoring.comparison_table(runs, test, runs[0].name, metrics=METRICS) if len(runs) > 1 else None
    except RunError as error:
        return [f"<p>{escape(str(error))}</p>"]
    labeled = scores.assign(system=scores["system"].map(names), metric=scores["metric"].replace(scoring.METRIC_NAMES))
    shown = labeled.drop(columns="signature").rename(columns={**_INTERVAL, "n": "sentences"})
    signatures = labeled.drop_duplicates("metric")
    signature_text = "; ".join(f"{row.metric}: {row.signature}" for row in signatures.itertuples())
    parts = [
        table_html(shown, dict.fromkeys(("score", *_INTERVAL.values()), ".2f")),
        f'<p class="small">{escape(signature_text)}. Intervals: 95% bootstrap of sentences.</p>',
    ]
    if tests is None:
        return parts
    columns = ["system", "metric", "delta", "low", "high", "p_value", "p_holm"]
    differences = tests.assign(system=tests["system"].map(names), metric=tests["metric"].replace(scoring.METRIC_NAMES))[
        columns
    ].rename(columns={"delta": "difference", **_INTERVAL, "p_value": "p", "p_holm": "p (Holm-corrected)"})
    command = ["workbench", "compare", *map(spec.path_of, runs), "--test", test, "--metrics", ",".join(METRICS)]
    notes = [note for note in (precision_note(runs), search_note(runs, [test])) if note]
    return [
        *parts,
        f"<p>Difference to {escape(names[runs[0].name])}: paired bootstrap over the same sentences, p two-sided, by "
        "inverting the interval; Holm's correction over the systems of one metric.</p>",
        table_html(
            differences,
            {
                **dict.fromkeys(("difference", *_INTERVAL.values()), "+.2f"),
                "p": ".4f",
                "p (Holm-corrected)": ".4f",
            },
        ),
        *(f"<p>{escape(note)}</p>" for note in notes),
        f"<pre>{escape(shlex.join(command))}</pre>",
    ]


def _figure(drawn_figure: DrawnFigure, first: bool, number: int) -> str:
    import plotly.io

    figure = drawn_figure.figure
    chart = plotly.io.to_html(
        to_plotly(figure),
        config={"displaylogo": False, "responsive": True},
        include_plotlyjs=first,
        include_mathjax=False,
        full_html=False,
        div_id=f"figure-{number}",
    )
    rows = figure.table
    cut = "" if len(rows) <= MOST_ROWS else f"; the first {MOST_ROWS}"
    caption = f"{figure.summary} {figure.caption}".strip()
    return (
        f'<figure aria-label="{escape(figure.title)}">\n{chart}\n<figcaption>{escape(caption)}</figcaption>\n'
        f"<details><summary>Table ({len(rows)} rows{cut})</summary>{table_html(rows[:MOST_ROWS])}</details>\n"
        f"<details><summary>Where it comes from</summary><pre>{escape(_command(drawn_figure))}</pre>"
        f'<p class="small">{escape(_origin(drawn_figure))}</p></details>\n</figure>'
    )


def _command(drawn_figure: DrawnFigure) -> str:
    recipe = drawn_figure.recipe
    return spec.figure_command(recipe.drawing, drawn_figure.request, elsewhere=True) + spec.paper_options(recipe)


def _origin(drawn_figure: DrawnFigure) -> str:
    provenance = dict(drawn_figure.figure.provenance)
    parts = [
        f"{run}: {', '.join(f'{part} {digest}' for part, digest in digests.items())}"
        for run, digests in provenance.get("digests", {}).items()
    ]
    parts += [f"{metric}: {signature}" for metric, signature in provenance.get("signatures", {}).items()]
    parts += [f"seed of resampling: {provenance['resampling_seed']}"] if "resampling_seed" in provenance else []
    return "; ".join(parts)


def _made_with() -> str:
    parts = {**versions(), **({"commit": commit()} if commit() else {})}
    return f'<p class="small">{escape(", ".join(f"{name} {number}" for name, number in parts.items()))}</p>'
