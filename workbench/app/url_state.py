"""What is being looked at: runs, test set, sentence, baseline; and the query string that says so. Pure functions.

It knows no Streamlit and opens no run: `Known` tells it what there is to look at.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.plotting import theme
from workbench.store.listing import Known

MOST_RUNS = 6
PREFIX = "prefix"  # the key of the prefix that translations are to begin with
_DEFAULT = "the default is shown"


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
    wanted = query.get("baseline")
    if wanted and wanted[-1] in runs and wanted[-1] not in baselines(runs, test, known):
        warnings.append(f"{wanted[-1]} has not translated {test!r} and cannot be the baseline; {_DEFAULT}.")
        wanted = None
    baseline = _chosen("baseline", wanted, baselines(runs, test, known), warnings)
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
    """The finished runs in the folder of the first of them, `MOST_RUNS` at most, those with translations first.

    Unfinished runs only where no run is finished.
    """
    finished = [run for run in known if run.finished] or list(known)
    beside = [run for run in finished if folder_of(run.name) == folder_of(finished[0].name)]
    ordered = sorted(beside, key=lambda run: (not run.tests, not _named_after_baseline(run.name)))
    return [run.name for run in ordered[:MOST_RUNS]]


def folder_of(name: str) -> str:
    """The folder of a run below the runs folder: that of its experiment."""
    return name.rpartition("/")[0]


def with_run(runs: Sequence[str], baseline: str, name: str) -> tuple[list[str], str | None]:
    """The chosen runs with one more, and which of them gives way where `MOST_RUNS` are chosen already: the last one
    that is not the baseline."""
    others = [run for run in runs if run != baseline]
    gives_way = others[-1] if len(runs) >= MOST_RUNS and others else None
    return [*(run for run in runs if run != gives_way), name], gives_way


def tests(runs: Sequence[str], known: Sequence[Known]) -> list[str]:
    """The test sets that any of the runs has translated, those that most of them have first."""
    found = [test for run in known if run.name in runs for test in run.tests]
    return sorted(set(found), key=lambda test: (-found.count(test), test != "test", test))


def baselines(runs: Sequence[str], test: str, known: Sequence[Known]) -> list[str]:
    """The runs that can be the baseline, in the order in which they suggest themselves: those that have translated the
    test set, all where none has; finished ones first, then those that are named after a baseline."""
    chosen = [run for name in runs for run in known if run.name == name]
    able = [run for run in chosen if test in run.tests] or chosen
    return [run.name for run in sorted(able, key=lambda run: (not run.finished, not _named_after_baseline(run.name)))]


def _named_after_baseline(name: str) -> bool:
    return theme.style_of(name.rpartition("/")[2]) == theme.BASELINE


def baseline_first(runs: Sequence[str], baseline: str) -> tuple[str, ...]:
    return tuple(sorted(runs, key=lambda name: name != baseline))


def sentences(runs: Sequence[str], test: str, known: Sequence[Known]) -> int:
    """How many sentences all runs that have translated the test set have; 0 where none has translated it."""
    return min((run.tests[test] for run in known if run.name in runs and test in run.tests), default=0)
