"""Groups of commands with an optional default command; old names work for one more release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from workbench.cli.numbers import Command
from workbench.cli.terminal import say
from workbench.evaluation.distributed import rank
from workbench.jobs import renamed_commands


class Group(TyperGroup):
    """A group of commands; `default` is the command that runs if none is named."""

    default: ClassVar[str] = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.parent is None:
            args, remarks = renamed_commands.current(args)
            if rank() == 0:
                say("".join(f"{remark}\n" for remark in remarks), err=True, nl=False)
        if self.default and args[:1] != ["--help"] and not set(args[:1]) & set(self.commands):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if self.default:
            runs, path = f"`{self.default}` runs if no command is named", f"{ctx.command_path} {self.default}"
            self.epilog = f"{runs}; `{path} --help` lists its options."
        super().format_help(ctx, formatter)


class App(typer.Typer):
    """A Typer app with the project's own classes of groups and commands."""

    def __init__(self, cls: type[Group] = Group, **options: Any) -> None:
        super().__init__(cls=cls, **{"no_args_is_help": True, **options})

    def command(self, *names: Any, **options: Any) -> Callable[[Any], Any]:
        return super().command(*names, **{"cls": Command, **options})
