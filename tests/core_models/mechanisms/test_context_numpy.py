"""Context readers by themselves, on streams and states that are drawn, beside their second implementation in NumPy."""

import numpy as np
import pytest
import torch

from core_models.context_states import context_states
from core_models.interface.mechanism import ContextStates, HookPoint, MechanismState, View
from core_models.text.batches import collate
from core_models.text.documents import context_entries
from core_models.text.vocabulary import EOS
from core_models.traces import TraceWriter
from tests.core_models.context_numpy import gated, hierarchical, selective
from tests.core_models.laws import random_sentences, random_system
from tests.core_models.transformer_numpy import attention, norm

SENTENCES, POSITIONS, REACH, WORDS = 3, 4, 3, 5


def drawn():
    """Stream [S, N, d], states [S, K, C, d] and which of them are real; the last sentence has nothing before it."""
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(SENTENCES, POSITIONS, 64, generator=generator, dtype=torch.float64)
    states = torch.randn(SENTENCES, REACH, WORDS, 64, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([[5, 2, 3], [0, 4, 0], [0, 0, 0]])
    return x, states, torch.arange(WORDS) < lengths[..., None]


def at_encoder(mechanism, x, states, mask, **notes):
    """What the encoder's stack becomes, and the gate that is recorded: [S, N, d], [S][N]."""
    writer = TraceWriter(["it.encoder.gate"])
    own = MechanismState({}, {}, True, writer, "it")
    own.notes.update(notes)
    own.sentence.update(mechanism.remember(ContextStates(states, mask), own))
    with torch.no_grad():
        found = mechanism.at(HookPoint.ENCODER_STACK_OUTPUT, x, View("encoder"), own).numpy()
    traces = writer.sentences({"source": [x.shape[1]] * len(x)})
    return found, [trace["it.encoder.gate"].values for trace in traces]


@pytest.mark.parametrize("name", ["han-encoder", "han-encoder:norm=post"])
def test_hierarchical_attention(name):
    mechanism = random_system(name).mechanisms["hierarchical_attention"]
    x, states, mask = drawn()
    found, gates = at_encoder(mechanism, x, states, mask)
    for s, n in np.ndindex(SENTENCES, POSITIONS):
        stream = x[s, n].numpy()
        held = [states[s, k][mask[s, k]].numpy() for k in range(REACH) if mask[s, k].any()]
        if not held:
            assert (found[s, n] == stream).all()
            assert gates[s][n] == 0
            continue
        wanted, gate = hierarchical(mechanism, "encoder", stream, held, "post" not in name)
        np.testing.assert_allclose(found[s, n], wanted, atol=1e-10)
        assert gates[s][n] == pytest.approx(gate, rel=1e-5)


@pytest.mark.parametrize("words", ["softmax", "sparsemax"])
def test_selective_attention(words):
    """No </s> is looked at, and some sentence has no share at all."""
    mechanism = random_system(f"san-encoder:over_words={words}").mechanisms["selective_attention"]
    look = mechanism.look["encoder"]
    x, states, mask = drawn()
    pieces = torch.full(mask.shape, EOS + 1)
    pieces[:, :, 1] = EOS  # the second word of each sentence is none
    found, gates = at_encoder(mechanism, x, states, mask, **{"encoder.are_words": pieces != EOS})
    sparse = 0
    for s, n in np.ndindex(SENTENCES, POSITIONS):
        stream = x[s, n].numpy()
        held = [states[s, k][mask[s, k] & (pieces[s, k] != EOS)].numpy() for k in range(REACH)]
        held = [one for one in held if len(one)]
        if not held:
            assert (found[s, n] == stream).all()
            continue
        wanted, unchosen, share = selective(look, stream, held)
        np.testing.assert_allclose(found[s, n], wanted, atol=1e-9)
        assert gates[s][n] == pytest.approx(share, rel=1e-5)
        sparse += unchosen
    assert sparse


@pytest.mark.parametrize("memory", ["online", "offline"])
def test_the_memory_of_selective_attention(memory):
    """Of each sentence of two documents: the states of those before it, offline of all others of its document, each
    encoded by itself."""
    system = random_system(f"san-encoder:memory={memory},context_sentences=4")
    mechanism, use = system.mechanisms["selective_attention"], system.context
    lines, documents = random_sentences([3, 1, 4, 2, 3], 8), list("aaabb")
    x = drawn()[0][:1].expand(len(lines), -1, -1)
    context = collate(lines, None, context_entries(lines, documents, use.sentences, use.after)).context
    states = context_states(system.backbone, context, False)
    found, _ = at_encoder(mechanism, x, states.memory, states.mask, **{"encoder.are_words": context.words != EOS})
    alone = [context_states(system.backbone, collate([line], None, [[line]]).context, False).memory for line in lines]
    words = [one[0, 0, :-1].numpy() for one in alone]  # without </s>
    for s, n in np.ndindex(len(lines), POSITIONS):
        others = [k for k in range(len(lines)) if documents[k] == documents[s] and k != s]
        held = [words[k] for k in others if memory == "offline" or k < s]
        stream = x[s, n].numpy()
        wanted = selective(mechanism.look["encoder"], stream, held)[0] if held else stream
        np.testing.assert_allclose(found[s, n], wanted, atol=1e-9)


def test_the_gate_of_the_document_encoder():
    """And whom the positions ask: the shares of every head."""
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
        words = states[s][mask[s]].numpy()
        np.testing.assert_allclose(found[s, n].numpy(), gated(sublayer, stream, words, True), atol=1e-10)
        _, told = attention(sublayer.attend.attention, norm(sublayer.attend.norm, stream), words)
        np.testing.assert_allclose(shares[s, :, n][:, mask[s]].numpy(), np.array(told), atol=1e-10)
