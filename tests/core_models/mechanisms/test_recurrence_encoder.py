"""The recurrence encoder: whole systems beside NumPy, sizes beside the paper's, the trace, and who reads it."""

import numpy as np
import pytest
import torch

from core_models.interface.mechanism import HookPoint
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.traces import TraceWriter
from tests.core_models.context_numpy import cases
from tests.core_models.laws import batch_of, log_probs, random_sentences, random_system
from tests.core_models.recurrent_numpy import sigmoid
from tests.core_models.transformer_numpy import Reader, Transformer, array, attention, feed_forward, linear, norm


def gru(unit, x, h):
    """h' = u h + (1 - u) tanh(x W + b + r (h U)); rows of the matrices: reset, update, candidate."""
    (xr, xu, xc), (hr, hu, hc) = np.split(linear(unit.from_input, x), 3), np.split(array(unit.from_state.weight) @ h, 3)
    update = sigmoid(xu + hu)
    return update * h + (1 - update) * np.tanh(xc + sigmoid(xr + hr) * hc), None


def lstm(unit, x, h, cell):
    """Rows of the matrices: input, forget, candidate, output."""
    enter, forget, new, leave = np.split(linear(unit.from_input, x) + array(unit.from_state.weight) @ h, 4)
    cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(cell), cell


class Recurrent(Reader):
    """Hao 2019: states h_t of both directions, the memory, and the gated sum; `told` is what the trace should have."""

    def __init__(self, mechanism, words) -> None:
        self.mechanism, self.options, self.told = mechanism, mechanism.options, {}
        encoder, states = mechanism.encoder, []
        for direction, network in zip(("forward", "backward"), encoder.networks, strict=False):
            found, shares = self.states(network, words[::-1] if self.reads_backward(direction) else words)
            if direction == "backward":
                found, shares = found[::-1], shares[::-1]
            states.append(np.array(found))
            self.told[f"{direction}.attention"] = np.array(shares)
        x = norm(encoder.join_norm, linear(encoder.join, np.concatenate(states, axis=-1)))
        self.memory = norm(encoder.feed_forward_norm, x + feed_forward(encoder, x))

    def reads_backward(self, direction):
        return direction == "backward" and self.options.recurrence == "words"

    def states(self, network, words):
        h = cell = np.zeros(words.shape[1])
        states, shares = [], []
        attentive = self.options.recurrence == "attentive"
        for step in range(self.options.steps if attentive else len(words)):
            x = words[step] if not attentive else None
            if attentive:
                found, share = attention(network.attention, h, words)
                x = linear(network.attention.output, found)
                shares.append(np.array(share))
            h, cell = lstm(network.unit, x, h, cell) if self.options.unit == "lstm" else gru(network.unit, x, h)
            states.append(h)
        return states, shares

    def crossed(self, layer, query, found):
        readers = self.mechanism.readers
        number = layer - (self.layers - len(readers))
        if number < 0:
            return found
        layer_reader, rows, gates, shares = readers[number], [], [], []
        for asking, own in zip(query, found, strict=True):
            looked, share = attention(layer_reader.attention, asking, self.memory)
            recurrent = linear(layer_reader.attention.output, looked)
            gate = sigmoid(linear(layer_reader.gate, np.concatenate([own, recurrent])))
            rows.append(gate * own + (1 - gate) * recurrent)
            gates.append(gate.mean())
            shares.append(share)
        self.told.setdefault("decoder.gate", []).append(gates)
        self.told.setdefault("decoder.attention", []).append(np.moveaxis(np.array(shares), 1, 0))
        return np.array(rows)


def reader_of(system, backbone, case):
    words = backbone.embedded(backbone.backbone.source_table, case.source)
    reader = Recurrent(system.mechanisms["recurrence_encoder"], words)
    reader.layers = system.config.decoder_layers
    return reader


def random_batch(system):
    return batch_of(system, random_sentences([5, 1, 0, 4, 7], 1), random_sentences([4, 0, 3, 6, 2], 2))


NAMES = [
    "biarn",
    "biarn:steps=3,norm=post,encoder_layers=2",
    "biarn:short_cut=false,unit=lstm,decoder_layers=3",
    "biarn:bidirectional=false,steps=2",
    "biarn:recurrence=words",
    "biarn:recurrence=words,unit=lstm,short_cut=false,norm=post",
]


@pytest.mark.parametrize("name", NAMES)
def test_scores(name):
    """log P over the vocabulary at every position of every target."""
    system = random_system(name)
    backbone, batch = Transformer(system), random_batch(system)
    found = log_probs(system, batch).detach().numpy()
    for row, case in enumerate(cases(batch)):
        wanted = backbone.log_probs(case.source, case.target, reader_of(system, backbone, case))
        np.testing.assert_allclose(found[row, : len(case.target)], wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["biarn:steps=5,short_cut=false", "biarn:recurrence=words"])
def test_the_trace(name):
    system = random_system(name)
    batch, backbone = random_batch(system), Transformer(system)
    writer = TraceWriter(["recurrence_encoder.*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    lengths = {"source": batch.source_mask.sum(1).tolist(), "target": batch.target_mask.sum(1).tolist()}
    attentive = "words" not in name
    axes = {
        "forward.attention": ("step", "head", "source"),
        "backward.attention": ("step", "head", "source"),
        "decoder.attention": ("layer", "head", "target", "step" if attentive else "source"),
        "decoder.gate": ("layer", "target"),
    }
    recorded = axes if attentive else ("decoder.attention", "decoder.gate")
    for case, trace in zip(cases(batch), writer.sentences(lengths), strict=True):
        reader = reader_of(system, backbone, case)
        backbone.log_probs(case.source, case.target, reader)
        assert set(trace) == {f"recurrence_encoder.{name}" for name in recorded}
        for name in recorded:
            found = trace[f"recurrence_encoder.{name}"]
            assert found.axes == axes[name]
            np.testing.assert_allclose(found.values, np.array(reader.told[name]), rtol=0, atol=1e-6, err_msg=name)
            found.check(name, 1e-5)


@pytest.mark.parametrize(("short_cut", "changed"), [("true", {2}), ("false", {0, 1, 2})])
def test_who_reads_it(short_cut, changed, monkeypatch):
    """The short-cut is the top decoder layer alone."""
    system = random_system(f"biarn:short_cut={short_cut},decoder_layers=3")
    mechanism = system.mechanisms["recurrence_encoder"]
    at, found = mechanism.at, set()

    def watched(hook_point, x, view, own_state):
        left = at(hook_point, x, view, own_state)
        if left is not x:
            assert hook_point is HookPoint.DECODER_CROSS
            found.add(view.layer)
        return left

    monkeypatch.setattr(mechanism, "at", watched)
    log_probs(system, random_batch(system))
    assert found == changed
    assert len(mechanism.readers) == len(changed)


# Millions that are printed with and without it (Duan 2020; Dou 2019, the same authors' Transformers), and the reading
# that has this size: 30 d^2 of encoder and 6 d^2 a decoder layer that reads it, one for base and all six for big.
REPORTED = {
    ("biarn:preset=base", "transformer:preset=base"): (97.4, 88.0, 36 * 512**2),
    ("biarn:preset=big,short_cut=false", "transformer:preset=big"): (333.5, 264, 66 * 1024**2),
}


@pytest.mark.parametrize("names", REPORTED)
def test_what_a_system_adds(names):
    printed, without, squares = REPORTED[names]
    with torch.device("meta"):
        sizes = [sum(parameter.numel() for parameter in build(name, 100).parameters()) for name in names]
    assert sizes[0] - sizes[1] == pytest.approx(squares, rel=0.002)
    assert (sizes[0] - sizes[1]) / 1e6 == pytest.approx(printed - without, abs=0.6)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ("steps=1", "steps"),
        ("recurrence=words,steps=4", "steps: does nothing while recurrence is words"),
        ("backbone=rnnsearch", "recurrence_encoder on rnnsearch: the decoder has no layers that attend"),
    ],
)
def test_what_cannot_be_is_refused(options, refusal):
    with pytest.raises(ConfigError, match=refusal):
        build(f"biarn:preset=tiny,{options}", 20)
