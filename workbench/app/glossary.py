"""The terms and formulas of the page Help, read from `data/help/*.toml`, and the search over the terms."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache

from pydantic import Field

from core_models.resources import data_folder
from core_models.settings import Section, parse


class Term(Section):
    """What a term means here; `also` are other names it goes by, `page` is the page that shows it."""

    name: str = Field(min_length=1)
    said: str = Field(min_length=1)
    also: tuple[str, ...] = ()
    page: str = ""


class Formula(Section):
    """`latex` as KaTeX draws it; `where` says in Markdown what its letters stand for, `source` whose it is."""

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
    found = parse(_Glossary, tomllib.loads(path.read_text(encoding="utf-8")), path.name).term
    return tuple(sorted(found, key=lambda term: term.name.casefold().lstrip("</")))


@cache
def formulas() -> tuple[Formula, ...]:
    """All formulas, in the order of the file."""
    path = data_folder() / "help" / "formulas.toml"
    return parse(_Formulas, tomllib.loads(path.read_text(encoding="utf-8")), path.name).formula


def find(known: Sequence[Term], wanted: str) -> list[Term]:
    """The terms that hold a text, case ignored: those it names first, then those that only speak of it."""
    text = wanted.strip().casefold()
    named = [term for term in known if any(text in name.casefold() for name in (term.name, *term.also))]
    return named + [term for term in known if term not in named and text in term.said.casefold()]
