"""The questions of the page Start: which runs answer each, at which sentence, and on which page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from workbench.evaluation.document_context import CAPSULES, attending, context_mechanisms
from workbench.evaluation.sentence_rankings import PRONOUN, most_different
from workbench.store.runs import Run
from workbench.views.beam_search.measure import has_trees
from workbench.views.future_cost.measure import estimates
from workbench.views.layer_routing.measure import KINDS, routed, routing_mechanism
from workbench.views.past_future.measure import separates
from workbench.views.start.card import Card

_LONGEST = 12  # source words of a sentence that a card draws


def cards_of(runs: Sequence[Run], test: str) -> list[Card]:
    """A card for each question that these runs answer, the baseline first; all have translated the test set."""
    cards: list[Card] = []
    for make in (_scores, _searches, _routing, _past_future, _context, _future_cost):
        with suppress(ValueError, OSError):  # of a run that cannot be read
            cards += make(runs, test)
    return cards


def _scores(runs: Sequence[Run], test: str) -> Iterator[Card]:
    if len(runs) > 1 and runs[0].translations(test).test_set.references is not None:
        yield _card("Which system is better, and where?", "scores", "scores", runs, test, metrics=["bleu"])


def _searches(runs: Sequence[Run], test: str) -> Iterator[Card]:
    recorded = [run for run in runs if has_trees(run, test)]
    if len(recorded) > 1:
        others = [run for run in recorded[1:] if estimates(run)] or recorded[1:]
        pair = (recorded[0], others[-1])
        trees = min(run.translations(test).trees for run in pair)
        sentence = most_different(pair, test, lambda row, words: row < trees and words <= _LONGEST)
        yield _card(
            "Where do two searches part?", "beam_trees", "beam-diff", pair, test, sentence,
            {"show": "difference", "system": pair[0].name, "beside": pair[1].name},
            steps=[1, 6], minimum_probability=0.05,
        )  # fmt: skip


def _routing(runs: Sequence[Run], test: str) -> Iterator[Card]:
    for side in ("decoder", "encoder"):
        if routers := [run for run in runs if routed(run, side)]:
            # EM routing first: maps of dynamic routing are close to even at every iteration
            routers.sort(key=lambda run: KINDS.index(routing_mechanism(run, side)))
            yield _card(
                "What does the routing agree on, iteration by iteration?", "routing", "routing-maps", routers[:1], test,
                _short(runs[0], routers[0], test), {"side": side}, side=side,
            )  # fmt: skip
            return


def _past_future(runs: Sequence[Run], test: str) -> Iterator[Card]:
    if separating := [run for run in runs if separates(run)]:
        sentence = _short(runs[0], separating[0], test)
        yield _card("What is translated already, and where is that wrong?", "past_future", "past-future",
                    separating[:1], test, sentence)  # fmt: skip


def _context(runs: Sequence[Run], test: str) -> Iterator[Card]:
    # attention to the words before says most directly which sentence is read; capsules do it by routing
    attentive = [run for run in runs if attending(run)]
    figure = "context-attention" if attentive else "context-routing"
    readers = attentive or [run for run in runs if CAPSULES in context_mechanisms(run)]
    truth = runs[0].translations(test).truth or []
    pronouns = {row for row, record in enumerate(truth) if PRONOUN in record.get("phenomena", ())}
    if readers and pronouns:
        sentence = most_different((runs[0], readers[0]), test, lambda row, _: row in pronouns)
        yield _card("Which earlier sentence does “it” need?", "context", figure, readers[:1], test,
                    sentence)  # fmt: skip


def _future_cost(runs: Sequence[Run], test: str) -> Iterator[Card]:
    if estimating := [run for run in runs if estimates(run)]:
        sentence = _short(runs[0], estimating[-1], test)
        yield _card("Does a system foresee its next word?", "future_cost", "future-cost-overlay",
                    estimating[-1:], test, sentence)  # fmt: skip


def _short(baseline: Run, run: Run, test: str) -> int:
    """The short sentence where the output of a run differs most from the baseline's."""
    return most_different((baseline, run), test, lambda _, words: words <= _LONGEST)


def _card(
    question: str, page: str, figure: str, runs: Sequence[Run], test: str, sentence: int = 0,
    choices: dict[str, str] | None = None, **options: Any,
) -> Card:  # fmt: skip
    return Card(question, page, figure, [run.name for run in runs], test, sentence, choices or {}, options)
