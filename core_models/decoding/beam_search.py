"""Batched beam search. Finished hypotheses leave to a list of K. On request the tree is recorded:
at every step all 2K candidates and what became of them.

Knows no architecture: states are reordered by `State.select`, whatever they hold.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from core_models.config import SearchConfig
from core_models.decoding.keep_finished import search_with_stay
from core_models.interface.search_state import (
    IMPOSSIBLE,
    Found,
    Hypothesis,
    Steppable,
    Tree,
    candidates,
    differences,
    penalty,
)
from core_models.text.vocabulary import BOS, EOS, PAD

# Tensors are copied without the sentences that are done once at most this share is still searched.
WORTH_DROPPING = 0.8


class _Beam:
    """The bookkeeping of one batch: live beams, finished lists, back-pointers, recorded candidates.

    Rows are the sentences still searched; `origin` maps them to the batch's. History tensors keep the batch's order.
    """

    def __init__(self, sentences: int, config: SearchConfig, limits: Tensor, record: bool) -> None:
        device, beam, longest = limits.device, config.beam, int(limits.max())
        self.config, self.limits, self.longest = config, limits, longest
        self.origin = torch.arange(sentences, device=device)
        self.live = torch.zeros(sentences, 1, device=device, dtype=torch.float64)
        self.words = torch.full((sentences, longest, beam), PAD, device=device)
        self.parents = torch.zeros_like(self.words)
        self.scores = torch.full(self.words.shape, IMPOSSIBLE, device=device, dtype=torch.float64)
        self.done_score = torch.full((sentences, beam), IMPOSSIBLE, device=device, dtype=torch.float64)
        self.done_normalised = self.done_score.clone()
        self.done_length = torch.zeros(sentences, beam, device=device, dtype=torch.long)
        self.done_parent = self.done_length.clone()
        self.record: list[tuple[Tensor, ...]] | None = [] if record else None

    def take(self, position: int, chosen: Tensor, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sort the candidates of position t (0-based) into finished, kept and pruned; returns what goes on.

        Gives the kept candidates' parents and words [R, K], and which rows are done [R].
        """
        beam = self.config.beam
        ends = words == EOS
        possible = chosen > IMPOSSIBLE
        first = torch.arange(chosen.shape[1], device=chosen.device) < beam
        finished = ends & first & possible
        normalised = chosen / penalty(position + 1, self.config)
        self._finish(position, chosen, parents, normalised, finished)
        going = torch.where(ends, IMPOSSIBLE, chosen)
        kept_score, kept = going.topk(min(beam, going.shape[1]), dim=-1)
        if self.record is not None:
            self.record.append(
                (self.origin, chosen, parents, words, normalised, finished, kept, kept_score > IMPOSSIBLE)
            )
        self.live = kept_score
        parents, words = parents.gather(1, kept), words.gather(1, kept)
        width = kept.shape[1]
        self.words[self.origin, position, :width] = words
        self.parents[self.origin, position, :width] = parents
        self.scores[self.origin, position, :width] = kept_score
        return parents, words, self._is_done(position)

    def _finish(self, position: int, score: Tensor, parent: Tensor, normalised: Tensor, finished: Tensor) -> None:
        """Let finished candidates into the lists of the K best finished."""
        rows = self.origin
        offered = torch.where(finished, normalised, IMPOSSIBLE)
        best, index = torch.cat([self.done_normalised[rows], offered], dim=1).topk(self.config.beam, dim=-1)
        self.done_normalised[rows] = best
        self.done_score[rows] = torch.cat([self.done_score[rows], score], dim=1).gather(1, index)
        self.done_parent[rows] = torch.cat([self.done_parent[rows], parent], dim=1).gather(1, index)
        length = torch.full_like(parent, position + 1)
        self.done_length[rows] = torch.cat([self.done_length[rows], length], dim=1).gather(1, index)

    def _is_done(self, position: int) -> Tensor:
        """No live hypothesis can pass the worst finished one any more, or the sentence is at its length limit."""
        longest = self.limits[self.origin]
        bound = self.live[:, 0] / (
            penalty(longest.to(self.live.dtype), self.config) if self.config.length_penalty else 1.0
        )
        hopeless = bound <= self.done_normalised[self.origin, -1]
        return hopeless | (self.live[:, 0] == IMPOSSIBLE) | (position + 1 >= longest)

    def found(self) -> list[Found]:
        """Follow the back-pointers of every sentence's best hypotheses."""
        spec = {
            name: getattr(self, name).cpu().numpy()
            for name in ("words", "parents", "scores", "done_score", "done_normalised", "done_length", "done_parent")
        }
        trees = self._trees(len(self.words))
        return [self._sentence(row, spec, trees[row]) for row in range(len(self.words))]

    def _sentence(self, row: int, spec: dict[str, Any], tree: Tree | None) -> Found:
        hypotheses = []
        for place in range(self.config.n_best):
            if spec["done_normalised"][row, place] == IMPOSSIBLE:
                break
            length, parent = int(spec["done_length"][row, place]), int(spec["done_parent"][row, place])
            words, totals = self._path(row, length - 2, parent, spec)
            totals.append(float(spec["done_score"][row, place]))
            hypotheses.append(
                Hypothesis(words, totals[-1], float(spec["done_normalised"][row, place]), True, differences(totals))
            )
        if not hypotheses:  # nothing ended within the limit: the best live hypothesis, cut
            last = int(self.limits[row]) - 1
            words, totals = self._path(row, last, 0, spec)
            hypotheses.append(
                Hypothesis(
                    words, totals[-1], totals[-1] / float(penalty(last + 1, self.config)), False, differences(totals)
                )
            )
        if tree is not None:
            tree.best = _find(tree, hypotheses[0])
        return Found(hypotheses, tree)

    @staticmethod
    def _path(row: int, position: int, beam: int, spec: dict[str, Any]) -> tuple[list[int], list[float]]:
        words, totals = [], []
        while position >= 0:
            words.append(int(spec["words"][row, position, beam]))
            totals.append(float(spec["scores"][row, position, beam]))
            beam, position = int(spec["parents"][row, position, beam]), position - 1
        return words[::-1], totals[::-1]

    def _trees(self, sentences: int) -> list[Tree | None]:
        if self.record is None:
            return [None] * sentences
        trees = [Tree() for _ in range(sentences)]
        rows_of: list[list[int]] = [[-1] for _ in range(sentences)]  # the candidate row behind each live beam
        totals_of: list[list[float]] = [[0.0] for _ in range(sentences)]
        for step, parts in enumerate(self.record):
            origin, chosen, parents, words, normalised, finished, kept, alive = (part.tolist() for part in parts)
            for row, sentence in enumerate(origin):
                tree, base = trees[sentence], len(trees[sentence].word)
                places: dict[int, int] = {}
                for rank, total in enumerate(chosen[row]):
                    if total == IMPOSSIBLE:
                        continue
                    places[rank] = base + len(places)
                    tree.step.append(step + 1)
                    tree.parent.append(rows_of[sentence][parents[row][rank]])
                    tree.word.append(words[row][rank])
                    tree.log_prob.append(total - totals_of[sentence][parents[row][rank]])
                    tree.score.append(total)
                    tree.normalised.append(normalised[row][rank])
                    tree.rank.append(rank)
                    tree.fate.append("finished" if finished[row][rank] else "pruned")
                lives = [rank for rank, is_alive in zip(kept[row], alive[row], strict=True) if is_alive]
                for rank in lives:
                    tree.fate[places[rank]] = "kept"
                rows_of[sentence] = [places[rank] for rank in lives]
                totals_of[sentence] = [chosen[row][rank] for rank in lives]
        return list(trees)


def _find(tree: Tree, hypothesis: Hypothesis) -> int:
    """The row of the hypothesis's last word."""
    row = -1
    children: dict[tuple[int, int], int] = {
        (parent, word): number for number, (parent, word) in enumerate(zip(tree.parent, tree.word, strict=True))
    }
    for word in [*hypothesis.words, *([EOS] if hypothesis.finished else [])]:
        row = children[row, word]
    return row


def beam_search(
    model: Steppable,
    encoded: Any,
    limits: Tensor,
    config: SearchConfig,
    prefix: Tensor | None = None,
    record: bool = False,
) -> list[Found]:
    """Search one batch. limits [S]: longest outputs, EOS included; prefix [S, P]: forced words, -1 for none.

    The search holds `config.beam` live hypotheses a sentence. Sentences that are done run along as impossible ones
    until they are enough to be worth a copy of all others' tensors.
    """
    if config.finished_hypotheses == "keep":
        return search_with_stay(model, encoded, limits, config, prefix)
    sentences = len(limits)
    beam = _Beam(sentences, config, limits, record)
    state = model.start(encoded)
    words = torch.full((sentences, 1), BOS, device=limits.device)
    for position in range(beam.longest):
        scores, state = model.step(words, state)
        forced = prefix[beam.origin, position] if prefix is not None and position < prefix.shape[1] else None
        chosen, parents, options = candidates(scores, beam.live, forced, 2 * config.beam)
        parents, words, done = beam.take(position, chosen, parents, options)
        done_rows = done.tolist()  # the one synchronisation of a step
        going = [row for row, is_done in enumerate(done_rows) if not is_done]
        if not going:
            break
        if len(going) <= WORTH_DROPPING * len(done_rows):
            rows = torch.tensor(going, device=limits.device)
            beam.origin, beam.live, words = beam.origin[rows], beam.live[rows], words[rows]
            state = state.select(rows, parents[rows])
        else:
            beam.live.masked_fill_(done[:, None], IMPOSSIBLE)
            state = state.select(None, parents)
    return beam.found()
