"""PAST and FUTURE layers: hand-computed cases, the equations written out in NumPy, switches, refusals, parameters."""

import numpy as np
import pytest
import torch

from core_models.checkpoint import initialize_from, write_weights
from core_models.config import WEIGHTS
from core_models.decoding import mixture
from core_models.inspection import logit_lens
from core_models.interface.mechanism import Prediction
from core_models.layers.deferred_linear import images
from core_models.layers.recurrent import GRUCell
from core_models.losses.prediction_losses import prediction_losses
from core_models.mechanisms.past_future_heads import ChangeHead
from core_models.mechanisms.past_future_units import InsideMinusUnit, OutsideMinusUnit, PlainUnit
from core_models.settings import ConfigError
from core_models.system import mixed_distributions
from core_models.system_builder import build, parameters
from core_models.system_spec import describe
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS
from core_models.traces import TraceWriter
from tests.core_models.conftest import lay_out_run
from tests.core_models.laws import WORDS, exact, log_probs, random_sentences, random_system, training_terms
from tests.core_models.recurrent_numpy import Recurrent


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def filled(unit, **values):
    """The unit with all weights 0 but those that are named."""
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.zero_()
        for name, value in values.items():
            weight = unit.get_submodule(name.replace("__", ".")).weight
            weight[-len(value) :] = torch.tensor(value)
    return unit.double()


def new_state(unit) -> float:
    state, context = vector(0.5), vector(1, 0.25)
    made = unit.combine(images(unit.from_context, context), images(unit.from_state, state), state, images)
    return made.item()


def test_t10_the_gru_adds():
    unit = filled(PlainUnit(2, 1), unit__from_input=[[1.0, -1.0]], unit__from_state=[[1.0]])
    assert new_state(unit) == pytest.approx(0.630797, abs=5e-7)


def test_t10_gru_i_subtracts_inside():
    unit = filled(InsideMinusUnit(2, 1, True), minuend=[[1.0]], subtrahend=[[1.0, -1.0]], map=[[1.0]])
    assert new_state(unit) == pytest.approx(0.312177, abs=5e-7)


def test_t10_gru_o_subtracts_outside():
    cell = {"unit__from_input": [[1.0]], "unit__from_state": [[1.0]]}
    unit = filled(OutsideMinusUnit(2, 1, True), minuend=[[1.0]], subtrahend=[[1.0, -1.0]], map=[[1.0]], **cell)
    assert new_state(unit) == pytest.approx(0.252541, abs=5e-7)


def test_t10_the_losses_of_subtraction_and_addition():
    spec = build(exact("rnnsearch:d_model=2,embedding=2"), 3).backbone.spec()
    head = filled(ChangeHead(spec, 2, "mapped", False), minuend=np.eye(2), subtrahend=np.eye(2), map=np.eye(2))
    before, after = vector(1, 0), vector(0.5, 0.5)
    vectors = {"future": head(before, after), "past": head(after, before)}
    torch.testing.assert_close(vectors["future"], vector(0.462117, -0.462117), atol=5e-7, rtol=0)
    torch.testing.assert_close(vectors["past"], -vectors["future"])
    rows = torch.stack([vector(0, 0), vector(1, 0), vector(0, 1)])
    for side, word in (("future", 1), ("past", 2)):
        prediction = Prediction(side, vectors[side][None, None], matrix=rows)
        mask = torch.ones(1, 1, dtype=torch.bool)
        loss = prediction_losses([prediction], rows, None, torch.tensor([[word]]), mask)[side]
        assert loss.item() == pytest.approx(0.706450, abs=5e-7)


def test_t10_step_mean_probabilities():
    parts = [vector(0.6, 0.3, 0.1), vector(0.2, 0.6, 0.2), vector(0.1, 0.6, 0.3)]
    mean = mixture([part.log() for part in parts])
    torch.testing.assert_close(mean.exp(), vector(0.3, 0.5, 0.2))
    torch.testing.assert_close(mixed_distributions([part.log() + 3 for part in parts]), mean)
    assert (int(parts[0].argmax()), int(mean.argmax())) == (0, 1)


VARIANTS = [
    "frnn-gru",
    "frnn-gru-o",
    "frnn-gru-o:extra_map=false,decoder_feed=current",
    "frnn-gru-i",
    "frnn-gru-i:extra_map=false,future_start=zero",
    "frnn-gru-i-loss:embedding=32",
    "prnn:decoder_init=zero",
    "pfrnn:decoder_init=zero,future_start=zero",
    "prnn-loss:delta=plain,attention=additive",
    "pfrnn:decoder_feed=current,attention=additive,decoder_init=zero",
    "pfrnn:decoder_feed=current,summary=end_states",
    "pfrnn-loss:tie_embeddings=none",
    "pfrnn-loss:attention=additive,softmax=own,delta=plain,attention_width=24",
    "rnnsearch-3dec:summary=end_states,attention_width=40",
]


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_forced_pass_is_the_equations(name, seed):
    """Distributions of the decoder and of each loss, and all states, on a batch whose sentences differ in length."""
    system = random_system(name, seed=seed)
    sources, targets = random_sentences([4, 1, 6], seed), random_sentences([5, 3, 2], seed + 7)
    batch = collate(sources, targets)
    writer = TraceWriter(["*"])
    with torch.no_grad():
        forced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
        ours = {
            "decoder": torch.log_softmax(
                forced.main.vectors @ system.backbone.output_matrix[0].T + system.backbone.output_matrix[1], -1
            )
        }
        for one in forced.predictions:
            matrix, bias = system.backbone.output_matrix if one.matrix is None else (one.matrix, one.bias)
            ours[one.name] = torch.log_softmax(one.vectors @ matrix.T + bias, -1)
    traces = writer.sentences({"source": [5, 2, 7], "target": [6, 4, 3]})
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        expected = Recurrent(system).force([*source, EOS], [BOS, *target])
        assert set(ours) == {key for key in expected if key in ("decoder", "past", "future")}
        for key, value in ours.items():
            np.testing.assert_allclose(value[row, : len(target) + 1], expected[key], atol=1e-10)
        for side in ("past", "future"):
            if f"{side}.state" in expected:
                state = traces[row][f"past_future_layers.{side}.state"].values
                np.testing.assert_allclose(state, expected[f"{side}.state"], atol=1e-5)


@pytest.mark.parametrize("objective", ["sum", "mean"])
def test_the_loss_terms_are_the_printed_sums(objective):
    """-log P(y_t) of the decoder and of both layers, summed over all t, </s> included; or a third of each (D7)."""
    system = random_system(f"pfrnn-loss:tie_embeddings=none,weight=0.5,objective={objective}")
    source, target = random_sentences([4], 1)[0], random_sentences([5], 2)[0]
    expected = Recurrent(system).force([*source, EOS], [BOS, *target])
    terms = training_terms(system, collate([source], [target]), 0.0)
    share = 1 / 3 if objective == "mean" else 1
    for name, key, weight in (("main", "decoder", 1), ("past", "past", 0.5), ("future", "future", 0.5)):
        loss = -expected[key][np.arange(len(target) + 1), [*target, EOS]].sum()
        assert terms[name].item() == pytest.approx(share * weight * loss, abs=1e-9)


def test_outside_training_the_translation_weighs_one():
    system = random_system("pfrnn-loss:objective=mean")
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    with torch.no_grad():
        measured = system.losses(system(system.encode(batch), batch.target_in, batch.target_mask), batch)["main"]
        torch.testing.assert_close(training_terms(system, batch, 0.0)["main"], measured / 3)


@pytest.mark.parametrize("name", ["pfrnn-loss", "prnn-loss:tie_embeddings=none", "frnn-gru-i-loss"])
def test_scores_are_the_mean_of_all_distributions(name):
    system = random_system(name)
    source, target = random_sentences([4], 1)[0], random_sentences([5], 2)[0]
    expected = Recurrent(system).force([*source, EOS], [BOS, *target])
    parts = [expected[key] for key in ("decoder", "past", "future") if key in expected]
    batch = collate([source], [target])
    with torch.no_grad():
        forced = system(system.encode(batch), batch.target_in, batch.target_mask)
        np.testing.assert_allclose(system.scores(forced).values[0].exp(), np.exp(parts).mean(0), atol=1e-10)
        words = system.token_log_probs(forced, batch.target)
    rows, right = np.arange(len(target) + 1), [*target, EOS]
    np.testing.assert_allclose(words["main"][0], np.log(np.exp(parts).mean(0)[rows, right]), atol=1e-9)
    for key in words.keys() - {"main"}:
        np.testing.assert_allclose(words[key][0], expected[key][rows, right], atol=1e-9)


def test_without_test_loss_the_decoder_speaks_alone():
    system = random_system("pfrnn-loss:test_loss=none")
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    expected = Recurrent(system).force([*random_sentences([4], 1)[0], EOS], [BOS, *random_sentences([5], 2)[0]])
    np.testing.assert_allclose(log_probs(system, batch).detach()[0], expected["decoder"], atol=1e-10)
    with torch.no_grad():
        assert system(system.encode(batch), batch.target_in, batch.target_mask).predictions == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("prnn:losses=future", "losses: future is a loss of the future layer, and layers are"),
        (
            "prnn:future_unit=gru-o",
            "future_unit: does nothing while layers is past; leave it out, or set layers to future",
        ),
        ("prnn:future_start=zero", "future_start: does nothing while layers is past"),
        ("frnn-gru:extra_map=false", "extra_map: does nothing while future_unit is gru"),
        ("pfrnn:delta=plain", "delta: does nothing while losses is none; leave it out, or set losses to past"),
        ("pfrnn:test_loss=step_mean_prob", "test_loss: does nothing while losses is none"),
        ("pfrnn:softmax=own", "softmax: does nothing while losses is none"),
        ("pfrnn:objective=mean", "objective: does nothing while losses is none"),
        ("pfrnn:layers=[]", "layers: .*; give past, future, or both, each once"),
        ("pfrnn:layers=[past,past]", "layers: .*; give past, future, or both, each once"),
        ("pfrnn:backbone=transformer", "past_future_layers on transformer: PAST and FUTURE layers step through time"),
    ],
)
def test_what_means_nothing_is_refused(options, reason):
    with pytest.raises(ConfigError, match=reason):
        build(options, WORDS)


CHANGES = [
    "decoder_feed=current",
    "attention=additive",
    "future_unit=gru-o",
    "future_unit=gru",
    "extra_map=false",
    "future_start=zero",
    "decoder_init=zero",
    "summary=end_states",
    "delta=plain",
    "softmax=own",
    "test_loss=none",
    "deep_layers=1",
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_switch_changes_the_scores(change):
    """With the weights that both have in common."""
    one, other = random_system("pfrnn-loss"), random_system(f"pfrnn-loss:{change}")
    shared = {name: value for name, value in one.state_dict().items() if name in other.state_dict()}
    other.load_state_dict({**other.state_dict(), **shared})
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    with torch.no_grad():
        assert (log_probs(one, batch) - log_probs(other, batch)).abs().max() > 1e-6


def test_the_softmax_of_a_loss_is_its_own_where_the_output_embeds_nothing():
    """It begins as a copy of the output matrix; with tied embeddings it is that matrix (specification 4.2)."""
    apart, tied = build(exact("pfrnn-loss:tie_embeddings=none"), WORDS), build(exact("pfrnn-loss"), WORDS)
    for head in apart.mechanisms["past_future_layers"].heads.values():
        assert torch.equal(head.matrix, apart.backbone.output_matrix[0])
        assert head.matrix is not apart.backbone.output_matrix[0]
    assert all(head.matrix is None for head in tied.mechanisms["past_future_layers"].heads.values())


# Zheng 2018, Table 6: million parameters.
TABLE_6 = {
    "rnnsearch": 80,
    "frnn-gru": 96,
    "frnn-gru-o": 97,
    "frnn-gru-i": 97,
    "frnn-gru-i-loss": 115,
    "prnn": 95,
    "prnn-loss": 113,
    "pfrnn": 110,
    "pfrnn-loss": 145,
    "rnnsearch-2dec": 93,
    "rnnsearch-3dec": 105,
    "coverage": 80,
}


@pytest.mark.parametrize("name", TABLE_6)
def test_parameters_are_those_of_table_6(name):
    with torch.device("meta"):
        system = build(f"{name}:preset=paper-pfrnn", 30_000, 30_000)
    assert parameters(system)["parameters"] == pytest.approx(1e6 * TABLE_6[name], rel=0.015)


def test_the_trace_says_how_contents_change():
    system = random_system("pfrnn-loss")
    layers = system.mechanisms["past_future_layers"]
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    writer = TraceWriter(["past_future_layers.*"])
    with torch.no_grad():
        encoded = system.encode(batch, writer)
        forced = system(encoded, batch.target_in, batch.target_mask, writer)
    trace = writer.sentences({"source": [5], "target": [6]})[0]
    found = {name.removeprefix("past_future_layers."): array for name, array in trace.items()}
    sides = {
        f"{side}.{what}"
        for side in ("past", "future")
        for what in ("state", "norm", "change", "update_gate", "cosine_context", "cosine_word")
    }
    assert set(found) == sides | {"whole.cosine", "whole.distance"}
    values = {name: array.values for name, array in found.items()}
    for side in ("past", "future"):
        np.testing.assert_allclose(values[f"{side}.norm"], np.linalg.norm(values[f"{side}.state"], axis=1), rtol=1e-5)
        assert ((values[f"{side}.update_gate"] > 0) & (values[f"{side}.update_gate"] < 1)).all()
        assert np.abs(values[f"{side}.cosine_context"]).max() <= 1 + 1e-6
    past = np.concatenate([np.zeros((1, 64)), values["past.state"]])
    np.testing.assert_allclose(values["past.change"], np.linalg.norm(np.diff(past, axis=0), axis=1), rtol=1e-5)
    whole = Recurrent(system).summary(encoded.sentence["backbone"]["memory"][0].numpy())
    sums = values["past.state"] + values["future.state"]
    apart = np.linalg.norm(sums - whole, axis=1) / np.linalg.norm(whole)
    np.testing.assert_allclose(values["whole.distance"], apart, rtol=1e-5)
    aligned = sums @ whole / np.linalg.norm(sums, axis=1) / np.linalg.norm(whole)
    np.testing.assert_allclose(values["whole.cosine"], aligned, rtol=1e-4)
    twin, context = Recurrent(system), forced.view.context[0].numpy()
    entered = context @ twin.m("units.past.unit.from_input.weight").T + twin.m("units.past.unit.from_input.bias")
    recurrent = past[:-1] @ twin.m("units.past.unit.from_state.weight").T
    (_, update, candidate), (_, from_state, _) = np.split(entered, 3, axis=1), np.split(recurrent, 3, axis=1)
    kept = 1 / (1 + np.exp(-update - from_state))
    np.testing.assert_allclose(values["past.update_gate"], kept.mean(1), rtol=1e-4)
    moved = np.diff(past, axis=0)
    along = (moved * candidate).sum(1) / np.linalg.norm(moved, axis=1) / np.linalg.norm(candidate, axis=1)
    np.testing.assert_allclose(values["past.cosine_context"], along, rtol=1e-3, atol=1e-5)
    reading = Recurrent(system).m("units.future.subtrahend.weight") @ forced.view.context[0, 2].numpy()
    change = values["future.state"][1] - values["future.state"][2]
    cosine = change @ reading / np.linalg.norm(change) / np.linalg.norm(reading)
    assert values["future.cosine_context"][2] == pytest.approx(cosine, rel=1e-4)
    past_vectors = next(one.vectors[0].numpy() for one in forced.predictions if one.name == "past")
    embedded = layers.embed(batch.target[0]).detach().numpy()
    expected = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(past_vectors, embedded, strict=True)]
    np.testing.assert_allclose(values["past.cosine_word"], expected, rtol=1e-4)


@pytest.mark.parametrize(("options", "matrix"), [("softmax=tied", "output"), ("softmax=own", "own")])
def test_the_correct_word_is_compared_by_the_matrix_that_scores_it(options, matrix):
    system = random_system(f"prnn-loss:tie_embeddings=none,{options}")
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    writer = TraceWriter(["past_future_layers.past.cosine_word"])
    with torch.no_grad():
        forced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    (trace,) = writer.sentences({"source": [5], "target": [6]})
    vectors = next(one.vectors[0] for one in forced.predictions if one.name == "past")
    head = system.mechanisms["past_future_layers"].heads["past"]
    scored_by = {"own": head.matrix, "output": system.backbone.output_matrix[0]}[matrix]
    expected = torch.cosine_similarity(vectors, scored_by[batch.target[0]], dim=-1)
    np.testing.assert_allclose(trace["past_future_layers.past.cosine_word"].values, expected.detach(), rtol=1e-4)


def test_the_building_leaves_the_backbone_alone():
    torch.manual_seed(4)
    baseline = build(exact("rnnsearch"), WORDS)
    torch.manual_seed(4)
    system = build(exact("pfrnn-loss"), WORDS)
    for name, value in baseline.state_dict().items():
        assert torch.equal(system.state_dict()[name], value), name


def test_the_defaults_of_the_catalogue():
    """What the specification's table of contradictions names as defaults (D1 to D8)."""
    options = build(exact("pfrnn-loss"), WORDS).mechanisms["past_future_layers"].options
    assert (options.decoder_feed, options.attention, options.extra_map) == ("previous", "via_state", True)
    assert (options.delta, options.objective, options.future_start) == ("mapped", "sum", "summary")
    config = describe("pfrnn-loss")
    assert (config.summary, config.decoder_init) == ("mean", "summary")
    assert build(exact("pfrnn-loss"), WORDS).mechanisms["past_future_layers"].mixes
    assert not build(exact("pfrnn"), WORDS).mechanisms["past_future_layers"].mixes


def test_the_plain_gru_is_the_decoders_own_unit():
    unit, cell = PlainUnit(3, 4).double(), GRUCell(3, 4).double()
    cell.load_state_dict(unit.unit.state_dict())
    context, state = torch.randn(2, 3).double(), torch.randn(2, 4).double()
    made = unit.combine(images(unit.from_context, context), images(unit.from_state, state), state, images)
    torch.testing.assert_close(made, cell(cell.from_input(context), state))


def test_a_second_pass_begins_the_losses_with_the_baselines_output_matrix(prepared, tmp_path):
    """Two passes: what the baseline has is copied, and own softmax matrices begin as its output matrix (4.2)."""
    words = len(prepared.source_vocabulary), len(prepared.target_vocabulary)
    model = "preset=tiny,tie_embeddings=none"
    lay_out_run(tmp_path, prepared, f"rnnsearch:{model}")
    torch.manual_seed(2)
    baseline = build(f"rnnsearch:{model}", *words)
    with torch.no_grad():
        baseline.backbone.vocabulary_bias.normal_()
    write_weights(tmp_path / WEIGHTS, baseline)
    system = build(f"pfrnn-loss:{model}", *words)
    unmatched = initialize_from(system, tmp_path, (prepared.source_vocabulary, prepared.target_vocabulary))
    assert set(unmatched) == {name for name, _ in system.named_parameters() if name.startswith("mechanisms.")}
    for head in system.mechanisms["past_future_layers"].heads.values():
        assert torch.equal(head.matrix, baseline.backbone.vocabulary.weight)
        assert torch.equal(head.bias, baseline.backbone.vocabulary_bias)


def test_a_word_that_nobody_would_say_keeps_a_finite_score():
    """A prefix may ask for it."""
    mean = mixed_distributions([torch.tensor([200.0, 0.0, 199.0]), torch.tensor([300.0, 0.0, 0.0])])
    assert mean[1].item() == pytest.approx(np.log(np.finfo(np.float32).tiny), abs=1e-3)
    assert torch.isfinite(mean).all()


def test_measures_are_those_of_the_mean_and_each_loss_ranks_the_right_word():
    """Entropy, rank and best word of what the search would see; the right word's rank under either layer's head."""
    system = random_system("pfrnn-loss:tie_embeddings=none")
    source, target = random_sentences([4], 1)[0], random_sentences([5], 2)[0]
    expected, right = Recurrent(system).force([*source, EOS], [BOS, *target]), [*target, EOS]
    batch, writer = collate([source], [target]), TraceWriter(["*"])
    with torch.no_grad():
        forced = system(system.encode(batch), batch.target_in, batch.target_mask, TraceWriter(["none"]))
        logit_lens.record(system, forced, batch.target, writer)
    trace = {name: array.values for name, array in writer.sentences({"source": [5], "target": [6]})[0].items()}
    mean = np.mean([np.exp(expected[key]) for key in ("decoder", "past", "future")], axis=0)
    np.testing.assert_allclose(trace["entropy"], -(mean * np.log(mean)).sum(1), rtol=1e-5)
    assert trace["best"].tolist() == mean.argmax(1).tolist()
    for name, said in (("rank", mean), ("past.rank", expected["past"]), ("future.rank", expected["future"])):
        ranks = [1 + int((row > row[word]).sum()) for row, word in zip(said, right, strict=True)]
        assert trace[name].tolist() == ranks
