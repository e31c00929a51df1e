"""Prefix-constrained decoding: translations from a forced prefix, compared with unconstrained ones.

A prefix is text because runs may have different vocabularies: each run segments it and may continue its last word.
Callers (pages) search and cache the translations; this module force-decodes them again. Imports no Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from analyses.attention import END, text_of
from workbench.evaluation.document_context import ContextSentences
from workbench.evaluation.forced_decoding import Target, force, opened, stamp
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from analyses.aligner import Aligner
    from core_models.translator import Translation
    from workbench.views.interactive.decoding import TranslationRequest

_CROSS, _FUTURE = "decoder.cross_attention", "future_cost.log_prob"


@dataclass(frozen=True)
class Account:
    """Measures of one force-decoded output.

    covered: source words (from 0) that the output's words attend to most; words: number of source words; both None
    without attention. future_cost: sum of the estimated log P of the output's words (nats), None without estimates.
    """

    covered: frozenset[int] | None
    words: int | None
    future_cost: float | None

    @property
    def coverage(self) -> float:
        """Share of covered source words; NaN if unknown."""
        return len(self.covered) / self.words if self.covered is not None and self.words else float("nan")


@dataclass(frozen=True, eq=False)
class Continued:
    """Translation of a run from the requested prefix (`forced`) and without it (`free`)."""

    run: Run
    request: TranslationRequest
    free: Translation
    forced: Translation


def prefixes(pieces: Sequence[str]) -> list[str]:
    """Text up to each piece of an output, without </s>."""
    without_end = [piece for piece in pieces if piece != END]
    return [text_of(without_end[:end]) for end in range(1, len(without_end) + 1)]


def forced_steps(run: Run, prefix: str) -> int:
    """Number of search steps of a prefix: its pieces in the run's vocabulary."""
    translator = opened(run.reference, stamp(run)).translator
    return len(translator.target_vocabulary.encode([prefix])[0]) if prefix else 0


def alternatives(run: Run, prefix: str, translation: Translation) -> pd.DataFrame:
    """Most probable pieces after a prefix.

    Columns: rank (from 1), piece, log_prob (nats), probability, taken (by the translation), prefix (the text with it;
    empty for </s>, which cannot be forced). translation: of a recorded search from this prefix, which considered twice
    as many candidates as its beam size.
    """
    import numpy as np
    import pandas as pd

    tree, step = translation.tree, forced_steps(run, prefix) + 1
    if tree is None:
        raise RunError(
            f"{run.name}: its search records no candidates (finished_hypotheses: keep); what could come next is "
            "not known"
        )
    before = translation.tokens[: step - 1]
    taken = translation.tokens[step - 1 : step]
    rows = [row for row, node_step in enumerate(tree["step"]) if node_step == step]
    candidates = pd.DataFrame(
        {
            "piece": [tree["word"][row] for row in rows],
            "log_prob": [tree["log_prob"][row] for row in rows],
        }
    ).sort_values("log_prob", ascending=False, kind="stable", ignore_index=True)
    return candidates.assign(
        rank=np.arange(1, len(candidates) + 1),
        probability=np.exp(candidates["log_prob"]),
        taken=[[piece] == taken for piece in candidates["piece"]],
        prefix=["" if piece == END else text_of([*before, piece]) for piece in candidates["piece"]],
    )[["rank", "piece", "log_prob", "probability", "taken", "prefix"]]


def account(run: Run, source: str, tokens: Sequence[str], before: ContextSentences | None = None) -> Account:
    """Coverage by attention and estimated future cost of an output of the search."""
    return _account(run.reference, stamp(run), source, tuple(tokens), before)


@lru_cache(maxsize=128)
def _account(
    reference: str, weights: tuple[float, int], source: str, tokens: tuple[str, ...], before: ContextSentences | None
) -> Account:
    from analyses import attention
    from analyses.alignment import from_attention

    if not tokens:
        return Account(None, None, None)
    (forced,) = force(opened(reference, weights), [Target(0, source, "", tokens, before)], (_CROSS, _FUTURE))
    trace, pieces = forced.without_context.trace, forced.without_context.source_tokens
    future = float(trace[_FUTURE].values.sum()) if _FUTURE in trace else None
    if _CROSS not in trace:
        return Account(None, None, future)
    mean = attention.average(trace[_CROSS].values)
    weights_of_words, _, words = attention.without_end(
        attention.to_words(mean, tokens, pieces), attention.joined(tokens), attention.joined(pieces)
    )
    return Account(frozenset(i for i, _ in from_attention(weights_of_words)), len(words), future)


def aligned_coverage(aligner: Aligner, source: str, text: str) -> float:
    """Share of source words that a frozen aligner links to a word of a text; NaN without source words."""
    from analyses.aligner import words

    source_words = words(source)
    linked = {i for i, _ in aligner.align(source_words, words(text))}
    return len(linked) / len(source_words) if source_words else float("nan")


def table(continued: Sequence[Continued], names: dict[str, str], aligner: Aligner | None = None) -> pd.DataFrame:
    """Comparison of constrained and unconstrained translations, one row per run.

    Columns: system, text, score, log_prob (nats), log_prob_change (to the unconstrained one), future_cost (nats, NaN
    without estimates), coverage, coverage_before (of the unconstrained one): shares, by attention or an aligner.
    """
    import pandas as pd

    rows = []
    for translations in continued:
        request = translations.request
        after, free = (
            account(translations.run, request.source, translation.tokens, request.before)
            for translation in (translations.forced, translations.free)
        )
        shares = (after.coverage, free.coverage)
        if aligner is not None:
            shares = (
                aligned_coverage(aligner, request.source, translations.forced.text),
                aligned_coverage(aligner, request.source, translations.free.text),
            )
        rows.append(
            {
                "system": names[translations.run.name],
                "text": translations.forced.text,
                "score": translations.forced.score,
                "log_prob": translations.forced.log_prob,
                "log_prob_change": translations.forced.log_prob - translations.free.log_prob,
                "future_cost": float("nan") if after.future_cost is None else after.future_cost,
                "coverage": shares[0],
                "coverage_before": shares[1],
            }
        )
    return pd.DataFrame(rows)
