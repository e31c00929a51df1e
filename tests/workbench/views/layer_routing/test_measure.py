"""Routing over a test set: what is measured is what the model did; first weights; votes that cannot agree."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

import core_models
from analyses import routing as measure
from core_models.checkpoint import read_tensors
from core_models.routing.algorithms import em_routing
from core_models.training.initial_weights import untrained
from core_models.translator import Translator
from workbench.evaluation.forced_decoding import targets_of
from workbench.evaluation.translate import trace_test
from workbench.experiments.train import new_run, train
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.layer_routing import measure as routing


@pytest.fixture
def run(routed_run, tmp_path):
    """A copy of the run, to be measured beside."""
    return open_run(shutil.copytree(routed_run.folder, tmp_path / "em-routing"))


def _by_hand(run, side, sentences):
    """The measures from traces of the translator, all positions side by side."""
    targets = targets_of(run, "test", "own", sentences)
    name = f"em_routing.{side}.assignments"
    sources, tokens = zip(*((one.source, one.pieces) for one in targets.sentences), strict=True)
    traces = core_models.load(run.reference).trace(sources, tokens, [name])
    return np.concatenate([trace[name].values for trace in traces], axis=1)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_what_is_measured_is_what_the_forced_passes_did(run, side):
    found = routing.measured(run, side, targets_of(run, "test", "own", 20))
    wanted = _by_hand(run, side, 20)
    rows = measure.measures(found, samples=50)
    whole = rows[rows.layer == 0].set_index(["measure", "iteration"]).value
    np.testing.assert_allclose(whole["entropy"], measure.entropy(wanted), atol=1e-6)
    np.testing.assert_allclose(whole["diversity"], measure.diversity(wanted), atol=1e-6)
    np.testing.assert_allclose(found.dead_throughout, measure.dead_share(wanted))


def test_a_stored_trace_says_the_same_to_its_half_precision(run):
    targets = targets_of(run, "test", "own", 6)
    live = routing.measured(run, "decoder", targets)
    shutil.rmtree(run.statistics)
    trace_test(run, run.translations("test"), ["*.assignments", "*.activations"])
    stored = routing.measured(run, "decoder", targets)
    np.testing.assert_allclose(stored.entropy, live.entropy, atol=2e-3)
    np.testing.assert_allclose(stored.activations, live.activations, atol=1e-3)
    assert not np.array_equal(stored.entropy, live.entropy)  # it was taken from the trace


def test_a_trace_of_as_many_other_pieces_is_not_taken(run):
    targets = targets_of(run, "test", "own", 6)
    trace_test(run, run.translations("test"), ["*.assignments", "*.activations"])
    first, *others = targets.sentences
    turned = replace(targets, sentences=(replace(first, pieces=first.pieces[::-1]), *others))
    assert len(set(first.pieces)) > 1
    of_these, of_those = (routing.measured(run, "decoder", one) for one in (targets, turned))
    shutil.rmtree(run.folder / "traces")
    shutil.rmtree(run.statistics)
    np.testing.assert_array_equal(routing.measured(run, "decoder", turned).entropy, of_those.entropy)
    assert not np.array_equal(of_these.entropy, of_those.entropy)


def test_a_measurement_is_kept_and_made_again_where_it_cannot_be_read(run):
    targets = targets_of(run, "test", "own", 3)
    found = routing.measured(run, "encoder", targets)
    (kept,) = run.statistics.glob("routing-*.npz")
    with np.load(kept) as stored:
        np.savez(kept, **{**stored, "dead": stored["dead"] + 1})
    np.testing.assert_array_equal(routing.measured(run, "encoder", targets).dead, found.dead + 1)
    kept.write_bytes(b"half of it")
    np.testing.assert_array_equal(routing.measured(run, "encoder", targets).dead, found.dead)


@pytest.mark.parametrize("begun_from", [False, True])
def test_untrained_weights_are_those_that_training_begins_with(routed_run, demo_runs, tmp_path, begun_from):
    """One update at a rate that moves nothing."""
    training = {"max_steps": 1, "warmup": 1, "batch_tokens": 256, "learning_rate": 1e-30, "seed": 5}
    if begun_from:
        training["init_from"] = str(routed_run.folder)
    system = "em-routing:preset=tiny,encoder_layers=3,decoder_layers=2,capsules=8"
    begun = new_run(tmp_path / "begun", system, demo_runs / "demo" / "data", training)
    train(begun, device="cpu")
    written = read_tensors(begun.weights)
    made = dict(untrained(begun.folder).systems[0].named_parameters())
    assert written.keys() == made.keys()
    for name, tensor in written.items():
        np.testing.assert_allclose(tensor.numpy(), made[name].detach().numpy(), rtol=0, atol=1e-29, err_msg=name)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize(
    "system",
    [
        "em-routing:capsules=8",
        "em-routing:schedule=rising,normalize_mass=true,votes=concatenated",
        "em-routing:renormalize=true,include_embedding=true",
        "em-routing:capsules=8,iterations=1",
        "dynamic-routing:capsules=8",
        "dynamic-routing:iterations=1",
    ],
)
def test_routing_the_traced_votes_again_gives_the_traced_assignments(prepared, system, side):
    kind = system.partition(":")[0].replace("-", "_")
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    built = core_models.build(f"{system},preset=tiny,encoder_layers=3", len(vocabularies[0])).eval()
    translator = Translator(built, *vocabularies)
    (found,) = translator.score(["the old dog sees the tree"], ["der alte Hund sieht der Baum"], trace=[f"{kind}.*"])
    names = ("votes", "inputs_active", "assignments", "activations")
    of_side = {
        name: found.trace[f"{kind}.{side}.{name}"].values for name in names if f"{kind}.{side}.{name}" in found.trace
    }
    assignments, activations = routing.route(translator, kind, side, of_side["votes"], of_side.get("inputs_active"))
    np.testing.assert_allclose(assignments, of_side["assignments"], atol=1e-6)
    assert (activations is None) == (kind == "dynamic_routing")
    if activations is not None:
        np.testing.assert_allclose(activations, of_side["activations"], atol=1e-6)


def test_random_votes_of_six_layers_make_nearly_the_curves_that_the_paper_prints():
    """From 6.24 nats to about 5.9, from 0 to about 0.2: the algorithm's own, with nothing learned."""
    votes = torch.randn(50, 6, 512, 1, generator=torch.Generator().manual_seed(1))
    found = em_routing(votes, torch.full((50, 6), 0.5), torch.zeros(512), torch.zeros(512), 3).assignments.numpy()
    assert measure.entropy(found).round(2).tolist()[0] == 6.24
    assert 5.8 < measure.entropy(found)[-1] < measure.entropy(found)[1] < 6.1
    assert 0.15 < measure.diversity(found)[-1] < 0.25


def test_layers_that_agree_at_every_position_no_longer_do_when_their_votes_are_dealt_anew(run):
    draw_from, translator = np.random.default_rng(1), core_models.load(run.reference)
    said = draw_from.normal(size=(60, 1, 8, 8)).astype(np.float32)  # of a position, by all three layers
    votes, active = np.repeat(said, 3, axis=1), np.full((60, 3), 0.5, dtype=np.float32)
    agreeing, _ = routing.route(translator, "em_routing", "encoder", votes, active)
    dealt, _ = routing.route(
        translator, "em_routing", "encoder", *measure.shuffle_positions(np.random.default_rng(2), votes, active)
    )
    np.testing.assert_allclose(measure.diversity(agreeing), 0, atol=1e-5)
    assert measure.diversity(dealt)[-1] > 0.2


def test_a_layer_that_speaks_otherwise_than_the_others_no_longer_does_when_votes_are_exchanged(run):
    votes = np.random.default_rng(1).normal(size=(60, 3, 8, 8)).astype(np.float32)
    votes[:, 0] *= 0.1  # it says little, to all capsules
    translator, active = core_models.load(run.reference), np.full((60, 3), 0.5, dtype=np.float32)
    apart = []
    for one in (votes, measure.shuffle_inputs(np.random.default_rng(2), votes)):
        assignments, _ = routing.route(translator, "em_routing", "encoder", one, active)
        apart.append(np.ptp([measure.entropy(assignments[:, :, [layer]])[-1] for layer in range(3)]))
    assert apart[1] < 0.5 * apart[0]


def test_what_is_learned_shows_all_states_of_one_run(run):
    figure = draw("routing-learned", Request((run,), "test", options={"sentences": 12}))
    table = figure.table
    targets = targets_of(run, "test", "own", 12)
    for state, label in routing.STATES.items():
        rows = measure.measures(routing.measured(run, "encoder", targets, state))
        wanted = rows[(rows.measure == "diversity") & (rows.layer == 0)].value
        found = table[(table.series == label) & (table.panel == "diversity")].value
        np.testing.assert_allclose(found, wanted)
    began, trained = (table[(table.series == routing.STATES[state]) & (table.panel == "entropy (nats)")].value.tolist()
                      for state in ("initial", "trained"))  # fmt: skip
    assert began[0] == trained[0] == pytest.approx(np.log(8))
    assert began[-1] != trained[-1]
    assert "trained minus at initialization" in figure.caption
    assert "minus votes exchanged between layers" in figure.caption
    delta = f"{trained[-1] - began[-1]:+.3f}".replace("-", "−")
    assert f"trained minus at initialization entropy {delta} nats [" in figure.caption


def test_health_goes_from_the_first_weights_over_every_checkpoint(run):
    figure = draw("routing-health", Request((run,), "test", options={"sentences": 5}))
    line = figure.table[figure.table.panel == "diversity"]
    assert line.step.tolist() == [0, 1, 2]
    targets = targets_of(run, "test", "own", 5)
    at_two = routing.measured(open_run(f"{run.folder}@2"), "encoder", targets)
    assert line.value.iloc[-1] == pytest.approx(np.average(at_two.diversity[:, -1], weights=at_two.positions))
    began = routing.measured(run, "encoder", targets, "initial")
    assert line.value.iloc[0] == pytest.approx(np.average(began.diversity[:, -1], weights=began.positions))
    assert [one.step for one in routing.checkpoints(run, 1)] == ["2"]


def test_a_test_set_as_corrected_and_as_printed(run):
    table = draw("routing-corpus", Request((run,), "test", options={"sentences": 5, "layers": True})).table
    assert table[table.series == "reported"].value.tolist() == [6.24, 5.93, 5.86, 0.0, 0.09, 0.18]
    assert {f"em-routing, layer {layer}" for layer in (1, 2, 3)} <= set(table.series)
    literal = draw("routing-corpus", Request((run,), "test", options={"sentences": 5, "formula": "printed"})).table
    own = literal[(literal.series == "em-routing") & (literal.panel == "Eq. 17 as published")].value
    wanted = _by_hand(run, "encoder", 5)
    np.testing.assert_allclose(own, measure.entropy_as_printed(wanted), atol=1e-6)


def test_entropies_of_a_test_set_and_their_intervals_are_shares_of_that_of_even_shares(run):
    (panel, *_) = draw("routing-corpus", Request((run,), "test", options={"sentences": 5})).panels
    line, reported, even = panel.marks
    (in_nats, *_) = draw("routing-corpus", Request((run,), "test", options={"sentences": 5, "entropy": "nats"})).panels
    for share, nats in ((line.y, "value"), (line.low, "low"), (line.high, "high")):
        np.testing.assert_allclose(line.values(share), in_nats.marks[0].values(nats) / np.log(8))
    np.testing.assert_allclose(reported.values(reported.y), np.array([6.24, 5.93, 5.86]) / np.log(512))
    assert even.position == 1.0
    assert (panel.y.label, in_nats.y.label) == ("entropy / log N", "entropy (nats)")


def test_what_cannot_be_measured_is_said(run, demo_runs):
    for options, message in (
        ({"sentences": 0}, "sentences 0: write all, or a number from 1"),
        ({"formula": "right"}, "formula 'right': choose corrected, printed"),
        ({"side": "middle"}, "side 'middle': choose encoder, decoder"),
        ({"sentense": 5}, "there is no option 'sentense'"),
    ):
        with pytest.raises(RunError, match=message):
            draw("routing-corpus", Request((run,), "test", options=options))
    with pytest.raises(RunError, match="transformer routes no layers of its encoder"):
        draw("routing-learned", Request((open_run(demo_runs / "demo" / "transformer"),), "test"))
    shutil.rmtree(run.folder / "checkpoints")
    with pytest.raises(RunError, match="has kept no checkpoint"):
        draw("routing-health", Request((run,), "test"))
