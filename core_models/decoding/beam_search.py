"""Batched beam search, optionally with the search tree: at every step all 2K candidates and their fate.

Finished hypotheses leave the beam for a list of K. States are reordered by `State.select`, for any architecture.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from core_models.config import SearchConfig
from core_models.decoding.keep_finished import search_keeping_finished
from core_models.interface.search_state import (
    IMPOSSIBLE,
    FixedShapes,
    Hypothesis,
    SearchResult,
    Steppable,
    Tree,
    candidates,
    differences,
    penalty,
)
from core_models.text.buckets import rounded
from core_models.text.vocabulary import BOS, EOS, PAD

# Finished sentences are removed from the tensors once at most this share is still searched: each removal copies them.
COMPACTION_SHARE = 0.8
READ_EVERY = 8  # steps of a search on a GPU
DONE = "done_score", "done_normalized", "done_length", "done_parent"  # of the lists of finished hypotheses


class _Beam:
    """The state of one batch's search: live beams, finished lists, back-pointers, recorded candidates.

    `live` and `origin` have a row per sentence still searched (`origin`: its row in the batch), other tensors one per
    sentence of the batch.
    """

    def __init__(self, sentences: int, config: SearchConfig, limits: Tensor, record: bool) -> None:
        device, beam, max_length = limits.device, config.beam, int(limits.max())
        self.config, self.limits, self.max_length = config, limits, max_length
        self.origin = torch.arange(sentences, device=device)
        self.live = torch.zeros(sentences, 1, device=device, dtype=torch.float64)
        if config.compile:  # equal hypotheses but for the first, which is alone in being possible
            self.live = torch.nn.functional.pad(self.live, (0, beam - 1), value=IMPOSSIBLE)
            max_length = int(rounded(max_length))
        self.words = torch.full((sentences, max_length, beam), PAD, device=device)
        self.parents = torch.zeros_like(self.words)
        self.scores = torch.full(self.words.shape, IMPOSSIBLE, device=device, dtype=torch.float64)
        self.done_score = torch.full((sentences, beam), IMPOSSIBLE, device=device, dtype=torch.float64)
        self.done_normalized = self.done_score.clone()
        self.done_length = torch.zeros(sentences, beam, device=device, dtype=torch.long)
        self.done_parent = self.done_length.clone()
        self.recorded_steps: list[tuple[Tensor, ...]] | None = [] if record else None

    def add_candidates(
        self, position: int, scores: Tensor, parents: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Sort the candidates of position t (0-based) into finished, kept and pruned.

        Returns the parents and words of the kept candidates [R, K], and which rows are done [R].
        """
        beam = self.config.beam
        ends = words == EOS
        possible = scores > IMPOSSIBLE
        in_beam = torch.arange(scores.shape[1], device=scores.device) < beam
        finished = ends & in_beam & possible
        normalized = scores / penalty(position + 1, self.config)
        self._add_finished(position, scores, parents, normalized, finished)
        unfinished = torch.where(ends, IMPOSSIBLE, scores)
        kept_scores, kept_index = unfinished.topk(min(beam, unfinished.shape[1]), dim=-1)
        if self.recorded_steps is not None:
            self.recorded_steps.append(
                (self.origin, scores, parents, words, normalized, finished, kept_index, kept_scores > IMPOSSIBLE)
            )
        self.live = kept_scores
        parents, words = parents.gather(1, kept_index), words.gather(1, kept_index)
        width = kept_index.shape[1]
        self.words[self.origin, position, :width] = words
        self.parents[self.origin, position, :width] = parents
        self.scores[self.origin, position, :width] = kept_scores
        return parents, words, self._done_rows(position)

    def _add_finished(self, position: int, score: Tensor, parent: Tensor, normalized: Tensor, finished: Tensor) -> None:
        """Merge finished candidates into the lists of the K best finished hypotheses."""
        rows = self.origin
        offered = torch.where(finished, normalized, IMPOSSIBLE)
        best, index = torch.cat([self.done_normalized[rows], offered], dim=1).topk(self.config.beam, dim=-1)
        self.done_normalized[rows] = best
        self.done_score[rows] = torch.cat([self.done_score[rows], score], dim=1).gather(1, index)
        self.done_parent[rows] = torch.cat([self.done_parent[rows], parent], dim=1).gather(1, index)
        length = torch.full_like(parent, position + 1)
        self.done_length[rows] = torch.cat([self.done_length[rows], length], dim=1).gather(1, index)

    def _done_rows(self, position: int) -> Tensor:
        """Rows in which no live hypothesis can change the result any more, or which are at their length limit.

        The result is the n best finished ones; a recorded tree goes on until all K are final. A beam of one is greedy
        search: the first finished hypothesis ends it.
        """
        final = self.config.n_best if self.recorded_steps is None else self.config.beam
        max_length = self.limits[self.origin]
        bound = self.live[:, 0] / penalty(max_length.to(self.live.dtype), self.config)
        worst = self.done_normalized[self.origin, final - 1]
        cannot_improve = worst > IMPOSSIBLE if self.config.beam == 1 else bound <= worst
        return cannot_improve | (self.live[:, 0] == IMPOSSIBLE) | (position + 1 >= max_length)

    def results(self) -> list[SearchResult]:
        """Trace back the best hypotheses of every sentence."""
        arrays = {name: getattr(self, name).cpu().numpy() for name in ("words", "parents", "scores", "limits", *DONE)}
        trees = self._trees(len(self.words))
        return [self._search_result(row, arrays, trees[row]) for row in range(len(self.words))]

    def _search_result(self, row: int, arrays: dict[str, Any], tree: Tree | None) -> SearchResult:
        hypotheses = []
        for rank in range(self.config.n_best):
            if arrays["done_normalized"][row, rank] == IMPOSSIBLE:
                break
            length, parent = int(arrays["done_length"][row, rank]), int(arrays["done_parent"][row, rank])
            words, totals = self._path(row, length - 2, parent, arrays)
            totals.append(float(arrays["done_score"][row, rank]))
            hypotheses.append(
                Hypothesis(words, totals[-1], float(arrays["done_normalized"][row, rank]), True, differences(totals))
            )
        if not hypotheses:  # none finished within the limit: the best live hypothesis, truncated
            last = int(arrays["limits"][row]) - 1
            words, totals = self._path(row, last, 0, arrays)
            hypotheses.append(
                Hypothesis(words, totals[-1], totals[-1], False, differences(totals)).with_length_penalty(self.config)
            )
        if tree is not None:
            tree.best = _last_row(tree, hypotheses[0])
        return SearchResult(hypotheses, tree)

    @staticmethod
    def _path(row: int, position: int, beam: int, arrays: dict[str, Any]) -> tuple[list[int], list[float]]:
        words, totals = [], []
        while position >= 0:
            words.append(int(arrays["words"][row, position, beam]))
            totals.append(float(arrays["scores"][row, position, beam]))
            beam, position = int(arrays["parents"][row, position, beam]), position - 1
        return words[::-1], totals[::-1]

    def _trees(self, sentences: int) -> list[Tree | None]:
        if self.recorded_steps is None:
            return [None] * sentences
        trees = [Tree() for _ in range(sentences)]
        rows_of: list[list[int]] = [[-1] for _ in range(sentences)]  # the candidate row of each live beam
        totals_of: list[list[float]] = [[0.0] for _ in range(sentences)]
        for step, parts in enumerate(self.recorded_steps):
            origin, scores, parents, words, normalized, finished, kept_index, alive = (part.tolist() for part in parts)
            for row, sentence in enumerate(origin):
                tree, base = trees[sentence], len(trees[sentence].word)
                row_of_rank: dict[int, int] = {}
                for rank, total in enumerate(scores[row]):
                    if total == IMPOSSIBLE:
                        continue
                    row_of_rank[rank] = base + len(row_of_rank)
                    tree.step.append(step + 1)
                    tree.parent.append(rows_of[sentence][parents[row][rank]])
                    tree.word.append(words[row][rank])
                    tree.log_prob.append(total - totals_of[sentence][parents[row][rank]])
                    tree.score.append(total)
                    tree.normalised.append(normalized[row][rank])
                    tree.rank.append(rank)
                    tree.fate.append("finished" if finished[row][rank] else "pruned")
                live_ranks = [rank for rank, is_alive in zip(kept_index[row], alive[row], strict=True) if is_alive]
                for rank in live_ranks:
                    tree.fate[row_of_rank[rank]] = "kept"
                rows_of[sentence] = [row_of_rank[rank] for rank in live_ranks]
                totals_of[sentence] = [scores[row][rank] for rank in live_ranks]
        return list(trees)


def _last_row(tree: Tree, hypothesis: Hypothesis) -> int:
    """The row of the tree with the hypothesis's last word."""
    children: dict[tuple[int, int], int] = {
        (parent, word): row for row, (parent, word) in enumerate(zip(tree.parent, tree.word, strict=True))
    }
    row = -1
    for word in [*hypothesis.words, *([EOS] if hypothesis.finished else [])]:
        row = children[row, word]
    return row


class _DoneReader:
    """Tells the host which rows are done: after every step on a CPU, after every eighth on a GPU.

    A GPU is asked for a copy, which is read after it has been given the next step, so that it never has nothing to do.
    Rows that are done and go on meanwhile change no result.
    """

    def __init__(self) -> None:
        self._copied: tuple[Tensor, torch.cuda.Event] | None = None

    def rows(self, position: int, done: Tensor) -> list[bool] | None:
        """Which rows are done, [R], at the latest after step `position` (0-based); None if it is not read now."""
        if done.device.type != "cuda":
            return done.tolist()
        copied, self._copied = self._copied, None
        if (position + 1) % READ_EVERY == 0:
            self._copied = done.to("cpu", non_blocking=True), torch.cuda.Event()
            self._copied[1].record()
        if copied is None:
            return None
        values, event = copied
        event.synchronize()
        return values.tolist()


def _kept(done: list[bool], fixed_shapes: bool) -> list[int]:
    """The rows to go on with, or none if all stay. fixed_shapes: half of them, so that few numbers of rows occur."""
    rows = sorted(range(len(done)), key=done.__getitem__)  # those that are searched come first, in their order
    searched = done.count(False)
    if fixed_shapes:
        half = -(-len(done) // 2)
        return rows[:half] if searched <= half < len(done) else []
    return rows[:searched] if searched <= COMPACTION_SHARE * len(done) else []


def beam_search(
    model: Steppable,
    encoded: Any,
    limits: Tensor,
    config: SearchConfig,
    prefix: Tensor | None = None,
    record: bool = False,
) -> list[SearchResult]:
    """Search one batch. limits [S]: longest outputs, EOS included; prefix [S, P]: forced words, -1 for none.

    The search has `config.beam` live hypotheses per sentence. Finished sentences stay in the batch, with impossible
    scores, until at most `COMPACTION_SHARE` of the batch is still searched.
    """
    if config.finished_hypotheses == "keep":
        return search_keeping_finished(model, encoded, limits, config, prefix)
    sentences = len(limits)
    beam = _Beam(sentences, config, limits, record)
    fixed = FixedShapes(config.beam, beam.words.shape[1]) if config.compile else None
    state = model.start(encoded) if fixed is None else model.start(encoded, fixed)
    words = torch.full_like(beam.live, BOS, dtype=torch.long)
    reader = _DoneReader()
    for position in range(beam.max_length):
        scores, state = model.step(words, state)
        forced = prefix[beam.origin, position] if prefix is not None and position < prefix.shape[1] else None
        totals, parents, options = candidates(scores, beam.live, forced, 2 * config.beam)
        parents, words, done = beam.add_candidates(position, totals, parents, options)
        beam.live.masked_fill_(done[:, None], IMPOSSIBLE)
        rows_done = reader.rows(position, done)
        if rows_done is not None and all(rows_done):
            break
        if rows_done is not None and (kept := _kept(rows_done, config.compile)):
            rows = torch.tensor(kept, device=limits.device)
            beam.origin, beam.live, words = beam.origin[rows], beam.live[rows], words[rows]
            state = state.select(rows, parents[rows])
        else:
            state = state.select(None, parents)
    return beam.results()
