"""Figures of one force-decoded sentence: attention, alignment, token probabilities, logit lens.

Each figure force-decodes the sentence with the runs (`workbench.evaluation.live_trace`), analyzes the arrays and plots
the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field, PositiveInt

from workbench.evaluation.live_trace import SentenceTrace, trace_sentence
from workbench.figures.options import AUTO_LIMIT, MAX_CELLS, FigureOptions, ForcedOptions, Limit, number
from workbench.figures.registry import figure
from workbench.figures.request import Request, styles
from workbench.store.runs import RunError, short_names
from workbench.views.attention.gold_links import TRUTH, gold_links
from workbench.views.attention.source_shares import shares_caption

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from workbench.plotting.grammar import Figure, Side

# Trace array, labels of keys and queries, and description of each attention.
PARTS = {
    "cross": ("decoder.cross_attention", ("source", "target"), "decoder's attention to the source"),
    "encoder": ("encoder.self_attention", ("source attended to", "source"), "encoder's self-attention"),
    "decoder": ("decoder.self_attention", ("target read so far", "target"), "decoder's self-attention"),
}
# Sides of keys and queries.
SIDES: dict[str, tuple[Side, Side]] = {
    "cross": ("source", "target"),
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
}
LAYER = "The layer, from 1; rollout follows attention through the layers"
HEAD = "The head, from 1"


class AttentionOptions(ForcedOptions):
    """Options of the figure `attention`."""

    part: Literal["cross", "encoder", "decoder"] = Field("cross", description="Which attention")
    layer: PositiveInt | Literal["mean", "rollout", "each"] = Field("mean", description=LAYER)
    head: PositiveInt | Literal["mean", "each"] = Field("mean", description=HEAD)
    words: bool = Field(False, description="Join pieces to words")
    difference: bool = Field(False, description="Maps of the other runs minus the baseline besides; of the same texts")
    limit: Limit = AUTO_LIMIT


class AlignmentOptions(FigureOptions):
    """Options of the figure `alignment`."""

    target: Literal["own", "reference", "typed"] | None = Field(
        None, description="The translation that is forced; with gold links the reference, else the own unless told"
    )
    text: str = Field("", description="The translation, where the target is typed")
    layer: PositiveInt | Literal["mean", "rollout"] = Field("mean", description=LAYER)
    head: PositiveInt | Literal["mean"] = Field("mean", description=HEAD)
    limit: Limit = AUTO_LIMIT
    links: str = Field(
        "", description="A file of gold links of the reference, in Pharaoh format, or truth: of the controlled corpus"
    )

    @property
    def along(self) -> ForcedOptions:
        """Options of forced decoding."""
        return ForcedOptions(target=self.target or ("reference" if self.links else "own"), text=self.text)


def _traces(request: Request, forced: ForcedOptions) -> dict[str, SentenceTrace]:
    """Trace of the sentence by each run, by short name."""
    names = short_names(request.runs)
    return {
        names[run.name]: trace_sentence(run, request.test, request.sentence, *forced.forced_target)
        for run in request.runs
    }


def _sides(part: str, trace: SentenceTrace) -> tuple[list[str], list[str]]:
    """Tokens of queries and keys; a target position reads the tokens before the one it predicts."""
    queries = trace.source if part == "encoder" else trace.target
    keys = trace.target if part == "decoder" else trace.source
    return list(queries), ["<s>", *keys[:-1]] if part == "decoder" else list(keys)


def _rollout(part: str, trace: SentenceTrace) -> np.ndarray:
    """Attention rollout [layer, query, key] of a part."""
    from analyses import attention

    if part == "encoder":
        return attention.rollout(trace.array("encoder.self_attention"))
    rollout = attention.decoder_rollout(
        trace.array("decoder.self_attention"),
        trace.array("decoder.cross_attention"),
        trace.array("encoder.self_attention"),
    )
    return rollout.source if part == "cross" else rollout.target


def _maps(layer: int | str, head: int | str, part: str, trace: SentenceTrace) -> list[tuple[str, np.ndarray]]:
    """Requested maps of one trace, each with its title."""
    from analyses import attention

    if layer == "rollout":
        if head != "mean":
            raise RunError("attention rollout takes the mean over heads; leave the head out")
        return [("", _rollout(part, trace)[-1])]
    weights = trace.array(PARTS[part][0])
    layers = range(1, len(weights) + 1) if layer == "each" else [number(layer)]
    heads = range(1, weights.shape[1] + 1) if head == "each" else [number(head)]
    return [
        (
            ", ".join(
                f"{name} {index}"
                for name, index in (("layer", layer_number), ("head", head_number))
                if index is not None
            ),
            attention.average(weights, layer_number, head_number),
        )
        for layer_number in layers
        for head_number in heads
    ]


def _maps_caption(layer: int | str, head: int | str, part: str) -> str:
    """Caption with the layers and heads."""
    if layer == "rollout":
        side = "" if part == "encoder" else " through both stacks"
        return (
            f"Attention rollout{side}: the mean over heads, half of each step the residual connection "
            "(Abnar and Zuidema 2020)"
        )
    over = [f"{name}s" for name, choice in (("layer", layer), ("head", head)) if choice == "mean"]
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
    from workbench.views.attention.plots import MOST_BESIDE, attention_maps

    part, layer, head = options.part, options.layer, options.head
    tables: dict[str, list[pd.DataFrame]] = {}
    across = 1
    traces = _traces(request, options)
    for name, trace in traces.items():
        queries, keys = _sides(part, trace)
        maps = _maps(layer, head, part, trace)
        if len(maps) * len(request.runs) * len(queries) * len(keys) > MAX_CELLS:
            raise RunError(f"{len(maps)} maps of {len(queries)} × {len(keys)} are too many; choose a layer or a head")
        across = trace.trace[PARTS[part][0]].values.shape[1] if head == "each" else len(maps)
        for title, weights in maps:
            panel = ": ".join(filter(None, (name if len(request.runs) > 1 else "", title))) or name
            shown, rows, columns = weights, queries, keys
            if options.words:
                shown = attention.to_words(weights, queries, keys)
                rows, columns = attention.joined(queries), attention.joined(keys)
            tables.setdefault(name, []).append(_cells(panel, shown, rows, columns))
    baseline = short_names(request.runs).get(request.base, next(iter(tables)))  # it may have no model
    differences = map_differences(tables, baseline) if options.difference else None
    compared = len(tables) if differences is None else 2 * len(tables) - 1  # one of each run but the baseline
    mixed = part != "encoder" and layer == "rollout"
    keys_down = part == "cross" and across == 1 and len(request.runs) > 1
    line = "column" if keys_down else "row"
    sums = f"Of source and target together a {line} sums to one." if mixed else f"{line.capitalize()}s sum to one."
    shares = shares_caption(traces) if part == "cross" else ""
    rule = " Words: the sum over a key's pieces, the mean over a query's." if options.words else ""
    return attention_maps(
        pd.concat([table for of_run in tables.values() for table in of_run], ignore_index=True),
        title="Attention",
        labels=PARTS[part][1],
        columns=across if across > 1 else min(compared, MOST_BESIDE),
        caption=f"{_maps_caption(layer, head, part)}, along {options.target_text}. {sums}{rule}{shares}",
        limit=options.limit,
        keys_down=keys_down,
        differences=differences,
        sides=SIDES[part],
    )


def map_differences(tables: Mapping[str, list[pd.DataFrame]], baseline: str) -> pd.DataFrame:
    """Cells of the maps of every other run minus those of the baseline; raises RunError for other words or maps."""
    import pandas as pd

    if len(tables) < 2:
        raise RunError("a difference needs two runs: choose another one besides")
    differences = []
    words = ["query", "key", "query_token", "key_token"]
    for name, of_run in tables.items():
        if name == baseline:
            continue
        if len(of_run) != len(tables[baseline]):
            raise RunError(f"{name} has other layers or heads than {baseline}; take their mean, or one of them")
        for table, of_baseline in zip(of_run, tables[baseline], strict=True):
            if not table[words].equals(of_baseline[words]):
                raise RunError(
                    f"{name} and {baseline} read or write other words here, so their maps have no difference; force "
                    "the reference or a typed text (target=reference), and join pieces (words=true)"
                )
            title = str(table["panel"].iloc[0]).replace(name, f"{name} − {baseline}", 1)
            weights = table["weight"] - of_baseline["weight"]
            differences.append(table.assign(weight=weights, panel=title))
    return pd.concat(differences, ignore_index=True)


@figure("alignment", scope="sentence", options=AlignmentOptions)
def _alignment(request: Request, options: AlignmentOptions) -> Figure:
    """Attention joined to words, the source word that each target word attends to most, and gold links."""
    import pandas as pd

    from analyses.alignment import alignment_error_rate, from_attention
    from workbench.views.attention.plots import MOST_BESIDE, attention_maps

    forced = options.along
    if options.links and forced.target != "reference":
        raise RunError("gold links join the source with the reference; choose the reference as target")
    gold = gold_links(options.links, request.runs[0], request.test) if options.links else None
    tables, marks, agreements = [], [], []
    traces = _traces(request, forced)
    for name, trace in traces.items():
        weights, rows, columns = _aligned(_maps(options.layer, options.head, "cross", trace)[0][1], trace)
        if not (rows and columns):
            raise RunError(f"{name}: without words on both sides there is nothing to align")
        links = from_attention(weights)
        kinds = {"attention": links}
        if gold is not None:
            _check_words(request, trace, columns, rows)
            sure, possible = gold.sure[request.sentence], gold.possible[request.sentence]
            kinds |= {"sure": sure, "possible": possible - sure}
            rate = 100 * alignment_error_rate([links], [sure], [possible])
            agreements.append(f"{name} {len(links & possible)} of {len(links)} (error rate {rate:.1f} %)")
        tables.append(_cells(name, weights, rows, columns))
        marks += [(name, j, i, kind) for kind, links_of_kind in kinds.items() for i, j in sorted(links_of_kind)]
    source_of_gold = ""
    if gold is not None:
        described = "the truth of the controlled corpus" if options.links == TRUTH else f"words {gold.counting}"
        source_of_gold = f" Gold links are {described}."
    drawn = attention_maps(
        pd.concat(tables, ignore_index=True),
        pd.DataFrame(marks, columns=["panel", "query", "key", "kind"]),
        "Alignment",
        columns=min(len(request.runs), MOST_BESIDE),
        caption=f"{_maps_caption(options.layer, options.head, 'cross')}, along {forced.target_text}; a dot marks the "
        "source word to which a target word attends most. Words: the sum over source pieces, the mean over target "
        "pieces."
        f"{source_of_gold}{shares_caption(traces)}",
        name="alignment",
        limit=options.limit,
        keys_down=len(request.runs) > 1,
    )
    found = f"Words whose most attended source word is a gold link: {', '.join(agreements)}."
    return replace(drawn, summary=found) if agreements else drawn


def _aligned(weights: np.ndarray, trace: SentenceTrace) -> tuple[np.ndarray, list[str], list[str]]:
    """Weights [target words, source words] without </s>, with the target words and the source words."""
    from analyses import attention

    queries, keys = list(trace.target), list(trace.source)
    joined = attention.to_words(weights, queries, keys)
    return attention.without_end(joined, attention.joined(queries), attention.joined(keys))


def _check_words(request: Request, trace: SentenceTrace, source: list[str], target: list[str]) -> None:
    """Raise RunError unless the pieces join to the whitespace words that gold links count."""
    text = trace.run.translations(request.test).test_set
    for side, lines, words in (("source", text.sources, source), ("reference", text.references, target)):
        count = len((lines or [])[request.sentence].split())
        if count != len(words):
            raise RunError(
                f"{trace.run.name}: its pieces join to {len(words)} words of the {side}, but the line has {count}, "
                "so gold links have no place here; look at it without links"
            )


def _word_table(request: Request, options: ForcedOptions) -> pd.DataFrame:
    """`analyses.tokens.table` of every run, with its short name in the column `system`."""
    import pandas as pd

    from analyses import tokens

    return pd.concat(
        [
            tokens.table(trace.target, trace.best, {m: trace.array(m) for m in tokens.MEASURES}).assign(system=name)
            for name, trace in _traces(request, options).items()
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
        f"Each word of {options.target_text} under forced decoding: its probability, the entropy of the "
        "distribution it was taken from (nats) and its rank there; rank 1 is the most probable word.",
    )


@figure("layer-lens", scope="sentence", options=ForcedOptions)
def _layer_lens(request: Request, options: ForcedOptions) -> Figure:
    """Predictions of each decoder layer at each word of a forced translation, of Transformer decoders."""
    import pandas as pd

    from analyses import tokens
    from workbench.views.tokens.plots import layer_lens

    traces = _traces(request, options)
    shown = {name: trace for name, trace in traces.items() if "lens.log_prob" in trace.trace}
    if not shown:
        raise RunError(f"the logit lens reads the layers of a Transformer decoder; without them: {', '.join(traces)}")
    missing = [name for name in traces if name not in shown]
    tables = []
    for name, trace in shown.items():
        arrays = {measure: trace.array(f"lens.{measure}") for measure in tokens.MEASURES}
        layers = trace.run.config.model.decoder_layers
        tables.append(tokens.lens_table(trace.target, trace.lens_best, arrays, layers).assign(system=name))
    return layer_lens(
        pd.concat(tables, ignore_index=True),
        f"What the decoder would say after each layer, along {options.target_text}: every layer read through the "
        "final norm and the output matrix (logit lens, nostalgebraist 2020). In the cells the most probable word, "
        "shaded by the probability of the word that was written."
        + (f" Without layers to read: {', '.join(missing)}." if missing else ""),
    )
