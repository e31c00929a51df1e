"""The commands that a page may start as a job: commands, options, and only runs of the runs folder.

None of them writes outside of that folder or starts an arbitrary program. The check runs when a page offers a command,
and again when the job starts, whatever its record says.
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

Check = Callable[[str, Path], bool]  # (word, runs folder) -> is the word permitted

LEFT_TO_THE_READER = {"DATA", "FILE", "NAME"}


def _is_run(word: str, root: Path) -> bool:
    """Return True for a run (or RUN@step) strictly inside the runs folder after resolving links."""
    inside = root.resolve()
    return os.path.isabs(word) and inside in split_reference(word)[0].resolve().parents


def _is_root(word: str, root: Path) -> bool:
    return os.path.isabs(word) and Path(word).resolve() == root.resolve()


def _is_name(word: str, root: Path) -> bool:
    """Return True for a name of one folder or a description of a system, not for a path."""
    return not {"/", os.sep, "\0"} & set(word) and word not in ("", ".", "..")


def _is_number(word: str, root: Path) -> bool:
    return re.fullmatch(r"[0-9]{1,6}", word) is not None


@dataclass(frozen=True)
class Form:
    """Permitted arguments of a command: the check of each argument, and its options (None: without a value)."""

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
    """Return True if a page may start `workbench ARGUMENTS` on the runs folder `root`; old names count too."""
    arguments, _ = renamed_commands.current(arguments)
    form = FORMS.get(arguments[0]) if arguments else None
    if form is None or LEFT_TO_THE_READER & {Path(word).name for word in arguments[1:]}:
        return False
    words = iter(arguments[1:])
    try:
        return all(_fits(word, words, form, root) for word in words)
    except (OSError, ValueError, RuntimeError):  # an invalid path: a NUL character, a cycle of links
        return False


def _fits(word: str, rest: Iterator[str], form: Form, root: Path) -> bool:
    """Return True if a word is permitted, with its value if it is an option."""
    word.encode()  # refuse lone surrogates: UnicodeEncodeError is a ValueError
    if word == "--help":
        return True
    if not word.startswith("-"):
        return form.argument is not None and form.argument(word, root)
    if word not in form.options:
        return False
    check = form.options[word]
    value = "" if check is None else next(rest, "-")
    return check is None or (not value.startswith("-") and check(value, root))


def read(line: str, root: Path) -> tuple[str, ...]:
    """Parse a command line into its arguments if a page may start it on the runs folder `root`, else ()."""
    try:
        program, *arguments = shlex.split(line)
    except ValueError:  # an unclosed quotation mark, or an empty line
        return ()
    return tuple(arguments) if program == "workbench" and may_start(arguments, root) else ()
