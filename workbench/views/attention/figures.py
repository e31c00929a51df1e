"""Drawings of what happens inside one sentence: attention, alignment, the words' probabilities, the layer lens.

Each forces the sentence through the chosen runs (`workbench.evaluation.live_trace`), hands the arrays to the analyses
and their tables to a figure family. Options, all may be left out: `target` (own, reference, typed) and `text` say which
translation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.evaluation.live_trace import Looked, look
from workbench.figures.options import MOST_CELLS, PARTS, forced, is_on, limit, spoken
from workbench.figures.registry import drawing
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.pharaoh import GoldLinks
    from workbench.plotting.grammar import Figure

_WHICH = ("target", "text")  # options of all drawings here


def _looks(request: Request) -> dict[str, Looked]:
    """A forced pass of each run, by its short name."""
    names = short_names(request.runs)
    return {names[run.name]: look(run, request.test, request.sentence, *forced(request)) for run in request.runs}


def _part(request: Request) -> str:
    part = str(request.options.get("part", "cross"))
    if part not in PARTS:
        raise RunError(f"part {part!r}: choose {', '.join(PARTS)}")
    return part


def _number(request: Request, name: str) -> int | None:
    """A layer or head from 1; None for the mean."""
    value = request.options.get(name, "mean")
    if value == "mean":
        return None
    if not str(value).isdecimal():
        others = "mean, each, rollout" if name == "layer" else "mean, each"
        raise RunError(f"{name} {value!r}: write a number from 1, or {others}")
    return int(value)


def _shaded(request: Request) -> str:
    return f" Shaded from 0 to {limit(request):g}." if "limit" in request.options else ""


def _sides(part: str, looked: Looked) -> tuple[list[str], list[str]]:
    """Tokens of queries and keys. A target position reads the words before the one that it writes."""
    queries = looked.source if part == "encoder" else looked.target
    keys = looked.target if part == "decoder" else looked.source
    return list(queries), ["<s>", *keys[:-1]] if part == "decoder" else list(keys)


def _rolled(part: str, looked: Looked) -> np.ndarray:
    """Rollout [layer, query, key] of what a map shows."""
    from analyses import attention

    if part == "encoder":
        return attention.rollout(looked.array("encoder.self_attention"))
    found = attention.decoder_rollout(
        looked.array("decoder.self_attention"),
        looked.array("decoder.cross_attention"),
        looked.array("encoder.self_attention"),
    )
    return found.source if part == "cross" else found.target


def _maps(request: Request, part: str, looked: Looked) -> list[tuple[str, np.ndarray]]:
    """The maps that are asked for of one pass, each with its name."""
    from analyses import attention

    layer, head = request.options.get("layer", "mean"), request.options.get("head", "mean")
    if layer == "rollout":
        if head != "mean":
            raise RunError("attention rollout takes the mean over heads; leave the head out")
        return [("", _rolled(part, looked)[-1])]
    weights = looked.array(PARTS[part][0])
    layers = range(1, len(weights) + 1) if layer == "each" else [_number(request, "layer")]
    heads = range(1, weights.shape[1] + 1) if head == "each" else [_number(request, "head")]
    return [
        (
            ", ".join(f"{name} {number}" for name, number in (("layer", one), ("head", other)) if number is not None),
            attention.average(weights, one, other),
        )
        for one in layers
        for other in heads
    ]


def _said_of_maps(request: Request, part: str) -> str:
    """Which layers and heads, in words."""
    layer, head = request.options.get("layer", "mean"), request.options.get("head", "mean")
    if layer == "rollout":
        side = "" if part == "encoder" else " through both stacks"
        return (
            f"Attention rollout{side}: the mean over heads, half of each step the residual connection "
            "(Abnar and Zuidema 2020)"
        )
    over = [f"{name}s" for name, chosen in (("layer", layer), ("head", head)) if chosen == "mean"]
    fixed = [f"{name} {value}" for name, value in (("layer", layer), ("head", head)) if value not in ("mean", "each")]
    mean = f", mean over all {' and '.join(over)}" if over else ""
    return f"The {PARTS[part][2]}{mean}{', ' if fixed else ''}{', '.join(fixed)}"


def _cells(panel: str, weights: np.ndarray, queries: list[str], keys: list[str]) -> pd.DataFrame:
    from workbench.plotting.axes import matrix_table

    return matrix_table(weights, keys, queries, x="key", y="query", value="weight").assign(panel=panel)


@drawing("attention", of_a_sentence=True, options=(*_WHICH, "part", "layer", "head", "words", "limit"))
def _attention(request: Request) -> Figure:
    """Options: part (cross, encoder, decoder), layer (mean, each, rollout or a number), head (mean, each or a number),
    words (join pieces to words), limit (the weight that has the last shade)."""
    import pandas as pd

    from analyses import attention
    from workbench.views.attention.plots import attention_maps

    part, words = _part(request), is_on(request, "words")
    tables, across = [], 1
    for name, looked in _looks(request).items():
        queries, keys = _sides(part, looked)
        found = _maps(request, part, looked)
        if len(found) * len(request.runs) * len(queries) * len(keys) > MOST_CELLS:
            raise RunError(f"{len(found)} maps of {len(queries)} × {len(keys)} are too many; choose a layer or a head")
        across = looked.trace[PARTS[part][0]].values.shape[1] if request.options.get("head") == "each" else len(found)
        for said, weights in found:
            panel = ": ".join(filter(None, (name if len(request.runs) > 1 else "", said))) or name
            shown, rows, columns = weights, queries, keys
            if words:
                shown = attention.to_words(weights, queries, keys)
                rows, columns = attention.joined(queries), attention.joined(keys)
            tables.append(_cells(panel, shown, rows, columns))
    mixed = part != "encoder" and request.options.get("layer") == "rollout"
    sums = "Of source and target together a row sums to one." if mixed else "Rows sum to one."
    rule = " Words: the sum over a key's pieces, the mean over a query's." if words else ""
    rule += _shaded(request)
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        title="Attention",
        labels=PARTS[part][1],
        columns=across if across > 1 else len(request.runs),
        caption=f"{_said_of_maps(request, part)}, along {spoken(request)}. {sums}{rule}",
        limit=limit(request),
    )


def gold_links(path: str | Path, run: Run, test: str) -> GoldLinks:
    """A file of gold links of a test set, checked against its sentences; words are what blanks part."""
    from analyses import pharaoh
    from core_models.text.parallel import read_lines

    path = Path(path).expanduser()
    if not path.is_file():
        raise RunError(f"{path}: there is no such file of links")
    said = run.translations(test).test_set
    if said.references is None:
        raise RunError(f"the test set {test!r} has no references, which gold links would align with its sources")
    lengths = [(len(a.split()), len(b.split())) for a, b in zip(said.sources, said.references, strict=True)]
    return pharaoh.parse(read_lines(path), lengths, path.name)


@drawing("alignment", of_a_sentence=True, options=(*_WHICH, "layer", "head", "limit", "links"))
def _alignment(request: Request) -> Figure:
    """Options: layer and head (mean, a number; layer also rollout), limit, links (a Pharaoh file; of the reference)."""
    import pandas as pd

    from analyses.alignment import alignment_error_rate, from_attention
    from workbench.views.attention.plots import attention_maps

    options: dict[str, Any] = dict(request.options)
    path = options.get("links")
    options.setdefault("target", "reference" if path else "own")
    if "each" in (options.get("layer"), options.get("head")):
        raise RunError("an alignment is made from one map a run; choose a layer and a head, or their mean")
    if path and options["target"] != "reference":
        raise RunError("gold links join the source with the reference; choose the reference as target")
    request = replace(request, options=options)
    gold = gold_links(path, request.runs[0], request.test) if path else None
    tables, marks, said = [], [], []
    for name, looked in _looks(request).items():
        weights, rows, columns = _aligned(_maps(request, "cross", looked)[0][1], looked)
        if not (rows and columns):
            raise RunError(f"{name}: without words on both sides there is nothing to align")
        links = from_attention(weights)
        kinds = {"attention": links}
        if gold is not None:
            _check_words(request, looked, columns, rows)
            sure, possible = gold.sure[request.sentence], gold.possible[request.sentence]
            kinds |= {"sure": sure, "possible": possible - sure}
            said.append(f"{name} {100 * alignment_error_rate([links], [sure], [possible]):.1f} %")
        tables.append(_cells(name, weights, rows, columns))
        marks += [(name, j, i, kind) for kind, chosen in kinds.items() for i, j in sorted(chosen)]
    error = f" Alignment error rate: {', '.join(said)}; gold words are {gold.counting}." if gold is not None else ""
    error += _shaded(request)
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        pd.DataFrame(marks, columns=["panel", "query", "key", "kind"]),
        "Alignment",
        columns=len(request.runs),
        caption=f"{_said_of_maps(request, 'cross')}, along {spoken(request)}; a dot marks the source word to "
        f"which a target word attends most. Words: the sum over source pieces, the mean over target pieces.{error}",
        name="alignment",
        limit=limit(request),
    )


def _aligned(weights: np.ndarray, looked: Looked) -> tuple[np.ndarray, list[str], list[str]]:
    """Words by words [target, source], ends of sentences left out; target words, source words."""
    from analyses import attention

    queries, keys = list(looked.target), list(looked.source)
    joined = attention.to_words(weights, queries, keys)
    return attention.without_end(joined, attention.joined(queries), attention.joined(keys))


def _check_words(request: Request, looked: Looked, source: list[str], target: list[str]) -> None:
    """Gold links count the words that blanks part; the vocabulary must have kept them."""
    text = looked.run.translations(request.test).test_set
    for side, lines, words in (("source", text.sources, source), ("reference", text.references, target)):
        wanted = len((lines or [])[request.sentence].split())
        if wanted != len(words):
            raise RunError(
                f"{looked.run.name}: its pieces join to {len(words)} words of the {side}, but the line has {wanted}, "
                "so gold links have no place here; look at it without links"
            )


def word_table(request: Request) -> pd.DataFrame:
    """`analyses.tokens.table` of every run, with its name as `system`."""
    import pandas as pd

    from analyses import tokens

    return pd.concat(
        [
            tokens.table(looked.target, looked.best, {m: looked.array(m) for m in tokens.MEASURES}).assign(system=name)
            for name, looked in _looks(request).items()
        ],
        ignore_index=True,
    )


@drawing("token-probabilities", of_a_sentence=True, options=_WHICH)
def _token_probabilities(request: Request) -> Figure:
    from workbench.views.tokens.plots import token_probabilities

    return token_probabilities(
        word_table(request),
        styles(request),
        f"Each word of {spoken(request)} under forced decoding: its probability, the entropy of the "
        "distribution it was taken from (nats) and its rank there; rank 1 is the most probable word.",
    )


@drawing("layer-lens", of_a_sentence=True, options=_WHICH)
def _layer_lens(request: Request) -> Figure:
    import pandas as pd

    from analyses import tokens
    from workbench.views.tokens.plots import layer_lens

    tables = []
    for name, looked in _looks(request).items():
        arrays = {measure: looked.array(f"lens.{measure}") for measure in tokens.MEASURES}
        layers = looked.run.config.model.decoder_layers
        tables.append(tokens.lens_table(looked.target, looked.lens_best, arrays, layers).assign(system=name))
    return layer_lens(
        pd.concat(tables, ignore_index=True),
        f"What the decoder would say after each layer, along {spoken(request)}: every layer read through the "
        "final norm and the output matrix (logit lens, nostalgebraist 2020). In the cells the most probable word, "
        "shaded by the probability of the word that was written.",
    )
