"""The selection on all pages (runs, test set, sentence, baseline) and its query string. Pure functions.

Knows no Streamlit and opens no run: `Known` has the available runs and test sets.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.app.pages import PAGES
from workbench.plotting import theme
from workbench.store import external
from workbench.store.listing import Known

MOST_RUNS = 6
PREFIX = "prefix"  # the key of the forced prefix of translations
_DEFAULT = "the default is shown"


@dataclass(frozen=True)
class ViewState:
    """The shared part of a page's state. `runs` begins with the baseline; `sentence` counts from 0."""

    runs: tuple[str, ...] = ()
    test: str = ""
    sentence: int = 0
    baseline: str = ""


def from_query(query: Mapping[str, Sequence[str]], known: Sequence[Known]) -> tuple[ViewState, list[str]]:
    """The view of query parameters, and a warning for each invalid one; other parameters are ignored."""
    warnings: list[str] = []
    names = [run.name for run in known]
    requested = [name for name in dict.fromkeys(query.get("runs", ())) if name]
    runs = [name for name in requested if name in names]
    instead = "it is left out" if runs else _DEFAULT
    warnings += [_unknown("run", name, names, instead) for name in requested if name not in names]
    if len(runs) > MOST_RUNS:
        warnings.append(f"{len(runs)} runs are asked for; the first {MOST_RUNS} are shown.")
        runs = runs[:MOST_RUNS]
    runs = runs if "runs" in query and (runs or not requested) else default_runs(known)

    test = _chosen("test set", query.get("test"), tests(runs, known), warnings)
    baseline_values = query.get("baseline")
    if baseline_values and baseline_values[-1] in runs and baseline_values[-1] not in baselines(runs, test, known):
        warnings.append(f"{baseline_values[-1]} has not translated {test!r} and cannot be the baseline; {_DEFAULT}.")
        baseline_values = None
    baseline = _chosen("baseline", baseline_values, baselines(runs, test, known), warnings)
    count = sentences(runs, test, known)
    sentence = _sentence(query.get("sentence"), count, warnings)
    return ViewState(baseline_first(runs, baseline), test, sentence, baseline), warnings


def _chosen(what: str, values: Sequence[str] | None, options: Sequence[str], warnings: list[str]) -> str:
    """The requested value if it is an option, else the first option."""
    requested = values[-1] if values else ""
    if requested and requested not in options:
        warnings.append(_unknown(what, requested, options))
    return requested if requested in options else next(iter(options), "")


def _unknown(what: str, name: str, options: Sequence[str], instead: str = _DEFAULT) -> str:
    near = difflib.get_close_matches(name, options, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"{instead}."
    return f"There is no {what} {name!r} here; {hint}"


def elsewhere(sentence: int, count: int) -> int:
    """The next sentence in a fixed order that jumps far and, repeated, visits all sentences."""
    golden = round(count * (5**0.5 - 1) / 2)
    stride = next(step for step in range(max(1, golden), count + 2) if math.gcd(step, count) == 1)
    return (sentence + stride) % max(1, count)


def endless(text: str) -> bool:
    """Return True for an infinite number: `inf`, or one too large for a float, such as 1e999."""
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _sentence(values: Sequence[str] | None, count: int, warnings: list[str]) -> int:
    if not values or not values[-1]:
        return 0
    text = values[-1]
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < max(1, count):
        return int(text)
    has = f"has sentences 0 to {count - 1}" if count else "has no sentences yet"
    warnings.append(f"There is no sentence {text!r}: the test set {has}; {_DEFAULT}.")
    return 0


def default_runs(known: Sequence[Known]) -> list[str]:
    """The finished runs in the folder of the first of them, `MOST_RUNS` at most, those with translations first.

    Of more runs than that, those come first that a page of a mechanism shows. Unfinished runs count only if no run is
    finished, and translations that were imported into their own folder only if there is nothing else.
    """
    trained = [run for run in known if folder_of(run.name) != external.FOLDER] or list(known)
    finished = [run for run in trained if run.finished] or trained
    same_folder = [run for run in finished if folder_of(run.name) == folder_of(finished[0].name)]
    ordered = sorted(same_folder, key=lambda run: (not run.tests, baseline_rank(run.name)))
    names = [run.name for run in ordered]
    chosen = list(dict.fromkeys([*names[:1], *_of_pages(ordered), *names]))[:MOST_RUNS]
    return [name for name in names if name in chosen]


def _of_pages(runs: Sequence[Known]) -> Iterator[str]:
    """For each page of a mechanism the first run with the first of its mechanisms that any run has."""
    for page in PAGES.values():
        shown = (run.name for mechanism in page.mechanisms for run in runs if mechanism in run.mechanisms)
        if name := next(shown, ""):
            yield name


def folder_of(name: str) -> str:
    """The folder of a run below the runs folder, i.e. of its experiment."""
    return name.rpartition("/")[0]


def with_more(runs: Sequence[str], more: Sequence[str]) -> list[str]:
    """The chosen runs, the baseline first, and more; the last of the chosen ones give way beyond `MOST_RUNS`."""
    kept = runs[: max(1, MOST_RUNS - len(more))]
    return [*kept, *more][:MOST_RUNS]


def tests(runs: Sequence[str], known: Sequence[Known]) -> list[str]:
    """The test sets that any of the runs has translated, the most frequent first."""
    test_sets = [test for run in known if run.name in runs for test in run.tests]
    return sorted(set(test_sets), key=lambda test: (-test_sets.count(test), test != "test", test))


def baselines(runs: Sequence[str], test: str, known: Sequence[Known]) -> list[str]:
    """The runs that can be the baseline, the most plausible first.

    These are the runs that have translated the test set, or all if none has; finished ones first, then those with the
    name of a baseline system, a Transformer before others.
    """
    chosen = [run for name in runs for run in known if run.name == name]
    candidates = [run for run in chosen if test in run.tests] or chosen
    return [run.name for run in sorted(candidates, key=lambda run: (not run.finished, baseline_rank(run.name)))]


def baseline_rank(name: str) -> int:
    """0 for a run called transformer, 1 for one with the name of another baseline system, 2 for any other."""
    system = name.rpartition("/")[2]
    return 0 if system == "transformer" else 1 if system in theme.BASELINES else 2


def baseline_first(runs: Sequence[str], baseline: str) -> tuple[str, ...]:
    return tuple(sorted(runs, key=lambda name: name != baseline))


def sentences(runs: Sequence[str], test: str, known: Sequence[Known]) -> int:
    """The number of sentences that all runs with the test set have; 0 if no run has translated it."""
    return min((run.tests[test] for run in known if run.name in runs and test in run.tests), default=0)
