"""What if a translation began otherwise: a prefix is forced on every run, and what each makes of it stands beside what
it says unconstrained.

A prefix is text, since runs may have different pieces; each run segments it anew, and may go on within its last word.
The searches come from the caller (a page keeps them); here they are read and forced once more. Knows no Streamlit.
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

_CROSS, _FUTURE = "decoder.cross_attention", "future_cost.log_prob"


@dataclass(frozen=True)
class Account:
    """What a forced pass over one output says beside its probability.

    covered: which source words the output's words attend to most, from 0; words: how many the source has; both None in
    a system without attention. future_cost: the sum of the estimated log P of its words (nats), None without estimates.
    """

    covered: frozenset[int] | None
    words: int | None
    future_cost: float | None

    @property
    def coverage(self) -> float:
        """The share of source words that are covered; NaN where it is not known."""
        return len(self.covered) / self.words if self.covered is not None and self.words else float("nan")


@dataclass(frozen=True, eq=False)
class Continued:
    """A run's translation from a prefix beside its unconstrained one."""

    run: Run
    source: str
    free: Translation
    forced: Translation
    before: ContextSentences | None = None  # what the run read before the sentence


def prefixes(pieces: Sequence[str]) -> list[str]:
    """The text up to each piece of an output, </s> left out."""
    own = [piece for piece in pieces if piece != END]
    return [text_of(own[:end]) for end in range(1, len(own) + 1)]


def forced_steps(run: Run, prefix: str) -> int:
    """The steps of the search that a prefix takes away: its pieces in the run's own vocabulary."""
    translator = opened(run.reference, stamp(run)).translator
    return len(translator.target_vocabulary.encode([prefix])[0]) if prefix else 0


def alternatives(run: Run, prefix: str, translation: Translation) -> pd.DataFrame:
    """The most probable pieces after a prefix: rank (from 1), piece, log_prob (nats), probability, taken (by the
    translation), prefix (the text with it; empty for </s>, which cannot be forced).

    translation: of a recorded search from this prefix; it looked at twice as many candidates as its beam is wide.
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
    rows = [row for row, at in enumerate(tree["step"]) if at == step]
    found = pd.DataFrame(
        {
            "piece": [tree["word"][row] for row in rows],
            "log_prob": [tree["log_prob"][row] for row in rows],
        }
    ).sort_values("log_prob", ascending=False, kind="stable", ignore_index=True)
    return found.assign(
        rank=np.arange(1, len(found) + 1),
        probability=np.exp(found["log_prob"]),
        taken=[[piece] == taken for piece in found["piece"]],
        prefix=["" if piece == END else text_of([*before, piece]) for piece in found["piece"]],
    )[["rank", "piece", "log_prob", "probability", "taken", "prefix"]]


def account(run: Run, source: str, tokens: Sequence[str], before: ContextSentences | None = None) -> Account:
    """Coverage by attention and the estimated future cost of an output, given as the search found it."""
    return _account(run.reference, stamp(run), source, tuple(tokens), before)


@lru_cache(maxsize=128)
def _account(
    reference: str, weights: tuple[float, int], source: str, tokens: tuple[str, ...], before: ContextSentences | None
) -> Account:
    from analyses import attention
    from analyses.alignment import from_attention

    if not tokens:
        return Account(None, None, None)
    (found,) = force(opened(reference, weights), [Target(0, source, "", tokens, before)], (_CROSS, _FUTURE))
    trace, pieces = found.own.trace, found.own.source_tokens
    future = float(trace[_FUTURE].values.sum()) if _FUTURE in trace else None
    if _CROSS not in trace:
        return Account(None, None, future)
    mean = attention.average(trace[_CROSS].values)
    weights_of_words, _, words = attention.without_end(
        attention.to_words(mean, tokens, pieces), attention.joined(tokens), attention.joined(pieces)
    )
    return Account(frozenset(i for i, _ in from_attention(weights_of_words)), len(words), future)


def aligned_coverage(aligner: Aligner, source: str, text: str) -> float:
    """The share of source words that a frozen aligner links to a word of a text; NaN without source words."""
    from analyses.aligner import words

    given = words(source)
    linked = {i for i, _ in aligner.align(given, words(text))}
    return len(linked) / len(given) if given else float("nan")


def table(continued: Sequence[Continued], names: dict[str, str], aligner: Aligner | None = None) -> pd.DataFrame:
    """A row a run: system, text, score, log_prob (nats), log_prob_change (to the unconstrained one), future_cost (nats,
    NaN without estimates), coverage, coverage_before (of the unconstrained one): shares, by attention or an aligner."""
    import pandas as pd

    rows = []
    for one in continued:
        after, free = (account(one.run, one.source, found.tokens, one.before) for found in (one.forced, one.free))
        shares = (after.coverage, free.coverage)
        if aligner is not None:
            shares = (
                aligned_coverage(aligner, one.source, one.forced.text),
                aligned_coverage(aligner, one.source, one.free.text),
            )
        rows.append(
            {
                "system": names[one.run.name],
                "text": one.forced.text,
                "score": one.forced.score,
                "log_prob": one.forced.log_prob,
                "log_prob_change": one.forced.log_prob - one.free.log_prob,
                "future_cost": float("nan") if after.future_cost is None else after.future_cost,
                "coverage": shares[0],
                "coverage_before": shares[1],
            }
        )
    return pd.DataFrame(rows)
