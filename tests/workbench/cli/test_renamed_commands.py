"""Names of the last release: each still means one command of today, and says on stderr what it is called now."""

import pytest
import typer
from typer.testing import CliRunner

from workbench import cli
from workbench.jobs import renamed_commands

pytestmark = pytest.mark.long


def _command(path: tuple[str, ...]):
    command = typer.main.get_command(cli.app)
    for name in path:
        command = command.commands.get(name)
    return command


@pytest.mark.parametrize("old", renamed_commands.COMMANDS, ids=" ".join)
def test_an_old_name_is_hidden_and_means_a_command_of_today(old):
    new = renamed_commands.COMMANDS[old]
    assert _command(new) is not None
    assert _command(old[:1]) is None
    told = CliRunner().invoke(cli.app, [*old, "--help"])
    assert told.exit_code == 0, told.output
    assert f"Usage: root {' '.join(new)} " in told.stdout
    (remark,) = told.stderr.splitlines()
    assert f"`workbench {' '.join(old)}` is now `workbench {' '.join(new)}`" in remark


def test_todays_names_say_nothing():
    told = CliRunner().invoke(cli.app, ["beam-sweep", "--help"])
    assert (told.exit_code, told.stderr) == (0, "")


def test_a_group_with_a_default_takes_its_options_without_the_commands_name(tmp_path):
    named, unnamed = (CliRunner().invoke(cli.app, ["runs", *word, "--runs", str(tmp_path)]) for word in (["list"], []))
    assert named.exit_code == 0
    assert (named.output, named.exit_code) == (unnamed.output, unnamed.exit_code)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [(path, old, new) for path, names in renamed_commands.OPTIONS.items() for old, new in names.items()],
)
def test_an_old_option_is_hidden_and_means_an_option_of_today(path, old, new):
    command = _command(path)
    command = command.commands[command.default] if hasattr(command, "commands") else command
    known = {option for one in command.params for option in one.opts}
    assert new in known
    assert old not in known
    words, remarks = renamed_commands.current([*path, old, "x", f"{old}=y", "--", old])
    assert words == [*path, new, "x", f"{new}=y", "--", old]
    assert remarks == [f"`{old}` is now `{new}`; the old name goes with the next release"]


def test_an_old_command_takes_its_old_options_and_values():
    words, remarks = renamed_commands.current(
        ["contrast", "f.tsv", "--contexts", "words-backwards", "--run", "another"]
    )
    assert words == ["contrastive-eval", "f.tsv", "--contexts", "reversed", "--run", "another"]
    assert len(remarks) == 2


def test_redrawing_had_an_option():
    words, remarks = renamed_commands.current(["figure", "f.pdf", "--rerun", "--runs", "x"])
    assert words == ["figure", "redraw", "f.pdf", "--runs", "x"]
    assert remarks == [
        "`workbench figure --rerun` is now `workbench figure redraw`; the old name goes with the next release"
    ]
