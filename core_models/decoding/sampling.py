"""Sampling of translations from a model's distribution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from core_models.interface.search_state import IMPOSSIBLE, Hypothesis, Steppable
from core_models.text.vocabulary import BOS, EOS, PAD


def sampling_logits(values: Tensor, temperature: float = 1.0, top: int | None = None) -> Tensor:
    """The logits to sample the next word from, given logits or log-probabilities [..., V].

    Divided by the temperature, without PAD and BOS; `top` keeps only that many words.
    """
    logits = values / temperature
    logits[..., PAD] = logits[..., BOS] = IMPOSSIBLE
    if top is None:
        return logits
    kept = logits.topk(min(top, logits.shape[-1]), dim=-1)  # of equal ones no more than `top`
    return torch.full_like(logits, IMPOSSIBLE).scatter(-1, kept.indices, kept.values)


def sample(
    model: Steppable,
    encoded: Any,
    limits: Tensor,
    samples: int = 1,
    temperature: float = 1.0,
    top: int | None = None,
    generator: torch.Generator | None = None,
) -> list[list[Hypothesis]]:
    """Draw `samples` translations of each sentence from the model's distribution (Ott 2018's unbiased samples).

    temperature divides the logits; `top` keeps only that many words. Scores are the untempered log-probabilities.
    """
    sentences, device = len(limits), limits.device
    state = model.start(encoded)
    state = state.select(None, torch.zeros(sentences, samples, dtype=torch.long, device=device))
    words = torch.full((sentences, samples), BOS, device=device)
    same = torch.arange(samples, device=device).expand(sentences, samples)
    drawn: list[Tensor] = []
    log_probs: list[Tensor] = []
    finished = torch.zeros(sentences, samples, dtype=torch.bool, device=device)
    for position in range(int(limits.max())):
        scores, state = model.step(words, state)
        values = scores.log_probs()
        shares = torch.softmax(sampling_logits(values, temperature, top), dim=-1)
        words = torch.multinomial(shares.flatten(0, 1), 1, generator=generator).view(sentences, samples)
        drawn.append(words)
        log_probs.append(values.gather(-1, words[..., None])[..., 0])
        finished = finished | (words == EOS) | (position + 1 >= limits)[:, None]
        if bool(finished.all()):
            break
        state = state.select(None, same)
    rows = zip(torch.stack(drawn, -1).tolist(), torch.stack(log_probs, -1).tolist(), limits.tolist(), strict=True)
    return [
        [_drawn(*each, limit) for each in zip(words_of_row, values_of_row, strict=True)]
        for words_of_row, values_of_row, limit in rows
    ]


def _drawn(words: list[int], log_probs: list[float], limit: int) -> Hypothesis:
    """One sample as a hypothesis; what was drawn after its end or its limit is left out."""
    sequence = words[:limit]
    finished = EOS in sequence
    length = sequence.index(EOS) + 1 if finished else len(sequence)
    values = log_probs[:length]
    return Hypothesis(sequence[: length - finished], sum(values), sum(values), finished, values)
