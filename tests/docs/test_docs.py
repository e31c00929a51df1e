"""What README and docs/ tell their readers holds: commands parse, names and links lead somewhere, tables are those of
the files that they are made of."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import tomllib
from functools import cache
from typing import Any

import pytest
import typer

from core_models.system_catalogue import catalogue
from core_models.system_spec import parts_of
from docs import tables
from tests.docs.pages import PAGES, README, TEXTS, anchors, commands, links, python_blocks, section
from tests.paths import ROOT
from workbench import cli
from workbench.app.pages import PAGES as APP_PAGES
from workbench.figures.registry import load
from workbench.jobs import renamed_commands

LATER = "…"  # the rest of a command, which is said elsewhere
COMMANDS = sorted({line for text in TEXTS.values() for line in commands(text)})


@cache
def command_line() -> Any:
    """The whole command line, made once."""
    return typer.main.get_command(cli.app)


def parsed(words: list[str]) -> tuple[str, dict]:
    """The command that words stand for, and what its options get."""
    command, name = command_line(), "workbench"
    while hasattr(command, "commands"):
        default = getattr(command, "default", "")  # what the group means where none of its commands is named
        if not words or (default and words[0] not in command.commands):
            words = [default or "list", *words]
        name, words = f"{name} {words[0]}", words[1:]
        command = command.commands[name.split()[-1]]
    return name.removeprefix("workbench "), command.make_context(name, words).params


def test_commands_are_found_in_blocks_and_in_the_text():
    block = "    workbench a \\\n        --b c   # why\n    make app\n    torchrun --x 2 -m workbench.cli f\n"
    fenced = "```console\necho x | workbench g\n```\n"
    assert commands(f"{block}\n{fenced}`workbench\nd e …` and `make app`") == ["a --b c # why", "f", "g", "d e …"]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_one_with_these_options(line):
    words = shlex.split(line.removesuffix(LATER), comments=True)
    try:
        name, values = parsed(words)
    except KeyError as unknown:
        pytest.fail(f"workbench {line}: there is no command {unknown}")
    except Exception as error:
        if type(error).__name__ != "MissingParameter" or not line.endswith(LATER):
            raise
        return
    assert renamed_commands.current(words)[1] == [], "an old name"
    several = {"demo", "benchmark speed"}
    systems = [values["system"]] if name == "train" else values["systems"] or [] if name in several else []
    for system in systems:
        parts_of(system)
    if name == "figure draw":
        assert values["name"] in {*load(), "NAME"}
    assert [word for word in words if word.startswith("data/") and not (ROOT / word).is_file()] == []


def test_headings_become_addresses_as_on_github():
    assert anchors("# A b\n## What of the routing matters?\n```\n# no\n```\n") == {"a-b", "what-of-the-routing-matters"}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    wrong = []
    for link in links(TEXTS[page]):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        known = target.is_file() and (not anchor or anchor in anchors(target.read_text(encoding="utf-8")))
        wrong += [] if known else [link]
    assert wrong == []


@pytest.mark.parametrize("page", TEXTS)
def test_files_that_are_named_are_there(page):
    named = re.findall(r"`((?:data|docs|tests|core_models|analyses|workbench)/[\w./*-]+)`", TEXTS[page])
    assert [name for name in named if "FEATURE" not in name and not list(ROOT.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("page", TEXTS)
def test_python_compiles_and_imports_what_there_is(page):
    for block in python_blocks(TEXTS[page]):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import):
                for name in node.names:
                    importlib.import_module(name.name)
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                for name in node.names:
                    assert hasattr(module, name.name) or importlib.import_module(f"{node.module}.{name.name}")


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if tables.MARKED.search(text)])
@pytest.mark.long
def test_generated_tables_are_those_of_their_files(page):
    assert tables.filled(TEXTS[page]) == TEXTS[page], "run `python docs/tables.py`"


@pytest.mark.parametrize("section", ["training", "search", "model"])
def test_every_setting_says_what_it_is(section):
    rows = [line.strip("|\n").split(" | ") for line in tables.settings_table(section).splitlines()[2:]]
    assert len(rows) > 10
    assert [row[0] for row in rows if len(row[-1].strip()) < 3] == []


def test_a_cell_is_empty_where_a_number_is_missing_and_not_where_a_word_looks_like_it():
    assert (
        tables.written("{name}: {gain:+.1f}", {"name": "dominant", "gain": 1.0, "p": float("nan")}) == "dominant: +1.0"
    )
    assert tables.written("{name}: {gain:+.1f}", {"name": "dominant", "gain": float("nan")}) == ""


def test_a_p_value_shows_on_which_side_of_five_percent_it_lies():
    shown = {value: tables.p_value_text(value) for value in (0.0312, 0.0498, 0.0502, 0.0539, 0.26)}
    assert shown == {0.0312: "0.031", 0.0498: "0.0498", 0.0502: "0.0502", 0.0539: "0.054", 0.26: "0.26"}


def test_every_table_that_is_described_stands_on_a_page():
    described = tomllib.loads((ROOT / "docs" / "tables.toml").read_text(encoding="utf-8"))
    shown = re.findall(r"^<!-- table: (\S+) -->", "\n".join(TEXTS.values()), flags=re.MULTILINE)
    assert sorted(described) == sorted(shown)


def test_every_page_is_linked_from_another():
    led = [((ROOT / page).parent / link.partition("#")[0]).resolve() for page in TEXTS for link in links(TEXTS[page])]
    assert [str(page) for page in PAGES if page not in led and page != README] == []


def test_readme_names_every_system_and_no_other():
    named = re.findall(r"`([\w-]+)`", section(TEXTS["README.md"], "## Systems"))
    assert sorted({*named, "transformer"}) == sorted(catalogue())


def test_the_list_of_pages_has_every_page_of_the_app():
    rows = re.findall(
        r"^\| ([^|]+) \|", section(TEXTS["docs/how-to/open-the-app.md"], "## The pages"), flags=re.MULTILINE
    )
    named = [title for row in rows[2:] for title in row.split(", ")]
    assert sorted(named) == sorted(page.title for page in APP_PAGES.values())


def test_extras_that_are_named_are_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = set(re.findall(r"-e '\.\[(\w+)\]'", "".join(TEXTS.values())))
    assert asked
    assert asked <= set(declared)


def test_the_first_pages_stay_short():
    lines = {name: len(TEXTS[name].splitlines()) for name in ("README.md", "CONTRIBUTING.md")}
    assert lines["README.md"] <= 200
    assert lines["CONTRIBUTING.md"] <= 50
