"""Translation while somebody waits, by the models that `evaluation.forced_decoding` keeps loaded.

Torch is loaded on use.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.evaluation.document_context import ContextSentences, as_arguments, own_outputs
from workbench.evaluation.forced_decoding import opened, stamp
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from core_models.translator import Translation
    from workbench.plotting.grammar import Figure

MOST_WORDS = 150  # longer sources would keep the page waiting
MOST_CHARACTERS = 1_000  # of those that part no words by blanks, too
MOST_BEAMS = 16
_OWN = "own"
_TEST_LOSS = {_OWN: "as trained", "none": "left out", "step_mean_prob": "averaged in"}


@dataclass(frozen=True)
class Asked:
    """One request: what is translated, what the translation must begin with, how it is searched, and what stands before
    it (`completed`). test_loss: what the losses of its layers do in the search; None: what the run itself says."""

    source: str
    prefix: str = ""
    beam: int = 5
    length_penalty: float = 0.6
    n_best: int = 5
    before: ContextSentences | None = None
    test_loss: str | None = None


def has_test_losses(run: Run) -> bool:
    """Has a run losses of PAST or FUTURE layers, which may take part in a search?"""
    return bool(run.mechanism_options.get("past_future_layers", {}).get("losses"))


def test_loss(place: DeltaGenerator) -> str | None:
    """How the losses of PAST and FUTURE layers take part in the search; None: as a run itself says."""
    chosen = place.selectbox(
        "Losses", list(_TEST_LOSS), format_func=_TEST_LOSS.__getitem__, key="losses", bind="query-params",
        help="Is what the losses of PAST and FUTURE say of the next word averaged into what is searched by?",
    )  # fmt: skip
    return None if chosen == _OWN else chosen


def completed(run: Run, before: ContextSentences | None) -> ContextSentences | None:
    """What stands before a sentence with its translations, where a run reads these too: its own, if none are given."""
    if before is None or before.outputs is not None:
        return before
    _check_length(run, before.in_order)
    return _completed(run.reference, stamp(run), before)


@st.cache_data(max_entries=32, show_spinner="Translating")
def _completed(folder: str, weights: tuple[float, int], before: ContextSentences) -> ContextSentences:
    translator, lock = opened(folder, weights)
    if not translator.context.outputs:
        return before
    with lock:
        (outputs,) = own_outputs(translator, [before.sources])
    return replace(before, outputs=tuple(outputs))


def translate(run: Run, asked: Asked) -> Translation:
    """The best translation with its n-best list and recorded tree. Raises RunError, and what the search refuses."""
    _check_length(run, [asked.source, asked.prefix, *(asked.before.in_order if asked.before else ())])
    return _translated(run.reference, stamp(run), asked)


def _check_length(run: Run, texts: Sequence[str]) -> None:
    words = max((len(text.split()) for text in texts), default=0)
    characters = max(map(len, texts), default=0)
    if words > MOST_WORDS or characters > MOST_CHARACTERS:
        raise RunError(
            f"the sentence, its prefix or one before it has {words} words and {characters} characters; the page "
            f"translates up to {MOST_WORDS} words and {MOST_CHARACTERS} characters: put longer ones into a file: "
            f"workbench translate {run.typed} --input FILE"
        )


@st.cache_data(max_entries=32, show_spinner="Translating")
def _translated(folder: str, weights: tuple[float, int], asked: Asked) -> Translation:
    translator, lock = opened(folder, weights)
    search: dict[str, Any] = {
        "beam": asked.beam,
        "length_penalty": asked.length_penalty,
        "n_best": min(asked.n_best, asked.beam),
        "test_loss": asked.test_loss,
    }
    with lock:
        prefix = [asked.prefix] if asked.prefix else None
        return translator.translate([asked.source], prefix=prefix, record=True, **search, **as_arguments(asked.before))[
            0
        ]


def tree(translation: Translation, **options: Any) -> Figure:
    """The recorded search as a figure."""
    from analyses import beam
    from workbench.views.beam_search.plots import beam_tree

    if translation.tree is None:
        raise RunError("the search of this translation was not recorded; translate it again")
    return beam_tree(beam.tree(translation.tree), **options)


def steps(translation: Translation) -> int:
    """The last step of the recorded search."""
    return max(translation.tree["step"]) if translation.tree else 0


def command(run: Run, asked: Asked) -> str:
    """The command line that gives the same translations; of a run that reads on, for a file of the whole document."""
    before = asked.before or ContextSentences(())
    after = any(before.sources[entry] is not None and before.distance(entry) < 0 for entry in before.entries)
    words = [
        "workbench",
        "translate",
        run.reference,
        "--input",
        "FILE" if after else "-",
        "--beam",
        str(asked.beam),
        "--length-penalty",
        str(asked.length_penalty),
        "--n-best",
        str(min(asked.n_best, asked.beam)),
    ]
    words += ["--prefix", asked.prefix] if asked.prefix else []
    words += ["--search", f"test_loss={asked.test_loss}"] if asked.test_loss else []
    if after:
        return f"{shlex.join(words)} --doc-ids FILE"
    for option, lines in (("--context", before.sources), ("--context-target", before.outputs or ())):
        words += [word for line in reversed(lines) if line is not None for word in (option, line)]
    return f"echo {shlex.quote(asked.source)} | {shlex.join(words)}"
