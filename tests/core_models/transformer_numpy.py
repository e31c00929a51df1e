"""The Transformer written out in NumPy, float64, one sentence at a time and without padding, from the equations.

Vaswani 2017, pre- or post-norm, with places where a mechanism may stand. Takes weights from a system's layers and
shares no code with it.
"""

from functools import partial

import numpy as np

from core_models.text.vocabulary import BOS
from tests.core_models.recurrent_numpy import log_softmax
from tests.core_models.routing.test_algorithms_numpy import softmax


def array(parameter):
    return parameter.detach().numpy()


def linear(layer, x):
    return x @ array(layer.weight).T + array(layer.bias)


def norm(layer, x):
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return scaled * array(layer.weight) + array(layer.bias)


def heads(x, count):
    return np.split(x, count, axis=-1)


def mixed(query, keys, values, count, share=softmax):
    """Multi-head attention of one query [d] to keys and values [M, d]: [d] and the shares of every head."""
    found, shares = [], []
    for asking, key, value in zip(*(heads(part, count) for part in (query, keys, values)), strict=True):
        shares.append(share(key @ asking / np.sqrt(len(asking))))
        found.append(shares[-1] @ value)
    return np.concatenate(found), shares


def attention(layer, asking, states, share=softmax):
    """Of one vector [d] to states [M, d], before the output map: [d] and the shares of every head."""
    keys, values = np.split(linear(layer.memory, np.array(states)), 2, axis=-1)
    return mixed(linear(layer.query, asking), keys, values, layer.heads, share)


def looked(layer, states, asking):
    """What one vector [d] finds in states [M, d]."""
    return linear(layer.output, attention(layer, asking, states)[0])


def output_map(layer):
    """What an attention makes of its heads side by side, [N, d]."""
    return partial(linear, layer.output)


def cross_attention(layer, states, x, aggregate=None):
    found = np.array([attention(layer, one, states)[0] for one in x])
    return (aggregate or output_map(layer))(found)


def self_attention(layer, causal, x, aggregate=None):
    queries, keys, values = np.split(linear(layer.project, x), 3, axis=-1)
    ends = range(1, len(x) + 1) if causal else [len(x)] * len(x)
    found = [mixed(q, keys[:end], values[:end], layer.heads)[0] for q, end in zip(queries, ends, strict=True)]
    return (aggregate or output_map(layer))(np.array(found))


def feed_forward(layer, x):
    return linear(layer.contract, np.maximum(linear(layer.expand, x), 0))


class Reader:
    """What stands in the stacks, in them and on top of them: nothing, unless a subclass says so."""

    def aggregates(self, attention, layer):
        """What takes the place of the output map of encoder_self, decoder_self or decoder_cross: [N, d] to [N, d]."""

    def inside(self, side, layer, x):
        """The stream after self-attention."""
        return x

    def crossed(self, layer, query, found):
        """What the attention to the memory found, [T, d], before it is added."""
        return found

    def above(self, side, x):
        return x


class Transformer:
    """A system's backbone; words are lists that end in </s>."""

    def __init__(self, system) -> None:
        self.backbone, self.pre = system.backbone, system.config.norm == "pre"

    def embedded(self, table, words):
        """Scaled, with sinusoids, which a system keeps in float32: [N, d]."""
        vectors = array(table.weight)[words]
        width = vectors.shape[1]
        angles = np.arange(len(words))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(words), width)
        return vectors * np.sqrt(width) + waves.astype(np.float32)

    def added(self, x, change, layer_norm):
        return x + change(norm(layer_norm, x)) if self.pre else norm(layer_norm, x + change(x))

    def ended(self, layer_norm, x):
        return norm(layer_norm, x) if self.pre else x

    def layers(self, blocks, side, x, reader, memory=None):
        for number, block in enumerate(blocks):
            aggregate = reader.aggregates(f"{side}_self", number)
            look = partial(self_attention, block.attention, side == "decoder", aggregate=aggregate)
            x = self.added(x, look, block.attention_norm)
            x = reader.inside(side, number, x)
            if memory is not None:
                x = self.added(x, partial(self.crossed, number, block.cross, memory, reader), block.cross_norm)
            x = self.added(x, partial(feed_forward, block), block.feed_forward_norm)
        return reader.above(side, x)

    def crossed(self, number, layer, memory, reader, query):
        found = cross_attention(layer, memory, query, reader.aggregates("decoder_cross", number))
        return reader.crossed(number, query, found)

    def encode(self, source, reader=None):
        x = self.embedded(self.backbone.source_table, source)
        x = self.layers(self.backbone.encoder, "encoder", x, reader or Reader())
        return self.ended(self.backbone.encoder_norm, x)

    def decode(self, target, memory, reader=None):
        """What the vocabulary head reads before every word of a target, [T, d]."""
        x = self.embedded(self.backbone.target_table, [BOS, *target[:-1]])
        x = self.layers(self.backbone.decoder, "decoder", x, reader or Reader(), memory)
        return self.ended(self.backbone.decoder_norm, x)

    def log_probs(self, source, target, reader):
        """log P over the vocabulary at every position of a target, [T, V]."""
        output = self.decode(target, self.encode(source, reader), reader)
        return log_softmax(output @ array(self.backbone.vocabulary.weight).T)
