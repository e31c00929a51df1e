"""Drawings of layer routing over many sentences: a test set, what of it is learned, and how it came about in training.

Options of all: `side` (encoder, decoder), `sentences` (the first so many, or all). Runs that route nothing there are
left out. What is computed is kept beside the runs (`workbench.views.layer_routing.measure`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.evaluation.forced_decoding import Targets, targets_of
from workbench.figures.options import is_on, sentence_count
from workbench.figures.registry import drawing
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names
from workbench.views.layer_routing import measure as routing
from workbench.views.layer_routing.figures import layer_names, printed_curve, side_of

if TYPE_CHECKING:
    import pandas as pd

    from analyses.routing import Spread
    from workbench.plotting.grammar import Figure

SENTENCES, OVER_TRAINING = 100, 20  # how many unless told; over training it is once for each checkpoint
MOST_CHECKPOINTS = 12
_EXPLAINED = {
    "corrected": "Entropy of where a layer's votes go (dotted: even shares), and its exponential, the effective "
    "capsules; diversity: one minus the mean cosine of what two capsules get; dead: capsules that get less than a "
    "tenth of an even share within a sentence.",
    "printed": "Equations 17 and 18 of Dou 2019 to the letter; they do not give its numbers.",
}
_BESIDE = "Hollow: reported by Dou 2019, of six layers and 512 capsules on other text."
_ACTIVE = "Activations of capsules (EM): lowest to highest of a position, on average, at the last iteration."
_WHICH = ("side", "sentences")


def _able(request: Request) -> list[Run]:
    able = [run for run in request.runs if routing.routed(run, side_of(request))]
    if not able:
        routing.kind_of(request.runs[0], side_of(request))  # says what is wrong
    return able


def _targets(run: Run, request: Request, usual: int) -> Targets:
    return targets_of(run, request.test, "own", sentence_count(request, usual))


def _names(request: Request) -> dict[str, str]:
    return short_names(request.runs)


def _on(request: Request, targets: Targets) -> str:
    """Which sentences these are, in words."""
    own = "" if side_of(request) == "encoder" else ", the runs' own translations"
    return f"{len(targets)} sentence{'s' if len(targets) > 1 else ''} of {request.test}{own}"


def _ceilings(found: list[Spread]) -> list[float]:
    return sorted({math.log(one.capsules) for one in found})


def corpus_table(request: Request) -> pd.DataFrame:
    """The numbers of the drawing `routing-corpus`, in words: series, measure, iteration, layer, value, low, high."""
    from workbench.views.layer_routing.corpus_plots import LABELS

    table = _wanted(_corpus(request)[0], request)
    printed = table["measure"].str.endswith("_as_printed")
    table = table[printed == (_formula(request) == "printed")]
    return table.assign(measure=table["measure"].map(lambda name: LABELS.get(name, name.replace("_", ", "))))


def _formula(request: Request) -> str:
    formula = str(request.options.get("formula", "corrected"))
    if formula not in _EXPLAINED:
        raise RunError(f"formula {formula!r}: choose {' or '.join(_EXPLAINED)}")
    return formula


def _wanted(table: pd.DataFrame, request: Request) -> pd.DataFrame:
    """All layers together, and where it is asked for each by itself."""
    each = is_on(request, "layers")
    return table[each | (table["layer"] == "")]


def _corpus(request: Request) -> tuple[pd.DataFrame, list[Spread], str]:
    """The table, what it was made of, and in words what has no interval."""
    import pandas as pd

    from analyses.routing import measures

    tables, found, said = [], [], []
    for run in _able(request):
        targets, name = _targets(run, request, SENTENCES), _names(request)[run.name]
        one = routing.measured(run, side_of(request), targets)
        table = measures(one)
        tables.append(table.assign(series=name, layer=_layers(table, run)))
        found.append(one)
        said.append(f"{name}: {_throughout(table, one)}, {_on(request, targets)}")
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


@drawing("routing-corpus", options=(*_WHICH, "layers", "formula", "printed"))
def _routing_corpus(request: Request) -> Figure:
    """Options besides: layers (also each layer by itself), formula (corrected, printed), printed (also the paper's)."""
    from workbench.views.layer_routing.corpus_plots import routing_corpus

    formula = _formula(request)
    table, found, said = _corpus(request)
    table = _wanted(table, request)
    series = table["series"] + table["layer"].map(lambda layer: f", layer {layer}" if layer else "")
    beside = is_on(request, "printed", usual=True)
    caption = (
        f"Layers of the {side_of(request)}, means over positions with 95% bootstrap intervals over sentences. "
        f"{_EXPLAINED[formula]} {_BESIDE if beside else ''} {_ACTIVE} {said}."
    )
    return routing_corpus(
        table.assign(series=series),
        styles(request),
        printed_curve() if beside else None,
        _ceilings(found),
        " ".join(caption.split()),
        "printed" if formula == "printed" else "corrected",
    )


@drawing("routing-learned", options=_WHICH)
def _routing_learned(request: Request) -> Figure:
    """What the trained weights do beside the weights they began from, and beside votes that say less."""
    import pandas as pd

    from analyses.routing import measures
    from workbench.views.layer_routing.corpus_plots import routing_corpus

    tables, found, said = [], [], []
    able = _able(request)
    for run in able:
        targets = _targets(run, request, SENTENCES)
        name = f"{_names(request)[run.name]}, " if len(able) > 1 else ""
        for state, label in routing.STATES.items():
            one = routing.measured(run, side_of(request), targets, state)
            table = measures(one)
            tables.append(table[table["layer"] == 0].assign(series=f"{name}{label}"))
            found.append(one)
        trained, *others = found[-len(routing.STATES) :]
        labels = list(routing.STATES.values())[1:]
        apart = [f"minus {label} {_apart(trained, one)}" for one, label in zip(others, labels, strict=True)]
        said.append(f"{_names(request)[run.name]}, {_on(request, targets)}; trained {' and '.join(apart)}")
    caption = (
        f"Layers of the {side_of(request)}, means over positions with 95% bootstrap intervals over sentences: "
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


def _health(request: Request) -> tuple[pd.DataFrame, list[Spread], str]:
    """The measures of the last iteration at each checkpoint: series, step, measure, value, low, high; what every run
    began from; and what was forced, in words."""
    import pandas as pd

    from analyses.routing import measures

    most = request.options.get("checkpoints", MOST_CHECKPOINTS)
    if isinstance(most, bool) or not str(most).isdecimal() or not int(most):
        raise RunError(f"checkpoints {most!r}: write how many at most, from 1")
    tables, found, said = [], [], []
    for run in _able(request):
        targets, side = _targets(run, request, OVER_TRAINING), side_of(request)
        kept = routing.checkpoints(run, int(most))
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
        said.append(f"{_names(request)[run.name]}: {len(kept)} checkpoints, {_on(request, targets)}")
    return pd.concat(tables, ignore_index=True), found, "; ".join(said)


@drawing("routing-health", options=(*_WHICH, "checkpoints"))
def _routing_health(request: Request) -> Figure:
    """Options besides: checkpoints (at most so many, evenly chosen)."""
    from workbench.views.layer_routing.corpus_plots import routing_health

    table, found, said = _health(request)
    caption = (
        f"Layers of the {side_of(request)} at the last iteration, over training; step 0: the weights it began from. "
        "The same words are forced at every step, as the finished run translates them; 95% bootstrap intervals over "
        f"sentences. {said}."
    )
    return routing_health(table, styles(request), _ceilings(found), caption)
