"""Drawings of what systems make of the sentences before one, which is forced through the runs, live (Yang 2019).

Options of all: `target` and `text` as for attention. Runs that read no context in the way that is drawn are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.contexts import CAPSULES, attending, of_context, routing_context
from workbench.drawing import Request, drawing, short_names, styles
from workbench.drawing.inside import MOST_CELLS, SPOKEN
from workbench.inside import Looked, look
from workbench.runs import Run, RunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pandas as pd

    from workbench.figures.grammar import Figure

_WHICH = ("target", "text")
SHOWN = {"all": "c, p and c + p", "c": "c", "p": "p", "sum": "c + p"}
CORRELATIONS = {"own": "As it routes", "both": "True and literal"}
CURVES = ("effective", "used", "fullest_share", "negative", "query_cosine")
_POSITIONS = {"encoder": "source", "decoder": "target"}


def passes(request: Request, runs: list[Run]) -> Iterator[tuple[str, Looked]]:
    """A forced pass of each run that has a context at this sentence; raises RunError where none has."""
    names = short_names(request.runs)
    target, text = str(request.options.get("target", "own")), str(request.options.get("text", ""))
    found = 0
    for run in runs:
        looked = look(run, request.test, request.sentence, target, text)
        if looked.before is not None and looked.before.there:
            found += 1
            yield names[run.name], looked
    if not found:
        raise RunError(
            f"sentence {request.sentence} of {request.test!r} begins its document, or the test set has no document "
            "ids: there is no context to be seen; choose another sentence"
        )


def distances(looked: Looked) -> np.ndarray:
    """How many sentences before the sentence each context word stands."""
    return looked.array("context.distance")


def array(looked: Looked, name: str) -> np.ndarray:
    """An array [iterations, n, m] of the capsules."""
    return looked.array(f"{CAPSULES}.{name}")


def _said(request: Request) -> str:
    return f"along {SPOKEN[str(request.options.get('target', 'own'))]}"


def _choice(request: Request, name: str, known: dict[str, str]) -> str:
    chosen = str(request.options.get(name, next(iter(known))))
    if chosen not in known:
        raise RunError(f"{name} {chosen!r}: choose {', '.join(known)}")
    return chosen


def _iterations(request: Request, count: int) -> list[int]:
    """Those that are drawn, from 0."""
    asked = request.options.get("iteration", "all")
    if asked == "all":
        return list(range(count))
    if isinstance(asked, bool) or not str(asked).isdecimal() or int(asked) >= count:
        raise RunError(f"iteration {asked!r}: write all, or a number from 0 to {count - 1}")
    return [int(asked)]


def _rows(request: Request, looked: Looked) -> dict[str, np.ndarray]:
    """The rows of maps that are asked for, by what they show."""
    import numpy as np

    from workbench.figures.context import CORRELATION, COUPLING, LITERAL, TRUE, WEIGHT

    raw = request.options.get("raw") in (True, "true")
    own = {CORRELATION: "correlations"}
    which = own if _choice(request, "correlation", CORRELATIONS) == "own" else {TRUE: "pearson", LITERAL: "eq7"}
    named = {
        "c": {COUPLING: array(looked, "couplings")},
        "p": {row: np.arctanh(array(looked, name)) if raw else array(looked, name) for row, name in which.items()},
        "sum": {WEIGHT: array(looked, "weights")},
    }
    show = _choice(request, "show", SHOWN)
    return {row: values for key, rows in named.items() if show in ("all", key) for row, values in rows.items()}


def _cells(name: str, looked: Looked, row: str, values: np.ndarray, iteration: int) -> pd.DataFrame:
    """A row a cell of one map."""
    from workbench.figures.axes import matrix_table
    from workbench.figures.context import COUPLING

    at, tokens = distances(looked), list(looked.context)
    table = matrix_table(values[iteration].T, x_tokens=tokens, x="word", y="capsule")
    scale = values.shape[-1] if row == COUPLING else 1
    return table.assign(
        system=name, row=row, iteration=iteration, capsule=table["capsule"] + 1, shown=table["value"] * scale,
        distance=at[table["word"]],
    )  # fmt: skip


@drawing("context-routing", of_a_sentence=True, options=(*_WHICH, "iteration", "show", "correlation", "raw"))
def _routing(request: Request) -> Figure:
    """Options besides: iteration (all, or from 0, as Figures 6 and 7 count), show (all, c, p, sum), correlation (own:
    the one that routes; both: the true one and Eq. 7 as printed), raw (p without its tanh)."""
    import pandas as pd

    from workbench.figures.context import context_routing

    tables = []
    for name, looked in passes(request, routing_context(request.runs)):
        rows = _rows(request, looked)
        count = len(next(iter(rows.values())))
        tables += [
            _cells(name, looked, row, values, iteration)
            for iteration in _iterations(request, count)
            for row, values in rows.items()
        ]
    cells = pd.concat(tables, ignore_index=True)
    if len(cells) > MOST_CELLS:
        raise RunError(f"{len(cells)} cells are too many for maps; choose one iteration, or fewer runs")
    scale = "p without its tanh" if request.options.get("raw") in (True, "true") else "p = tanh of the correlation"
    return context_routing(
        cells,
        "Pieces of the sentences before, the farthest first, each sentence with its </s>. c: how much of a word goes "
        f"to a capsule, shaded by its ratio to an even share; {scale} with the capsule's query; a word counts by c + "
        f"p (Algorithm 1, line 20). Iterations count from 0, as in Figures 6 and 7 of Yang 2019; {_said(request)}.",
    )


def curve_table(name: str, looked: Looked) -> pd.DataFrame:
    """The measures of one pass by iteration: system, measure, iteration, value."""
    import pandas as pd

    from analyses import context_routing
    from analyses.routing import effective_capsules

    couplings, correlations = array(looked, "couplings"), array(looked, "correlations")
    found = {
        "effective": effective_capsules(couplings),
        "used": context_routing.used_capsules(couplings),
        "fullest_share": context_routing.fullest_share(couplings),
        "negative": context_routing.negative_share(couplings, correlations),
        "query_cosine": array(looked, "query_cosine").mean(-1),
    }
    rows = [
        {"system": name, "measure": measure, "iteration": iteration, "value": float(value)}
        for measure, values in found.items()
        for iteration, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


@drawing("context-curves", of_a_sentence=True, options=_WHICH)
def _curves(request: Request) -> Figure:
    import numpy as np
    import pandas as pd

    from workbench.figures.context import context_curves

    tables, capsules = [], set()
    for name, looked in passes(request, routing_context(request.runs)):
        tables.append(curve_table(name, looked))
        capsules.add(array(looked, "couplings").shape[-1])
    ceilings = {name: float(max(capsules)) for name in ("effective", "used")}
    return context_curves(
        pd.concat(tables, ignore_index=True).assign(low=np.nan, high=np.nan),
        CURVES,
        {**ceilings, "negative": 0.0},
        "Among how many capsules a word is spread as if evenly (exp of the mean entropy of c); among how many all "
        "words together are, and what the fullest capsule gets of them (1: all went to one, it collapsed); how many of "
        "the weights c + p are below zero; cosine of each query with the first one, a mean over capsules, after the "
        f"iteration (E8). Dotted: as many as there are; {_said(request)}.",
        styles(request),
    )


def sides(runs: list[Run]) -> list[str]:
    """The sides on which some run attends to the context."""
    found = {side for run in runs for _, side in attending(run)}
    return [side for side in _POSITIONS if side in found]


@drawing("context-attention", of_a_sentence=True, options=(*_WHICH, "side", "layer", "head", "over", "limit"))
def _attention(request: Request) -> Figure:
    """Options besides: side (encoder, decoder), layer and head (mean or a number), over (words, sentences), limit (the
    share of the last shade)."""
    import pandas as pd

    from workbench.figures.attention import attention_maps
    from workbench.figures.axes import matrix_table

    able = [run for run in request.runs if attending(run)]
    if not able:
        raise RunError(
            f"{request.runs[0].name} attends to no words before the sentence; choose a run of document-transformer, "
            "han or san"
        )
    known = {name: name for name in sides(able)}
    side, over = _choice(request, "side", known), _choice(request, "over", {"words": "", "sentences": ""})
    of_side = [run for run in able if side in sides([run])]
    tables = []
    for name, looked in passes(request, of_side):
        weights, keys = _attended(request, looked, side, over)
        queries = list(looked.source if side == "encoder" else looked.target)
        if weights.size > MOST_CELLS:
            raise RunError(f"{weights.size} cells are too many for a map; look at the sentences, over=sentences")
        table = matrix_table(weights, keys, queries, x="key", y="query", value="weight")
        tables.append(table.assign(panel=name))
    what = "the sentences before" if over == "sentences" else "the words of the sentences before, the farthest first"
    read = "their translations" if _translations(of_side[0], side) else "sources"
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        title="Attention to the context",
        labels=(f"context ({read})", _POSITIONS[side]),
        columns=1,
        caption=f"Shares of {what} ({read}), from each {_POSITIONS[side]} position, a mean over what is not chosen of "
        f"layers and heads; each sentence ends in </s>; {_said(request)}. Sparse shares of sentences may be nothing.",
        name="context-attention",
        limit=float(request.options.get("limit", 1.0)),
    )


def _translations(run: Run, side: str) -> bool:
    """Does this side of a run look at the translations of the sentences before?"""
    return side == "decoder" and any(kind != "document_encoder" for kind, own in attending(run) if own == side)


def _attended(request: Request, looked: Looked, side: str, over: str) -> tuple[np.ndarray, list[str]]:
    """The shares [queries, keys] of one pass, and what the keys are called."""
    import numpy as np

    (kind,) = [kind for kind, own in attending(looked.run) if own == side][:1]
    found = looked.array(f"{kind}.{side}.attention")
    weights = found if found.ndim == 4 else found[None]  # [layer, head, query, key]
    for axis, name in enumerate(("layer", "head")):
        asked = request.options.get(name, "mean")
        if asked == "mean":
            continue
        if not str(asked).isdecimal() or not 1 <= int(asked) <= weights.shape[axis]:
            raise RunError(f"{name} {asked!r}: write mean, or a number from 1 to {weights.shape[axis]}")
        weights = np.take(weights, [int(asked) - 1], axis)
    shares = weights.mean((0, 1))
    outputs = _translations(looked.run, side)
    tokens, prefix = (looked.context_outputs, "context_output") if outputs else (looked.context, "context")
    if over == "words":
        return shares, list(tokens)
    at = looked.array(f"{prefix}.distance")
    apart = sorted(set(at.tolist()), reverse=True)
    return np.stack([shares[:, at == one].sum(1) for one in apart], axis=1), [f"{one} before" for one in apart]


@drawing("context-capsules-read", of_a_sentence=True, options=(*_WHICH, "layer", "head", "limit"))
def _read(request: Request) -> Figure:
    """Options besides: layer and head (mean or a number), limit."""
    import pandas as pd

    from analyses import attention
    from workbench.figures.attention import attention_maps
    from workbench.figures.axes import matrix_table

    layer, head = (_numbered(request, name) for name in ("layer", "head"))
    tables = []
    for name, looked in passes(request, routing_context(request.runs)):
        weights = attention.average(array(looked, "attention"), layer, head)
        keys = [f"capsule {number}" for number in range(1, weights.shape[1] + 1)]
        table = matrix_table(weights.T, list(looked.source), keys, x="key", y="query", value="weight")
        tables.append(table.assign(panel=name))
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        title="Who reads which capsule",
        labels=("source", "capsule"),
        columns=1,
        caption="Shares of the capsules in the attention of each source position, a mean over what is not chosen of "
        f"layers and heads; columns sum to one; {_said(request)}.",
        name="context-capsules-read",
        limit=float(request.options.get("limit", 1.0)),
    )


def _numbered(request: Request, name: str) -> int | None:
    asked = request.options.get(name, "mean")
    if asked == "mean":
        return None
    if not str(asked).isdecimal():
        raise RunError(f"{name} {asked!r}: write mean, or a number from 1")
    return int(asked)


@drawing("context-changes", of_a_sentence=True, options=_WHICH)
def _changes(request: Request) -> Figure:
    import pandas as pd

    from workbench.context_changes import WORD, changes
    from workbench.figures.context_changes import context_changes

    able = of_context(request.runs)
    if not able:
        raise RunError(f"{request.runs[0].name} reads no sentence but its own; choose a run of qcn, han or san")
    names = short_names(request.runs)
    target, text = str(request.options.get("target", "own")), str(request.options.get("text", ""))
    tables = [
        changes(run, request.test, request.sentence, target, text).iloc[1:].assign(system=names[run.name])
        for run in able
    ]
    found = pd.concat(tables, ignore_index=True)
    of_words = found["what"] == WORD
    words, wholes = found[of_words], found[~of_words]
    at = words.groupby(["system", "side"], sort=False).cumcount()
    labels = [
        f"without the sentence {distance} before" if distance else str(what)
        for what, distance in zip(wholes["what"], wholes["distance"], strict=True)
    ]
    return context_changes(
        words.assign(at=at),
        wholes.assign(label=labels),
        f"Change of log P {_said(request)} where a word before the sentence is left out (words as blanks part them), "
        "a whole sentence, all of them; with as many sentences of another document; with the words of each sentence "
        "backwards, with the sentences in the other order. Couplings moved: half the sum of absolute differences of c "
        "in the last iteration, a mean over the words that are left. To leave a word out of a set is to mask it; a "
        "system that reads the order sees a sentence without it.",
    )
