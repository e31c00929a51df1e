"""Beam search as in the papers' toolkits: finished beams stay among the K and extend with PAD at no cost."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from core_models.config import SearchConfig
from core_models.interface.search_state import (
    IMPOSSIBLE,
    Hypothesis,
    Scores,
    SearchResult,
    Steppable,
    candidates,
    differences,
)
from core_models.text.vocabulary import BOS, EOS, PAD


def search_keeping_finished(
    model: Steppable, encoded: Any, limits: Tensor, config: SearchConfig, prefix: Tensor | None
) -> list[SearchResult]:
    """Beam search that keeps finished beams among the K; the length penalty selects the best at the end."""
    sentences, device = len(limits), limits.device
    state = model.start(encoded)
    words = torch.full((sentences, 1), BOS, device=device)
    live = torch.zeros(sentences, 1, device=device, dtype=torch.float64)
    finished = torch.zeros(sentences, 1, device=device, dtype=torch.bool)
    steps: list[tuple[Tensor, Tensor, Tensor]] = []
    for position in range(int(limits.max())):
        scores, state = model.step(words, state)
        values = scores.log_probs()
        closed = finished | (position >= limits)[:, None]
        values = values.masked_fill(closed[..., None], IMPOSSIBLE)
        forced = prefix[:, position] if prefix is not None and position < prefix.shape[1] else None
        extended, parents, options = candidates(Scores(values, True), live, forced, config.beam)
        staying = torch.where(closed, live, IMPOSSIBLE)
        offered = torch.cat([extended, staying], dim=1)
        live, index = offered.topk(min(config.beam, offered.shape[1]), dim=-1)
        beams = torch.arange(staying.shape[1], device=device).expand_as(staying)
        parents = torch.cat([parents, beams], dim=1).gather(1, index)
        words = torch.cat([options, torch.full_like(beams, PAD)], dim=1).gather(1, index)
        finished = finished.gather(1, parents) | (words == EOS)
        steps.append((words, parents, live))
        if bool((finished | (position + 1 >= limits)[:, None] | (live == IMPOSSIBLE)).all()):
            break
        state = state.select(None, parents)
    history = [(words.tolist(), parents.tolist(), live.tolist()) for words, parents, live in steps]
    return [_search_result(row, history, config) for row in range(sentences)]


def _search_result(row: int, history: list[tuple[list, list, list]], config: SearchConfig) -> SearchResult:
    hypotheses = []
    for last, end in enumerate(history[-1][2][row]):
        if end == IMPOSSIBLE:
            continue
        words, totals, beam = [], [], last
        for step_words, step_parents, step_scores in reversed(history):
            words.append(step_words[row][beam])
            totals.append(step_scores[row][beam])
            beam = step_parents[row][beam]
        real = [(word, total) for word, total in zip(words[::-1], totals[::-1], strict=True) if word != PAD]
        finished = real[-1][0] == EOS
        token_ids = [word for word, _ in real if word != EOS]
        totals = [total for _, total in real]
        hypotheses.append(
            Hypothesis(token_ids, totals[-1], totals[-1], finished, differences(totals)).with_length_penalty(config)
        )
    hypotheses.sort(key=lambda hypothesis: -hypothesis.normalized)
    return SearchResult(hypotheses[: config.n_best])
