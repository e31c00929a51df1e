"""Published results for the values of one option: scores, speeds, or only the best value.

A row's system and settings give the value. Knows printed numbers, none of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core_models.settings import ConfigError, settings_in
from workbench.experiments.ablation import Settings, of_description
from workbench.papers.comparison import relative
from workbench.papers.load import library
from workbench.papers.presets import cited_as
from workbench.papers.schema import Row, Table, printed_name

if TYPE_CHECKING:
    import pandas as pd

_SPEEDS = {"train-speed": "training", "decode-speed": "decoding"}


@dataclass(frozen=True)
class Reported:
    """A paper's own sweep. points: value, score; baseline: the score of a system without the option, if printed."""

    where: str
    points: pd.DataFrame
    baseline: float | None


def reported_scores(option: str, metric: str, settings: Mapping[str, Settings]) -> Reported | None:
    """The scores of the first paper with at least two values of this option of these systems, or None.

    settings: of our systems; a paper's row counts if all its mechanisms are among those of one of them.
    """
    import pandas as pd

    for where, table in _tables():
        column = next((column.key for column in table.columns if column.measure == metric), None)
        if column is None:
            continue
        rows = [row for row in table.rows if column in row.values and not row.cited]
        if not any(_sets(row, option) for row in rows):
            continue
        values = [(_value(row, option, settings), float(row.values[column])) for row in rows]
        points = [{"value": value, "score": score} for value, score in values if value is not None]
        base = next((float(row.values[column]) for row in rows if _lacks(row, option)), None)
        if len({str(point["value"]) for point in points}) > 1:
            return Reported(where, pd.DataFrame(points).astype({"value": object}), base)
    return None


def reported_notes(option: str, metric: str, settings: Mapping[str, Settings]) -> list[str]:
    """Notes of papers on values of this option without a printed score."""
    notes = []
    for where, table in _tables():
        if any(column.measure == metric for column in table.columns):
            continue
        rows_with_value = [(row, _value(row, option, settings)) for row in table.rows if _sets(row, option)]
        notes += [f"{where}: {row.label}, {value}" for row, value in rows_with_value if value is not None]
    return notes


def reported_costs(option: str, settings: Mapping[str, Settings]) -> pd.DataFrame:
    """Reported speeds relative to the paper's own baseline: value, work, ratio, where."""
    import pandas as pd

    rows = []
    for where, table in _tables():
        for column in table.columns:
            for row in table.rows if column.measure in _SPEEDS else ():
                value, ratio = _value(row, option, settings), relative(table, row, column)
                if value is None or ratio is None:
                    continue
                rows.append({"value": value, "work": _SPEEDS[str(column.measure)], "ratio": ratio, "where": where})
    return pd.DataFrame(rows, columns=["value", "work", "ratio", "where"]).astype({"value": object})


def _tables() -> Iterator[tuple[str, Table]]:
    for paper in library().values():
        for table in paper.tables:
            yield f"{cited_as(paper)}, {printed_name(table.id)}", table


def _sets(row: Row, option: str) -> bool:
    return any(part.partition("=")[0].strip() == option for part in settings_in(row.settings))


def _value(row: Row, option: str, settings: Mapping[str, Settings]) -> Any:
    """The value of an option in a row; None if the row has other mechanisms or does not give it.

    An option that is not set and has no default is not given: it would follow from a size other than the paper's.
    """
    with suppress(ConfigError):  # a system that is not in the catalogue
        row_settings = of_description(_system(row), resolved=False)
        mechanism_sets = [set(other["mechanisms"]) for other in settings.values() if option in other]
        if any(
            set(row_settings["mechanisms"]) <= other if row_settings["mechanisms"] else not other
            for other in mechanism_sets
        ):
            return row_settings.get(option)
    return None


def _lacks(row: Row, option: str) -> bool:
    with suppress(ConfigError):
        return option not in of_description(_system(row))
    return False


def _system(row: Row) -> str:
    return ":".join(filter(None, (row.system, row.settings)))
