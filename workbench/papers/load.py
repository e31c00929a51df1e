"""Loading of the papers' numbers from `data/papers/*.toml`; errors name the file and the field.

Knows the files; `schema` defines their content. Knows no runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from core_models.resources import data_folder
from core_models.settings import ConfigError, Section, parse
from workbench.papers.schema import Case, Check, Claim, Finding, Heading, Paper, Row, Table, resolve

Kind = TypeVar("Kind", bound=Section)


def load(path: Path) -> Paper:
    """Read one paper; raises ConfigError naming file and field.

    References to its own numbers are looked up here, those to other papers by `library`.
    """
    content = _read_toml(path)
    tables = [
        {**table, "row": _parsed(Row, table, "row", f"{path}: {_entry_name('table', table, number)}")}
        for number, table in enumerate(_entries(content, "table", str(path)), 1)
    ]
    paper = parse(
        Paper,
        {
            **content,
            "paper": parse(Heading, _mapping(content.get("paper", {}), f"{path}: paper"), f"{path}: paper"),
            "table": _parsed(Table, {"table": tables}, "table", str(path)),
            **{key: _parsed(kind, content, key, str(path)) for key, kind in (("claim", Claim), ("check", Check))},
            "finding": _parsed(Finding, content, "finding", str(path)),
            "case": _parsed(Case, content, "case", str(path)),
        },
        str(path),
    )
    _look_up(paper, {}, str(path), lambda reference: ":" not in reference)
    return paper


@cache
def library(folder: Path | None = None) -> dict[str, Paper]:
    """All papers by file name, read once; raises ConfigError naming file and field."""
    folder = folder or data_folder() / "papers"
    paths = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    papers = {name: load(path) for name, path in paths.items()}
    for name, paper in papers.items():
        _look_up(paper, papers, str(paths[name]), lambda reference: ":" in reference)
    return papers


def _look_up(paper: Paper, papers: Mapping[str, Paper], where: str, selected: Callable[[str], bool]) -> None:
    entries = [("check", check) for check in paper.checks] + [("finding", finding) for finding in paper.findings]
    for kind, entry in entries:
        for reference in filter(selected, entry.references):
            try:
                resolve(reference, paper, papers)
            except ConfigError as error:
                raise ConfigError(f"{where}: {kind} {entry.id}: {error}") from None


def _read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file with fractions as Decimal: 39.10 stays 39.10. TOML refuses duplicate keys."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # TOML's and Unicode's are both ValueErrors
        raise ConfigError(f"{path}: not readable as TOML: {error}") from None


def _parsed(kind: type[Kind], content: Mapping[str, Any], key: str, where: str) -> tuple[Kind, ...]:
    """The entries of [[key]], validated one by one, so that an error names the entry."""
    return tuple(
        parse(kind, entry, f"{where}: {_entry_name(key, entry, number)}")
        for number, entry in enumerate(_entries(content, key, where), 1)
    )


def _entries(content: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise ConfigError(f"{where}: {key} must be a list of entries; write [[{key}]] before each")
    return [_mapping(entry, f"{where}: {key}") for entry in entries]


def _mapping(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} must hold keys and values, not {entry!r}")
    return entry


def _entry_name(key: str, entry: Mapping[str, Any], number: int) -> str:
    return f"{key} {entry.get('id') or entry.get('key') or number}"
