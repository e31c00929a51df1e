"""Tables of README and of the pages below docs/, made of committed result files and of the options of mechanisms.

A page holds `<!-- table: NAME -->` … `<!-- end -->`, NAME being a section of docs/tables.toml, or the same with
`options: MECHANISM`, `settings: SECTION`, `settings: presets`, `figures: ours`, `ledger: PAPER`, `ledger: counts`,
`ledger: kinds`, `grids: all` or `grids: rates`.
`python docs/tables.py` writes what belongs between; a test compares.
"""

from __future__ import annotations

import re
import tomllib
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pandas as pd

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "data" / "experiments" / "results"
MARKED = re.compile(
    r"^(<!-- (table|options|settings|figures|ledger|grids): (\S+) -->\n)(.*?)^(<!-- end -->)$", re.DOTALL | re.MULTILINE
)

KINDS = {
    "gain": "gains",
    "order": "orders of systems",
    "curve": "curves",
    "property": "properties",
    "cost": "speeds",
}


def main() -> None:
    """Write the tables of every page anew."""
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


def filled(text: str) -> str:
    """The text of a page with its generated tables as they are to be."""
    make = {
        "table": result_table,
        "options": options_table,
        "settings": settings_table,
        "figures": figure_sections,
        "ledger": ledger,
        "grids": grids_table,
    }
    return MARKED.sub(lambda found: f"{found[1]}{make[found[2]](found[3])}{found[5]}", text)


def result_table(name: str) -> str:
    """The table of a section of docs/tables.toml."""
    about = tomllib.loads((DOCS / "tables.toml").read_text(encoding="utf-8"))[name]
    makers = {
        "scores": _scores,
        "differences": _differences,
        "speed": _speed,
        "columns": _columns,
        "means": _means,
        "updates": _updates,
        "last losses": _last_losses,
    }
    table = makers[about["kind"]](about)
    for header, printed in about.get("printed", {}).items():
        table[header] = [printed.get(system, "") for system in table.index]
    rows = [(f"`{system}`", *cells) for system, cells in zip(table.index, table.to_numpy(), strict=True)]
    header = [re.sub(r"^(difference|p), (?!before).*", r"\1", column) for column in table]  # of the score to their left
    return markdown([about.get("first", "system"), *header], rows)


def options_table(mechanism: str) -> str:
    """The options of a mechanism: what they may be, what they are unless told, what they do."""
    from core_models.system_catalogue import MECHANISMS

    rows = [
        (f"`{name}`", _values(field.annotation), f"`{_given(field.default)}`", field.description or "")
        for name, field in MECHANISMS[mechanism].Options.model_fields.items()
    ]
    return markdown(["option", "values", "default", "what it is"], rows)


def settings_table(section: str) -> str:
    """The settings of a section of config.yaml, or the sizes of every preset."""
    from core_models import config

    if section == "presets":
        sizes = ("d_model", "embedding", "encoder_layers", "decoder_layers", "heads", "ffn_dim")
        rows = [(f"`{name}`", *(str(preset[size]) for size in sizes)) for name, preset in config.PRESETS.items()]
        return markdown(["preset", *(f"`{size}`" for size in sizes)], rows)
    settings = {"model": config.ModelConfig, "training": config.TrainingConfig, "search": config.SearchConfig}
    return markdown(["setting", "values", "default", "what it is"], list(_settings(settings[section])))


def _settings(section: Any, before: str = "") -> Iterable[tuple[str, str, str, str]]:
    """A row a setting; those of a section within this one by dotted names."""
    for name, field in section.model_fields.items():
        if name == "mechanisms":  # they are named, not set
            continue
        if hasattr(field.annotation, "model_fields"):
            yield from _settings(field.annotation, f"{before}{name}.")
            continue
        default = "by preset" if field.is_required() else "none" if field.default is None else _given(field.default)
        yield f"`{before}{name}`", _values(field.annotation), f"`{default}`", field.description or ""


def figure_sections(whose: str) -> str:
    """A section for each figure of the workbench, in the order of their names: what it shows, and its options."""
    from core_models.plugins import brought_by
    from workbench.figures.options import option_rows
    from workbench.figures.registry import load

    sections = []
    for name, spec in sorted(load().items()):
        if brought_by("figures", name) or spec.options is None:
            continue
        of = {"sentence": "one sentence", "test_set": "a test set", "runs": "runs"}[spec.scope]
        text = f"## {name}\n\n{spec.summary} Of {of}{'' if spec.needs_runs else '; it can be drawn without a run'}.\n"
        rows = [(f"`{option}`", *rest) for option, *rest in option_rows(spec.options)]
        sections.append(text + (f"\n{markdown(['option', 'values', 'default', 'what it is'], rows)}" if rows else ""))
    return "\n" + "\n".join(sections) + "\n"


def ledger(which: str) -> str:
    """The claims of a paper with what ours say of them, or how many of each paper or kind have which verdict."""
    from workbench.papers.load import library
    from workbench.papers.presets import cited_as

    if which == "counts":
        return _verdicts("paper", {cited_as(paper): _claims(name) for name, paper in library().items()})
    if which == "kinds":
        together = pd.concat(map(_claims, library()))
        return _verdicts("kind", {words: together[together["kind"] == kind] for kind, words in KINDS.items()})
    heads = ["claim", "reported", "ours", "verdict", "smallest detectable difference"]
    cells = _claims(which)[["claim", "reported", "ours", "verdict", "smallest"]]
    return markdown(heads, [tuple(map(str, row)) for row in cells.to_numpy()])


@cache  # two pages and two of their tables count the claims of all papers
def _claims(name: str) -> pd.DataFrame:
    from workbench.papers import claims, ledger
    from workbench.papers.load import library

    paper = library()[name]
    return ledger.claim_table(claims.reported_claims(paper), claims.measured_claims(paper))


def _verdicts(first: str, tables: Mapping[str, pd.DataFrame]) -> str:
    """How many claims of each table have which verdict."""
    from workbench.papers import claims, ledger

    rows = [
        (name, *map(_counted, ledger.verdict_counts(table).itertuples()), str(len(table)))
        for name, table in tables.items()
    ]
    return markdown([first, *claims.VERDICTS, "claims"], rows)


def _counted(row: Any) -> str:
    """How many claims have a verdict, in brackets those of one training or round."""
    return f"{row.all} ({row.single})" if row.single else str(row.all)


def grids_table(which: str) -> str:
    """Every grid that has results ("all"), or those of which other rates were tried ("rates")."""
    return _rates() if which == "rates" else _all_grids()


def _grids_with_results() -> Iterable[Path]:
    names = (file.name.removesuffix(".cells.csv") for file in sorted(RESULTS.glob("*.cells.csv")))
    return (RESULTS.parent / f"{name}.yaml" for name in names)


def _rates() -> str:
    """Of each grid and other rate: by how many standard errors dev losses are lower there, system by system."""
    from workbench.experiments.grid import read_experiment
    from workbench.papers.learning_rates import LEAST_ERRORS, other_rates

    rows = []
    for file in _grids_with_results():
        experiment = read_experiment(file)
        lower: dict[float, list[str]] = {}
        for system in experiment.systems:
            for rate, (_, errors) in other_rates(file, system, next(iter(experiment.systems))).items():
                shown = f"**{errors:+z.2f}**" if errors > LEAST_ERRORS else f"{errors:+z.2f}"
                lower.setdefault(rate, []).append(f"`{system}` {shown}")
        rate = f"{experiment.training['learning_rate']:g}"
        rows += [(f"`{experiment.name}`", rate, f"{other:g}", ", ".join(lower[other])) for other in sorted(lower)]
    return markdown(["grid", "rate", "other rate", "lower by, standard errors"], rows)


def _all_grids() -> str:
    """Every grid that has results: its text, how many of its trainings are done, their settings and duration."""
    from workbench.experiments.grid import read_experiment

    rows, compared = [], pd.read_csv(RESULTS / "same-training.csv")
    for file in _grids_with_results():
        experiment = read_experiment(file)
        cells = pd.read_csv(RESULTS / f"{experiment.name}.cells.csv").drop_duplicates(["system", "seed"])
        done = cells[cells["state"] == "done"]
        controlled = experiment.data.controlled
        text = f"controlled, {controlled.sentences:,} sentences" if controlled else experiment.data.languages
        begins = experiment.begin_from or {}
        first_runs = [begins] if isinstance(begins, str) else dict.fromkeys(begins.values())
        rows.append(
            (
                f"`{experiment.name}`",
                text,
                f"{len(done)} of {len(cells)}",
                _between(done["step"], ","),
                f"{experiment.training['batch_tokens']:,}",
                f"{experiment.training['learning_rate']:g}",
                _minutes(RESULTS / f"{experiment.name}.dev-losses.csv"),
                _commits(done.get("commits", pd.Series(dtype=str))),
                _as_now(compared[compared["grid"] == experiment.name]),
                ", ".join(f"`{run}`" for run in first_runs),
            )
        )
    heads = [
        "grid",
        "text",
        "trainings",
        "updates",
        "pieces a batch",
        "rate",
        "minutes a training",
        "commits",
        "then and now",
        "begins from",
    ]
    return markdown(heads, rows)


def _commits(of_trainings: pd.Series) -> str:
    """The commits that trainings ran at, shortened; of several how many trainings each; "" if none is known."""
    known = of_trainings.dropna()
    counts = known.value_counts(sort=False)
    names = [", ".join(f"`{commit[:8]}`" for commit in commits.split()) for commits in counts.index]
    if len(known) == len(of_trainings) and len(names) == 1:
        return names[0]
    return "; ".join(f"{count} of {len(of_trainings)} at {name}" for name, count in zip(names, counts, strict=True))


def _as_now(compared: pd.DataFrame) -> str:
    """Of how many systems the code of then and now has the same losses, or how far they differ; "" if not compared."""
    if compared.empty:
        return ""
    largest = compared["difference"].max()
    return f"{len(compared)} the same" if largest == 0 else f"{len(compared)} within {largest:.0e}"


def _minutes(losses: Path) -> str:
    """How long trainings took, from the shortest to the longest, up to their last validation; "" if it is not known."""
    if not losses.is_file():
        return ""
    table = pd.read_csv(losses)
    seconds = table.get("seconds", pd.Series(dtype=float)).groupby([table["system"], table["seed"]]).max().dropna()
    return _between(seconds / 60, ".0f") if len(seconds) else ""


def _between(values: pd.Series, form: str) -> str:
    low, high = (format(value, form) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars within a cell are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _read(file: str, where: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """A result file: rows where columns have these values, systems without the settings that all of them share."""
    rows = pd.read_csv(RESULTS / f"{file}.csv")
    for column, value in (where or {}).items():
        rows = rows[rows[column] == value]
    first = "system" if "system" in rows else rows.columns[0]
    rows[first] = rows[first].astype(str).str.replace(r"([:,](preset|dropout)=.*|\.seed-\d+)$", "", regex=True)
    return rows


def _chosen(table: pd.DataFrame, about: Mapping[str, Any]) -> pd.DataFrame:
    return table.loc[about["systems"]] if "systems" in about else table


def _scores(about: Mapping[str, Any]) -> pd.DataFrame:
    """Score, difference to the baseline with its 95 % interval, and p after Holm's correction, for each test set."""
    columns: dict[str, pd.Series] = {}
    for metric in about.get("metrics", ["bleu"]):
        for test in about.get("tests", ["test"]):
            where = {"metric": metric, "test": test}
            scored = _chosen(_read(f"{about['file']}.scores", where).set_index("system"), about)
            compared = _compared(about["file"], where).set_index("system")
            title = {"bleu": "BLEU", "chrf": "chrF", "meteor": "METEOR"}[metric]
            title += f", {test}" if len(about.get("tests", [])) > 1 else ""
            columns[title] = scored.apply(_score, axis=1)
            differences = compared.apply(_difference, axis=1, result_type="reduce")
            columns[f"difference, {title}"] = differences.reindex(scored.index).fillna("")
            columns[f"p, {title}"] = compared["p_holm"].map(p_value_text).reindex(scored.index).fillna("")
    return pd.DataFrame(columns)


def _differences(about: Mapping[str, Any]) -> pd.DataFrame:
    """The baseline's score and the others' differences to it, each in its own grid; a column for every size and test.

    A size may have several grids: then the score is that of the first one's baseline.
    """
    columns: dict[str, dict[str, str]] = {}
    for size, files in about["files"].items():
        for test in about["tests"]:
            where = {"metric": "bleu", "test": test}
            cells = columns.setdefault(f"{size}, {test}", {})
            for file in files:
                compared = _compared(file, where)
                scored = _read(f"{file}.scores", where).set_index("system")
                for baseline in compared["baseline"].unique():
                    cells.setdefault(baseline, _score(scored.loc[baseline]))
                cells |= {row["system"]: _difference(row) for _, row in compared.iterrows()}
    return _chosen(pd.DataFrame(columns).fillna(""), about)


def _compared(file: str, where: Mapping[str, Any]) -> pd.DataFrame:
    """The differences of a grid to its baseline, without those of the sign test, which has no interval."""
    rows = _read(f"{file}.comparisons", where)
    return rows[~rows["method"].str.startswith("sign")]


def _score(row: pd.Series) -> str:
    if row["seeds"] > 1:
        return f"{row['score']:.2f} ± {row['spread']:.2f}"
    return f"{row['score']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _difference(row: pd.Series) -> str:
    return f"{row['delta']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"


def p_value_text(value: float) -> str:
    """Two digits, three below 0.055 and four next to 0.05, so that it is seen on which side of 0.05 it lies."""
    if 0.0495 <= value < 0.0505:
        return f"{value:.4f}"
    return f"{value:.3f}" if value < 0.055 else f"{value:.2f}"


def _speed(about: Mapping[str, Any]) -> pd.DataFrame:
    """Parameters, speed beside the first system's, the ceiling of multiply-adds, the share of it, peak memory.

    Of a system that was measured several times it is the last measurement.
    """
    rows = _read(about["file"], about.get("where"))
    rounds = rows["measurement"] if "measurement" in rows else pd.Series(1, rows.index)
    rows["memory"] = rows["train_memory_bytes"] / rows.groupby(rounds)["train_memory_bytes"].transform("first")
    rows = _chosen(rows.drop_duplicates("system", keep="last").set_index("system"), about)
    table = {"parameters": [f"{count / 1e6:.2f} M" for count in rows["parameters"]]}
    for kind, title in (("train", "training"), ("decode", "decoding")):
        for column, header in (("ratio", title), ("ceiling", "its ceiling"), ("share", "share of the ceiling")):
            table[header if header == title else f"{title}: {header}"] = [
                "" if pd.isna(value) else f"{value:.2f}" for value in rows[f"{kind}_{column}"]
            ]
    table["peak memory"] = [f"{value:.2f}" for value in rows["memory"]]
    return pd.DataFrame(table, index=rows.index)


def _columns(about: Mapping[str, Any]) -> pd.DataFrame:
    """Columns of a file as they stand there; each is written by a format, e.g. "{score:.2f}"."""
    rows = _read(about["file"], about.get("where"))
    for column in rows.columns[rows.columns.str.startswith("p_")]:
        rows[column] = rows[column].map(p_value_text, na_action="ignore")
    index = rows[about.get("index", "system")]
    made = {
        header: [written(form, row) for row in rows.to_dict("records")] for header, form in about["columns"].items()
    }
    return _chosen(pd.DataFrame(made, index=index), about)


def written(form: str, row: Mapping[str, Any]) -> str:
    """A cell, empty where a value that it names is missing."""
    named = [name for _, name, _, _ in Formatter().parse(form) if name]
    return "" if any(pd.isna(row[name]) for name in named) else form.format(**row)


def _means(about: Mapping[str, Any]) -> pd.DataFrame:
    """Means over seeds of one column, its groups side by side."""
    rows = _read(about["file"], about.get("where"))
    index = about.get("index", "system")
    table = rows.groupby([index, about["by"]], sort=False)[about["values"]].mean().unstack(sort=False)
    table.columns = table.columns.map(str)
    if "groups" in about:
        table = table[list(about["groups"])].rename(columns=about["groups"])
    digits = about.get("digits", 2)
    return _chosen(table.map(lambda value: "" if pd.isna(value) else f"{value + 1e-9:.{digits}f}"), about)


def _updates(about: Mapping[str, Any]) -> pd.DataFrame:
    """Differences of dev losses to the baseline over seeds, an update a column; an interval where there are several."""
    from analyses.dev_losses import differences_by_update

    rows = differences_by_update(_read(f"{about['file']}.dev-losses"), about["baseline"])
    rows = rows[rows["step"].isin(about["steps"])]
    cells = [
        f"{row.delta:+.4f}" + ("" if row.seeds == 1 else f" [{row.low:+.4f}, {row.high:+.4f}]")
        for row in rows.itertuples()
    ]
    table = rows.assign(cell=cells).pivot(index="system", columns="step", values="cell").fillna("")
    table.columns = [f"{step:,} updates" for step in table.columns]
    return _chosen(table, about)


def _last_losses(about: Mapping[str, Any]) -> pd.DataFrame:
    """The dev loss at the end of the trainings, the mean and standard deviation over seeds, a grid a column."""
    from analyses.dev_losses import last_losses

    columns = {}
    for header, file in about["files"].items():
        ends = last_losses(_read(f"{file}.dev-losses", {})).groupby("system")["dev_loss"]
        columns[header] = ends.agg(lambda of: f"{of.mean():.4f}" + (f" ± {of.std():.4f}" if len(of) > 1 else ""))
    return _chosen(pd.DataFrame(columns).fillna(""), about)


_MANY = {int: "whole numbers", float: "numbers", str: "texts"}


def _values(annotation: Any) -> str:
    """What an option may be, in words: the values of a Literal, the members of a list, else its type."""
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if get_origin(annotation) is tuple:
        member = get_args(annotation)[0]
        member = get_args(member)[0] if get_origin(member) is Annotated else member
        return f"a list of {_MANY.get(member) or _values(member)}"
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_values(one) for one in get_args(annotation) if one is not types.NoneType)
    return {bool: "`true`, `false`", int: "a whole number", float: "a number", str: "text"}[annotation]


def _given(default: Any) -> str:
    if isinstance(default, tuple):
        return f"[{','.join(map(str, default))}]"
    if isinstance(default, bool):
        return str(default).lower()
    return "by the system" if default is None else str(default)


if __name__ == "__main__":
    main()
