"""The terms and formulas of the page Help, read from `data/help/*.toml`, and the search over the terms."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache

from pydantic import Field

from core_models.resources import data_folder
from core_models.settings import Section, parse


class Term(Section):
    """A term and its `definition`; `also` are its synonyms, `page` is the page that shows it."""

    name: str = Field(min_length=1)
    definition: str = Field(min_length=1)
    also: tuple[str, ...] = ()
    page: str = ""


class Formula(Section):
    """A formula: `latex` for KaTeX, `where` explains its symbols in Markdown, `source` is its origin."""

    name: str
    latex: str
    where: str
    source: str


class _Glossary(Section):
    term: tuple[Term, ...] = Field(min_length=1)


class _Formulas(Section):
    formula: tuple[Formula, ...] = Field(min_length=1)


@cache
def terms() -> tuple[Term, ...]:
    """All terms, by name."""
    path = data_folder() / "help" / "glossary.toml"
    parsed = parse(_Glossary, tomllib.loads(path.read_text(encoding="utf-8")), path.name).term
    return tuple(sorted(parsed, key=lambda term: term.name.casefold().lstrip("</")))


@cache
def formulas() -> tuple[Formula, ...]:
    """All formulas, in the order of the file."""
    path = data_folder() / "help" / "formulas.toml"
    return parse(_Formulas, tomllib.loads(path.read_text(encoding="utf-8")), path.name).formula


def find(known: Sequence[Term], query: str) -> list[Term]:
    """The terms that contain a text, case-insensitive: matching names first, then matching definitions."""
    text = query.strip().casefold()
    matches = [term for term in known if any(text in name.casefold() for name in (term.name, *term.also))]
    return matches + [term for term in known if term not in matches and text in term.definition.casefold()]
