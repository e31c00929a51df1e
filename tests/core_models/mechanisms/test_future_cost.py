"""Future cost: hand-computed cases, Eq. 8-14 written out, and what each model costs."""

import pytest
import torch
from torch import nn

from core_models.interface.mechanism import MechanismState, Prediction
from core_models.losses.prediction_losses import prediction_losses
from core_models.mechanisms.future_cost import FutureCost, FutureCostOptions
from core_models.system_builder import build, parameters
from core_models.system_spec import describe
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS
from core_models.traces import TraceWriter
from tests.core_models.laws import WORDS, exact, log_probs, random_sentences, random_system, training_terms


@pytest.fixture
def hand_worked() -> FutureCost:
    """Two-wide: W_r = I, U_r = 0, W_z = 0, U_z = I, W = I, U = 2 I, W_g = [1, 0, 0, 1]."""
    words = nn.Embedding(2, 2, dtype=torch.float64)
    spec = describe("transformer:preset=tiny").model_copy(update={"d_model": 2, "embedding": 2, "heads": 1})
    mechanism = FutureCost(build(spec, 8).backbone.spec(), FutureCostOptions(model=2)).double()
    mechanism.embed = words
    one, none = torch.eye(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    with torch.no_grad():
        mechanism.from_word.weight.copy_(torch.cat([one, none, one]))
        mechanism.from_state.weight.copy_(torch.cat([none, one]))
        mechanism.from_reset.weight.copy_(2 * one)
        mechanism.gate.weight.copy_(torch.tensor([[1.0, 0, 0, 1]]))
    return mechanism


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_t9_the_cell_and_the_gate(hand_worked):
    future = hand_worked.cell(vector(1, -1), vector(0, 2))
    torch.testing.assert_close(future, vector(0.5, 0.305140), atol=5e-7, rtol=0)
    state = vector(1, 1)
    gate = torch.sigmoid(hand_worked.gate(torch.cat([state, future])))
    torch.testing.assert_close(gate, vector(0.786699), atol=5e-7, rtol=0)
    torch.testing.assert_close(state + gate * future, vector(1.393349, 1.240053), atol=1e-6, rtol=0)


def test_t9_the_first_future_reads_the_mean_of_the_real_source(hand_worked):
    memory = torch.stack([vector(1, 1), vector(3, -1), vector(7, 7)])[None]
    first = hand_worked.start(memory, torch.tensor([[True, True, False]]), None)["state"]
    torch.testing.assert_close(first, vector(2, 0)[None, None])
    torch.testing.assert_close(hand_worked.cell(vector(0, 1), first[0, 0]), vector(2, 0.5))


@pytest.mark.parametrize(("future_from", "expected"), [(0, 3.170086), (1, 1.966113)])
def test_t9b_the_loss(future_from, expected):
    """F_0, F_1 and F_2 give the printed distributions; y = [1, 0, 2]; without F_0 there are T - 1 terms."""
    mechanism = random_system(f"future-cost-1:future_from={future_from}").mechanisms["future_cost"]
    own = MechanismState({}, {}, forced=True)
    own.notes["future"] = torch.zeros(1, 3, 64, dtype=torch.float64)
    prediction = mechanism.predictions(None, own)[0]
    rows = torch.stack([vector(0.5, 0.3, 0.2), vector(0.2, 0.5, 0.3), vector(0.1, 0.2, 0.7)])[None]
    exactly = Prediction("future_cost", rows.log(), matrix=torch.eye(3, dtype=torch.float64), mask=prediction.mask)
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss = prediction_losses([exactly], torch.eye(3), None, torch.tensor([[1, 0, 2]]), mask)["future_cost"]
    torch.testing.assert_close(loss, vector(expected), atol=5e-7, rtol=0)


def by_the_equations(system, batch, symbol: int) -> tuple[torch.Tensor, torch.Tensor]:
    """H [T, d] of the plain decoder and F_0 … F_{T-1} [T, d] of one sentence, a loop over Eq. 8-11."""
    cost, backbone = system.mechanisms["future_cost"], system.backbone
    encoded = system.encode(batch)
    states = system(encoded, batch.target_in, batch.target_mask).view.state[0]
    words = backbone.target_table.weight
    word_reset, word_update, word_candidate = cost.from_word.weight.chunk(3)
    state_reset, state_update = cost.from_state.weight.chunk(2)
    previous = torch.cat([cost.first_state(encoded.sentence["backbone"]["memory"][0].mean(0))[None], states[:-1]])
    futures = []
    for state, number in zip(previous, [symbol, *batch.target[0, :-1].tolist()], strict=True):
        word = words[number]
        reset = torch.sigmoid(word_reset @ word + state_reset @ state)
        update = torch.sigmoid(word_update @ word + state_update @ state)
        candidate = torch.relu(word_candidate @ word + cost.from_reset.weight @ (reset * state))
        futures.append(update * candidate + (1 - update) * state)
    return states, torch.stack(futures)


@pytest.mark.parametrize(
    ("options", "symbol"),
    [("", EOS), (",first_symbol=bos", BOS), (",backbone=rnnsearch", EOS), (",main_tanh_head=true", EOS)],
)
def test_model_2_is_the_printed_equations(options, symbol):
    system = random_system(f"future-cost-2:weight=0.7{options}")
    cost, (matrix, bias) = system.mechanisms["future_cost"], system.backbone.output_matrix
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    bias = 0 if bias is None else bias
    with torch.no_grad():
        states, futures = by_the_equations(system, batch, symbol)
        gates = torch.sigmoid(torch.cat([states, futures], dim=-1) @ cost.gate.weight[0])
        fused = states + gates[:, None] * futures
        if cost.main_head is not None:  # Eq. 6
            fused = torch.tanh(fused @ cost.main_head.weight.T)
        torch.testing.assert_close(
            log_probs(system, batch)[0], torch.log_softmax(fused @ matrix.T + bias, -1), atol=1e-9, rtol=0
        )
        expected = torch.log_softmax(torch.tanh(futures @ cost.future_head.weight.T) @ matrix.T + bias, -1)
        target = batch.target[0]
        loss = -0.7 * expected[torch.arange(len(target)), target].sum()
        torch.testing.assert_close(training_terms(system, batch, 0.0)["future_cost"][0], loss, atol=1e-9, rtol=0)


def test_model_1_translates_as_its_baseline_does():
    system = random_system("future-cost-1")
    baseline = build(exact("transformer"), WORDS).double().eval()
    baseline.load_state_dict(
        {name: value for name, value in system.state_dict().items() if name.startswith("backbone.")}
    )
    batch = collate(random_sentences([4, 3], 1), random_sentences([5, 2], 2))
    assert torch.equal(log_probs(system, batch), log_probs(baseline, batch))


def test_nothing_is_asked_after_the_last_word():
    """F_T, the future after EOS, is never used: nothing depends on a word that was put in EOS's place in `target`."""
    system = random_system("future-cost-2")
    batch = collate(random_sentences([4], 1), random_sentences([3], 2))
    forced = system.train()(system.encode(batch), batch.target_in, batch.target_mask)
    assert EOS not in batch.target_in
    assert forced.predictions[0].vectors.shape[1] == batch.target.shape[1]


def test_the_building_leaves_the_backbone_alone():
    """With one seed the baseline and its mechanism start from the same backbone: what is compared is the mechanism."""
    torch.manual_seed(4)
    baseline = build(exact("transformer"), WORDS)
    torch.manual_seed(4)
    system = build(exact("future-cost-2"), WORDS)
    for name, value in baseline.state_dict().items():
        assert torch.equal(system.state_dict()[name], value), name


@pytest.mark.parametrize(("model", "more"), [(1, 0), (2, 2 * 64)])
def test_parameters_are_seven_squares(model, more):
    """7 d^2, and 2 d for the gate: what Table 1 of Duan 2020 implies (C5)."""
    baseline, system = (parameters(build(exact(name), WORDS)) for name in ("transformer", f"future-cost-{model}"))
    assert {key: system[key] - baseline[key] for key in system} == dict.fromkeys(system, 7 * 64**2 + more)
    mechanism = build(exact(f"future-cost-{model}"), WORDS).mechanisms["future_cost"]
    assert sum(parameter.numel() for parameter in mechanism.parameters()) == 7 * 64**2 + more


def test_the_trace_shows_gate_and_future_log_probability():
    system = random_system("future-cost-2")
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    writer = TraceWriter(["*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
        states, futures = by_the_equations(system, batch, EOS)
    gate = writer.sentences({"source": [5], "target": [6]})[0]["future_cost.gate"]
    assert gate.axes == ("target",)
    wanted = torch.sigmoid(torch.cat([states, futures], -1) @ system.mechanisms["future_cost"].gate.weight[0])
    torch.testing.assert_close(torch.tensor(gate.values), wanted.float(), atol=1e-5, rtol=0, check_dtype=False)
