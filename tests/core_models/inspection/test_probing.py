"""A probe reads what states hold and finds nothing where they hold nothing; what it reads stays as it was."""

import pytest
import torch

import core_models
from core_models.inspection.probing import Features, features, predict, taught
from core_models.text.batches import collate

pytestmark = pytest.mark.long

STEPS, WORDS, WIDTH = 9, 7, 16


def drawn(sentences: int, seed: int, telling: bool) -> tuple[Features, torch.Tensor]:
    """States that count what was written and annotations that say when, or noise of the same size; labels of that."""
    random = torch.Generator().manual_seed(seed)
    when = torch.rand(sentences, WORDS, generator=random) * STEPS
    labels = (torch.arange(STEPS)[None, :, None] > when[:, None]).to(torch.int8)
    labels[:, :, -1] = -1  # a word that nobody is asked about
    states = torch.randn(sentences, STEPS, WIDTH, generator=random)
    memory = torch.randn(sentences, WORDS, WIDTH, generator=random)
    if telling:  # which step it is, and before which steps a word was written
        steps = torch.arange(STEPS)
        states[..., :STEPS] += 5 * torch.eye(STEPS)
        memory[..., :STEPS] += 5 * (steps > when[..., None])
    return Features(states, memory), labels


def accuracy(probe, read: Features, labels: torch.Tensor) -> float:
    asked = labels >= 0
    return float(((predict(probe, read) > 0.5) == (labels == 1))[asked].float().mean())


@pytest.mark.long
@pytest.mark.slow
def test_it_finds_what_states_hold_and_nothing_else():
    lessons = {telling: [drawn(20, seed, telling) for seed in range(30)] for telling in (True, False)}
    right = {telling: accuracy(taught(given), *drawn(200, 99, telling)) for telling, given in lessons.items()}
    by_step = accuracy(taught(lessons[False]), *drawn(200, 99, False))
    assert right[True] > 0.9
    assert right[False] == by_step < 0.6  # the same seed is the same probe; half of all cells are PAST


@pytest.mark.long
def test_a_word_that_nobody_asked_about_teaches_nothing():
    lessons = [drawn(20, seed, True) for seed in range(3)]
    other = [(read, torch.where(labels < 0, -3, labels)) for read, labels in lessons]
    read, _ = drawn(5, 99, True)
    torch.testing.assert_close(predict(taught(lessons), read), predict(taught(other), read), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["transformer", "gdr", "rnnsearch"])
def test_it_reads_states_and_annotations_of_any_system_and_leaves_them_alone(name):
    system = core_models.build(f"{name}:preset=tiny", 30).eval()
    before = {key: value.clone() for key, value in system.state_dict().items()}
    batch = collate([[7, 8, 9], [5]], [[6, 7], [8, 9, 10]])
    read = features(system, batch)
    assert not read.states.requires_grad
    assert read.states.shape[:2] == batch.target.shape
    assert read.memory.shape[:2] == batch.source.shape
    taught([(read, torch.ones(2, *read.states.shape[1:2], *read.memory.shape[1:2], dtype=torch.int8))], epochs=1)
    assert all(torch.equal(value, before[key]) for key, value in system.state_dict().items())
    assert all(parameter.grad is None for parameter in system.parameters())
