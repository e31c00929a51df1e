"""Runs the program in the README that an export writes."""

import contextlib
import io
import re
from pathlib import Path


def translations_by_readme(folder: Path, sources: list[str]) -> list[str]:
    """What the Python in a folder's README.txt prints, with these sentences in place of its own."""
    lines = (folder / "README.txt").read_text(encoding="utf-8").splitlines()
    program = "\n".join(line[4:] for line in lines if line.startswith("    "))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(re.sub(r'\["a sentence", "another"\]', repr(sources), program), {})
    return eval(printed.getvalue())
