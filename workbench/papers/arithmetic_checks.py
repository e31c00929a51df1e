"""Evaluation of the papers' checks: printed numbers and those recomputed from them. Nothing is corrected.

Arithmetic is parsed into a syntax tree, and only numbers, + - * / ** and a few functions are evaluated: a data file
can never make the program do anything else.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from core_models.settings import ConfigError
from workbench.papers.schema import REFERENCE, Check, Paper, resolve

if TYPE_CHECKING:
    import pandas as pd

OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: dict[str, Callable[..., float]] = {
    "mean": lambda *values: fmean(values),
    "log": lambda value: math.log(value),  # natural; math.log itself would take a base
    "exp": math.exp,
    "sqrt": math.sqrt,
    "round": lambda value, digits=0.0: round(value, int(digits)),
    "min": min,
    "max": max,
}
FLOAT_NOISE = 1e-9
COLUMNS = ["paper", "id", "what", "reported", "recomputed", "difference", "agrees", "expected", "known", "note"]


def check_table(papers: Mapping[str, Paper]) -> pd.DataFrame:
    """One row per check: paper, id, what, reported, recomputed, difference, agrees, expected, known, note.

    difference: printed minus recomputed. agrees: it is at most half a unit of the last of the check's decimals.
    expected: `agrees` in the paper's file. Raises ConfigError for a check that cannot be evaluated.
    """
    import pandas as pd

    rows = [_outcome(name, paper, check, papers) for name, paper in papers.items() for check in paper.checks]
    return pd.DataFrame(rows, columns=COLUMNS)


def evaluate(expression: str, value: Callable[[str], float]) -> float:
    """Evaluate the arithmetic of a check; `value` looks a reference up. Raises ConfigError for anything else."""
    numbers = REFERENCE.sub(lambda match: f"({float(value(match[1]))!r})", expression)
    try:
        result = float(_evaluated(ast.parse(" ".join(numbers.split()), mode="eval").body))
        if not math.isfinite(result):
            raise ValueError("it has no finite value")
    except (ValueError, TypeError, ArithmeticError, SyntaxError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"{expression!r} cannot be worked out ({error}); "
            f"write references in brackets, numbers, + - * / ** and {', '.join(FUNCTIONS)}"
        ) from None
    return result


def _evaluated(node: ast.expr) -> float:
    match node:
        # Integers become floats at once: 9**9**9 then overflows instead of running forever.
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_evaluated(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_evaluated(left), _evaluated(right))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*map(_evaluated, arguments))
    raise ValueError(f"{ast.unparse(node)!r} is no arithmetic")


def _outcome(name: str, paper: Paper, check: Check, papers: Mapping[str, Paper]) -> dict[str, Any]:
    def value(reference: str) -> float:
        return float(resolve(reference, paper, papers))

    printed = value(check.printed) if isinstance(check.printed, str) else float(check.printed)
    try:
        recomputed = evaluate(check.recompute, value)
    except ConfigError as error:
        raise ConfigError(f"{name}, check {check.id}: {error}") from None
    difference = printed - recomputed
    return {
        "paper": name,
        "id": check.id,
        "what": check.what,
        "reported": printed,
        "recomputed": recomputed,
        "difference": difference,
        "agrees": abs(difference) <= 0.5 * 10**-check.decimals + FLOAT_NOISE,
        "expected": check.agrees,
        "known": check.known,
        "note": check.note,
    }
