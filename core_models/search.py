"""Beam search, greedy search and sampling over anything that can `start`, `step` and `select`.

Knows no architecture: states are reordered by `State.select`, whatever they hold. Finished hypotheses leave to a list of
K (mechanisms.md 8.11) or, with `finished="stay"`, stay in the beam and extend with PAD at no cost, as the papers' own
toolkits do. On request the tree is recorded: at every step all 2K candidates and what became of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from core_models.config import SearchConfig
from core_models.text.vocabulary import BOS, EOS, PAD

IMPOSSIBLE = -math.inf


class Scores(NamedTuple):
    """What a step says of the next word: values [S, K, V], as log-probabilities if `normalised`, else as logits."""

    values: Tensor
    normalised: bool


class SearchState(Protocol):
    def select(self, sentences: Tensor | None, parents: Tensor) -> Any: ...


class Steppable(Protocol):
    def start(self, encoded: Any) -> Any: ...
    def step(self, words: Tensor, state: Any) -> tuple[Scores, Any]: ...


@dataclass(frozen=True)
class Hypothesis:
    """Piece numbers without EOS; `score` is the sum of `token_log_probs` (nats, EOS included when finished) and
    `normalised` the score under the length penalty."""

    words: list[int]
    score: float
    normalised: float
    finished: bool
    token_log_probs: list[float]


@dataclass
class Tree:
    """All candidates of one sentence's search, row by row: see `analyses.beam` for the meaning of each list."""

    step: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    word: list[int] = field(default_factory=list)
    log_prob: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    normalised: list[float] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    fate: list[str] = field(default_factory=list)
    best: int = -1


@dataclass(frozen=True)
class Found:
    """The n best hypotheses of a sentence, best first, and its tree if it was recorded."""

    hypotheses: list[Hypothesis]
    tree: Tree | None = None


def penalty(length: Tensor | float, config: SearchConfig) -> Any:
    """What a score is divided by: ((5 + length) / 6)^alpha (GNMT) or length^alpha (power); length counts EOS."""
    base = (5 + length) / 6 if config.penalty == "gnmt" else length
    return base**config.length_penalty


def candidates(scores: Scores, so_far: Tensor, forced: Tensor | None, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """The `width` best continuations of each sentence: their scores, parents and words, [S, C] each, best first.

    Picks the best of every row first and normalises only those, then one flat top-k. forced [S]: a word that must come,
    or -1.
    """
    values = scores.values
    sentences, beams, vocabulary = values.shape
    partition = None if scores.normalised else torch.logsumexp(values, dim=-1, keepdim=True)
    values[..., [PAD, BOS]] = IMPOSSIBLE
    if forced is not None:
        other = (forced[:, None] >= 0) & (torch.arange(vocabulary, device=values.device) != forced[:, None])
        values.masked_fill_(other[:, None], IMPOSSIBLE)
    best, words = values.topk(min(width, vocabulary), dim=-1)
    if partition is not None:
        best = best - partition
    total = (so_far[..., None] + best).flatten(1)
    chosen, flat = total.topk(min(width, total.shape[1]), dim=-1)
    return chosen, flat // best.shape[-1], words.flatten(1).gather(1, flat)


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
            self.record.append((self.origin, chosen, parents, words, normalised, finished, kept, kept_score > IMPOSSIBLE))
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
        bound = self.live[:, 0] / (penalty(longest.to(self.live.dtype), self.config) if self.config.length_penalty else 1.0)
        hopeless = bound <= self.done_normalised[self.origin, -1]
        return hopeless | (self.live[:, 0] == IMPOSSIBLE) | (position + 1 >= longest)

    def found(self) -> list[Found]:
        """Follow the back-pointers of every sentence's best hypotheses."""
        host = {name: getattr(self, name).cpu().numpy() for name in
                ("words", "parents", "scores", "done_score", "done_normalised", "done_length", "done_parent")}
        trees = self._trees(len(self.words))
        return [self._sentence(row, host, trees[row]) for row in range(len(self.words))]

    def _sentence(self, row: int, host: dict[str, Any], tree: Tree | None) -> Found:
        hypotheses = []
        for place in range(self.config.n_best):
            if host["done_normalised"][row, place] == IMPOSSIBLE:
                break
            length, parent = int(host["done_length"][row, place]), int(host["done_parent"][row, place])
            words, totals = self._path(row, length - 2, parent, host)
            totals.append(float(host["done_score"][row, place]))
            hypotheses.append(Hypothesis(words, totals[-1], float(host["done_normalised"][row, place]), True, _differences(totals)))
        if not hypotheses:  # nothing ended within the limit: the best live hypothesis, cut
            last = int(self.limits[row]) - 1
            words, totals = self._path(row, last, 0, host)
            hypotheses.append(Hypothesis(words, totals[-1], totals[-1] / float(penalty(last + 1, self.config)), False, _differences(totals)))
        if tree is not None:
            tree.best = _find(tree, hypotheses[0])
        return Found(hypotheses, tree)

    @staticmethod
    def _path(row: int, position: int, beam: int, host: dict[str, Any]) -> tuple[list[int], list[float]]:
        words, totals = [], []
        while position >= 0:
            words.append(int(host["words"][row, position, beam]))
            totals.append(float(host["scores"][row, position, beam]))
            beam, position = int(host["parents"][row, position, beam]), position - 1
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


def _differences(totals: Sequence[float]) -> list[float]:
    return [after - before for before, after in zip([0.0, *totals], totals, strict=False)]


def _find(tree: Tree, hypothesis: Hypothesis) -> int:
    """The row of the hypothesis's last word."""
    row = -1
    children: dict[tuple[int, int], int] = {(parent, word): number for number, (parent, word) in enumerate(zip(tree.parent, tree.word, strict=True))}
    for word in [*hypothesis.words, *([EOS] if hypothesis.finished else [])]:
        row = children[row, word]
    return row


def beam_search(model: Steppable, encoded: Any, limits: Tensor, config: SearchConfig, prefix: Tensor | None = None,
                record: bool = False) -> list[Found]:
    """Search one batch. limits [S]: longest output of each sentence, EOS included; prefix [S, P]: forced words, -1 for none.

    The search holds `config.beam` live hypotheses a sentence and drops a sentence's tensors as soon as it is done.
    """
    if config.finished == "stay":
        return _search_with_stay(model, encoded, limits, config, prefix)
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
        if all(done_rows):
            break
        if any(done_rows):
            rows = torch.tensor([row for row, is_done in enumerate(done_rows) if not is_done], device=limits.device)
            beam.origin, beam.live, words = beam.origin[rows], beam.live[rows], words[rows]
            state = state.select(rows, parents[rows])
        else:
            state = state.select(None, parents)
    return beam.found()


def _search_with_stay(model: Steppable, encoded: Any, limits: Tensor, config: SearchConfig, prefix: Tensor | None) -> list[Found]:
    """Finished beams stay among the K and extend with PAD at cost 0; the best under the penalty is chosen at the end."""
    sentences, device = len(limits), limits.device
    state = model.start(encoded)
    words = torch.full((sentences, 1), BOS, device=device)
    live = torch.zeros(sentences, 1, device=device, dtype=torch.float64)
    over = torch.zeros(sentences, 1, device=device, dtype=torch.bool)
    history: list[tuple[list, list, list]] = []
    for position in range(int(limits.max())):
        scores, state = model.step(words, state)
        values = scores.values if scores.normalised else torch.log_softmax(scores.values, dim=-1)
        closed = over | (position >= limits)[:, None]
        values = values.masked_fill(closed[..., None], IMPOSSIBLE)
        forced = prefix[:, position] if prefix is not None and position < prefix.shape[1] else None
        chosen, parents, options = candidates(Scores(values, True), live, forced, config.beam)
        staying = torch.where(closed, live, IMPOSSIBLE)
        offered = torch.cat([chosen, staying], dim=1)
        live, index = offered.topk(min(config.beam, offered.shape[1] if position else chosen.shape[1]), dim=-1)
        beams = torch.arange(staying.shape[1], device=device).expand_as(staying)
        parents = torch.cat([parents, beams], dim=1).gather(1, index)
        words = torch.cat([options, torch.full_like(beams, PAD)], dim=1).gather(1, index)
        over = over.gather(1, parents) | (words == EOS)
        history.append((words.tolist(), parents.tolist(), live.tolist()))
        if bool((over | (position + 1 >= limits)[:, None] | (live == IMPOSSIBLE)).all()):
            break
        state = state.select(None, parents)
    return [_stayed(row, history, config) for row in range(sentences)]


def _stayed(row: int, history: list[tuple[list, list, list]], config: SearchConfig) -> Found:
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
        kept = [word for word, _ in real if word != EOS]
        totals = [total for _, total in real]
        normalised = totals[-1] / float(penalty(len(real), config))
        hypotheses.append(Hypothesis(kept, totals[-1], normalised, finished, _differences(totals)))
    hypotheses.sort(key=lambda hypothesis: -hypothesis.normalised)
    return Found(hypotheses[: config.n_best])


def sample(model: Steppable, encoded: Any, limits: Tensor, samples: int = 1, temperature: float = 1.0, top: int | None = None,
           generator: torch.Generator | None = None) -> list[list[Hypothesis]]:
    """Draw `samples` translations of each sentence from the model's own distribution (Ott 2018's unbiased samples).

    temperature divides the logits; `top` keeps only that many words. Scores are the untempered log-probabilities.
    """
    sentences, device = len(limits), limits.device
    state = model.start(encoded)
    state = state.select(None, torch.zeros(sentences, samples, dtype=torch.long, device=device))
    words = torch.full((sentences, samples), BOS, device=device)
    same = torch.arange(samples, device=device).expand(sentences, samples)
    drawn: list[list[list[int]]] = []
    log_probs: list[list[list[float]]] = []
    over = torch.zeros(sentences, samples, dtype=torch.bool, device=device)
    for position in range(int(limits.max())):
        scores, state = model.step(words, state)
        values = scores.values if scores.normalised else torch.log_softmax(scores.values, dim=-1)
        heated = values / temperature
        heated[..., [PAD, BOS]] = IMPOSSIBLE
        if top is not None:
            heated = heated.masked_fill(heated < heated.topk(min(top, heated.shape[-1]), dim=-1).values[..., -1:], IMPOSSIBLE)
        words = torch.multinomial(torch.softmax(heated, dim=-1).flatten(0, 1), 1, generator=generator).view(sentences, samples)
        drawn.append(words.tolist())
        log_probs.append(values.gather(-1, words[..., None])[..., 0].tolist())
        over = over | (words == EOS) | (position + 1 >= limits)[:, None]
        if bool(over.all()):
            break
        state = state.select(None, same)
    return [[_drawn(row, draw, drawn, log_probs, int(limits[row])) for draw in range(samples)] for row in range(sentences)]


def _drawn(row: int, draw: int, words: list, log_probs: list, limit: int) -> Hypothesis:
    sequence = [step[row][draw] for step in words][:limit]
    finished = EOS in sequence
    length = sequence.index(EOS) + 1 if finished else len(sequence)
    values = [step[row][draw] for step in log_probs][:length]
    return Hypothesis(sequence[: length - finished], sum(values), sum(values), finished, values)


class Ensemble:
    """Several systems with one target vocabulary, decoded together: the mean of their probabilities at every step.

    Each system keeps its own state; `encoded` is a list, one entry a system.
    """

    def __init__(self, systems: Sequence[Steppable]) -> None:
        self.systems = list(systems)

    def start(self, encoded: Sequence[Any]) -> EnsembleState:
        return EnsembleState([system.start(one) for system, one in zip(self.systems, encoded, strict=True)])

    def step(self, words: Tensor, state: EnsembleState) -> tuple[Scores, EnsembleState]:
        values, states = [], []
        for system, own in zip(self.systems, state.states, strict=True):
            scores, own = system.step(words, own)
            values.append(scores.values if scores.normalised else torch.log_softmax(scores.values, dim=-1))
            states.append(own)
        mean = torch.logsumexp(torch.stack(values), dim=0) - math.log(len(values))
        return Scores(mean, True), EnsembleState(states)


@dataclass
class EnsembleState:
    states: list[Any]

    def select(self, sentences: Tensor | None, parents: Tensor) -> EnsembleState:
        return EnsembleState([state.select(sentences, parents) for state in self.states])
