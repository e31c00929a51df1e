"""REINFORCE: on distributions that can be enumerated its mean gradient is the policy's own; in training it is sampled,
logged and resumed."""

import itertools
import math

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import Tensor

from core_models.config import SearchConfig, TrainingConfig
from core_models.decoding import Hypothesis, beam_search, sample
from core_models.settings import ConfigError, parse
from core_models.system_spec import describe
from core_models.text.batch_loader import BatchLoader
from core_models.text.vocabulary import BOS, EOS, PAD, UNK
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.progress import read_progress
from core_models.training.reinforce import (
    GREEDY,
    SampledTranslations,
    SelfCriticalSampler,
    policy_loss,
    sample_log_probs,
)
from tests.core_models.laws import batch_of, log_probs, random_system
from tests.core_models.training.processes import DrawsByBatch, start_ranks, train
from tests.core_models.training.test_loop import EXACT, Interrupted, assert_same_weights, events, interrupt_at
from tests.core_models.training.test_processes import assert_near_weights, even_budget

VOCABULARY, LONGEST, WANTED = 6, 3, 5
SOURCE = [4, 5, 4]
# Dropout is on in all of them; the predictions of the last are mixed into its scores.
SYSTEMS = ("transformer", "rnnsearch", "gdr-bow-bca", "pfrnn-loss")


def in_training(name: str):
    """A tiny system as training has it, every parameter moved off its first value."""
    model = describe(f"{name}:preset=tiny,dropout=0.3,attention_dropout=0.2")
    return random_system(model, words=VOCABULARY).train()


def everything() -> list[Hypothesis]:
    """All translations of up to LONGEST words, EOS counted; those that do not end are cut there."""
    words, found = (UNK, *range(EOS + 1, VOCABULARY)), []
    for length in range(LONGEST + 1):
        for chosen in itertools.product(words, repeat=length):
            found.append(Hypothesis([*chosen], math.nan, math.nan, length < LONGEST, []))
    return found


def samples_of(hypotheses: list[Hypothesis], rewards: list[float], baseline: float) -> SampledTranslations:
    """So many translations of one sentence."""
    return SampledTranslations.of(
        [hypotheses], *(torch.tensor([numbers], dtype=torch.float64) for numbers in (rewards, [baseline]))
    )


def probabilities(system, translations: list[Hypothesis]) -> Tensor:
    """Of each translation, word by word: what the forced distributions say once padding and BOS are out of them."""
    found = []
    for one in translations:
        batch = batch_of(system, [SOURCE], [one.words])
        values = log_probs(system, batch)[0].exp()
        values = values / (1 - values[:, [PAD, BOS]].sum(1, keepdim=True))
        words = [*one.words, EOS] if one.finished else one.words
        found.append(torch.stack([values[place, word] for place, word in enumerate(words)]).prod())
    return torch.stack(found)


def rewards_of(translations: list[Hypothesis]) -> list[float]:
    return [one.words.count(WANTED) / LONGEST for one in translations]


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_can_be_drawn_has_probability_one_in_all(name):
    """Without dropout, padding and a second BOS; a translation that is cut is as probable as its words."""
    system, translations = in_training(name), everything()
    assert len(translations) == 1 + 3 + 9 + 27
    batch, samples = batch_of(system, [SOURCE]), samples_of(translations, rewards_of(translations), 0.0)
    system.eval()
    values = sample_log_probs(system, system.encode(batch), samples)
    torch.testing.assert_close(values.exp(), probabilities(system, translations), atol=1e-12, rtol=0)
    torch.testing.assert_close(torch.logsumexp(values, 0), torch.zeros((), dtype=torch.float64), atol=1e-9, rtol=0)


@pytest.mark.parametrize(("name", "baseline"), [*((name, 0.3) for name in SYSTEMS), ("rnnsearch", 0.0)])
def test_the_mean_of_the_gradients_is_that_of_the_expected_reward(name, baseline):
    """Over all that may be sampled, each as often as it is: no baseline changes it, and dropout is out of it."""
    system, translations = in_training(name), everything()
    generator = torch.Generator().manual_seed(1)
    rewards = torch.rand(len(translations), generator=generator, dtype=torch.float64)
    parameters = [parameter for parameter in system.parameters() if parameter.requires_grad]
    system.eval()
    shares = probabilities(system, translations)
    wanted = torch.autograd.grad((shares * rewards).sum(), parameters, allow_unused=True)
    system.train()
    sums = [torch.zeros_like(parameter) for parameter in parameters]
    batch = batch_of(system, [SOURCE])
    for one, share, reward in zip(translations, shares.tolist(), rewards.tolist(), strict=True):
        loss = policy_loss(system, batch, samples_of([one], [reward], baseline))
        assert system.training
        for total, gradient in zip(sums, torch.autograd.grad(loss.sum(), parameters, allow_unused=True), strict=True):
            if gradient is not None:
                total -= share * gradient
    largest = 0.0
    for total, gradient in zip(sums, wanted, strict=True):
        gradient = torch.zeros_like(total) if gradient is None else gradient
        torch.testing.assert_close(total, gradient, atol=1e-10, rtol=0)
        largest = max(largest, float(gradient.abs().max()))
    assert largest > 1e-4


def test_several_of_a_sentence_count_as_their_mean():
    system, translations = in_training("rnnsearch"), everything()[3:6]
    batch = batch_of(system, [SOURCE])
    together = policy_loss(system, batch, samples_of(translations, [0.1, 0.5, 0.9], 0.2))
    alone = [
        policy_loss(system, batch, samples_of([one], [r], 0.2))
        for one, r in zip(translations, [0.1, 0.5, 0.9], strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(alone).mean()[None], atol=1e-12, rtol=0)


def test_a_reward_that_is_its_baseline_teaches_nothing():
    system, translations = in_training("transformer"), everything()[3:6]
    policy_loss(system, batch_of(system, [SOURCE]), samples_of(translations, [0.4] * 3, 0.4)).sum().backward()
    gradients = [parameter.grad for parameter in system.parameters() if parameter.grad is not None]
    assert gradients
    assert all(not gradient.any() for gradient in gradients)


@pytest.mark.parametrize("name", ["transformer", "rnnsearch"])
def test_the_expected_reward_rises(name):
    """By updates on what was sampled alone; the expected reward, of the word that is wanted, is known exactly."""
    system, translations = in_training(name), everything()
    batch, limits, rewards = batch_of(system, [SOURCE]), torch.tensor([LONGEST]), torch.tensor(rewards_of(translations))

    def expected() -> float:
        with torch.no_grad():
            return float((probabilities(system.eval(), translations) * rewards).sum())

    before = expected()
    optimizer = torch.optim.SGD(system.parameters(), lr=0.1)
    torch.manual_seed(1)
    for _ in range(20):
        with torch.no_grad():
            encoded = system.eval().encode(batch)
            found = sample(system, encoded, limits, samples=16)[0]
            greedy = beam_search(system, encoded, limits, GREEDY)[0].hypotheses[:1]
        samples = samples_of(found, rewards_of(found), rewards_of(greedy)[0])
        policy_loss(system.train(), batch, samples).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert before < 0.5
    assert expected() > 0.9


def test_translations_are_drawn_without_dropout_and_rewarded_as_text(prepared):
    """Of every sentence two, and the most probable words one by one as the baseline; a seed says which are sampled."""
    text, vocabulary = prepared.split("train"), prepared.target_vocabulary
    model = describe("transformer:preset=tiny,dropout=0.3,attention_dropout=0.2")
    system = random_system(model, words=len(vocabulary)).train()
    asked: list[tuple] = []

    def reward(*texts):
        asked.append(texts)
        return [float(len(hypothesis)) for hypothesis in texts[1]]

    search = SearchConfig(max_length=4)
    sampler = SelfCriticalSampler(system, text, vocabulary, search, reward, 2, Accelerator(cpu=True))
    batch = next(BatchLoader(text, 60, seed=1).epoch(0))
    torch.manual_seed(3)
    samples = sampler.draw(batch)
    assert system.training
    system.eval()
    torch.manual_seed(3)
    with torch.no_grad():
        limits = torch.full((len(batch),), 4)
        found = sample(system, system.encode(batch), limits, samples=2)
        written = torch.full((len(batch), 1), BOS)
        for _ in range(4):
            forced = system(system.encode(batch), written, torch.ones_like(written, dtype=torch.bool))
            values = system.scores(forced).values[:, -1]
            values[:, [PAD, BOS]] = -math.inf
            written = torch.cat([written, values.argmax(-1, keepdim=True)], dim=1)
    greedy = [row[1 : row.index(EOS)] if EOS in row else row[1:] for row in written.tolist()]
    rows = batch.indices.tolist()
    texts = [vocabulary.decode([one.words for pair in found for one in pair]), vocabulary.decode(greedy)]
    for (sources, hypotheses, references), wanted, times in zip(asked, texts, (2, 1), strict=True):
        assert hypotheses == wanted
        assert sources == [text.source_text(row) for row in rows for _ in range(times)]
        assert references == [text.target_text(row) for row in rows for _ in range(times)]
    assert samples.rewards.tolist() == [[len(a), len(b)] for a, b in zip(texts[0][::2], texts[0][1::2], strict=True)]
    assert samples.baselines.tolist() == [[len(one)] for one in texts[1]]
    told = sampler.mean_rewards([samples, samples], 2 * len(batch))
    assert told == {
        "reward": pytest.approx(sum(map(len, texts[0])) / len(texts[0])),
        "greedy_reward": pytest.approx(sum(map(len, texts[1])) / len(texts[1])),
    }


@pytest.fixture
def begun(new_run):
    """begun(name, **training) lays out a run that begins from a trained one."""
    base = new_run("base", "rnnsearch", max_steps=2)
    fit(base, device="cpu")

    def lay_out(name: str, system: str = "rnnsearch", **training):
        return new_run(name, system, {"max_length": 6, "beam": 2}, init_from=str(base), **training)

    return lay_out


def lengths(sources, hypotheses, references) -> list[float]:
    return [len(one) / 100 for one in hypotheses]


def rewarded(run) -> list[tuple]:
    return [
        (event["step"], event["reward"], event["greedy_reward"], event["adequacy_loss"])
        for event in events(run, "train")
    ]


def test_without_a_weight_training_is_what_it_was(begun):
    """Bit for bit, dropout on: nothing is sampled, not even a random number."""

    def never(*texts):
        raise AssertionError("nothing is to be rewarded")

    plain, weightless = begun("plain"), begun("weightless", adequacy={"weight": 0})
    fit(plain, device="cpu")
    fit(weightless, device="cpu", reward=never)
    assert_same_weights(plain / "weights.safetensors", weightless / "weights.safetensors")
    assert not any("reward" in event for event in read_events(weightless / "training.jsonl"))


def test_a_reward_that_is_the_same_for_all_leaves_the_likelihood_alone(begun):
    """Bit for bit; the rewards are means over sentences, of both batches of a step."""
    plain, equal = (
        begun("plain", f"rnnsearch:{EXACT}"),
        begun("equal", f"rnnsearch:{EXACT}", accumulate=1, adequacy={"weight": 3, "samples": 2}),
    )
    fit(plain, device="cpu")
    fit(equal, device="cpu", reward=lambda sources, hypotheses, references: [0.25] * len(hypotheses))
    assert_same_weights(plain / "weights.safetensors", equal / "weights.safetensors")
    assert rewarded(equal) == [(step, 0.25, 0.25, 0.0) for step in range(1, 5)]
    assert [event["main_loss"] for event in events(equal, "train")] == [
        event["main_loss"] for event in events(plain, "train")
    ]


@pytest.mark.slow
def test_an_interrupted_run_draws_what_an_uninterrupted_one_does(begun):
    """Dropout and two batches a step; killed twice, and each time goes on from the state before."""
    settings = {"max_steps": 6, "validate_every": 2, "accumulate": 2, "adequacy": {"weight": 2, "samples": 2}}
    straight, broken = (begun(name, **settings) for name in ("straight", "broken"))
    fit(straight, device="cpu", reward=lengths)
    for step in (3, 5):
        with pytest.raises(Interrupted):
            fit(broken, report=interrupt_at(step), device="cpu", reward=lengths)
        assert read_progress(broken / "state").step == step // 2 * 2
    assert fit(broken, device="cpu", reward=lengths).finished
    assert_same_weights(straight / "weights.safetensors", broken / "weights.safetensors")
    assert rewarded(straight) == rewarded(broken)
    assert len({reward for _, reward, *_ in rewarded(straight)}) == 6
    assert any(loss for *_, loss in rewarded(straight))


@pytest.mark.slow
def test_two_ranks_train_towards_a_reward_as_one_process_does(begun, prepared):
    """Their batches hold unequal numbers of sentences; one number divides the whole step."""
    budget = even_budget(prepared.split("train"), 3)
    settings = {"batch_tokens": budget, "max_steps": 3, "keep_last": 0, "adequacy": {"weight": 2, "samples": 2}}
    one, two = (begun(name, f"rnnsearch:{EXACT}", accumulate=n, **settings) for name, n in (("one", 2), ("two", 1)))
    assert [rank.ended() for rank in start_ranks(two, (DrawsByBatch(), DrawsByBatch()), lengths)] == [0, 0]
    assert train(one, DrawsByBatch(), lengths) == 0
    np.testing.assert_allclose(rewarded(two), rewarded(one), rtol=1e-6)
    assert all(loss for *_, loss in rewarded(one))
    assert_near_weights(one, two)


def test_early_stopping_watches_the_reward_of_what_is_searched(begun, prepared):
    asked = []

    def reward(sources, hypotheses, references):
        asked.append((list(sources), list(references)))
        return [float(number % 4) for number in range(len(hypotheses))]

    run = begun("run", max_steps=2, validate_every=1, early_stopping={"metric": "adequacy"})
    fit(run, device="cpu", reward=reward)
    dev = prepared.test("dev")
    assert asked == [(dev.sources, dev.targets)] * 2
    assert [event["adequacy"] for event in events(run, "valid")] == [1.5, 1.5]
    assert read_progress(run / "state").best_step == 1


def test_keeping_the_weights_of_the_lowest_loss_is_warned_of(begun, caplog):
    settings = {"max_steps": 1, "adequacy": {"weight": 0.5}}
    fit(begun("loss", **settings), device="cpu", reward=lengths)
    assert "which training towards adequacy does not lower; watch adequacy, bleu or chrf" in caplog.text
    caplog.clear()
    fit(begun("reward", **settings, early_stopping={"metric": "adequacy"}), device="cpu", reward=lengths)
    assert "does not lower" not in caplog.text


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"adequacy": {"weight": 0.5}}, "adequacy.weight: what an untrained system draws is noise, .*: init_from"),
        ({"adequacy": {"samples": 2}}, "adequacy: samples: does nothing without a weight"),
        ({"adequacy": {"weight": -1}, "init_from": "run"}, "adequacy.weight: input should be greater than or equal"),
    ],
)
def test_what_cannot_be_is_refused(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        parse(TrainingConfig, {"max_steps": 1, **settings}, "training")


@pytest.mark.parametrize("settings", [{"adequacy": {"weight": 0.5}}, {"early_stopping": {"metric": "adequacy"}}])
def test_a_reward_that_was_not_handed_in_is_asked_for(begun, settings):
    run = begun("run", **settings)
    with pytest.raises(ConfigError, match=r"adequacy.* needs a reward function handed to fit"):
        fit(run, device="cpu")
    assert not events(run, "start")
