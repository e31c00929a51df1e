"""Interactive translation by the models that `evaluation.forced_decoding` keeps loaded.

Torch is imported on use.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.evaluation.document_context import ContextSentences, as_arguments, own_outputs
from workbench.evaluation.forced_decoding import opened, stamp
from workbench.figures.spec import path_of
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from core_models.translator import Translation
    from workbench.plotting.grammar import Figure

MOST_WORDS = 150  # of a source: longer ones take too long
MOST_CHARACTERS = 1_000  # also limits languages without blanks between words
MOST_BEAMS = 16
_OWN = "own"
_TEST_LOSS = {_OWN: "as trained", "none": "left out", "step_mean_prob": "averaged in"}


@dataclass(frozen=True)
class TranslationRequest:
    """Source, forced prefix, search options and context (`completed`) of one translation.

    test_loss: use of the losses of PAST and FUTURE layers in the search; None: as the run is configured.
    """

    source: str
    prefix: str = ""
    beam: int = 5
    length_penalty: float = 0.6
    n_best: int = 5
    before: ContextSentences | None = None
    test_loss: str | None = None


def has_test_losses(run: Run) -> bool:
    """Return True if the run has losses of PAST or FUTURE layers that can be used in the search."""
    return bool(run.mechanism_options.get("past_future_layers", {}).get("losses"))


def test_loss(column: DeltaGenerator) -> str | None:
    """Control for the use of the losses of PAST and FUTURE layers in the search; None: as the run is configured."""
    choice = column.selectbox(
        "Losses", list(_TEST_LOSS), format_func=_TEST_LOSS.__getitem__, key="losses", bind="query-params",
        help="Is what the losses of PAST and FUTURE say of the next word averaged into what is searched by?",
    )  # fmt: skip
    return None if choice == _OWN else choice


def completed(run: Run, before: ContextSentences | None) -> ContextSentences | None:
    """Add the run's own translations to a context without translations, if the run reads them."""
    if before is None or before.outputs is not None:
        return before
    check_length(run, before.in_order)
    return _completed(run.reference, stamp(run), before)


@st.cache_data(max_entries=32, show_spinner="Translating")
def _completed(folder: str, weights: tuple[float, int], before: ContextSentences) -> ContextSentences:
    translator, lock = opened(folder, weights)
    if not translator.context.outputs:
        return before
    with lock:
        (outputs,) = own_outputs(translator, [before.sources])
    return replace(before, outputs=tuple(outputs))


def translate(run: Run, request: TranslationRequest) -> Translation:
    """Translate; returns the best translation with n-best list and recorded tree. Raises RunError and search errors."""
    check_length(run, [request.source, request.prefix, *(request.before.in_order if request.before else ())])
    return _translated(run.reference, stamp(run), request)


def check_length(run: Run, texts: Sequence[str]) -> None:
    """Raises RunError for a text that is too long for the page; the run is named in the command that translates it."""
    words = max((len(text.split()) for text in texts), default=0)
    characters = max(map(len, texts), default=0)
    if words > MOST_WORDS or characters > MOST_CHARACTERS:
        raise RunError(
            f"the sentence, its prefix or one before it has {words} words and {characters} characters; the page "
            f"translates up to {MOST_WORDS} words and {MOST_CHARACTERS} characters: put longer ones into a file: "
            f"workbench translate {run.typed} --input FILE"
        )


@st.cache_data(max_entries=32, show_spinner="Translating")
def _translated(folder: str, weights: tuple[float, int], request: TranslationRequest) -> Translation:
    translator, lock = opened(folder, weights)
    search: dict[str, Any] = {
        "beam": request.beam,
        "length_penalty": request.length_penalty,
        "n_best": min(request.n_best, request.beam),
        "test_loss": request.test_loss,
    }
    with lock:
        prefix = [request.prefix] if request.prefix else None
        return translator.translate(
            [request.source], prefix=prefix, record=True, **search, **as_arguments(request.before)
        )[0]


def tree(translation: Translation, **options: Any) -> Figure:
    """Figure of the recorded search."""
    from analyses import beam
    from workbench.views.beam_search.plots import beam_tree

    if translation.tree is None:
        raise RunError("the search of this translation was not recorded; translate it again")
    return beam_tree(beam.tree(translation.tree), **options)


def steps(translation: Translation) -> int:
    """Last step of the recorded search."""
    return max(translation.tree["step"]) if translation.tree else 0


def command(run: Run, request: TranslationRequest) -> str:
    """Command line for the same translations; with context after the sentence, for a file of the whole document."""
    before = request.before or ContextSentences(())
    after = any(before.sources[entry] is not None and before.distance(entry) < 0 for entry in before.entries)
    arguments = [
        "workbench",
        "translate",
        path_of(run),
        "--input",
        "FILE" if after else "-",
        "--beam",
        str(request.beam),
        "--length-penalty",
        str(request.length_penalty),
        "--n-best",
        str(min(request.n_best, request.beam)),
    ]
    arguments += ["--prefix", request.prefix] if request.prefix else []
    arguments += ["--search", f"test_loss={request.test_loss}"] if request.test_loss else []
    if after:
        return f"{shlex.join(arguments)} --doc-ids FILE"
    for option, lines in (("--context", before.sources), ("--context-target", before.outputs or ())):
        arguments += [word for line in reversed(lines) if line is not None for word in (option, line)]
    return f"printf '%s\\n' {shlex.quote(request.source)} | {shlex.join(arguments)}"
