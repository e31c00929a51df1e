"""Guided capsules: the baselines by hand, the whole mechanism beside the equations, sizes, traces, refusals."""

import pytest
import torch

from core_models.mechanisms.guided_contents import attend, classify
from core_models.routing.algorithms import squash
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.traces import TraceWriter
from tests.core_models.laws import WORDS, exact, log_probs, random_sentences, random_system, training_terms
from tests.core_models.routing.test_guided import by_the_algorithm

FLOAT = torch.float64
VALUES = torch.tensor([[1, 0], [0, 2]], dtype=FLOAT).expand(1, 2, 2, 2)  # [S, 2, I, G]
BOTH = torch.ones(1, 2, dtype=torch.bool)


def tensor(*values):
    return torch.tensor(values, dtype=FLOAT)


def close(found, wanted, tolerance=1e-6):
    torch.testing.assert_close(found, torch.as_tensor(wanted, dtype=found.dtype), rtol=0, atol=tolerance)


def test_the_classifier_by_hand():
    """Two words' logits over PAST, FUTURE, REDUNDANT: [0, ln 2, 0] and [ln 3, 0, 0]."""
    energies = tensor([1, 2, 1], [3, 1, 1]).log().T[None, :, None]  # [1, 3, 1, I]
    contents, shares = classify(energies, VALUES, BOTH)
    close(shares[0, :, 0], tensor([0.25, 0.5, 0.25], [0.6, 0.2, 0.2]).T)
    close(contents[0, 0, 0], [0.122454, 0.587779])
    length = 0.5**2 + 0.4**2
    close(contents[0, 1, 0], tensor(0.5, 0.4) * length**0.5 / (1 + length))


def test_the_attention_by_hand():
    """Logits [0, ln 3] over two words; a third that is padding has nothing, and no words give nothing."""
    energies = tensor(1, 3).log().expand(1, 2, 1, 2)
    contents, shares = attend(energies, VALUES, BOTH)
    close(shares[0, 0, 0], [0.25, 0.75])
    close(contents[0, 0, 0], [0.25, 1.5])
    close(attend(energies, VALUES, ~BOTH)[0], torch.zeros(1, 2, 1, 2))


def by_the_equations(system, batch):
    """Capsules [T, J, D] and log P [T, V] of one sentence by Algorithm 1 and section 3.2, of the decoder's z."""
    mechanism, backbone = system.mechanisms["guided_capsules"], system.backbone
    contents = mechanism.contents
    encoded = system.encode(batch)
    z = system(encoded, batch.target_in, batch.target_mask).view.guide[0]
    votes = contents.vote(encoded.sentence["backbone"]["memory"][0]).unflatten(-1, (contents.count, -1))
    guide = contents.query(mechanism.query_norm(z))
    parts = (votes, contents.from_vote, contents.from_capsule, contents.weight)
    votes, from_vote, from_capsule, weight = (part.numpy() for part in parts)
    bounded = contents.options["agreement"] == "bounded"
    capsules = torch.stack(
        [
            torch.tensor(by_the_algorithm(votes, one, from_vote, from_capsule, weight, 3, bounded)[0])
            for one in guide.numpy()
        ]
    )
    past, future = capsules[:, :2].flatten(1), capsules[:, 2:4].flatten(1)
    held = mechanism.combine.norm(torch.cat([z, past, future], dim=-1))
    mixed = mechanism.combine.contract(torch.relu(mechanism.combine.expand(held)))
    output = backbone.decoder_norm(mechanism.norm(z + mixed))
    return z, past, future, torch.log_softmax(output @ backbone.output_matrix[0].T, -1)


@pytest.mark.parametrize("options", ["", ",norm=post", ",redundant=false,agreement=bounded"])
def test_the_system_is_the_printed_equations(options):
    """Scores and both losses of `gdr-bow-bca`, written out with sums over words and states."""
    system = random_system(f"gdr-bow-bca:lambda_1=0.5,lambda_2=0.3{options}")
    mechanism = system.mechanisms["guided_capsules"]
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    with torch.no_grad():
        z, past, future, wanted = by_the_equations(system, batch)
        close(log_probs(system, batch)[0], wanted, 1e-6)
        terms = training_terms(system, batch, 0.0)
        target, matrix = batch.target[0].tolist(), system.backbone.output_matrix[0]
        for side, contents in (("past", past), ("future", future)):
            bags = torch.log_softmax(mechanism.bag_heads[side](contents) @ matrix.T, -1)
            bow = agreement = 0
            for t in range(len(target)):
                here = slice(0, t + 1) if side == "past" else slice(t, None)
                bow -= bags[t, target[here]].mean() / len(target)
                agreement += (contents[t] - mechanism.agree[side](z[here].mean(0))).square().sum() / len(target)
            close(terms[f"{side}_bag"][0], 0.5 * bow, 1e-5)
            close(terms[f"{side}_agreement"][0] / (0.3 * agreement), 1, 1e-6)


SIZES = {  # what the mechanism adds to the base model: votes, agreement, feed-forward and norms (A4), in millions
    "gdr:capsule_width=60": 2.82,
    "gdr:capsule_width=64": 2.86,
    "gdr:capsule_width=128": 3.64,
    "gdr": 5.25,
    "gdr:variant=released": 2.82,
}


def size(name: str) -> int:
    with torch.device("meta"):
        system = build(f"{name}{',' if ':' in name else ':'}preset=base", 100)
    return sum(parameter.numel() for parameter in system.parameters())


@pytest.mark.parametrize("name", SIZES)
def test_what_the_mechanism_adds_to_the_base_model(name):
    assert (size(name) - size("transformer")) / 1e6 == pytest.approx(SIZES[name], abs=0.005)


def test_what_losses_and_redundant_capsules_add():
    """Two heads from two capsules of 256 to 512, and as many maps the other way; two capsules' W_j."""
    assert size("gdr-bow") - size("gdr") == size("gdr-bca") - size("gdr") == 2 * 512 * 512
    assert size("gdr-bow-bca") - size("gdr-bow-bca-no-redundant") == 2 * 512 * 256


def trace_of(name: str) -> dict:
    system = random_system(name)
    batch = collate(random_sentences([5, 2], 1), random_sentences([3, 6], 2))
    writer = TraceWriter(["guided_capsules.*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    return writer.sentences({"source": [6, 3], "target": [4, 7]})[1]


@pytest.mark.parametrize(("name", "groups"), [("gdr", 3), ("gdr-bow-bca-no-redundant:iterations=4", 2)])
def test_the_trace_has_every_step_and_iteration(name, groups):
    trace, iterations = trace_of(name), 4 if "4" in name else 3
    assignments, mass = trace["guided_capsules.assignments"], trace["guided_capsules.mass"]
    assert assignments.axes == ("iteration", "target", "source", "capsule")
    assert assignments.values.shape == (iterations, 7, 3, 2 * groups)
    assert abs(assignments.values[0] - 1 / (2 * groups)).max() < 1e-6
    assert abs(assignments.values[1] - 1 / (2 * groups)).max() > 1e-3
    assert (mass.axes, mass.sums_to_one) == (("target", "source", "group"), "group")
    summed = torch.tensor(assignments.values[-1]).unflatten(-1, (groups, 2)).sum(-1)
    close(torch.tensor(mass.values), summed)
    lengths = trace["guided_capsules.content_lengths"].values
    assert lengths.shape == (7, 2)
    assert 0 < lengths.min() <= lengths.max() < 2**0.5  # two capsules shorter than one
    contents, batch = random_system(name), collate(random_sentences([5, 2], 1))
    with torch.no_grad():
        memory = contents.encode(batch).sentence["backbone"]["memory"][1, :3]
        votes = contents.mechanisms["guided_capsules"].contents.votes(memory[None])[0]
    capsules = squash(torch.einsum("tij,ijd->tjd", torch.tensor(assignments.values[-1]).double(), votes))
    for side, group in enumerate((capsules[:, :2], capsules[:, 2:4])):
        close(torch.tensor(lengths[:, side]).double(), group.flatten(1).norm(dim=-1), 1e-5)


@pytest.mark.parametrize(("name", "groups", "axis"), [("clf-bow-bca", 3, "group"), ("attn-bow-bca", 2, "source")])
def test_the_simple_baselines_are_traced_too(name, groups, axis):
    mass = trace_of(name)["guided_capsules.mass"]
    assert (mass.values.shape, mass.sums_to_one) == ((7, 3, groups), axis)
    mass.check("mass", 1e-6)


def test_only_words_are_asked_for_in_token_log_probs():
    """A bag is no prediction of one word: there is no log P of y_t in it."""
    system = random_system("gdr-bow-bca").train()
    batch = collate(random_sentences([4], 1), random_sentences([3], 2))
    forced = system(system.encode(batch), batch.target_in, batch.target_mask)
    assert [prediction.name for prediction in forced.predictions] == ["past_bag", "future_bag"]
    assert set(system.token_log_probs(forced, batch.target)) == {"main"}


def test_teachers_are_left_out_of_a_translation():
    """The heads and maps of the losses change no score, and are not asked for when nothing is trained."""
    system = random_system("gdr-bow-bca")
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    before = log_probs(system, batch)
    mechanism = system.mechanisms["guided_capsules"]
    with torch.no_grad():
        for parameter in (*mechanism.bag_heads.parameters(), *mechanism.agree.parameters()):
            parameter.fill_(torch.nan)
    assert torch.equal(log_probs(system, batch), before)


def test_weights_are_lambdas():
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    one, other = (training_terms(random_system(f"gdr-bow-bca{o}"), batch) for o in ("", ":lambda_1=2,lambda_2=3"))
    for name, factor in (("past_bag", 2), ("future_bag", 2), ("past_agreement", 3), ("future_agreement", 3)):
        torch.testing.assert_close(other[name], factor * one[name])


def test_the_released_variant_is_the_released_code_and_can_be_changed():
    options = build("gdr-bow-bca:variant=released,bag=inclusive,preset=tiny", 20).mechanisms["guided_capsules"].options
    assert (options.agreement, options.bag_head, options.bag_smoothing) == ("bounded", "tanh", 0.1)
    assert options.bag == "inclusive"


def test_with_released_initialisation_routing_stays_uniform():
    """Its agreement is a product of three numbers near zero."""
    torch.manual_seed(1)
    spread = {}
    for kind in ("xavier", "released"):
        system = build(exact(f"gdr:initialisation={kind}"), WORDS).eval()
        batch = collate(random_sentences([5], 1), random_sentences([3], 2))
        writer = TraceWriter(["*.assignments"])
        with torch.no_grad():
            system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
        values = writer.sentences({"source": [6], "target": [4]})[0]["guided_capsules.assignments"].values
        spread[kind] = abs(values - 1 / 6).max()
    assert spread["released"] < 1e-4 < 1e-2 < spread["xavier"]


def test_agreement_begins_at_the_size_of_capsules():
    """Images of normed states are about as long as capsules; Xavier's maps made them longer by the width's root, and
    training drove maps and capsules to zero, which is where this loss is least."""
    torch.manual_seed(1)
    system = build(exact("gdr-bca:bca_target=normed"), WORDS)
    terms = training_terms(system, collate(random_sentences([5, 8], 1), random_sentences([7, 6], 2)))
    for side in ("past", "future"):
        assert 0.1 < terms[f"{side}_agreement"].min() <= terms[f"{side}_agreement"].max() < (2**0.5 + 1) ** 2


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("clf-bow-bca:redundant=true", "belong to guided routing, not to the classifier"),
        ("attn-bow-bca:redundant=true", "belong to guided routing, not to the attention"),
        ("gdr-bow:capsules=0", "capsules: 0, but a bag of words is predicted from capsules; give at least 2"),
        ("gdr:capsules=5", "capsules: 5 cannot be halved into PAST and FUTURE; give an even number"),
        ("transformer:losses=bow", "no part of this system has an option 'losses'"),
        (
            "gdr:iterations=1,agreement=bounded",
            "agreement: does nothing while iterations is 1; leave it out, or set iterations to 2",
        ),
        (
            "clf-bow-bca:iterations=5",
            "iterations: does nothing while routing is classifier; leave it out, or set routing to guided",
        ),
        ("gdr:attention_squash=false", "attention_squash: does nothing while routing is guided"),
        ("gdr:lambda_1=0.5", "lambda_1: does nothing while losses is none; leave it out, or set losses to bow"),
        ("gdr-bow:variant=released,bca_span=inclusive", "bca_span: does nothing while losses is bow"),
        ("gdr:combination=gate,hidden=64", "hidden: does nothing while combination is gate"),
    ],
)
def test_what_cannot_be_is_refused(system, said):
    with pytest.raises(ConfigError, match=said):
        build(f"{system},preset=tiny", 20)
