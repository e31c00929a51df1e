"""Context readers beside a second implementation: NumPy in float64, position by position, from the equations alone."""

import numpy as np
import pytest
import torch

from core_models.context_states import context_states
from core_models.mechanisms.base import ContextStates, Own, Place, View
from core_models.text.batches import collate
from core_models.text.documents import before
from core_models.text.vocabulary import EOS
from tests.core_models.laws import random_sentences, random_system
from tests.core_models.test_routing_numpy import softmax
from tests.core_models.test_sparsemax import projected

SENTENCES, POSITIONS, REACH, WORDS = 3, 4, 3, 5


def linear(layer, vector):
    return layer.weight.detach().numpy() @ vector + layer.bias.detach().numpy()


def norm(layer, vector):
    scaled = (vector - vector.mean()) / np.sqrt(vector.var() + 1e-5)
    return scaled * layer.weight.detach().numpy() + layer.bias.detach().numpy()


def sigmoid(vector):
    return 1 / (1 + np.exp(-vector))


def heads(vector, count):
    return np.split(vector, count)


def attention(layer, asking, keys, share=softmax):
    """Multi-head attention of one vector to some, without its output map: [d] and the shares of every head."""
    query, found, shares = heads(linear(layer.query, asking), layer.heads), [], []
    pairs = [np.split(linear(layer.memory, key), 2) for key in keys]
    for head in range(layer.heads):
        energies = [query[head] @ heads(key, layer.heads)[head] / np.sqrt(len(query[head])) for key, _ in pairs]
        shares.append(share(np.array(energies)))
        found.append(
            sum(one * heads(value, layer.heads)[head] for one, (_, value) in zip(shares[-1], pairs, strict=True))
        )
    return np.concatenate(found), shares


def drawn():
    """Stream [S, N, d], states [S, K, C, d] and which of them are real; the last sentence has nothing before it."""
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(SENTENCES, POSITIONS, 64, generator=generator, dtype=torch.float64)
    states = torch.randn(SENTENCES, REACH, WORDS, 64, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([[5, 2, 3], [0, 4, 0], [0, 0, 0]])
    return x, states, torch.arange(WORDS) < lengths[..., None]


def at_encoder(mechanism, x, states, mask, **notes):
    own = Own({}, {}, forced=True)
    own.notes.update(notes)
    own.sentence.update(mechanism.remember(ContextStates(states, mask), own))
    with torch.no_grad():
        return mechanism.at(Place.ENCODER_STACK_OUTPUT, x, View("encoder"), own).numpy()


@pytest.mark.parametrize("name", ["han-encoder", "han-encoder:norm=post"])
def test_hierarchical_attention(name):
    """Miculicich 2018: words of each sentence, sentences, feed-forward with a residual, gate."""
    mechanism = random_system(name).mechanisms["hierarchical_attention"]
    look, gate, after = (part["encoder"] for part in (mechanism.look, mechanism.gate, mechanism.after))
    x, states, mask = drawn()
    found = at_encoder(mechanism, x, states, mask)
    for s, n in np.ndindex(SENTENCES, POSITIONS):
        stream = x[s, n].numpy()
        if not mask[s].any():
            assert (found[s, n] == stream).all()
            continue
        vectors = []
        for k in range(REACH):
            if mask[s, k].any():
                words = states[s, k][mask[s, k]].numpy()
                mixed, _ = attention(look.words, norm(look.word_norm, stream), words)
                vectors.append(norm(look.vector_norm, linear(look.words.output, mixed)))
        mixed, _ = attention(look.sentences, norm(look.sentence_norm, stream), vectors)
        context = linear(look.sentences.output, mixed)
        hidden = np.maximum(linear(look.expand, norm(look.feed_forward_norm, context)), 0)
        context = context + linear(look.contract, hidden)
        share = sigmoid(linear(gate, np.concatenate([stream, context])))
        wanted = (1 - share) * stream + share * context
        wanted = norm(after, wanted) if "post" in name else wanted
        np.testing.assert_allclose(found[s, n], wanted, atol=1e-10)


@pytest.mark.parametrize("words", ["softmax", "sparsemax"])
def test_selective_attention(words):
    """Maruf 2019: sparse shares of sentences times shares of their words, norm, feed-forward, norm, gate; no </s>."""
    mechanism = random_system(f"san-encoder:over_words={words}").mechanisms["selective_attention"]
    look = mechanism.look["encoder"]
    x, states, mask = drawn()
    pieces = torch.full(mask.shape, EOS + 1)
    pieces[:, :, 1] = EOS  # the second word of each sentence is none
    found = at_encoder(mechanism, x, states, mask, **{"encoder.words": pieces != EOS})
    over_words = softmax if words == "softmax" else projected
    sparse = 0
    for s, n in np.ndindex(SENTENCES, POSITIONS):
        stream = x[s, n].numpy()
        held = [states[s, k][mask[s, k] & (pieces[s, k] != EOS)].numpy() for k in range(REACH)]
        held = [one for one in held if len(one)]
        if not held:
            assert (found[s, n] == stream).all()
            continue
        wanted, unchosen = selective(look, stream, held, over_words)
        np.testing.assert_allclose(found[s, n], wanted, atol=1e-9)
        sparse += unchosen
    assert sparse  # some sentence has no share at all


def selective(look, stream, held, over_words=softmax):
    """One position [d] after it has looked at the words of some sentences, and how many shares of sentences are 0."""
    asking = norm(look.asking_norm, stream)
    query = heads(linear(look.sentence_query, asking), look.heads)
    keys = [heads(linear(look.sentence_key, one.mean(0)), look.heads) for one in held]
    chosen = [projected(np.array([q @ key[h] / np.sqrt(len(q)) for key in keys])) for h, q in enumerate(query)]
    within = [attention(look.to_words, asking, one, over_words)[0] for one in held]
    mixed = np.concatenate(
        [sum(chosen[h][k] * heads(one, look.heads)[h] for k, one in enumerate(within)) for h in range(look.heads)]
    )
    context = norm(look.found_norm, linear(look.to_words.output, mixed))
    context = norm(look.context_norm, linear(look.contract, np.maximum(linear(look.expand, context), 0)))
    share = sigmoid(linear(look.from_stream, stream) + linear(look.from_context, context))
    return share * stream + (1 - share) * context, sum(int((one == 0).sum()) for one in chosen)


@pytest.mark.parametrize("memory", ["online", "offline"])
def test_the_memory_of_selective_attention(memory):
    """Of each sentence of two documents: the states of those before it, offline of all others of its document, each
    encoded by itself."""
    system = random_system(f"san-encoder:memory={memory},context_sentences=4")
    mechanism, use = system.mechanisms["selective_attention"], system.context
    lines, documents = random_sentences([3, 1, 4, 2, 3], 8), list("aaabb")
    x = drawn()[0][:1].expand(len(lines), -1, -1)
    context = collate(lines, None, before(lines, documents, use.sentences, use.after)).context
    states = context_states(system.backbone, context, False)
    found = at_encoder(mechanism, x, states.memory, states.mask, **{"encoder.words": context.words != EOS})
    alone = [context_states(system.backbone, collate([line], None, [[line]]).context, False).memory for line in lines]
    words = [one[0, 0, :-1].numpy() for one in alone]  # without </s>
    for s, n in np.ndindex(len(lines), POSITIONS):
        others = [k for k in range(len(lines)) if documents[k] == documents[s] and k != s]
        held = [words[k] for k in others if memory == "offline" or k < s]
        stream = x[s, n].numpy()
        wanted = selective(mechanism.look["encoder"], stream, held)[0] if held else stream
        np.testing.assert_allclose(found[s, n], wanted, atol=1e-9)


def test_the_gate_of_the_document_encoder():
    """Zhang 2018: x' = g x + (1 - g) y, g = sigmoid(W_x x + W_y y), of attention to the context."""
    sublayer = random_system("document-transformer").mechanisms["document_encoder"].sublayers["encoder"][0]
    x, states, mask = drawn()
    states, mask = states[:, 0], mask[:, 0]
    keys = sublayer.attend.attention.keys_and_values(states)
    with torch.no_grad():
        found, shares = sublayer(x, keys, mask, True)
    for s, n in np.ndindex(SENTENCES, POSITIONS):
        stream = x[s, n].numpy()
        if not mask[s].any():
            assert (found[s, n].numpy() == stream).all()
            continue
        mixed, told = attention(
            sublayer.attend.attention, norm(sublayer.attend.norm, stream), states[s][mask[s]].numpy()
        )
        context = linear(sublayer.attend.attention.output, mixed)
        gate = sigmoid(linear(sublayer.from_stream, stream) + linear(sublayer.from_context, context))
        np.testing.assert_allclose(found[s, n].numpy(), gate * stream + (1 - gate) * context, atol=1e-10)
        np.testing.assert_allclose(shares[s, :, n][:, mask[s]].numpy(), np.array(told), atol=1e-10)
