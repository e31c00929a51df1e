"""The commands that a page may start as a job: which of ours, with which options, on runs of the runs folder alone.

None of these writes anywhere but into that folder, or begins a program of somebody's choice. It is asked where a page
offers a command and again where a job begins, whatever was kept of it in between.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core_models.config import split_reference
from workbench.jobs import renamed_commands

Check = Callable[[str, Path], bool]  # (a word, the runs folder) -> may it stand there?

LEFT_TO_THE_READER = {"DATA", "FILE", "NAME"}


def _is_run(word: str, root: Path) -> bool:
    """A folder strictly inside the runs folder, wherever links lead; a step of it may be named."""
    inside = root.resolve()
    return os.path.isabs(word) and inside in split_reference(word)[0].resolve().parents


def _is_root(word: str, root: Path) -> bool:
    return os.path.isabs(word) and Path(word).resolve() == root.resolve()


def _is_name(word: str, root: Path) -> bool:
    """A name of one folder or a description of a system, never a path."""
    return not {"/", os.sep, "\0"} & set(word) and word not in ("", ".", "..")


def _is_number(word: str, root: Path) -> bool:
    return re.fullmatch(r"[0-9]{1,6}", word) is not None


@dataclass(frozen=True)
class Form:
    """What may follow a command: the check of each of its arguments, and its options, None for one without a value."""

    argument: Check | None = _is_run
    options: dict[str, Check | None] = field(default_factory=dict)


FORMS = {
    "demo": Form(_is_name, {"--runs": _is_root}),
    "resume": Form(),
    "translate": Form(
        options={"--test": _is_name, "--save-beams": None, "--beam": _is_number, "--n-best": _is_number}
    ),
    "trace": Form(options={"--test": _is_name, "--arrays": _is_name}),
    "evaluate": Form(options={"--test": _is_name}),
    "beam-sweep": Form(options={"--test": _is_name}),
    "rerank": Form(options={"--test": _is_name}),
    "adequacy": Form(options={"--test": _is_name}),
    "contrastive-eval": Form(None, {"--controlled": _is_name, "--contexts": _is_name, "--run": _is_run}),
}  # fmt: skip


def may_start(arguments: Sequence[str], root: Path) -> bool:
    """May a page start `workbench ARGUMENTS` on the runs folder `root`? Names of the last release count as today's."""
    arguments, _ = renamed_commands.current(arguments)
    form = FORMS.get(arguments[0]) if arguments else None
    if form is None or LEFT_TO_THE_READER & {Path(word).name for word in arguments[1:]}:
        return False
    words = iter(arguments[1:])
    try:
        return all(_fits(word, words, form, root) for word in words)
    except (OSError, ValueError, RuntimeError):  # no path: a NUL in it, links in a circle
        return False


def _fits(word: str, others: Iterator[str], form: Form, root: Path) -> bool:
    """Does a word fit, with the value after it that an option takes?"""
    word.encode()  # a name that is no text cannot be kept: UnicodeEncodeError is a ValueError
    if word == "--help":
        return True
    if not word.startswith("-"):
        return form.argument is not None and form.argument(word, root)
    if word not in form.options:
        return False
    check = form.options[word]
    value = "" if check is None else next(others, "-")
    return check is None or (not value.startswith("-") and check(value, root))


def read(line: str, root: Path) -> tuple[str, ...]:
    """The arguments of a command line that a page may start on the runs folder `root`; else none."""
    try:
        program, *arguments = shlex.split(line)
    except ValueError:  # a quotation mark that is not closed, or no word at all
        return ()
    return tuple(arguments) if program == "workbench" and may_start(arguments, root) else ()
