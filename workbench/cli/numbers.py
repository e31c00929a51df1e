"""Bounds of numeric options: infinite, NaN and too large numbers are refused at parsing."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

LARGEST = (1 << 31) - 1  # default bound of an option: C libraries count no further

MOST_SEED = (1 << 63) - 1
Seed = Annotated[int, typer.Option(help="Random seed", min=0, max=MOST_SEED)]

# Of fewer than 40 resamples none lies outside of a 95% interval.
Resamples = Annotated[int, typer.Option("--n-resamples", help="Number of bootstrap resamples", min=40, max=1_000_000)]


def _positive(value: float | None) -> float | None:
    if value is not None and value <= 0:
        raise typer.BadParameter(f"{value:g} leaves no time; give more than 0.")
    return value


MaxMinutes = Annotated[
    float | None, typer.Option(help="Maximum minutes of each training, in this call; resume later", callback=_positive)
]


class Command(TyperCommand):
    """A command whose numeric options are checked for bounds."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        for option in self.params:
            parsed = ctx.params.get(option.name)
            for value in parsed if isinstance(parsed, list | tuple) else [parsed]:
                if wrong := _wrong(value, getattr(option, "max", None) or LARGEST):
                    hint = f"'{(option.opts or [option.name])[0]}'"
                    raise typer.BadParameter(f"{value!r} {wrong}", ctx=ctx, param_hint=hint)
        return rest


def _wrong(value: object, largest: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number."
    if isinstance(value, int | float) and abs(value) > largest:
        return f"is out of range: at most {largest}."
    return ""
