"""Drawings of the alignment error rate of attention over a whole test set, against gold links.

References are forced through the runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.evaluation.alignment_error import ALIGNMENT_ERROR, AlignmentError
from workbench.evaluation.document_context import strip_context_pieces
from workbench.evaluation.forced_decoding import Forced, Target, Targets, force, opened, stamp
from workbench.evaluation.gold_alignments import has_truth
from workbench.evaluation.live_trace import layers_and_heads
from workbench.evaluation.result_cache import of_forced_references
from workbench.evaluation.scoring import by_seed, check_alike
from workbench.evaluation.word_frequencies import unseen_of
from workbench.figures.options import FigureOptions, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.attention.figures import HEAD, LAYER, gold_links

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.alignment import ErrorStatistics, Link
    from analyses.pharaoh import GoldLinks
    from workbench.plotting.grammar import Figure

TRUTH = "truth"  # in place of a file
MOST_SENTENCES = 1000  # the first ones: every layer and head of their attention is held
_COMPARED = ["system", "n", "seeds", "percent", "spread", "low", "high", "delta", "delta_low", "delta_high", "p_value",
             "p_holm", "form"]  # fmt: skip
_CROSS, _OWN, _ENCODER = "decoder.cross_attention", "decoder.self_attention", "encoder.self_attention"


class AlignmentErrorOptions(FigureOptions):
    """Options of the figure `alignment-error`."""

    links: str = Field("", description="A file of gold links in Pharaoh format, or truth: of the controlled corpus")
    layer: PositiveInt | Literal["mean", "rollout", "each"] = Field("mean", description=LAYER)
    head: PositiveInt | Literal["mean", "each"] = Field("mean", description=HEAD)


class AlignmentErrorLengthsOptions(AlignmentErrorOptions):
    """Options of the figure `alignment-error-lengths`."""

    scheme: str = Field("short", description="Buckets of source length: gdr, fc-six or short")


class ComparedOptions(AlignmentErrorOptions):
    """Options of the table of differences to the baseline."""

    over_seeds: bool = Field(False, description="Runs of a system are its seeds")


@dataclass(frozen=True, eq=False)
class _Aligned:
    """A system, or one of its layers or heads: a map of words [target, source] for each sentence that counts."""

    name: str
    run: str
    weights: list[np.ndarray]
    sure: list[set[Link]]
    possible: list[set[Link]]
    source_words: list[int]
    left_out: int


def gold(request: Request, links: str) -> tuple[GoldLinks, str]:
    """The gold links of a request's test set, and where they are from, in words."""
    from analyses.pharaoh import GoldLinks

    if not links:
        raise RunError(
            "the alignment error rate needs gold links: --option links=FILE, or links=truth (controlled corpus)"
        )
    if links != TRUTH:
        found = gold_links(links, request.runs[0], request.test)
        return found, f"gold words are {found.counting}"
    if not has_truth(request.runs[0], request.test):
        raise RunError(
            f"the test set {request.test!r} has no truth, which only the controlled corpus knows; name a file"
        )
    records = request.runs[0].translations(request.test).truth or []
    sets: list[set[Link]] = [{(int(i), int(j)) for i, j in record["alignment"]} for record in records]
    return GoldLinks(sets, sets, 0, True), "gold links are the truth of the controlled corpus"


@lru_cache(maxsize=3)
def _forced(reference: str, weights: tuple[float, int], targets: tuple[Target, ...], rollout: bool) -> list[Forced]:
    """Every reference forced, with attention."""
    names = (_CROSS, _OWN, _ENCODER) if rollout else (_CROSS,)
    return list(force(opened(reference, weights), targets, names, len(targets)))


def _maps(request: Request, options: AlignmentErrorOptions, run: Run) -> Iterator[tuple[str, int | None, int | None]]:
    """Name, layer and head of each map that is asked for of a run."""
    layer, head = options.layer, options.head
    if layer == head == "each":
        raise RunError("choose a layer or a head: a line for each of both would be too many")
    if layer == "rollout" and head != "mean":
        raise RunError("attention rollout takes the mean over heads; leave the head out")
    name = short_names(request.runs)[run.name]
    layers, heads = layers_and_heads([run], _CROSS)
    if layer == "each":
        yield from ((f"{name}, layer {one}", one, number(head)) for one in range(1, layers + 1))
    elif head == "each":
        yield from ((f"{name}, head {one}", number(layer), one) for one in range(1, heads + 1))
    else:
        yield name, number(layer), number(head)


def _aligned(request: Request, options: AlignmentErrorOptions) -> list[_Aligned]:
    """Every map of every run over the sentences whose pieces join to the words that gold links count."""
    links, _ = gold(request, options.links)
    rollout = options.layer == "rollout"
    translated = {run.name: run.translations(request.test) for run in request.runs}
    check_alike(translated)  # the links are of one version's words
    found = []
    for run in request.runs:
        translations = translated[run.name]
        text = translations.test_set
        if text.references is None:
            raise RunError(f"the test set {request.test!r} has no references, which gold links would align")
        rows = min(len(text.sources), MOST_SENTENCES)
        sources, targets = text.sources[:rows], text.references[:rows]
        each = tuple(Target(row, *pair) for row, pair in enumerate(zip(sources, targets, strict=True)))
        model = opened(run.reference, stamp(run))
        within = Targets(run, request.test, "reference", each).in_documents(model.translator)
        forced = _forced(run.reference, stamp(run), tuple(within), rollout)
        for name, layer, head in _maps(request, options, run):
            maps = [_words(own, layer, head, rollout) for own in forced]
            wanted = [
                (len(target.split()), len(source.split())) for source, target in zip(sources, targets, strict=True)
            ]
            kept = [row for row, weights in enumerate(maps) if weights.shape == wanted[row] and weights.size]
            if not kept:
                raise RunError(f"{run.name}: its pieces join to other words than gold links count, in every sentence")
            found.append(
                _Aligned(
                    name,
                    run.name,
                    [maps[row] for row in kept],
                    [links.sure[row] for row in kept],
                    [links.possible[row] for row in kept],
                    [wanted[row][1] for row in kept],
                    len(text.sources) - len(kept),
                )
            )
    return found


def _words(one: Forced, layer: int | None, head: int | None, rollout: bool) -> np.ndarray:
    """One map of words [target, source] of a forced sentence, without the ends and what is joined before it."""
    from analyses import attention

    target, trace = one.tokens, one.trace
    if _CROSS not in trace:
        raise RunError("a system without attention to the source has no alignment; choose another run")
    if rollout:
        if _OWN not in trace or _ENCODER not in trace:
            raise RunError("attention rollout needs self-attention on both sides; choose a Transformer or a layer")
        own_weights, cross, encoder = (trace[name].values for name in (_OWN, _CROSS, _ENCODER))
        weights = attention.decoder_rollout(own_weights, cross, encoder).source[-1]
    else:
        weights = attention.average(trace[_CROSS].values, layer, head)
    words = strip_context_pieces(one.source_tokens)
    joined = attention.to_words(weights[:, -len(words) :], target, words)
    return attention.without_end(joined, attention.joined(target), attention.joined(words))[0]


def _curves(found: list[_Aligned]) -> pd.DataFrame:
    """`analyses.alignment.threshold_curve` of every map: system first."""
    import pandas as pd

    from analyses.alignment import threshold_curve

    tables = [threshold_curve(one.weights, one.sure, one.possible).assign(system=one.name) for one in found]
    table = pd.concat(tables, ignore_index=True)
    return table[["system", *(name for name in table if name != "system")]]


def _errors(found: list[_Aligned]) -> dict[str, ErrorStatistics]:
    """The error statistics of links by argmax, of every map by its name; raises RunError where they are not of the
    same sentences."""
    from analyses.alignment import error_statistics, from_attention

    if any(one.source_words != found[0].source_words for one in found):
        raise RunError("the runs leave out different sentences, so their parts differ; take them one by one")
    return {
        one.name: error_statistics([from_attention(own) for own in one.weights], one.sure, one.possible)
        for one in found
    }


def compared_table(request: Request, options: ComparedOptions) -> pd.DataFrame:
    """The error of links by argmax beside the baseline's (its first map's): system, n (sentences), seeds, percent,
    spread, low, high, delta, delta_low, delta_high, p_value, p_holm, form (what the intervals carry); intervals and
    p-values by the paired bootstrap.

    With the option `over_seeds` runs of a system are its seeds: means over them, intervals and p-values as
    `analyses.seeds` makes them. Raises RunError.
    """
    from analyses import seeds

    if request.base not in [run.name for run in request.runs]:
        raise RunError(f"the baseline {request.base!r} is not among the runs")
    found = _aligned(request, options)
    errors = _errors(found)
    if not options.over_seeds:
        first = next(one.name for one in found if one.run == request.base)
        table = seeds.beside_baseline({name: {0: own} for name, own in errors.items()}, first)
    elif len(found) > len(request.runs):
        raise RunError("over_seeds takes one map of each run: choose a layer and a head, or their mean")
    else:
        first = next(run.system for run in request.runs if run.name == request.base)
        table = seeds.beside_baseline(by_seed(request.runs, {one.run: errors[one.name] for one in found}), first)
    return table.rename(columns={"score": "percent"})[_COMPARED]


def _said(request: Request, options: AlignmentErrorOptions, found: list[_Aligned]) -> str:
    layer, head = options.layer, options.head
    mean = [
        f"{name}s" for name, chosen in (("layer", layer), ("head", head)) if chosen == "mean" and layer != "rollout"
    ]
    fixed = [f"{name} {value}" for name, value in (("layer", layer), ("head", head)) if isinstance(value, int)]
    which = "attention rollout" if layer == "rollout" else "attention to the source"
    over = f", mean over {' and '.join(mean)}" if mean else ""
    most = max(one.left_out for one in found)
    left = f" {most} sentences are left out (too many, or pieces that join to other words)." if most else ""
    return (
        f"References forced through the runs, {which}{over}{', ' if fixed else ''}{', '.join(fixed)}, joined to words; "
        f"{gold(request, options.links)[1]}.{left} {_unseen(request.runs[0], request.test)}"
    )


def _unseen(run: Run, test: str) -> str:
    """How many words of a test set the baseline never met in training, in words: attention to them is a guess."""
    text = run.translations(test).test_set
    sides = {"source": text.sources, "target": text.references or []}
    try:
        shares = {side: f"{100 * unseen_of(run, side, lines):.1f} %" for side, lines in sides.items()}
    except RunError as error:
        return f"How many words training never showed is not known: {error}."
    return (
        f"Of the source's words {shares['source']}, of the references' {shares['target']} are not in the training text "
        f"of {run.name}."
    )


def _looks(request: Request, found: list[_Aligned]) -> dict:
    """A run's own style where each run is one line."""
    return styles(request) if len(found) == len(request.runs) else {}


def _keep(
    request: Request,
    options: AlignmentErrorOptions,
    inputs: list[dict[str, str]],
    found: list[_Aligned],
    curves: pd.DataFrame,
) -> None:
    """Keep the error of the links by argmax beside each run, where each run is one line."""
    if len(found) != len(request.runs):
        return
    layer, head = str(options.layer), str(options.head)
    by_argmax = curves[curves["threshold"].isna()].set_index("system")["aer"]
    links = Path(options.links).name
    for run, own, one in zip(request.runs, inputs, found, strict=True):
        error = float(by_argmax[one.name])
        with contextlib.suppress(ValueError):  # no number, where neither has a link: nothing to keep
            result = AlignmentError(aer=error, sentences=len(one.weights), layer=layer, head=head, links=links)
            ALIGNMENT_ERROR.save(run, own, result, request.test)


@figure("alignment-error", scope="test_set", options=AlignmentErrorOptions)
def _alignment_error(request: Request, options: AlignmentErrorOptions) -> Figure:
    """Alignment error of attention against gold links, over thresholds of the weight."""
    from workbench.views.attention.alignment_error_plots import alignment_error

    inputs = [of_forced_references(run, request.test) for run in request.runs]
    found = _aligned(request, options)
    curves = _curves(found)
    _keep(request, options, inputs, found, curves)
    caption = (
        "A link wherever a weight is at least the threshold; dotted: one link a target word, to the source word that "
        f"it attends to most. Precision is of possible links, recall of sure ones. {_said(request, options, found)}"
    )
    return alignment_error(curves, caption, _looks(request, found))


@figure("alignment-error-lengths", scope="test_set", options=AlignmentErrorLengthsOptions)
def _alignment_error_lengths(request: Request, options: AlignmentErrorLengthsOptions) -> Figure:
    """Alignment error of attention against gold links, by source length."""
    from analyses import buckets
    from workbench.views.buckets.plots import length_scores

    found = _aligned(request, options)
    grouped = buckets.preset(found[0].source_words, options.scheme)
    table = buckets.scores(_errors(found), grouped).dropna(subset=["score"])
    figure = length_scores(table, "AER (%)", "source length (words)", styles=_looks(request, found))
    caption = f"{figure.caption} Links by argmax; lower is better. {_said(request, options, found)}"
    return replace(figure, name="alignment-error-lengths", title="Alignment error rate by length", caption=caption)
