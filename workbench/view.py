"""What is being looked at: runs, test set, sentence, baseline; and the query string that says so. Pure functions.

It knows no Streamlit and opens no run: `Known` tells it what there is to look at.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.figures import theme

MOST_RUNS = 6
_DEFAULT = "the default is shown"


@dataclass(frozen=True)
class Known:
    """A run that can be looked at: its test sets with the number of sentences in each."""

    name: str
    tests: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ViewState:
    """The shared part of a page's state. `runs` begins with the baseline; `sentence` counts from 0."""

    runs: tuple[str, ...] = ()
    test: str = ""
    sentence: int = 0
    baseline: str = ""


def from_query(query: Mapping[str, Sequence[str]], known: Sequence[Known]) -> tuple[ViewState, list[str]]:
    """The view that query parameters ask for, and a sentence for each that cannot be had; others are not looked at."""
    warnings: list[str] = []
    names = [run.name for run in known]
    asked = [name for name in dict.fromkeys(query.get("runs", ())) if name]
    runs = [name for name in asked if name in names]
    instead = "it is left out" if runs else _DEFAULT
    warnings += [_unknown("run", name, names, instead) for name in asked if name not in names]
    if len(runs) > MOST_RUNS:
        warnings.append(f"{len(runs)} runs are asked for; the first {MOST_RUNS} are shown.")
        runs = runs[:MOST_RUNS]
    runs = runs if "runs" in query and (runs or not asked) else default_runs(known)

    test = _chosen("test set", query.get("test"), tests(runs, known), warnings)
    baseline = _chosen("baseline", query.get("baseline"), baselines(runs), warnings)
    count = sentences(runs, test, known)
    sentence = _sentence(query.get("sentence"), count, warnings)
    return ViewState(baseline_first(runs, baseline), test, sentence, baseline), warnings


def _chosen(what: str, asked: Sequence[str] | None, options: Sequence[str], warnings: list[str]) -> str:
    """The one asked for where it is an option, else the first option."""
    wanted = asked[-1] if asked else ""
    if wanted and wanted not in options:
        warnings.append(_unknown(what, wanted, options))
    return wanted if wanted in options else next(iter(options), "")


def _unknown(what: str, name: str, options: Sequence[str], instead: str = _DEFAULT) -> str:
    near = difflib.get_close_matches(name, options, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"{instead}."
    return f"There is no {what} {name!r} here; {hint}"


def elsewhere(sentence: int, count: int) -> int:
    """A sentence far from this one: so asked again and again, all are visited, in an order that is always the same."""
    golden = round(count * (5**0.5 - 1) / 2)
    stride = next(step for step in range(max(1, golden), count + 2) if math.gcd(step, count) == 1)
    return (sentence + stride) % max(1, count)


def endless(text: str) -> bool:
    """Is it a number that is infinite, `inf` or too large to be held, such as 1e999?"""
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _sentence(asked: Sequence[str] | None, count: int, warnings: list[str]) -> int:
    if not asked or not asked[-1]:
        return 0
    text = asked[-1]
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < max(1, count):
        return int(text)
    has = f"has sentences 0 to {count - 1}" if count else "has no sentences yet"
    warnings.append(f"There is no sentence {text!r}: the test set {has}; sentence 0 is shown.")
    return 0


def default_runs(known: Sequence[Known]) -> list[str]:
    """The runs that stand in the same folder as the first, six at most: those of one experiment."""
    folders = [run.name.rpartition("/")[0] for run in known]
    return baselines([run.name for run, folder in zip(known, folders, strict=True) if folder == folders[0]])[:MOST_RUNS]


def tests(runs: Sequence[str], known: Sequence[Known]) -> list[str]:
    """The test sets that any of the runs has translated, those that most of them have first."""
    found = [test for run in known if run.name in runs for test in run.tests]
    return sorted(set(found), key=lambda test: (-found.count(test), test != "test", test))


def baselines(runs: Sequence[str]) -> list[str]:
    """The runs in the order in which they suggest themselves as the baseline: those named after one first."""
    return sorted(runs, key=lambda name: theme.style_of(name.rpartition("/")[2]) != theme.BASELINE)


def baseline_first(runs: Sequence[str], baseline: str) -> tuple[str, ...]:
    return tuple(sorted(runs, key=lambda name: name != baseline))


def sentences(runs: Sequence[str], test: str, known: Sequence[Known]) -> int:
    """How many sentences all runs that have translated the test set have; 0 where none has translated it."""
    return min((run.tests[test] for run in known if run.name in runs and test in run.tests), default=0)
