"""REINFORCE (Williams 1992) with a self-critical baseline (Rennie 2017), for a reward of whole translations.

    grad E[r] = E[(r(y) - r(greedy)) grad log pi(y)],  y sampled from pi, the system in evaluation mode

With a reward of coverage this is adequacy-oriented learning (Kong 2019), no faithful reproduction: neither the paper's
text nor its code was at hand; docs/mechanisms/adequacy-oriented-learning.md says which part is from where. The caller
gives the reward. Random numbers come from the process's generator, whose state is saved with the training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor

from core_models.config import SearchConfig
from core_models.decoding import Hypothesis, beam_search, sample, sampling_logits
from core_models.decoding.length_limits import output_limits
from core_models.system import Encoded, System
from core_models.text.batches import Batch, collate
from core_models.text.mmap_arrays import BinaryText
from core_models.text.vocabulary import EOS, Vocabulary

# (sources, hypotheses, references) -> a number for each hypothesis, higher is better
Reward = Callable[[Sequence[str], Sequence[str], Sequence[str]], Sequence[float]]
GREEDY = SearchConfig(beam=1, length_penalty=0)


@dataclass(frozen=True)
class SampledTranslations:
    """Sampled translations of S sentences, n of each: those of sentence s are the rows n s ... n s + n - 1."""

    words: Tensor  # [S n, T] int64: BOS, y_1, ..., then PAD: the input
    target: Tensor  # [S n, T] int64: y_1, ..., EOS, then PAD
    mask: Tensor  # [S n, T] bool: sampled words; not the EOS of a translation truncated at its limit
    rewards: Tensor  # [S, n]
    baselines: Tensor  # [S, 1]

    @classmethod
    def of(cls, hypotheses: Sequence[Sequence[Hypothesis]], rewards: Tensor, baselines: Tensor) -> SampledTranslations:
        """Build the tensors of n hypotheses per sentence."""
        flat = [hypothesis for samples in hypotheses for hypothesis in samples]
        words = [hypothesis.words for hypothesis in flat]
        batch, device = collate(words, words), rewards.device  # only the targets are used
        finished = torch.tensor([hypothesis.finished for hypothesis in flat])[:, None]
        mask = batch.target_mask & (finished | (batch.target != EOS))
        return cls(batch.target_in.to(device), batch.target.to(device), mask.to(device), rewards, baselines)

    @property
    def sentences(self) -> Tensor:
        """The sentence number of each row, [S n]."""
        return torch.arange(len(self.words), device=self.words.device) // self.rewards.shape[1]


@contextmanager
def evaluation_mode(system: System) -> Iterator[None]:
    """Switch a system to evaluation mode: without dropout and training-only predictions."""
    training = system.training
    system.eval()
    try:
        yield
    finally:
        system.train(training)


def sample_log_probs(system: System, encoded: Encoded, samples: SampledTranslations) -> Tensor:
    """Log-probability, in nats, of the sampled translations by one forced pass: [S n]. encoded: the S sentences."""
    forced = system(encoded.select(samples.sentences), samples.words, samples.mask)
    values = torch.log_softmax(sampling_logits(system.scores(forced).values), dim=-1)
    word_log_probs = values.gather(-1, samples.target[..., None])[..., 0]
    return torch.where(samples.mask, word_log_probs, 0.0).sum(1)


def policy_loss(system: System, batch: Batch, samples: SampledTranslations) -> Tensor:
    """Policy loss per sentence [S]; its expected gradient is minus the gradient of the expected reward."""
    with evaluation_mode(system):
        log_probs = sample_log_probs(system, system.encode(batch), samples)
    return -((samples.rewards - samples.baselines) * log_probs.view(samples.rewards.shape)).mean(1)


@dataclass(frozen=True)
class SelfCriticalSampler:
    """Samples translations of training sentences and computes their rewards.

    text: the text that the indices of batches refer to; search: only its length limits are used.
    """

    system: System
    text: BinaryText
    vocabulary: Vocabulary
    search: SearchConfig
    reward: Reward
    samples: int
    accelerator: Accelerator

    @torch.no_grad()
    def draw(self, batch: Batch) -> SampledTranslations:
        """Sample `samples` translations of each sentence; the baseline is the reward of the greedy translation."""
        limits = output_limits(batch.source_mask, self.search, self.system.backbone.target_room)
        with evaluation_mode(self.system), self.accelerator.autocast():
            encoded = self.system.encode(batch)
            greedy = [result.hypotheses[:1] for result in beam_search(self.system, encoded, limits, GREEDY)]
            hypotheses = sample(self.system, encoded, limits, self.samples)
        return SampledTranslations.of(hypotheses, self._rewards(batch, hypotheses), self._rewards(batch, greedy))

    def _rewards(self, batch: Batch, hypotheses: Sequence[Sequence[Hypothesis]]) -> Tensor:
        """Rewards of the hypotheses: [S, n]."""
        indices = batch.indices.tolist()
        pairs = [
            (row, hypothesis.words) for row, samples in zip(indices, hypotheses, strict=True) for hypothesis in samples
        ]
        rewards = self.reward(
            [self.text.source_text(row) for row, _ in pairs],
            self.vocabulary.decode([words for _, words in pairs]),
            [self.text.target_text(row) for row, _ in pairs],
        )
        return torch.tensor(rewards, dtype=torch.float32, device=batch.source.device).view(len(hypotheses), -1)

    def mean_rewards(self, samples: Sequence[SampledTranslations], sentences: float) -> dict[str, float]:
        """Means over the sentences of the global batch, the same on every process."""
        sums = torch.stack(
            [
                torch.stack([batch_samples.rewards.mean(1).sum(), batch_samples.baselines.sum()])
                for batch_samples in samples
            ]
        ).sum(0)
        means = self.accelerator.reduce(sums.double()) / sentences
        return dict(zip(("reward", "greedy_reward"), means.tolist(), strict=True))
