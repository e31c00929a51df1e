"""Attribution against answers worked out otherwise: a linear function, a hand-written path integral, changed inputs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient

from core_models.checkpoint import open_trained
from core_models.inspection.attribution import (
    BASELINES,
    METHODS,
    SENTENCE,
    Constant,
    ForcedLogProb,
    attribute,
    attribute_rows,
)
from core_models.settings import ConfigError
from core_models.text.batches import collate
from core_models.text.vocabulary import PAD
from tests.core_models.laws import log_probs, random_sentences, random_system
from tests.core_models.toy_mechanism import Toy

NAMES = [
    "transformer",
    "transformer:tie_embeddings=none",
    "transformer:norm=post,position_embedding=learned",
    "rnnsearch",
    "future-cost-2",
    "future-cost-2:backbone=rnnsearch",
]
SOURCE, TARGET = random_sentences([5, 5], 4)  # as long as each other: where one tied table would answer for both sides
EVERY = (*range(len(TARGET) + 1), SENTENCE)


@pytest.mark.parametrize("method", METHODS)
def test_a_linear_function_is_attributed_to_its_terms(method):
    torch.manual_seed(1)
    words, against = [(torch.randn(1, 3, 4), torch.randn(1, 2, 4)) for _ in range(2)]
    weights = torch.randn(6, 3, 4), torch.randn(6, 2, 4)  # a row of each for every function that may be chosen

    def linear(source, target, chosen):
        return (weights[0][chosen] * source).sum((1, 2)) + (weights[1][chosen] * target).sum((1, 2)) + chosen

    chosen = torch.tensor([2, 0, 5])
    source, prefix, value, empty, steps = attribute_rows(linear, words, against, chosen, method)
    torch.testing.assert_close(source, (weights[0][chosen] * (words[0] - against[0])).sum(-1))
    torch.testing.assert_close(prefix, (weights[1][chosen] * (words[1] - against[1])).sum(-1))
    torch.testing.assert_close(source.sum(1) + prefix.sum(1), value - empty)
    assert steps.tolist() == [16 if method == "integrated_gradients" else 0] * 3  # a straight path needs no more


@pytest.mark.parametrize("name", NAMES)
def test_the_function_is_the_forced_log_probability_and_its_inputs_the_words_embeddings(name):
    system = random_system(name)
    explained = ForcedLogProb(system, SOURCE, TARGET)
    batch = collate([SOURCE], [TARGET])
    expected = log_probs(system, batch).gather(2, batch.target[..., None])[0, :, 0]
    rows = torch.tensor([2, SENTENCE, 0])
    source, target = (each.expand(3, -1, -1) for each in explained.inputs())
    torch.testing.assert_close(explained(source, target, rows), torch.stack([expected[2], expected.sum(), expected[0]]))


@pytest.mark.parametrize("name", ["qcn", "document-transformer", "han", "san"])
def test_the_sentences_before_are_read_and_not_attributed_to(name):
    """Also where they are the very words of the sentence: other numbers of the same embeddings change nothing."""
    system, source, twins = random_system(f"{name}:context_sentences=1"), [4, 5, 6, 7, 8], [9, 10, 11, 12, 13]
    with torch.no_grad():
        for table in {system.backbone.source_table, system.backbone.target_table}:
            table.weight[twins] = table.weight[source]
    found = []
    for words in (source, twins):
        batch = collate([source], [TARGET], [[words]], outputs=[[words]] if system.context.outputs else None)
        one = attribute(system, source, TARGET, method="gradient_x_input", context=batch.context)
        assert one.log_prob[0] == pytest.approx(
            log_probs(system, batch).gather(2, batch.target[..., None]).sum().item(), abs=1e-6
        )
        assert one.constants == (Constant("source", None),)
        found.append(one)
    np.testing.assert_allclose(found[0].source, found[1].source, atol=1e-9)
    whole = attribute(system, source, TARGET, context=batch.context)
    assert whole.complete.all()
    alone = attribute(system, source, TARGET, method="gradient_x_input")
    assert abs(alone.log_prob[0] - found[0].log_prob[0]) > 1e-6


def test_a_context_that_is_not_read_is_refused():
    context = collate([SOURCE], [TARGET], [[SOURCE]]).context
    for name in ("transformer", "concatenation"):
        with pytest.raises(ConfigError, match="reads none or joins it to the source; leave it out"):
            attribute(random_system(name), SOURCE, TARGET, context=context)


@pytest.mark.parametrize("name", NAMES)
def test_occlusion_is_the_loss_of_forcing_padding_in_a_words_place(name):
    """No hook stands in the second way: the piece numbers themselves are changed."""
    system = random_system(name)
    found = attribute(system, SOURCE, TARGET, positions=EVERY, method="occlusion", baseline="padding")
    batch = collate([SOURCE], [TARGET])

    def forced(changed):
        with torch.no_grad():
            told = log_probs(system, changed).gather(2, batch.target[..., None])[0, :, 0]
        return torch.cat([told, told.sum()[None]]).numpy()

    for place in range(len(SOURCE) + 1):
        words = batch.source.clone()
        words[0, place] = PAD
        lost = forced(batch) - forced(replace(batch, source=words))
        np.testing.assert_allclose(found.source[:, place], lost, atol=1e-6)  # captum sums in float32
    for place in range(1, len(TARGET) + 1):  # at 0 stands BOS, of which Model II makes </s> by itself
        words = batch.target_in.clone()
        words[0, place] = PAD
        lost = forced(batch) - forced(replace(batch, target_in=words))
        np.testing.assert_allclose(found.prefix[:, place], lost, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_integrated_gradients_are_complete_and_equal_a_path_integral_by_hand(name):
    system = random_system(name)
    found = attribute(system, SOURCE, TARGET, positions=EVERY)
    assert found.complete.all()

    explained = ForcedLogProb(system, SOURCE, TARGET)
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(found.steps[1]))
    ends, rows = explained.inputs(), torch.full((len(nodes),), 1)
    path = [((nodes + 1)[:, None, None] / 2 * end).requires_grad_() for end in ends]  # from -1..1 to 0..1
    slopes = torch.autograd.grad(explained(*path, rows), path, grad_outputs=weights / 2)
    by_hand = [(slope.sum(0) * end[0]).sum(-1) for slope, end in zip(slopes, ends, strict=True)]
    np.testing.assert_allclose(found.source[1], by_hand[0], atol=1e-6)
    np.testing.assert_allclose(found.prefix[1], by_hand[1], atol=1e-6)


def test_gradient_x_input_from_zero_is_captums():
    system = random_system("future-cost-2")
    explained = ForcedLogProb(system, SOURCE, TARGET)
    ends = tuple(end.requires_grad_() for end in explained.inputs())
    expected = InputXGradient(explained).attribute(ends, additional_forward_args=(torch.tensor([3]),))
    found = attribute(system, SOURCE, TARGET, positions=(3,), method="gradient_x_input")
    np.testing.assert_allclose(found.source[0], expected[0].sum(-1)[0].detach())
    np.testing.assert_allclose(found.prefix[0], expected[1].sum(-1)[0].detach())


@pytest.mark.parametrize("method", METHODS)
def test_words_not_yet_written_get_nothing(method):
    system = random_system("future-cost-2")
    found = attribute(system, SOURCE, TARGET, positions=EVERY[:-1], method=method, max_steps=16)
    later = np.triu(np.ones_like(found.prefix), 1).astype(bool)
    assert (found.prefix[later] == 0).all()
    assert (found.prefix[~later] != 0).all()


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_trained_system_is_complete_on_its_own_output(trained_run, baseline):
    opened = open_trained(trained_run, "cpu")
    (source,) = opened.source_vocabulary.encode(["the old dog sees the small tree today"])
    (target,) = opened.target_vocabulary.encode(["der alte Hund sieht der kleine Baum heute"])
    found = attribute(opened.system, source, target, positions=(*range(len(target) + 1), SENTENCE), baseline=baseline)
    error = np.abs(found.source.sum(1) + found.prefix.sum(1) - (found.log_prob - found.baseline_log_prob))
    assert (error < 0.01 * np.maximum(np.abs(found.difference), 0.5)).all()
    assert found.complete.all()
    assert found.steps.min() >= 16


def test_too_few_steps_are_said_to_be_too_few():
    system = random_system("transformer")
    with torch.no_grad():
        for parameter in system.parameters():
            parameter *= 2.5  # a path far from straight
    found = attribute(system, SOURCE, TARGET, max_steps=1)
    assert found.steps.tolist() == [1]
    assert not found.complete.any()
    assert np.abs(found.error[0]) >= 0.01 * max(abs(found.difference[0]), 0.5)


def test_what_a_mechanism_reads_beside_the_words_is_named(monkeypatch):
    """Model II puts </s> for BOS; a mechanism that looks elsewhere is named as such, and the sums stay complete."""
    found = attribute(random_system("future-cost-2"), SOURCE, TARGET, positions=(1,))
    assert found.constants == (Constant("target", 0),)
    for name in ("transformer", "future-cost-2:first_symbol=bos"):
        assert attribute(random_system(name), SOURCE, TARGET, positions=(1,)).constants == ()

    from core_models import system_catalogue

    class Reader(Toy):
        def __init__(self, spec, options):
            super().__init__(spec, options)
            self.embed = spec.source_embedding

        def prepare(self, memory, mask, own):
            return {"word": self.embed(torch.zeros(len(memory), 1, dtype=torch.long))}

    monkeypatch.setitem(system_catalogue.MECHANISMS, "toy", Reader)
    reader = random_system({"preset": "tiny", "mechanisms": [{"toy": {}}], "dropout": 0, "attention_dropout": 0})
    found = attribute(reader, SOURCE, TARGET, positions=(1,))
    assert found.constants == (Constant("source", None),)
    assert found.complete.all()


def test_a_cut_output_has_no_end_to_explain():
    system = random_system("transformer")
    found = attribute(system, SOURCE, TARGET, finished=False, method="occlusion")
    batch = collate([SOURCE], [TARGET])
    told = log_probs(system, batch).gather(2, batch.target[..., None])[0, :-1, 0]
    assert found.log_prob[0] == pytest.approx(told.sum().item())
    assert found.prefix.shape == (1, len(TARGET))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "gradient"}, "no attribution by 'gradient'; .*gradient"),
        ({"baseline": "nul"}, "no baseline 'nul'"),
        ({"positions": (6,)}, "6 positions, from 0, </s> included; there is nothing to explain at 6"),
        ({"positions": ()}, "there is nothing to explain at none"),
        ({"max_steps": 0}, "max_steps 0: at least one is needed"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_a_sentence(wrong, message):
    with pytest.raises(ConfigError, match=message):
        attribute(random_system("transformer"), SOURCE, TARGET, **wrong)
