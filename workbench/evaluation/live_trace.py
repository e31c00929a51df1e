"""Traces of single sentences on demand: a translation is forced again and its arrays are cached for a while.

Knows runs and the translator, no figure and no Streamlit; torch is imported with the first trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.evaluation.document_context import READERS, ContextSentences, context_mechanisms, read_before
from workbench.evaluation.forced_decoding import Target, force, opened, source_tokens, stamp
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import numpy as np

    from core_models.traces import Trace
    from workbench.store.translations import Translations

TARGETS = {"own": "Own output", "reference": "Reference", "typed": "Typed text"}
MOST_TOKENS = 400  # of source and of target, at most, in a forced pass over one sentence
ARRAYS = (
    "*.self_attention",
    "decoder.cross_attention",
    "*_share",
    "log_prob",
    "entropy",
    "rank",
    "best",
    "best_log_prob",
    "lens.*",
    "*.assignments",
    "*.mass",
    "past_future_layers.*",
    "coverage.*",
    "past.*",
    "future.*",
    "context*.words",
    "context*.distance",
    *(f"{kind}.*" for kind in READERS),
)


@dataclass(frozen=True, eq=False)
class SentenceTrace:
    """One forced pass: pieces of both sides (with </s> if it was written) and the arrays of the trace.

    `best` are the most probable words, `lens_best` those of each layer. before: the context, for a run that reads it;
    if it is joined to the sentence, the source begins with it.
    """

    run: Run
    source: tuple[str, ...]
    target: tuple[str, ...]
    trace: Trace
    best: tuple[str, ...]
    lens_best: tuple[tuple[str, ...], ...]
    before: ContextSentences | None = None
    context: tuple[str, ...] = ()
    context_outputs: tuple[str, ...] = ()

    def array(self, name: str) -> np.ndarray:
        """An array of the trace; raises RunError if the system has none of that name."""
        if name not in self.trace:
            raise RunError(
                f"{self.run.name}: a system of the backbone {self.run.config.model.backbone} has no {name}; choose "
                "another map or a Transformer"
            )
        return self.trace[name].values


def trace_sentence(run: Run, test: str, sentence: int, target: str = "own", text: str = "") -> SentenceTrace:
    """Force the own output of a sentence (piece by piece, as the search found it), its reference or a typed text.

    target: one of TARGETS; text: the typed text. Raises RunError for a missing sentence or target.
    """
    translations = run.translations(test)
    if not 0 <= sentence < len(translations):
        raise RunError(f"{test} has sentences 0 to {len(translations) - 1}, not {sentence}")
    source = translations.test_set.sources[sentence]
    if target == "own":
        tokens = tuple(translations.details[sentence]["tokens"])
        if not tokens:
            raise RunError(
                f"{run.name}: the translation of this sentence is empty; choose the reference or type a text"
            )
        return _cached_trace(run, Target(sentence, source, "", tokens, standing_before(run, translations, sentence)))
    if target == "typed":
        if not text.strip():
            raise RunError("no text was typed; type a translation, or choose the own output or the reference")
        typed = " ".join(text.split())
        return _cached_trace(run, Target(sentence, source, typed, (), standing_before(run, translations, sentence)))
    if target != "reference":
        from core_models.settings import nearest

        raise RunError(f"target {target!r}: {nearest(target, list(TARGETS))}")
    references = translations.test_set.references
    if references is None:
        raise RunError(f"{run.name}: the test set {test!r} has no references; choose the own output or type a text")
    before = standing_before(run, translations, sentence, references)
    return _cached_trace(run, Target(sentence, source, references[sentence], (), before))


def standing_before(
    run: Run, translations: Translations, sentence: int, outputs: Sequence[str] | None = None
) -> ContextSentences | None:
    """The context that a run reads before a sentence of a test set, with its own translations by default."""
    if not context_mechanisms(run):
        return None
    use = opened(run.reference, stamp(run)).translator.context
    return read_before(use, translations.test_set, sentence, translations.hypotheses if outputs is None else outputs)


def _cached_trace(run: Run, target: Target) -> SentenceTrace:
    return _forced(run.reference, stamp(run), run, target)


@lru_cache(maxsize=32)
def _forced(reference: str, stamp: tuple[float, int], run: Run, target: Target) -> SentenceTrace:
    model = opened(reference, stamp)
    _check_length(run, "source", len(source_tokens(model.translator, target)) - 1)
    text = model.translator.target_vocabulary.encode([target.text])[0]
    _check_length(run, "translation", len(target.pieces) or len(text))
    (forced,) = force(model, [target], ARRAYS)
    trace, name = forced.trace, model.translator.target_vocabulary.pieces
    lens = trace["lens.best"].values if "lens.best" in trace else ()
    return SentenceTrace(
        run,
        tuple(forced.source_tokens),
        tuple(forced.tokens),
        trace,
        tuple(name(trace["best"].values)),
        tuple(tuple(name(row)) for row in lens),
        target.before,
        *(
            tuple(vocabulary.pieces(trace[f"{side}.words"].values)) if f"{side}.words" in trace else ()
            for side, vocabulary in (
                ("context", model.translator.source_vocabulary),
                ("context_output", model.translator.target_vocabulary),
            )
        ),
    )


def _check_length(run: Run, side: str, tokens: int) -> None:
    if tokens > MOST_TOKENS:
        raise RunError(
            f"{run.name}: the {side} has {tokens} pieces, and a look inside shows up to {MOST_TOKENS}; trace it "
            f"instead: workbench trace {run.typed}"
        )


def layers_and_heads(runs: Sequence[Run], attention: str) -> tuple[int, int]:
    """The numbers of layers and heads of an attention array that all runs with this array have; 0 without any."""
    from core_models.system_builder import BACKBONES

    models = [run.config.model for run in runs]
    maps = [BACKBONES[model.backbone].attention_maps(model) for model in models]
    sizes = [sizes_by_name[attention] for sizes_by_name in maps if attention in sizes_by_name]
    return min((layers for layers, _ in sizes), default=0), min((heads for _, heads in sizes), default=0)
