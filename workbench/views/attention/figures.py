"""Drawings of what happens inside one sentence: attention, alignment, the words' probabilities, the layer lens.

Each forces the sentence through the chosen runs (`workbench.evaluation.live_trace`), hands the arrays to the analyses
and their tables to a figure family.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import MOST_CELLS, FigureOptions, ForcedOptions, Shade, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import Run, RunError, short_names

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from analyses.pharaoh import GoldLinks
    from workbench.plotting.grammar import Figure

# Which attention: its array, and what its keys and queries are called.
PARTS = {
    "cross": ("decoder.cross_attention", ("source", "target"), "decoder's attention to the source"),
    "encoder": ("encoder.self_attention", ("source attended to", "source"), "encoder's self-attention"),
    "decoder": ("decoder.self_attention", ("target read so far", "target"), "decoder's self-attention"),
}
LAYER = "The layer, from 1; rollout follows attention through the layers"
HEAD = "The head, from 1"


class AttentionOptions(ForcedOptions):
    """Options of the figure `attention`."""

    part: Literal["cross", "encoder", "decoder"] = Field("cross", description="Which attention")
    layer: PositiveInt | Literal["mean", "rollout", "each"] = Field("mean", description=LAYER)
    head: PositiveInt | Literal["mean", "each"] = Field("mean", description=HEAD)
    words: bool = Field(False, description="Join pieces to words")
    limit: Shade = Field(1.0, description="The weight that has the last shade")


class AlignmentOptions(FigureOptions):
    """Options of the figure `alignment`."""

    target: Literal["own", "reference", "typed"] | None = Field(
        None, description="The translation that is forced; with gold links the reference, else the own unless told"
    )
    text: str = Field("", description="The translation, where the target is typed")
    layer: PositiveInt | Literal["mean", "rollout"] = Field("mean", description=LAYER)
    head: PositiveInt | Literal["mean"] = Field("mean", description=HEAD)
    limit: Shade = Field(1.0, description="The weight that has the last shade")
    links: str = Field("", description="A file of gold links of the reference, in Pharaoh format")

    @property
    def along(self) -> ForcedOptions:
        """Which translation is forced."""
        return ForcedOptions(target=self.target or ("reference" if self.links else "own"), text=self.text)


def _looks(request: Request, along: ForcedOptions) -> dict[str, SentenceTrace]:
    """A forced pass of each run, by its short name."""
    names = short_names(request.runs)
    return {names[run.name]: trace_sentence(run, request.test, request.sentence, *along.forced) for run in request.runs}


def _shaded(limit: float) -> str:
    return f" Shaded from 0 to {limit:g}." if limit != 1 else ""


def _sides(part: str, looked: SentenceTrace) -> tuple[list[str], list[str]]:
    """Tokens of queries and keys. A target position reads the words before the one that it writes."""
    queries = looked.source if part == "encoder" else looked.target
    keys = looked.target if part == "decoder" else looked.source
    return list(queries), ["<s>", *keys[:-1]] if part == "decoder" else list(keys)


def _rolled(part: str, looked: SentenceTrace) -> np.ndarray:
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


def _maps(layer: int | str, head: int | str, part: str, looked: SentenceTrace) -> list[tuple[str, np.ndarray]]:
    """The maps that are asked for of one pass, each with its name."""
    from analyses import attention

    if layer == "rollout":
        if head != "mean":
            raise RunError("attention rollout takes the mean over heads; leave the head out")
        return [("", _rolled(part, looked)[-1])]
    weights = looked.array(PARTS[part][0])
    layers = range(1, len(weights) + 1) if layer == "each" else [number(layer)]
    heads = range(1, weights.shape[1] + 1) if head == "each" else [number(head)]
    return [
        (
            ", ".join(f"{name} {place}" for name, place in (("layer", one), ("head", other)) if place is not None),
            attention.average(weights, one, other),
        )
        for one in layers
        for other in heads
    ]


def _said_of_maps(layer: int | str, head: int | str, part: str) -> str:
    """Which layers and heads, in words."""
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


@figure("attention", scope="sentence", options=AttentionOptions)
def _attention(request: Request, options: AttentionOptions) -> Figure:
    """Attention weights of a forced translation as maps."""
    import pandas as pd

    from analyses import attention
    from workbench.views.attention.plots import attention_maps

    part, layer, head = options.part, options.layer, options.head
    tables, across = [], 1
    for name, looked in _looks(request, options).items():
        queries, keys = _sides(part, looked)
        found = _maps(layer, head, part, looked)
        if len(found) * len(request.runs) * len(queries) * len(keys) > MOST_CELLS:
            raise RunError(f"{len(found)} maps of {len(queries)} × {len(keys)} are too many; choose a layer or a head")
        across = looked.trace[PARTS[part][0]].values.shape[1] if head == "each" else len(found)
        for said, weights in found:
            panel = ": ".join(filter(None, (name if len(request.runs) > 1 else "", said))) or name
            shown, rows, columns = weights, queries, keys
            if options.words:
                shown = attention.to_words(weights, queries, keys)
                rows, columns = attention.joined(queries), attention.joined(keys)
            tables.append(_cells(panel, shown, rows, columns))
    mixed = part != "encoder" and layer == "rollout"
    sums = "Of source and target together a row sums to one." if mixed else "Rows sum to one."
    rule = " Words: the sum over a key's pieces, the mean over a query's." if options.words else ""
    rule += _shaded(options.limit)
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        title="Attention",
        labels=PARTS[part][1],
        columns=across if across > 1 else len(request.runs),
        caption=f"{_said_of_maps(layer, head, part)}, along {options.spoken}. {sums}{rule}",
        limit=options.limit,
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


@figure("alignment", scope="sentence", options=AlignmentOptions)
def _alignment(request: Request, options: AlignmentOptions) -> Figure:
    """Attention joined to words, the source word that each target word attends to most, and gold links."""
    import pandas as pd

    from analyses.alignment import alignment_error_rate, from_attention
    from workbench.views.attention.plots import attention_maps

    path, along = options.links, options.along
    if path and along.target != "reference":
        raise RunError("gold links join the source with the reference; choose the reference as target")
    gold = gold_links(path, request.runs[0], request.test) if path else None
    tables, marks, said = [], [], []
    for name, looked in _looks(request, along).items():
        weights, rows, columns = _aligned(_maps(options.layer, options.head, "cross", looked)[0][1], looked)
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
    error += _shaded(options.limit)
    return attention_maps(
        pd.concat(tables, ignore_index=True),
        pd.DataFrame(marks, columns=["panel", "query", "key", "kind"]),
        "Alignment",
        columns=len(request.runs),
        caption=f"{_said_of_maps(options.layer, options.head, 'cross')}, along {along.spoken}; a dot marks the source "
        "word to which a target word attends most. Words: the sum over source pieces, the mean over target pieces."
        f"{error}",
        name="alignment",
        limit=options.limit,
    )


def _aligned(weights: np.ndarray, looked: SentenceTrace) -> tuple[np.ndarray, list[str], list[str]]:
    """Words by words [target, source], ends of sentences left out; target words, source words."""
    from analyses import attention

    queries, keys = list(looked.target), list(looked.source)
    joined = attention.to_words(weights, queries, keys)
    return attention.without_end(joined, attention.joined(queries), attention.joined(keys))


def _check_words(request: Request, looked: SentenceTrace, source: list[str], target: list[str]) -> None:
    """Gold links count the words that blanks part; the vocabulary must have kept them."""
    text = looked.run.translations(request.test).test_set
    for side, lines, words in (("source", text.sources, source), ("reference", text.references, target)):
        wanted = len((lines or [])[request.sentence].split())
        if wanted != len(words):
            raise RunError(
                f"{looked.run.name}: its pieces join to {len(words)} words of the {side}, but the line has {wanted}, "
                "so gold links have no place here; look at it without links"
            )


def _word_table(request: Request, options: ForcedOptions) -> pd.DataFrame:
    """`analyses.tokens.table` of every run, with its name as `system`."""
    import pandas as pd

    from analyses import tokens

    return pd.concat(
        [
            tokens.table(looked.target, looked.best, {m: looked.array(m) for m in tokens.MEASURES}).assign(system=name)
            for name, looked in _looks(request, options).items()
        ],
        ignore_index=True,
    )


@figure("token-probabilities", scope="sentence", options=ForcedOptions)
def _token_probabilities(request: Request, options: ForcedOptions) -> Figure:
    """Probability, entropy and rank of each word of a forced translation."""
    from workbench.views.tokens.plots import token_probabilities

    return token_probabilities(
        _word_table(request, options),
        styles(request),
        f"Each word of {options.spoken} under forced decoding: its probability, the entropy of the "
        "distribution it was taken from (nats) and its rank there; rank 1 is the most probable word.",
    )


@figure("layer-lens", scope="sentence", options=ForcedOptions)
def _layer_lens(request: Request, options: ForcedOptions) -> Figure:
    """What the decoder would say after each layer, at each word of a forced translation."""
    import pandas as pd

    from analyses import tokens
    from workbench.views.tokens.plots import layer_lens

    tables = []
    for name, looked in _looks(request, options).items():
        arrays = {measure: looked.array(f"lens.{measure}") for measure in tokens.MEASURES}
        layers = looked.run.config.model.decoder_layers
        tables.append(tokens.lens_table(looked.target, looked.lens_best, arrays, layers).assign(system=name))
    return layer_lens(
        pd.concat(tables, ignore_index=True),
        f"What the decoder would say after each layer, along {options.spoken}: every layer read through the "
        "final norm and the output matrix (logit lens, nostalgebraist 2020). In the cells the most probable word, "
        "shaded by the probability of the word that was written.",
    )
