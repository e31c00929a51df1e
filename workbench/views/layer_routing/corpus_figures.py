"""Drawings of layer routing over many sentences: a test set, what of it is learned, and how it came about in training.

Runs that route nothing on a side are left out. What is computed is kept beside the runs (`measure`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.evaluation.forced_decoding import Targets, targets_of
from workbench.figures.options import CorpusOptions, Sentences, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.layer_routing import measure as routing
from workbench.views.layer_routing.figures import SIDE, Side, layer_names, printed_curve

if TYPE_CHECKING:
    import pandas as pd

    from analyses.routing import Spread
    from workbench.plotting.grammar import Figure

_EXPLAINED = {
    "corrected": "Entropy of where a layer's votes go (dotted: even shares), and its exponential, the effective "
    "capsules; diversity: one minus the mean cosine of what two capsules get; dead: capsules that get less than a "
    "tenth of an even share within a sentence.",
    "printed": "Equations 17 and 18 of Dou 2019 to the letter; they do not give its numbers.",
}
_BESIDE = "Hollow: reported by Dou 2019, of six layers and 512 capsules on other text."
_ACTIVE = "Activations of capsules (EM): lowest to highest of a position, on average, at the last iteration."


class RoutedOptions(CorpusOptions):
    """Options of all figures of layer routing over a test set."""

    side: Side = Field("encoder", description=SIDE)
    sentences: Sentences = Field(100, description="How many sentences, the first ones of the test set")


class RoutingCorpusOptions(RoutedOptions):
    """Options of the figure `routing-corpus`."""

    layers: bool = Field(False, description="Also each layer by itself")
    formula: Literal["corrected", "printed"] = Field(
        "corrected", description="Equations 17 and 18 of Dou 2019 as its numbers need them, or to the letter"
    )
    printed: bool = Field(True, description="Also what the paper prints")


class RoutingHealthOptions(RoutedOptions):
    """Options of the figure `routing-health`."""

    sentences: Sentences = Field(20, description="How many sentences, the first ones; once for each checkpoint")
    checkpoints: PositiveInt = Field(12, description="How many at most, evenly chosen")


def _able(request: Request, side: str) -> list[Run]:
    compatible_runs = [run for run in request.runs if routing.routed(run, side)]
    if not compatible_runs:
        routing.kind_of(request.runs[0], side)  # says what is wrong
    return compatible_runs


def _targets(run: Run, request: Request, options: RoutedOptions) -> Targets:
    return targets_of(run, request.test, "own", number(options.sentences))


def _names(request: Request) -> dict[str, str]:
    return short_names(request.runs)


def _on(request: Request, side: str, targets: Targets) -> str:
    """Which sentences these are, in words."""
    own = "" if side == "encoder" else ", the runs' own translations"
    return f"{len(targets)} sentence{'s' if len(targets) > 1 else ''} of {request.test}{own}"


def _ceilings(found: list[Spread]) -> list[float]:
    return sorted({math.log(one.capsules) for one in found})


def corpus_table(request: Request, options: RoutingCorpusOptions) -> pd.DataFrame:
    """The numbers of the drawing `routing-corpus`, in words: series, measure, iteration, layer, value, low, high."""
    from workbench.views.layer_routing.corpus_plots import LABELS

    table = _wanted(_corpus(request, options)[0], options)
    printed = table["measure"].str.endswith("_as_printed")
    table = table[printed == (options.formula == "printed")]
    return table.assign(measure=table["measure"].map(lambda name: LABELS.get(name, name.replace("_", ", "))))


def _wanted(table: pd.DataFrame, options: RoutingCorpusOptions) -> pd.DataFrame:
    """All layers together, and where it is asked for each by itself."""
    return table[options.layers | (table["layer"] == "")]


def _corpus(request: Request, options: RoutingCorpusOptions) -> tuple[pd.DataFrame, list[Spread], str]:
    """The table, what it was made of, and in words what has no interval."""
    import pandas as pd

    from analyses.routing import measures

    tables, found, said = [], [], []
    for run in _able(request, options.side):
        targets, name = _targets(run, request, options), _names(request)[run.name]
        one = routing.measured(run, options.side, targets)
        table = measures(one)
        tables.append(table.assign(series=name, layer=_layers(table, run)))
        found.append(one)
        said.append(f"{name}: {_throughout(table, one)}, {_on(request, options.side, targets)}")
    return pd.concat(tables, ignore_index=True), found, "; ".join(said)


def _layers(table: pd.DataFrame, run: Run) -> pd.Series:
    names = ["", *layer_names(run, int(table["layer"].max()))]
    return table["layer"].map(lambda layer: names[layer])


def _throughout(table: pd.DataFrame, found: Spread) -> str:
    dead = round(float(found.dead_throughout[-1]) * found.capsules)
    said = f"{dead} of {found.capsules} capsules dead throughout"
    ends = table.set_index("measure")["value"]
    if "activation_low" not in ends:
        return said
    return f"{said}, activations {ends['activation_low']:.3f} to {ends['activation_high']:.3f}"


@figure("routing-corpus", scope="test_set", options=RoutingCorpusOptions)
def _routing_corpus(request: Request, options: RoutingCorpusOptions) -> Figure:
    """Entropy, diversity and other measures of layer routing over a test set, by iteration."""
    from workbench.views.layer_routing.corpus_plots import routing_corpus

    table, found, said = _corpus(request, options)
    table = _wanted(table, options)
    series = table["series"] + table["layer"].map(lambda layer: f", layer {layer}" if layer else "")
    caption = (
        f"Layers of the {options.side}, means over positions with 95% bootstrap intervals over sentences. "
        f"{_EXPLAINED[options.formula]} {_BESIDE if options.printed else ''} {_ACTIVE} {said}."
    )
    return routing_corpus(
        table.assign(series=series),
        styles(request),
        printed_curve() if options.printed else None,
        _ceilings(found),
        " ".join(caption.split()),
        options.formula,
    )


@figure("routing-learned", scope="test_set", options=RoutedOptions)
def _routing_learned(request: Request, options: RoutedOptions) -> Figure:
    """What the trained weights do beside the weights they began from, and beside votes that say less."""
    import pandas as pd

    from analyses.routing import measures
    from workbench.views.layer_routing.corpus_plots import routing_corpus

    tables, found, said = [], [], []
    compatible_runs = _able(request, options.side)
    for run in compatible_runs:
        targets = _targets(run, request, options)
        name = f"{_names(request)[run.name]}, " if len(compatible_runs) > 1 else ""
        for state, label in routing.STATES.items():
            one = routing.measured(run, options.side, targets, state)
            table = measures(one)
            tables.append(table[table["layer"] == 0].assign(series=f"{name}{label}"))
            found.append(one)
        trained, *others = found[-len(routing.STATES) :]
        labels = list(routing.STATES.values())[1:]
        apart = [f"minus {label} {_apart(trained, one)}" for one, label in zip(others, labels, strict=True)]
        said.append(
            f"{_names(request)[run.name]}, {_on(request, options.side, targets)}; trained {' and '.join(apart)}"
        )
    caption = (
        f"Layers of the {options.side}, means over positions with 95% bootstrap intervals over sentences: "
        f"{'; '.join(said)} (at the last iteration, paired). At initialization: the weights that training began from, "
        "the same words forced. Shuffled votes: each layer's votes moved to other positions of a few sentences, all "
        "capsules together, so every layer votes as often for what it votes for, but no longer about the same word as "
        "the other layers; what is left is the algorithm's own and the layers' average votes. Votes exchanged: at each "
        "position the votes for each capsule among the layers, so it hears the same, from others. "
        f"{_EXPLAINED['corrected']}"
    )
    figure = routing_corpus(pd.concat(tables, ignore_index=True), None, None, _ceilings(found), caption)
    return replace(figure, name="routing-learned", title="Routing: what is learned")


def _apart(trained: Spread, other: Spread) -> str:
    """How much more entropy and diversity the trained run has at the last iteration."""
    from analyses.routing import differences

    found = differences(trained, other).set_index("measure")
    said = []
    for measure, unit in (("entropy", " nats"), ("diversity", "")):
        row = found.loc[measure]
        said.append(f"{measure} {row['delta']:+.3f}{unit} [{row['low']:+.3f}, {row['high']:+.3f}]")
    return ", ".join(said).replace("-", "−")


def _health(request: Request, options: RoutingHealthOptions) -> tuple[pd.DataFrame, list[Spread], str]:
    """The measures of the last iteration at each checkpoint: series, step, measure, value, low, high; what every run
    began from; and what was forced, in words."""
    import pandas as pd

    from analyses.routing import measures

    tables, found, said = [], [], []
    for run in _able(request, options.side):
        targets, side = _targets(run, request, options), options.side
        kept = routing.checkpoints(run, options.checkpoints)
        if not kept:
            raise RunError(
                f"{run.name} has kept no checkpoint, so only its end is known; train one that keeps them: --config "
                "keep_every=STEPS"
            )
        beginning = routing.measured(run, side, targets, "initial")
        stages = [(0, beginning), *((int(one.step), routing.measured(one, side, targets)) for one in kept)]
        for step, one in stages:
            table = measures(one)
            last = (table["iteration"] == table["iteration"].max()) & (table["layer"] == 0)
            tables.append(table[last].assign(series=_names(request)[run.name], step=step))
        found.append(beginning)
        said.append(f"{_names(request)[run.name]}: {len(kept)} checkpoints, {_on(request, options.side, targets)}")
    return pd.concat(tables, ignore_index=True), found, "; ".join(said)


@figure("routing-health", scope="runs", options=RoutingHealthOptions)
def _routing_health(request: Request, options: RoutingHealthOptions) -> Figure:
    """Measures of layer routing at the last iteration, over the checkpoints of training."""
    from workbench.views.layer_routing.corpus_plots import routing_health

    table, found, said = _health(request, options)
    caption = (
        f"Layers of the {options.side} at the last iteration, over training; step 0: the weights it began from. "
        "The same words are forced at every step, as the finished run translates them; 95% bootstrap intervals over "
        f"sentences. {said}."
    )
    return routing_health(table, styles(request), _ceilings(found), caption)
