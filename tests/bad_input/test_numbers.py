"""Numbers that no command can use: every option of every command refuses them, and so do settings of a search."""

from __future__ import annotations

import math
import os
import sys

import pytest
import typer

from workbench import cli

pytestmark = pytest.mark.long

EXTREMES = ("-1", "0", str(1 << 40), str(1 << 70), str(-(1 << 70)), "nan", "inf", "-inf", "1e300", "1e-320", "", "one")


def _commands(command=None, path=()):
    command = command or typer.main.get_command(cli.app)
    if not hasattr(command, "commands"):
        yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*path, name))


def _numeric():
    """Every option of a number: its command, its name."""
    for path, command in _commands():
        for option in command.params:
            kind = getattr(option, "type_descriptor", None)
            said = str(kind.annotation) if kind else ""
            if "int" in said or "float" in said:
                yield path, command, option


def _arguments(command, option, value):
    """A command line that gives what is required, and the value."""
    required = [(other, "x") for other in command.params if other.required]
    words = []
    for other, text in [*required, (option, value)]:
        words += [text] if other.param_type_name == "argument" else [f"{other.opts[0]}={text}"]
    return words


def _read(command, option, value):
    """What an option makes of a value, or how it is refused."""
    try:
        return command.make_context("command", _arguments(command, option, value)).params[option.name]
    except Exception as error:
        return error


NUMERIC = {f"{' '.join(path)} {option.opts[0]}": (command, option) for path, command, option in _numeric()}


def test_there_are_numbers_to_try():
    assert len(NUMERIC) > 50


@pytest.mark.parametrize("name", NUMERIC)
def test_a_number_is_within_what_its_option_allows_or_refused_in_its_name(name):
    command, option = NUMERIC[name]
    for value in EXTREMES:
        parsed = _read(command, option, value)
        if isinstance(parsed, Exception):
            assert type(parsed).__name__ == "BadParameter", (value, parsed)
            assert option.opts[0] in parsed.format_message(), value
            assert parsed.exit_code == 2
            continue
        for number in parsed if isinstance(parsed, list) else [parsed]:
            assert math.isfinite(number), value
            assert abs(number) < (1 << 31 if option.name != "seed" else 1 << 63), value
            assert option.min is None or number >= option.min


REFUSED = {
    "a temperature of nothing": (("--num-samples", 1, "--temperature", "1e-320"), "choose one from 0.0001 to 10000"),
    "a temperature that is none": (("--num-samples", 1, "--temperature", "nan"), "'--temperature'"),
    "a seed beyond all": (("--num-samples", 3, "--seed", 1 << 70), "'--seed'"),
    "samples beyond all": (("--num-samples", 1 << 40), "'--num-samples'"),
    "less than no samples": (("--num-samples", -1), "'--num-samples'"),
    "a penalty beyond all": (
        ("--search", "length_penalty=1e300"),
        "length_penalty: input should be less than or equal to",
    ),
    "a penalty beyond all as an option": (("--length-penalty", "1e300"), "'--length-penalty'"),
    "a length beyond all": (("--search", f"max_length={1 << 70}"), "max_length: input should be less than or equal to"),
    "a factor beyond all": (
        ("--search", "length_factor=1e300"),
        "length_factor: input should be less than or equal to",
    ),
    "a beam beyond all": (("--beam", 1 << 40), "'--beam'"),
    "more hypotheses than all": (("--search", f"n_best={1 << 70}"), "n_best: input should be less than or equal to"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_translating_refuses_numbers_beyond_all(run, refused, case):
    options, message = REFUSED[case]
    assert message in refused("translate", run, "--input", "in.txt", *options)


@pytest.mark.parametrize("options", [("length_penalty=6", "max_length=9"), ("length_penalty=6", "penalty=power")])
def test_the_largest_penalty_still_translates(run, done, options):
    settings = [word for option in options for word in ("--search", option)]
    assert len(done("translate", run, "--input", "in.txt", *settings).splitlines()) == 2


@pytest.mark.parametrize("temperature", ["1e-4", "1e4"])
def test_the_coldest_and_the_hottest_draws_are_drawn(run, done, temperature):
    found = done("translate", run, "--input", "in.txt", "--num-samples", 2, "--temperature", temperature)
    assert len(found.splitlines()) == 4


@pytest.mark.parametrize("pieces", [-1, 0, 1 << 30, 1 << 40])
def test_a_vocabulary_beyond_all_is_refused(texts, refused, pieces):
    said = refused(
        "data", "prepare", "--train", "x.en,x.de", "--dev", "dev.en,dev.de", "--out", "new", "--vocab-size", pieces
    )
    assert "pieces" in said or "--vocab-size" in said


def test_a_bench_of_a_run_without_the_other_engine_is_a_sentence(run, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # as where the extra is not installed
    monkeypatch.setitem(sys.modules, "ctranslate2.specs.model_spec", None)
    said = refused("benchmark", "end-to-end", run, "--test", "test")
    assert (
        said == "workbench: the package ctranslate2 is not installed; install it: pip install 'nmt-workbench[export]'"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no folder can have such a name")
def test_a_name_that_is_no_text_is_listed_as_broken_and_refused_by_a_sentence(run, refused, done):
    strange = os.fsencode(run.parent) + b"/\xff\xfe"
    os.rename(run, strange)
    assert "\\udcff\\udcfe  broken: \\udcff\\udcfe: the folder's name is no UTF-8" in done("runs", "--runs", run.parent)
    assert "rename it" in refused("evaluate", os.fsdecode(strange))
