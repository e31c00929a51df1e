"""Findings in the runs at hand, each with a link to its evidence: computed, and said in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from workbench.app.url_state import default_runs
from workbench.evaluation.result_cache import ResultCache
from workbench.store.listing import Known
from workbench.store.runs import Run, short_names
from workbench.views.start.cards import cards, in_order, of_runs, picture

LEVEL = 0.05  # of a significant difference, after Holm's correction


@dataclass(frozen=True)
class Finding:
    """A finding in words, and the page, runs and sentence that show its evidence."""

    text: str
    page: str
    runs: list[str]
    sentence: int = 0


FINDINGS: ResultCache[list[Finding]] = ResultCache(
    "scores/findings-{}.json",
    lambda findings: {"findings": [asdict(finding) for finding in findings]},
    lambda content: [Finding(**record) for record in content["findings"]],
)


def findings(runs: Sequence[Run], test: str) -> list[Finding]:
    """Findings in runs that have translated a test set, the baseline first; cached beside the baseline.

    These are the largest significant difference, the sentence where outputs differ most, and the estimate of future
    cost that is farthest off. Without references, or with one run, there are fewer.
    """
    return FINDINGS.cached(runs[0], of_runs(runs, test), lambda: _compute(runs, test))


def _compute(runs: Sequence[Run], test: str) -> list[Finding]:
    makers = (_largest_difference, _most_different_sentence, _worst_estimate)
    return [finding for make in makers if (finding := make(runs, test)) is not None]


def shown(runs: Sequence[Run]) -> list[Run]:
    """Those runs of a folder that pages show by default, the baseline first."""
    chosen = default_runs([Known(run.name, mechanisms=run.mechanisms) for run in runs])
    return in_order((run for run in runs if run.name in chosen), chosen[0])


def store(runs: Sequence[Run], test: str) -> None:
    """Store beside runs of a folder what the page Start shows of them as long as no other runs are chosen."""
    runs = shown(runs)
    by_name = {run.name: run for run in runs}
    for card in cards(runs, test):
        picture(card, by_name)
    findings(runs, test)


def _comparable(runs: Sequence[Run], test: str) -> bool:
    return len(runs) > 1 and runs[0].translations(test).test_set.references is not None


def _largest_difference(runs: Sequence[Run], test: str) -> Finding | None:
    if not _comparable(runs, test):
        return None
    from workbench.evaluation import scoring

    names = short_names(runs)
    table = scoring.comparison_table(runs, test, runs[0].name)
    significant = table[table["p_holm"] < LEVEL]
    others = f"{len(table)} comparison{'s' if len(table) > 1 else ''}"
    everything = [run.name for run in runs]
    if significant.empty:
        text = f"No run differs significantly from {names[runs[0].name]} in BLEU (p < {LEVEL} after Holm, {others})."
        return Finding(text, "scores", everything)
    row = significant.iloc[int(significant["delta"].abs().argmax())]
    relation = "better" if row["delta"] > 0 else "worse"
    least, most = sorted((abs(row["low"]), abs(row["high"])))  # an interval without 0, as the difference is significant
    text = (
        f"The largest significant difference: {names[row['system']]} is {abs(row['delta']):.1f} BLEU {relation} than "
        f"{names[runs[0].name]} (95% CI {least:.1f} to {most:.1f}; p = {row['p_holm']:.3f} after Holm, {others})."
    )
    return Finding(text, "scores", everything)


def _most_different_sentence(runs: Sequence[Run], test: str) -> Finding | None:
    if not _comparable(runs, test):
        return None
    from workbench.evaluation.sentence_rankings import most_different, segment_chrf

    sentence = most_different(runs, test)
    scores = segment_chrf(runs, test)[:, sentence]
    difference = scores.max() - scores.min()
    text = f"Outputs differ most at sentence {sentence}: {difference:.0f} chrF between the best and the worst."
    return Finding(text, "sentences", [run.name for run in runs], sentence)


def _worst_estimate(runs: Sequence[Run], test: str) -> Finding | None:
    from workbench.figures.request import Request
    from workbench.views.future_cost.measure import agreement_table, estimates, is_traced

    traced = [run for run in runs if estimates(run) and is_traced(run, test)]
    if not traced:
        return None
    table = agreement_table(Request(tuple(traced), test))
    worst = table.iloc[int(table["mean_absolute_error"].argmax())]
    text = (
        f"The estimates of future cost that are farthest off: those of {worst['system']}, by "
        f"{worst['mean_absolute_error']:.2f} nats a word on average (bias {worst['bias']:+.2f}, "
        f"r = {worst['pearson']:.2f})."
    )
    return Finding(text, "future_cost", [run.name for run in traced])
