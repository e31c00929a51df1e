"""Figures of the alignment error rate of attention over a test set, against gold links.

References are force-decoded by the runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field, PositiveInt

from workbench.evaluation.alignment_error import ALIGNMENT_ERROR, AlignmentError
from workbench.evaluation.document_context import strip_context_pieces
from workbench.evaluation.forced_decoding import Forced, Target, Targets, force, opened, stamp
from workbench.evaluation.live_trace import layers_and_heads
from workbench.evaluation.result_cache import of_forced_references
from workbench.evaluation.scoring import by_seed, check_alike
from workbench.evaluation.word_frequencies import unseen_of
from workbench.figures.options import FigureOptions, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.attention.figures import HEAD, LAYER
from workbench.views.attention.gold_links import TRUTH, gold_links

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.alignment import ErrorStatistics, Link
    from analyses.pharaoh import GoldLinks
    from workbench.plotting.grammar import Figure

    _PieceMap: TypeAlias = tuple[np.ndarray, list[str], list[str]]  # weights, target pieces, source pieces

MOST_SENTENCES = 1000  # at most so many are forced: all layers and heads of their attention are held in memory
_COMPARED = ["system", "n", "seeds", "percent", "spread", "low", "high", "delta", "delta_low", "delta_high", "p_value",
             "p_holm", "form"]  # fmt: skip
_ARGMAX = "Argmax links words (weights are joined to words before) or pieces (links are joined to words after)"
_CROSS, _SELF, _ENCODER = "decoder.cross_attention", "decoder.self_attention", "encoder.self_attention"


class AlignmentErrorOptions(FigureOptions):
    """Options of the figure `alignment-error`."""

    links: str = Field("", description="A file of gold links in Pharaoh format, or truth: of the controlled corpus")
    layer: PositiveInt | Literal["mean", "rollout", "each"] = Field("mean", description=LAYER)
    head: PositiveInt | Literal["mean", "each"] = Field("mean", description=HEAD)
    argmax: Literal["words", "pieces"] = Field("words", description=_ARGMAX)


class AlignmentErrorLengthsOptions(AlignmentErrorOptions):
    """Options of the figure `alignment-error-lengths`."""

    scheme: str = Field("short", description="Buckets of source length: tens or short")


class ComparedOptions(AlignmentErrorOptions):
    """Options of the table of differences to the baseline."""

    over_seeds: bool = Field(False, description="Runs of a system are its seeds")


@dataclass(frozen=True, eq=False)
class _AlignmentMaps:
    """Word maps [target, source] of the matching sentences, of a system or one of its layers or heads.

    argmax: links of each sentence by argmax, of words or of pieces.
    """

    name: str
    run: str
    weights: list[np.ndarray]
    argmax: list[set[Link]]
    sure: list[set[Link]]
    possible: list[set[Link]]
    source_words: list[int]
    left_out: int


def gold(request: Request, links: str) -> tuple[GoldLinks, str]:
    """Gold links of the request's test set, and a description of their source."""
    if not links:
        raise RunError(
            "the alignment error rate needs gold links: --option links=FILE, or links=truth (controlled corpus)"
        )
    found = gold_links(links, request.runs[0], request.test)
    described = "links are the truth of the controlled corpus" if links == TRUTH else f"words are {found.counting}"
    return found, f"gold {described}"


@lru_cache(maxsize=3)
def _forced(reference: str, weights: tuple[float, int], targets: tuple[Target, ...], rollout: bool) -> list[Forced]:
    """Force-decode all references with attention."""
    names = (_CROSS, _SELF, _ENCODER) if rollout else (_CROSS,)
    return list(force(opened(reference, weights), targets, names, len(targets)))


def _maps(request: Request, options: AlignmentErrorOptions, run: Run) -> Iterator[tuple[str, int | None, int | None]]:
    """Name, layer and head of each requested map of a run."""
    layer, head = options.layer, options.head
    if layer == head == "each":
        raise RunError("choose a layer or a head: a line for each of both would be too many")
    if layer == "rollout" and head != "mean":
        raise RunError("attention rollout takes the mean over heads; leave the head out")
    name = short_names(request.runs)[run.name]
    layers, heads = layers_and_heads([run], _CROSS)
    if layer == "each":
        yield from ((f"{name}, layer {index}", index, number(head)) for index in range(1, layers + 1))
    elif head == "each":
        yield from ((f"{name}, head {index}", number(layer), index) for index in range(1, heads + 1))
    else:
        yield name, number(layer), number(head)


def _alignment_maps(request: Request, options: AlignmentErrorOptions) -> list[_AlignmentMaps]:
    """Word maps of all runs, for the sentences whose pieces join to the words of the gold links."""
    from analyses.alignment import from_attention

    links, _ = gold(request, options.links)
    rollout = options.layer == "rollout"
    translated = {run.name: run.translations(request.test) for run in request.runs}
    check_alike(translated)  # the links are of one version's words
    systems = []
    for run in request.runs:
        translations = translated[run.name]
        text = translations.test_set
        if text.references is None:
            raise RunError(f"the test set {request.test!r} has no references, which gold links would align")
        rows = min(len(text.sources), MOST_SENTENCES)
        sources, targets = text.sources[:rows], text.references[:rows]
        sentences = tuple(Target(row, *pair) for row, pair in enumerate(zip(sources, targets, strict=True)))
        model = opened(run.reference, stamp(run))
        in_documents = Targets(run, request.test, "reference", sentences).in_documents(model.translator)
        forced = _forced(run.reference, stamp(run), tuple(in_documents), rollout)
        for name, layer, head in _maps(request, options, run):
            piece_maps = [_piece_map(forced_sentence, layer, head, rollout) for forced_sentence in forced]
            maps = [_word_map(piece_map) for piece_map in piece_maps]
            shapes = [
                (len(target.split()), len(source.split())) for source, target in zip(sources, targets, strict=True)
            ]
            matching = [row for row, weights in enumerate(maps) if weights.shape == shapes[row] and weights.size]
            if not matching:
                raise RunError(f"{run.name}: its pieces join to other words than gold links count, in every sentence")
            systems.append(
                _AlignmentMaps(
                    name,
                    run.name,
                    [maps[row] for row in matching],
                    [
                        from_attention(maps[row]) if options.argmax == "words" else _links_of_pieces(piece_maps[row])
                        for row in matching
                    ],
                    [links.sure[row] for row in matching],
                    [links.possible[row] for row in matching],
                    [shapes[row][1] for row in matching],
                    len(text.sources) - len(matching),
                )
            )
    return systems


def _piece_map(forced: Forced, layer: int | None, head: int | None, rollout: bool) -> _PieceMap:
    """Weights [target, source] between the pieces of a forced sentence with </s>, without concatenated context."""
    from analyses import attention

    trace = forced.trace
    if _CROSS not in trace:
        raise RunError("a system without attention to the source has no alignment; choose another run")
    if rollout:
        if _SELF not in trace or _ENCODER not in trace:
            raise RunError("attention rollout needs self-attention on both sides; choose a Transformer or a layer")
        self_attention, cross, encoder = (trace[name].values for name in (_SELF, _CROSS, _ENCODER))
        weights = attention.decoder_rollout(self_attention, cross, encoder).source[-1]
    else:
        weights = attention.average(trace[_CROSS].values, layer, head)
    source = strip_context_pieces(forced.source_tokens)
    return weights[:, -len(source) :], forced.tokens, source


def _word_map(piece_map: _PieceMap) -> np.ndarray:
    """Weights [target, source] between words, without </s>."""
    from analyses import attention

    _, target, source = piece_map
    return attention.without_end(attention.to_words(*piece_map), attention.joined(target), attention.joined(source))[0]


def _links_of_pieces(piece_map: _PieceMap) -> set[Link]:
    """Words linked where argmax links any of their pieces."""
    from analyses import attention
    from analyses.alignment import from_attention, to_words

    weights, target, source = attention.without_end(*piece_map)
    return to_words(from_attention(weights), attention.word_numbers(source), attention.word_numbers(target))


def _curves(systems: list[_AlignmentMaps]) -> pd.DataFrame:
    """`analyses.alignment.threshold_curve` of every map, with a first column `system`."""
    import pandas as pd

    from analyses.alignment import threshold_curve

    tables = [
        threshold_curve(system.weights, system.sure, system.possible, by_argmax=system.argmax).assign(
            system=system.name
        )
        for system in systems
    ]
    table = pd.concat(tables, ignore_index=True)
    return table[["system", *(name for name in table if name != "system")]]


def _errors(systems: list[_AlignmentMaps]) -> dict[str, ErrorStatistics]:
    """Error statistics of argmax links by map name; raises RunError if the maps are of different sentences."""
    from analyses.alignment import error_statistics

    if any(system.source_words != systems[0].source_words for system in systems):
        raise RunError("the runs leave out different sentences, so their parts differ; take them one by one")
    return {system.name: error_statistics(system.argmax, system.sure, system.possible) for system in systems}


def compared_table(request: Request, options: ComparedOptions) -> pd.DataFrame:
    """AER of argmax links, compared with the baseline (its first map) by the paired bootstrap.

    Columns: system, n (sentences), seeds, percent, spread, low, high, delta, delta_low, delta_high, p_value, p_holm,
    form (what the intervals carry). With the option `over_seeds` runs of a system are its seeds: means over them,
    intervals and p-values of `analyses.seeds`. Raises RunError.
    """
    from analyses import seeds

    if request.base not in [run.name for run in request.runs]:
        raise RunError(f"the baseline {request.base!r} is not among the runs")
    systems = _alignment_maps(request, options)
    errors = _errors(systems)
    if not options.over_seeds:
        first = next(system.name for system in systems if system.run == request.base)
        table = seeds.beside_baseline({name: {0: statistics} for name, statistics in errors.items()}, first)
    elif len(systems) > len(request.runs):
        raise RunError("over_seeds takes one map of each run: choose a layer and a head, or their mean")
    else:
        first = next(run.system for run in request.runs if run.name == request.base)
        table = seeds.beside_baseline(
            by_seed(request.runs, {system.run: errors[system.name] for system in systems}), first
        )
    return table.rename(columns={"score": "percent"})[_COMPARED]


def _linked_by_argmax(options: AlignmentErrorOptions) -> str:
    if options.argmax == "words":
        return "one link a target word, to the source word that it attends to most"
    return "each target piece is linked to the source piece that it attends to most, and words where any pieces are"


def _map_caption(request: Request, options: AlignmentErrorOptions, systems: list[_AlignmentMaps]) -> str:
    layer, head = options.layer, options.head
    mean = [
        f"{name}s" for name, choice in (("layer", layer), ("head", head)) if choice == "mean" and layer != "rollout"
    ]
    fixed = [f"{name} {value}" for name, value in (("layer", layer), ("head", head)) if isinstance(value, int)]
    attention = "attention rollout" if layer == "rollout" else "attention to the source"
    over = f", mean over {' and '.join(mean)}" if mean else ""
    left_out = max(system.left_out for system in systems)
    left_out_text = (
        f" {left_out} sentences are left out (too many, or pieces that join to other words)." if left_out else ""
    )
    return (
        f"References forced through the runs, {attention}{over}{', ' if fixed else ''}{', '.join(fixed)}, joined to "
        f"words; {gold(request, options.links)[1]}.{left_out_text} {_unseen_words_text(request.runs[0], request.test)}"
    )


def _unseen_words_text(run: Run, test: str) -> str:
    """Sentence with the shares of test words that are not in the baseline's training text."""
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


def _series_styles(request: Request, systems: list[_AlignmentMaps]) -> dict:
    """Styles of the runs if each run is one line; else empty."""
    return styles(request) if len(systems) == len(request.runs) else {}


def _save_errors(
    request: Request,
    options: AlignmentErrorOptions,
    inputs: list[dict[str, str]],
    systems: list[_AlignmentMaps],
    curves: pd.DataFrame,
) -> None:
    """Save the AER of argmax links in the runs' folders, if each run is one line."""
    if len(systems) != len(request.runs):
        return
    layer, head = str(options.layer), str(options.head)
    by_argmax = curves[curves["threshold"].isna()].set_index("system")["aer"]
    links = Path(options.links).name
    for run, digests, system in zip(request.runs, inputs, systems, strict=True):
        error = float(by_argmax[system.name])
        with contextlib.suppress(ValueError):  # NaN without any link: nothing to save
            result = AlignmentError(
                aer=error, sentences=len(system.weights), layer=layer, head=head, argmax=options.argmax, links=links
            )
            ALIGNMENT_ERROR.save(run, digests, result, request.test)


@figure("alignment-error", scope="test_set", options=AlignmentErrorOptions)
def _alignment_error(request: Request, options: AlignmentErrorOptions) -> Figure:
    """Alignment error of attention against gold links, over thresholds of the weight."""
    from workbench.views.attention.alignment_error_plots import alignment_error

    inputs = [of_forced_references(run, request.test) for run in request.runs]
    systems = _alignment_maps(request, options)
    curves = _curves(systems)
    _save_errors(request, options, inputs, systems, curves)
    caption = (
        f"A link wherever a weight is at least the threshold; dotted: {_linked_by_argmax(options)}. Precision is of "
        "possible links, recall of sure ones. "
        f"{_map_caption(request, options, systems)}"
    )
    return alignment_error(curves, caption, _series_styles(request, systems))


@figure("alignment-error-lengths", scope="test_set", options=AlignmentErrorLengthsOptions)
def _alignment_error_lengths(request: Request, options: AlignmentErrorLengthsOptions) -> Figure:
    """Alignment error of attention against gold links, by source length."""
    from analyses import buckets
    from workbench.views.buckets.plots import length_scores

    systems = _alignment_maps(request, options)
    grouped = buckets.preset(systems[0].source_words, options.scheme)
    table = buckets.scores(_errors(systems), grouped).dropna(subset=["score"])
    figure = length_scores(table, "AER (%)", "source length (words)", styles=_series_styles(request, systems))
    links = f"Links by argmax: {_linked_by_argmax(options)}; lower is better."
    caption = f"{figure.caption} {links} {_map_caption(request, options, systems)}"
    return replace(figure, name="alignment-error-lengths", title="Alignment error rate by length", caption=caption)
