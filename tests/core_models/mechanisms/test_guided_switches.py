"""Every switch of guided capsules beside NumPy in float64: contents, combination and both losses, written out."""

import numpy as np
import pytest
import torch

from core_models.mechanisms.guided_contents import UniformContents
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, PAD
from tests.core_models.laws import WORDS, exact, log_probs, random_sentences, random_system, training_terms
from tests.core_models.mechanisms.test_layer_systems import normed, numbers
from tests.core_models.routing.test_algorithms_numpy import softmax, squash
from tests.core_models.routing.test_guided import by_the_algorithm

SIDES = ("past", "future")
SMOOTHING = 0.1


def linear(module, x):
    made = x @ numbers(module.weight).T
    return made if module.bias is None else made + numbers(module.bias)


def guided(contents, guide, memory):
    """Algorithm 1 at every step: a group's capsules side by side."""
    votes = linear(contents.vote, memory).reshape(len(memory), contents.count, -1)
    if isinstance(contents, UniformContents):  # of one iteration, which nothing guides
        width = votes.shape[-1]
        nothing = np.zeros((width, width)), np.zeros((width, width)), np.zeros(width)
        routed = by_the_algorithm(votes, np.zeros(width), *nothing, 1, False)[0]
        capsules = np.stack([routed] * len(guide))
        return in_groups(capsules, contents.per_group)
    parts = [numbers(part) for part in (contents.from_vote, contents.from_capsule, contents.weight)]
    how = contents.options["iterations"], contents.options["agreement"] == "bounded"
    capsules = np.stack([by_the_algorithm(votes, z, *parts, *how)[0] for z in linear(contents.query, guide)])
    return in_groups(capsules, contents.per_group)


def in_groups(capsules, each):
    """PAST and FUTURE of capsules [T, J, D]."""
    return [capsules[:, group * each : (group + 1) * each].reshape(len(capsules), -1) for group in (0, 1)]


def energies(contents, guide, memory, group):
    """w . tanh(W_z z + b + W_h h) of every step and word, [T, I]."""
    width = contents.weight.shape[1]
    own = slice(group * width, (group + 1) * width) if contents.sets > 1 else slice(width)
    query, key = linear(contents.query, guide)[:, own], linear(contents.key, memory)[:, own]
    return np.tanh(query[:, None] + key[None]) @ numbers(contents.weight)[group]


def classified(contents, guide, memory):
    """CLF: each word has a distribution over PAST, FUTURE and REDUNDANT; what it says is summed and squashed."""
    found = np.stack([energies(contents, guide, memory, group) for group in range(3)], -1)
    shares = np.apply_along_axis(softmax, -1, found)
    values = np.split(linear(contents.value, memory), 2, axis=1)
    sums = [shares[..., group] @ values[group] for group in (0, 1)]
    return [np.stack([squash(step) for step in group]) for group in sums]


def attended(contents, guide, memory):
    """ATTN: each group has a distribution over the words."""
    values = np.split(linear(contents.value, memory), 2, axis=1)
    shares = [np.apply_along_axis(softmax, -1, energies(contents, guide, memory, group)) for group in (0, 1)]
    sums = [share @ value for share, value in zip(shares, values, strict=True)]
    return [np.stack([squash(step) for step in group]) for group in sums] if contents.squashed else sums


CONTENTS = {"guided": guided, "classifier": classified, "attention": attended}


def combined(combine, held):
    """The change of z: a feed-forward network, or gated changes by each of the three parts."""
    x = normed(held, combine.norm)
    if hasattr(combine, "expand"):
        return linear(combine.contract, np.maximum(linear(combine.expand, x), 0))
    gates, changes = (np.split(linear(module, x), 3, axis=1) for module in (combine.gate, combine.change))
    return sum(change / (1 + np.exp(-gate)) for gate, change in zip(gates, changes, strict=True))


def bag(options, side, words, step):
    """The words that belong to a side at a step from 0 (A5)."""
    if side == "past":
        inputs = [BOS, *words[:step]]
        return inputs if options.bag == "strict" and options.bag_begins else words[: step + (options.bag != "strict")]
    return words[step + (options.bag != "inclusive") :]


def bag_loss(options, side, contents, head, matrix, words):
    """The mean over steps with a bag of minus the log-probabilities of its words, a mean or a sum (A6, A7)."""
    losses = []
    for step, content in enumerate(contents):
        inside = bag(options, side, words, step)
        if not inside:
            continue
        vector = linear(head, content)
        logits = matrix @ (np.tanh(vector) if options.bag_head == "tanh" else vector)
        if options.bag_head == "tanh":
            logits[PAD] = -np.inf
        log_probs = logits - np.log(np.exp(logits).sum())
        wanted = np.zeros(len(matrix))
        for word in range(len(matrix)):
            if word in inside:
                wanted[word] = (1 - options.bag_smoothing) * inside.count(word) / len(inside)
            elif word != PAD:
                wanted[word] = options.bag_smoothing / (len(matrix) - 2)
        loss = -sum(p * log_prob for p, log_prob in zip(wanted, log_probs, strict=True) if p > 0)
        losses.append(loss * (len(inside) if options.bag_loss == "sum" else 1))
    return np.mean(losses)


def agreement(options, side, contents, agree, states):
    """The mean over steps of the squared distance of contents and mean states (A8)."""
    distances = []
    for step, content in enumerate(contents):
        if side == "future":
            own = states[step:]
        else:
            own = states[: step + (options.bca_span == "inclusive")]
        mean = own.mean(0) if len(own) else np.zeros(states.shape[1])
        to_contents = options.bca_direction == "to_contents"
        apart = content - linear(agree, mean) if to_contents else linear(agree, content) - mean
        distances.append((apart**2).sum() if options.bca_reduce == "sum" else (apart**2).mean())
    return np.mean(distances)


NAMES = [
    "gdr-bow-bca",
    "gdr-bow-bca:capsules=2,capsule_width=5,iterations=1",
    "gdr-bow-bca:capsules=6,iterations=4,redundant=false,agreement=bounded",
    "gdr-bow-bca:combination=gate",
    "gdr-bow-bca:hidden=24,norm=post",
    "gdr-bow:bag=strict",
    "gdr-bow:bag=strict,bag_begins=true,bag_loss=sum",
    f"gdr-bow:bag=analysis,bag_head=tanh,bag_smoothing={SMOOTHING}",
    f"gdr-bow:bag_smoothing={SMOOTHING},bag_loss=sum",
    "gdr-bca:bca_direction=from_contents,bca_span=strict_past",
    "gdr-bca:bca_target=normed,bca_reduce=mean",
    "gdr-bca:bca_target=output,bca_detach_target=true",
    "gdr-bow-bca:variant=released,lambda_1=0.5,lambda_2=0.3",
    "clf-bow-bca",
    "clf-bow-bca:capsules=2,norm=post",
    "attn-bow-bca",
    "attn-bow-bca:attention_squash=false,bca_target=output",
]


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_losses_are_the_equations_with_this_switch(name):
    system = random_system(name)
    mechanism, backbone = system.mechanisms["guided_capsules"], system.backbone
    options = mechanism.options
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    with torch.no_grad():
        encoded = system.encode(batch)
        z = numbers(system(encoded, batch.target_in, batch.target_mask).view.guide[0])
        terms = {name: value[0].item() for name, value in training_terms(system, batch, 0.0).items()}
        scores = numbers(log_probs(system, batch)[0])
    memory = numbers(encoded.sentence["backbone"]["memory"][0])
    contents = CONTENTS[options.routing](mechanism.contents, normed(z, mechanism.query_norm), memory)
    held = np.concatenate([z, *contents], -1)
    output = normed(normed(z + combined(mechanism.combine, held), mechanism.norm), backbone.decoder_norm)
    matrix = numbers(backbone.output_matrix[0])
    logits = output @ matrix.T
    np.testing.assert_allclose(scores, logits - np.log(np.exp(logits).sum(-1, keepdims=True)), rtol=0, atol=1e-6)
    states = {"state": z, "normed": normed(z, backbone.decoder_norm), "output": output}[options.bca_target]
    words, wanted = batch.target[0].tolist(), {}
    for side, content in zip(SIDES, contents, strict=True):
        if "bow" in options.losses:
            loss = bag_loss(options, side, content, mechanism.bag_heads[side], matrix, words)
            wanted[f"{side}_bag"] = options.lambda_1 * loss
        if "bca" in options.losses:
            loss = agreement(options, side, content, mechanism.agree[side], states)
            wanted[f"{side}_agreement"] = options.lambda_2 * loss
    assert {name: value for name, value in terms.items() if name != "main"} == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("detached", [False, True])
def test_a_detached_target_is_not_moved_towards_the_contents(detached):
    """Contents that do not look at z: what is left of the gradient of z goes through the means."""
    system = random_system(f"attn-bow-bca:losses=bca,bca_detach_target={str(detached).lower()}")
    contents = system.mechanisms["guided_capsules"].contents
    with torch.no_grad():
        contents.query.weight.zero_()
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    terms = training_terms(system, batch)
    (terms["past_agreement"] + terms["future_agreement"]).sum().backward()
    weight = system.backbone.decoder[-1].contract.weight
    moved = weight.grad is not None and weight.grad.abs().max() > 1e-6
    assert moved != detached


def test_a_detached_routing_has_the_same_scores_and_other_gradients():
    systems = [random_system(f"gdr:detach={detach}") for detach in ("false", "true")]
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    torch.testing.assert_close(*(log_probs(system, batch) for system in systems), rtol=0, atol=1e-12)
    for system in systems:
        training_terms(system, batch)["main"].sum().backward()
    one, other = (system.mechanisms["guided_capsules"].contents.vote.weight.grad for system in systems)
    assert (one - other).abs().max() > 1e-6 * one.abs().max()


@pytest.mark.parametrize(("variant", "width"), [("literal", 256), ("released", 60)])
def test_a_capsule_is_as_wide_as_its_preset_says_and_to_scale_in_other_models(variant, width):
    for preset, expected in (("base", width), ("big", 2 * width)):
        with torch.device("meta"):
            system = build(f"gdr:variant={variant},preset={preset}", WORDS)
        assert len(system.mechanisms["guided_capsules"].contents.weight) == expected


def test_losses_take_part_from_the_first_update():
    """Every parameter of the mechanism has a gradient when training begins, and none is of another order than others'
    by more than routing's own products make it."""
    torch.manual_seed(1)
    system = build(exact("gdr-bow-bca"), WORDS).double()
    batch = collate(random_sentences([5, 8], 1), random_sentences([7, 6], 2))
    torch.stack([term.sum() for term in training_terms(system, batch).values()]).sum().backward()
    gradients = {name: p.grad.norm().item() for name, p in system.mechanisms["guided_capsules"].named_parameters()}
    assert min(gradients.values()) > 1e-3 * max(gradients.values()), gradients
