"""What README tells its readers to type can be typed: every command parses, every name and file in it is there."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import typer

from core_models.system_spec import parts_of
from tests.paths import ROOT
from workbench import cli
from workbench.figures.registry import load

README = (ROOT / "README.md").read_text(encoding="utf-8")
LATER = "…"  # the rest of a command, which is said elsewhere


def commands(text: str) -> list[str]:
    """What follows `workbench` in the lines of indented blocks and in spans of code, by whatever it is started."""
    joined = re.sub(r" \\\n +", " ", text)
    blocks = re.findall(r"^ {4}(\S.*)$", joined, flags=re.MULTILINE)
    spans = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", joined, flags=re.DOTALL))
    started = re.compile(r"(?:\.venv/bin/)?workbench (?=\S)|torchrun .* -m workbench\.cli ")
    lines = [" ".join(line.split()) for line in (*blocks, *spans)]
    return list(dict.fromkeys(line[begun.end() :] for line in lines if (begun := started.match(line))))


def parsed(words: list[str]) -> tuple[str, dict]:
    """The command that words stand for, and what its options get."""
    command, name, context = typer.main.get_command(cli.app), "workbench", None
    while hasattr(command, "commands"):
        context = command.make_context(name, words or ["list"], parent=context)  # a group stands for its list
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    return name, command.make_context(name, words, parent=context).params


def test_commands_are_found_in_blocks_and_in_the_text():
    block = "    workbench a \\\n        --b c   # why\n    make app\n    torchrun --x 2 -m workbench.cli f\n"
    assert commands(f"{block}\n`workbench\nd e …` and `make app`") == ["a --b c # why", "f", "d e …"]


@pytest.mark.parametrize("line", commands(README))
def test_a_command_of_readme_is_one_with_these_options(line):
    words = shlex.split(line.removesuffix(LATER), comments=True)
    try:
        name, values = parsed(words)
    except Exception as error:
        if type(error).__name__ != "MissingParameter" or not line.endswith(LATER):
            raise
        return
    systems = [values["system"]] if name == "train" else values["systems"] or [] if name == "speed" else []
    for system in systems:
        parts_of(system)
    if name == "draw":
        assert values["name"] in {*load(), "NAME"}
    assert [word for word in words if word.startswith("data/") and not (ROOT / word).is_file()] == []


def test_files_that_readme_names_are_there():
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    named = re.findall(r"`(data/[\w./*-]+)", README)
    assert {"CONTRIBUTING.md", "data/screenshots/lengths.png"} <= set(linked)
    assert [name for name in (*linked, *named) if not list(ROOT.glob(name))] == []


def test_extras_that_readme_names_are_declared():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    asked = set(re.findall(r"nmt-workbench\[(\w+)\]", README))
    assert asked
    assert asked <= set(declared)
