"""Readers of the sentences before written out in NumPy, float64, one sentence at a time, from the equations.

Yang 2019, Eq. 5 to 11 and Algorithm 1; Zhang 2018; Miculicich 2018; Maruf 2019, with the specification's reading of
them. Takes weights from a system's layers and shares no code with it.
"""

from typing import NamedTuple

import numpy as np

from core_models.text.batches import Batch
from core_models.text.vocabulary import BOS
from tests.core_models.layers.test_sparsemax import projected
from tests.core_models.recurrent_numpy import sigmoid
from tests.core_models.routing.test_algorithms_numpy import by_agreement, softmax, squash
from tests.core_models.routing.test_query_guided import by_algorithm_1, correlation
from tests.core_models.transformer_numpy import (
    Reader,
    Transformer,
    array,
    attention,
    cross_attention,
    feed_forward,
    heads,
    linear,
    looked,
    norm,
)

OVER = {"softmax": softmax, "sparsemax": projected}


def gated(sublayer, stream, states, pre):
    """Zhang 2018, one position [d]: x' = g x + (1 - g) y, g = sigmoid(W_x x + W_y y), of attention to the context."""
    attend = sublayer.attend
    context = looked(attend.attention, states, norm(attend.norm, stream) if pre else stream)
    gate = sigmoid(linear(sublayer.from_stream, stream) + linear(sublayer.from_context, context))
    found = gate * stream + (1 - gate) * context
    return found if pre else norm(sublayer.after, found)


def hierarchical(mechanism, side, stream, held, pre):
    """Miculicich 2018, one position [d]: words of each sentence, sentences, feed-forward with a residual, gate; and the
    mean of the gate."""
    look = mechanism.look[side]
    asking = norm(look.word_norm, stream)
    vectors = [norm(look.vector_norm, looked(look.words, words, asking)) for words in held]
    context = looked(look.sentences, vectors, norm(look.sentence_norm, stream))
    context = context + feed_forward(look, norm(look.feed_forward_norm, context))
    share = sigmoid(linear(mechanism.gate[side], np.concatenate([stream, context])))
    found = (1 - share) * stream + share * context
    return found if pre else norm(mechanism.after[side], found), share.mean()


def selective(look, stream, held):
    """Maruf 2019, one position [d]: sparse shares of sentences times shares of their words, norm, feed-forward, norm,
    gate; how many shares of sentences are 0, and the mean share of the context."""
    over_sentences, over_words = OVER[look.options.over_sentences], OVER[look.options.over_words]
    asking = norm(look.asking_norm, stream)
    query = heads(linear(look.sentence_query, asking), look.heads)
    keys = [heads(linear(look.sentence_key, one.mean(0)), look.heads) for one in held]
    chosen = [over_sentences(np.array([q @ key[h] / np.sqrt(len(q)) for key in keys])) for h, q in enumerate(query)]
    within = [attention(look.to_words, asking, one, over_words)[0] for one in held]
    found = np.concatenate(
        [sum(chosen[h][k] * heads(one, look.heads)[h] for k, one in enumerate(within)) for h in range(look.heads)]
    )
    context = norm(look.found_norm, linear(look.to_words.output, found))
    context = norm(look.context_norm, feed_forward(look, context))
    share = sigmoid(linear(look.from_stream, stream) + linear(look.from_context, context))
    unchosen = sum(int((one == 0).sum()) for one in chosen)
    return share * stream + (1 - share) * context, unchosen, 1 - share.mean()


class Case(NamedTuple):
    """A sentence and its translation; of every entry of its context the sentence and its translation, or None. All end
    in </s>."""

    source: list[int]
    target: list[int]
    before: list[list[int] | None]
    outputs: list[list[int] | None]


def cases(batch: Batch) -> list[Case]:
    """The sentences of a batch without their padding."""
    context = batch.context
    before = outputs = [[]] * len(batch)
    if context is not None:
        before = [real_words(*row) for row in zip(context.words, context.mask, strict=True)]
    if context is not None and context.outputs is not None:
        outputs = [real_words(*row) for row in zip(context.outputs, context.outputs_mask, strict=True)]
    sources, targets = real_words(batch.source, batch.source_mask), real_words(batch.target, batch.target_mask)
    return [Case(*row) for row in zip(sources, targets, before, outputs, strict=True)]


def real_words(words, mask):
    """The real ones of every row of [N, C]; None where there are none."""
    return [row[real].tolist() or None for row, real in zip(words, mask, strict=True)]


class QueryCapsules(Reader):
    """Yang 2019: `capsules` [m, d] or [K m, d], and what the routing of each group of words told."""

    def __init__(self, backbone: Transformer, mechanism, case: Case) -> None:
        self.mechanism, self.pre, options = mechanism, backbone.pre, mechanism.options
        table = array(backbone.backbone.source_table.weight)
        query = self.query(table[case.source if options.query_end else case.source[:-1]])
        words = [
            (k, linear(mechanism.from_word, table[word]) + array(mechanism.from_distance)[k])  # Eq. 6
            for k, sentence in reversed(list(enumerate(case.before)))
            for word in sentence or []
        ]
        joint = options.grouping == "joint"
        groups = [words] if joint else [[one for one in words if one[0] == k] for k in range(len(case.before))]
        self.capsules, self.told = [], []
        for group in filter(None, groups):
            found, *told = by_algorithm_1(
                [squash(u) if options.squash_inputs else u for _, u in group], query, array(mechanism.transform),
                [k if options.transforms == "per_distance" else 0 for k, _ in group], options.iterations,
                options.correlation == "eq7",
            )  # fmt: skip
            self.capsules.extend(found)
            self.told.append(told)

    def query(self, vectors):
        """Eq. 5, and what else may be done with the vectors [I, d]."""
        pool = self.mechanism.options.query_pool
        pooled = vectors.sum(0) / (max(len(vectors), 1) if pool == "mean" else 1)
        query = linear(self.mechanism.to_query, pooled)
        return query / np.sqrt(query @ query) if pool == "unit" else query

    def inside(self, side, layer, x):
        if side == "decoder" or not self.capsules:
            return x
        sublayer = self.mechanism.sublayers[layer]
        asking = norm(sublayer.norm, x) if self.pre else x
        capsules = np.stack(self.capsules)
        read = capsules * np.sqrt(capsules.shape[-1]) if self.mechanism.options.scale == "unit" else capsules
        found = x + cross_attention(sublayer.attention, read, asking)
        return found if self.pre else norm(self.mechanism.after[layer], found)


class DocumentEncoder(Reader):
    """Zhang 2018: the sentences before, the farthest first, as one sequence through layers of its own."""

    def __init__(self, backbone: Transformer, mechanism, case: Case) -> None:
        self.mechanism, self.pre = mechanism, backbone.pre
        words = [word for sentence in reversed(case.before) for word in sentence or []]
        self.states = self.encoded(backbone, words) if words else []

    def encoded(self, backbone, words):
        x = backbone.embedded(backbone.backbone.source_table, words)
        return backbone.ended(self.mechanism.norm, backbone.layers(self.mechanism.encoder, "encoder", x, Reader()))

    def inside(self, side, layer, x):
        if self.mechanism.options.side not in (side, "both") or not len(self.states):
            return x
        return np.array([gated(self.mechanism.sublayers[side][layer], one, self.states, self.pre) for one in x])


class OverStacks(Reader):
    """Of each sentence before by itself: what the backbone makes of it, and of its translation."""

    def __init__(self, backbone: Transformer, mechanism, case: Case) -> None:
        self.mechanism, self.pre = mechanism, backbone.pre
        memories = [None if words is None else backbone.encode(words) for words in case.before]
        self.held = {"encoder": [one for one in memories if one is not None]}
        self.held["decoder"] = [
            backbone.decode(words, memory)
            for words, memory in zip(case.outputs, memories[: len(case.outputs)], strict=True)
            if words is not None
        ]

    def above(self, side, x):
        held = self.held[side] if self.mechanism.options.side in (side, "both") else []
        return np.array([self.position(side, one, held) for one in x]) if held else x


class HierarchicalAttention(OverStacks):
    def position(self, side, stream, held):
        return hierarchical(self.mechanism, side, stream, held, self.pre)[0]


class SelectiveAttention(OverStacks):
    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.held = {side: [one[:-1] for one in held if len(one) > 1] for side, held in self.held.items()}

    def position(self, side, stream, held):
        return selective(self.mechanism.look[side], stream, held)[0]


READERS = {
    "query_capsules": QueryCapsules,
    "document_encoder": DocumentEncoder,
    "hierarchical_attention": HierarchicalAttention,
    "selective_attention": SelectiveAttention,
}


def reader_of(system, case: Case) -> Reader:
    """What the system's mechanism that reads the context makes of it."""
    backbone = Transformer(system)
    found = [READERS[kind](backbone, one, case) for kind, one in system.mechanisms.items() if kind in READERS]
    return found[0] if found else Reader()


def regularisation(system, case: Case) -> float:
    """Yang 2019, Eq. 11: minus the correlation of what two plain capsule networks give, for each target word."""
    backbone, mechanism = Transformer(system), system.mechanisms["capsule_regularisation"]
    options, source, target = mechanism.options, system.backbone.source_table, system.backbone.target_table
    if options.reg_inputs == "stream":
        vectors = backbone.embedded(source, case.source), backbone.embedded(target, [BOS, *case.target[:-1]])
    else:
        vectors = array(source.weight)[case.source], array(target.weight)[case.target]
    one, other = (
        by_agreement(np.einsum("id,mde->ime", inputs, array(mechanism.transform[side])), options.iterations, False)[0]
        for inputs, side in zip(vectors, ("source", "target"), strict=True)
    )
    pairs = [(one.ravel(), other.ravel())] if options.reg_pairs == "flat" else list(zip(one, other, strict=True))
    found = np.mean([correlation(a, b, options.correlation == "eq7") for a, b in pairs])
    return -options.reg_weight * (len(case.target) if options.reg_norm == "token" else 1) * found
