"""What a terminal is given: control characters of names and texts are shown there, and files get the exact bytes."""

import os
import pty
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from core_models.text.parallel import write_lines
from tests.kinds import sampled
from tests.paths import ROOT
from workbench.cli.terminal import printable, printable_cell

EVIL = "\x1b]0;owned\x07\x9b2J\u202egpj.exe\u2066\x7f"
SHOWN = "\\x1b]0;owned\\x07\\x9b2J\\u202egpj.exe\\u2066\\x7f"


def test_every_control_character_is_escaped_and_nothing_else_is_changed():
    """Categories of Unicode: Cc control, Zl and Zp separators, Cs halves of pairs; of Cf those that turn directions."""
    for code in range(0x3000):
        character = chr(code)
        turns = unicodedata.bidirectional(character) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
        hidden = unicodedata.category(character) in {"Cc", "Zl", "Zp"} or turns or character in "\u061c\u200e\u200f"
        assert (printable_cell(character) != character) == hidden, hex(code)
        assert printable_cell(character).isprintable() or not hidden
        assert (printable(character) == character) == (not hidden or character in "\t\n")
    assert printable("\udcff").isascii()
    assert printable(EVIL) == SHOWN


@pytest.fixture
def evil_runs(copied_runs) -> Path:
    for name in ("transformer", "future-cost-1"):
        shutil.move(copied_runs / "demo" / name, copied_runs / "demo" / f"{EVIL}[red]{name}")
    return copied_runs


def _at_a_terminal(*arguments: object, cwd: Path) -> str:
    """All that a command writes to a terminal, standard error too."""
    main, end = pty.openpty()
    command = [sys.executable, "-m", "workbench.cli", *map(str, arguments)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "400", "MALLOC_TRIM_THRESHOLD_": "1"}
    environment["PYTHONPATH"] = str(ROOT)
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environment, cwd=cwd):
        os.close(end)
        written = b""
        try:
            while part := os.read(main, 65536):
                written += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(main)
    return written.decode()


COMMANDS = {
    "a list": ("runs", "--runs", "."),
    "a table": ("evaluate", f"demo/{EVIL}[red]transformer", f"demo/{EVIL}[red]future-cost-1", "--metrics", "bleu"),
    "a refusal": ("evaluate", f"demo/{EVIL}none"),
    "a progress bar": ("translate", f"demo/{EVIL}[red]transformer", "--test", "test", "--beam", 1),
    "an analysis": ("analyze", "outputs", "--run", f"demo/{EVIL}[red]transformer"),
}


@pytest.mark.parametrize("case", sampled(COMMANDS))
def test_names_do_nothing_to_a_terminal(evil_runs, case):
    said = _at_a_terminal(*COMMANDS[case], cwd=evil_runs)
    assert SHOWN in said, said
    assert "Traceback" not in said
    for sequence in ("\x1b]", "\x07", "\x9b", "\u202e", "\u2066", "\x7f"):
        assert sequence not in said, (sequence, said)


@pytest.mark.slow
def test_translations_are_escaped_for_a_terminal_and_exact_in_a_pipe(evil_runs):
    run = evil_runs / "demo" / f"{EVIL}[red]transformer"
    text = run / "translations" / "test" / "hypotheses.txt"
    write_lines(text, [EVIL.replace("\u2066", "") for _ in text.read_text(encoding="utf-8").splitlines()])
    arguments = ["analyze", "sentences", "--run", str(run)]
    assert "\x1b]" not in _at_a_terminal(*arguments, cwd=evil_runs)
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    piped = subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
    assert "\x1b]0;owned\x07" in piped.stdout.decode()
