"""Figures of layer routing over a test set: measures by iteration, controls, and measures over training.

Runs without routing on the side are left out. Results are cached in the runs' folders (`measure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.evaluation.forced_decoding import Targets, targets_of
from workbench.figures.options import CorpusOptions, Sentences, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, short_names
from workbench.views.layer_routing import measure as routing
from workbench.views.layer_routing.figures import (
    ENTROPY_UNIT,
    SIDE,
    EntropyUnit,
    Side,
    ceilings,
    entropy_text,
    layer_names,
    printed_curve,
    reported_text,
)

if TYPE_CHECKING:
    import pandas as pd

    from analyses.routing import RoutingStatistics
    from workbench.plotting.grammar import Figure

_EXPLAINED = {
    "corrected": "Entropy of where a layer's votes go{} (dotted: even shares), and its exponential, the effective "
    "capsules; diversity: one minus the mean cosine of what two capsules get; dead: capsules that get less than a "
    "tenth of an even share within a sentence.",
    "printed": "Equations 17 and 18 of Dou 2019 to the letter; they do not give its numbers.",
}
_BESIDE = "Hollow: reported by Dou 2019, of six layers and 512 capsules on other text"
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
    entropy: EntropyUnit = ENTROPY_UNIT


class RoutingHealthOptions(RoutedOptions):
    """Options of the figure `routing-health`."""

    sentences: Sentences = Field(20, description="How many sentences, the first ones; once for each checkpoint")
    checkpoints: PositiveInt = Field(12, description="How many at most, evenly chosen")


def _compatible_runs(request: Request, side: str) -> list[Run]:
    compatible_runs = [run for run in request.runs if routing.routed(run, side)]
    if not compatible_runs:
        routing.routing_mechanism(request.runs[0], side)  # raises RunError
    return compatible_runs


def _targets(run: Run, request: Request, options: RoutedOptions) -> Targets:
    return targets_of(run, request.test, "own", number(options.sentences))


def _names(request: Request) -> dict[str, str]:
    return short_names(request.runs)


def _sentences_text(request: Request, side: str, targets: Targets) -> str:
    """Caption with the number of sentences and the test set."""
    translations = "" if side == "encoder" else ", the runs' own translations"
    return f"{len(targets)} sentence{'s' if len(targets) > 1 else ''} of {request.test}{translations}"


def _ceilings(spreads: list[RoutingStatistics], unit: EntropyUnit = "nats") -> list[float]:
    return ceilings((spread.capsules for spread in spreads), unit)


def corpus_table(request: Request, options: RoutingCorpusOptions) -> pd.DataFrame:
    """Numbers of the figure `routing-corpus`, entropies in nats.

    Columns: series, measure, iteration, layer, value, low, high, capsules.
    """
    from workbench.views.layer_routing.corpus_plots import LABELS

    table = _chosen_layers(_corpus(request, options)[0], options)
    printed = table["measure"].str.endswith("_as_printed")
    table = table[printed == (options.formula == "printed")]
    return table.assign(measure=table["measure"].map(lambda name: LABELS.get(name, name.replace("_", ", "))))


def _chosen_layers(table: pd.DataFrame, options: RoutingCorpusOptions) -> pd.DataFrame:
    """Rows of all layers together and, with `layers`, of each layer."""
    return table[options.layers | (table["layer"] == "")]


def _corpus(request: Request, options: RoutingCorpusOptions) -> tuple[pd.DataFrame, list[RoutingStatistics], str]:
    """Table of measures, the spreads it comes from, and a description of values without intervals."""
    import pandas as pd

    from analyses.routing import measures

    tables, spreads, descriptions = [], [], []
    for run in _compatible_runs(request, options.side):
        targets, name = _targets(run, request, options), _names(request)[run.name]
        spread = routing.measured(run, options.side, targets)
        table = measures(spread)
        tables.append(table.assign(series=name, layer=_layers(table, run), capsules=spread.capsules))
        spreads.append(spread)
        descriptions.append(f"{name}: {_run_summary(table, spread)}, {_sentences_text(request, options.side, targets)}")
    return pd.concat(tables, ignore_index=True), spreads, "; ".join(descriptions)


def _layers(table: pd.DataFrame, run: Run) -> pd.Series:
    names = ["", *layer_names(run, int(table["layer"].max()))]
    return table["layer"].map(lambda layer: names[layer])


def _run_summary(table: pd.DataFrame, spread: RoutingStatistics) -> str:
    dead = round(float(spread.dead_throughout[-1]) * spread.capsules)
    summary = f"{dead} of {spread.capsules} capsules dead throughout"
    last_values = table.set_index("measure")["value"]
    if "activation_low" not in last_values:
        return summary
    return f"{summary}, activations {last_values['activation_low']:.3f} to {last_values['activation_high']:.3f}"


@figure("routing-corpus", scope="test_set", options=RoutingCorpusOptions)
def _routing_corpus(request: Request, options: RoutingCorpusOptions) -> Figure:
    """Entropy, diversity and other measures of layer routing over a test set, by iteration."""
    from workbench.views.layer_routing.corpus_plots import routing_corpus

    table, spreads, description = _corpus(request, options)
    table = _chosen_layers(table, options)
    series = table["series"] + table["layer"].map(lambda layer: f", layer {layer}" if layer else "")
    shares = options.formula == "corrected"
    explained = _EXPLAINED[options.formula].format(entropy_text(options.entropy))
    beside = f"{_BESIDE}{reported_text(options.entropy) if shares else ''}." if options.printed else ""
    caption = (
        f"Layers of the {options.side}, means over positions with 95% bootstrap intervals over sentences. "
        f"{explained} {beside} {_ACTIVE} {description}."
    )
    return routing_corpus(
        table.assign(series=series),
        styles(request),
        printed_curve() if options.printed else None,
        _ceilings(spreads, options.entropy),
        " ".join(caption.split()),
        options.formula,
        options.entropy,
    )


@figure("routing-learned", scope="test_set", options=RoutedOptions)
def _routing_learned(request: Request, options: RoutedOptions) -> Figure:
    """Routing of the trained weights compared with the initial weights and with control votes."""
    import pandas as pd

    from analyses.routing import measures
    from workbench.views.layer_routing.corpus_plots import routing_corpus

    tables, spreads, descriptions = [], [], []
    compatible_runs = _compatible_runs(request, options.side)
    for run in compatible_runs:
        targets = _targets(run, request, options)
        name = f"{_names(request)[run.name]}, " if len(compatible_runs) > 1 else ""
        for state, label in routing.STATES.items():
            spread = routing.measured(run, options.side, targets, state)
            table = measures(spread)
            tables.append(table[table["layer"] == 0].assign(series=f"{name}{label}"))
            spreads.append(spread)
        trained, *controls = spreads[-len(routing.STATES) :]
        labels = list(routing.STATES.values())[1:]
        comparisons = [
            f"minus {label} {_difference_text(trained, spread)}" for spread, label in zip(controls, labels, strict=True)
        ]
        descriptions.append(
            f"{_names(request)[run.name]}, {_sentences_text(request, options.side, targets)}; trained "
            f"{' and '.join(comparisons)}"
        )
    caption = (
        f"Layers of the {options.side}, means over positions with 95% bootstrap intervals over sentences: "
        f"{'; '.join(descriptions)} (at the last iteration, paired). At initialization: the weights that training "
        "began from, "
        "the same words forced. Shuffled votes: each layer's votes moved to other positions of a few sentences, all "
        "capsules together, so every layer votes as often for what it votes for, but no longer about the same word as "
        "the other layers; what is left is the algorithm's own and the layers' average votes. Votes exchanged: at each "
        "position the votes for each capsule among the layers, so it hears the same, from others. "
        f"{_EXPLAINED['corrected'].format('')}"
    )
    figure = routing_corpus(pd.concat(tables, ignore_index=True), None, None, _ceilings(spreads), caption)
    return replace(figure, name="routing-learned", title="Routing: what is learned")


def _difference_text(trained: RoutingStatistics, control: RoutingStatistics) -> str:
    """Differences of entropy and diversity between trained run and control at the last iteration."""
    from analyses.routing import differences

    table = differences(trained, control).set_index("measure")
    texts = []
    for measure, unit in (("entropy", " nats"), ("diversity", "")):
        row = table.loc[measure]
        texts.append(f"{measure} {row['delta']:+.3f}{unit} [{row['low']:+.3f}, {row['high']:+.3f}]")
    return ", ".join(texts).replace("-", "−")


def store_history(runs: Sequence[Run], test: str) -> None:
    """Store what the figure routing-health shows of those runs that have checkpoints, beside them."""
    for run in runs:
        for side in routing.SIDES:
            if routing.routed(run, side) and routing.is_followed(run):
                _health(Request((run,), test), RoutingHealthOptions(side=side))


def _health(request: Request, options: RoutingHealthOptions) -> tuple[pd.DataFrame, list[RoutingStatistics], str]:
    """Measures of the last iteration at each checkpoint, the runs' initial spreads, and a description.

    Columns: series, step, measure, value, low, high.
    """
    import pandas as pd

    from analyses.routing import measures

    tables, initial_spreads, descriptions = [], [], []
    for run in _compatible_runs(request, options.side):
        targets, side = _targets(run, request, options), options.side
        history = routing.over_training(run, side, targets, options.checkpoints)
        for step, item in history.items():
            table = measures(item)
            last = (table["iteration"] == table["iteration"].max()) & (table["layer"] == 0)
            tables.append(table[last].assign(series=_names(request)[run.name], step=step))
        initial_spreads.append(history[0])
        descriptions.append(
            f"{_names(request)[run.name]}: {len(history) - 1} checkpoints, "
            f"{_sentences_text(request, options.side, targets)}"
        )
    return pd.concat(tables, ignore_index=True), initial_spreads, "; ".join(descriptions)


@figure("routing-health", scope="runs", options=RoutingHealthOptions)
def _routing_health(request: Request, options: RoutingHealthOptions) -> Figure:
    """Measures of layer routing at the last iteration, over the checkpoints of training."""
    from workbench.views.layer_routing.corpus_plots import routing_health

    table, initial_spreads, description = _health(request, options)
    caption = (
        f"Layers of the {options.side} at the last iteration, over training; step 0: the weights it began from. "
        "The same words are forced at every step, as the finished run translates them; 95% bootstrap intervals over "
        f"sentences. {description}."
    )
    return routing_health(table, styles(request), _ceilings(initial_spreads), caption)
