"""A system: a backbone and its mechanisms behind one contract for training, scoring and search.

    encode(batch) -> Encoded · forward(encoded, words, mask) -> Forced · losses(forced, batch) -> {term: [S]}
    start(encoded) -> State · step(words, state) -> (scores, State)

Mechanisms are used through their interface only.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from core_models.config import ModelConfig, TestLoss
from core_models.context_states import context_states
from core_models.interface.mechanism import Mechanism, Prediction, View
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes, Scores, mixture
from core_models.layers.vocabulary_head import log_partition, logits, word_logits
from core_models.losses.prediction_losses import prediction_losses
from core_models.settings import ConfigError
from core_models.text.batches import Batch, Context, WordOrder
from core_models.text.documents import ContextUse
from core_models.traces import TraceWriter

BACKBONE = "backbone"
Tensors = dict[str, dict[str, Tensor]]  # owner -> name -> tensor


@dataclass
class Encoded:
    """Encoded sentences: tensors [S, ...] by owner; `mask` [S, I] of real source positions."""

    sentence: Tensors
    mask: Tensor

    def select(self, rows: Tensor) -> Encoded:
        """The sentences of these rows [S'], in this order; rows may repeat."""
        return Encoded(_rows(self.sentence, rows), self.mask.index_select(0, rows))


def _rows(tensors: Tensors, rows: Tensor) -> Tensors:
    return {
        owner: {name: tensor.index_select(0, rows) for name, tensor in named.items()}
        for owner, named in tensors.items()
    }


@dataclass
class Forced:
    """The result of a forced pass: `main`, the input of the vocabulary head [S, T, d], and mechanisms' predictions."""

    main: Prediction
    words: Tensor
    view: View
    active: ActiveMechanisms
    predictions: list[Prediction]


@dataclass
class State:
    """The state of a search: sentence tensors [S, ...] and hypothesis tensors [S, K, ...], by owner and name."""

    position: int
    mask: Tensor
    sentence: Tensors
    hypothesis: Tensors = field(default_factory=dict)

    def select(self, sentences: Tensor | None, parents: Tensor) -> State:
        """Keep and reorder: new row r is old sentence sentences[r] (None: all stay), its beams old beams parents[r].

        sentences [S'], parents [S', K'] -> a state with new hypothesis tensors [S', K', ...]: one gather each.
        """
        beams = next(iter(next(iter(self.hypothesis.values())).values())).shape[1]
        rows = torch.arange(len(parents), device=parents.device) if sentences is None else sentences
        flat = (rows[:, None] * beams + parents).flatten()

        def gather(tensor: Tensor) -> Tensor:
            return tensor.flatten(0, 1).index_select(0, flat).view(*parents.shape, *tensor.shape[2:])

        hypothesis = {
            owner: {name: gather(tensor) for name, tensor in named.items()} for owner, named in self.hypothesis.items()
        }
        if sentences is None:
            return State(self.position, self.mask, self.sentence, hypothesis)
        sentence = _rows(self.sentence, sentences)
        return State(self.position, self.mask.index_select(0, sentences), sentence, hypothesis)


def mixed_distributions(energies: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of softmax distributions over the vocabulary, given their logits [..., V].

    Cheaper than `mixture` for a whole vocabulary; probabilities are clamped to the smallest positive number.
    """
    total = torch.softmax(energies[0], dim=-1)
    for energy in energies[1:]:
        total = total + torch.softmax(energy, dim=-1)
    return (total / len(energies)).clamp(min=torch.finfo(total.dtype).tiny).log()


class System(nn.Module):
    """One translation system. `mechanisms` are in the order of the configuration, named by their kind."""

    def __init__(self, config: ModelConfig, backbone: nn.Module, mechanisms: Mapping[str, Mechanism]) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.mechanisms = nn.ModuleDict(mechanisms)
        self.search_head: nn.Module | None = None  # replaces the vocabulary head, in steps only
        self.context = _context_of(mechanisms)
        if config.decoder_init == "zero" and not any(mechanism.reads_summary for mechanism in mechanisms.values()):
            backbone.first_state = None  # unused: it would be counted and never trained
        for mechanism in mechanisms.values():
            for hook_point, layer in mechanism.replaced_maps:
                backbone.leave_out_map(hook_point, layer)

    @property
    def named_mechanisms(self) -> dict[str, Mechanism]:
        return dict(self.mechanisms.items())  # type: ignore[arg-type]

    @property
    def _stand_ins(self) -> dict[str, Mechanism]:
        """Mechanisms that replace a part of the backbone, wherever it runs: also on context sentences alone."""
        return {name: mechanism for name, mechanism in self.named_mechanisms.items() if mechanism.replaced_maps}

    def with_test_loss(self, test_loss: TestLoss) -> System:
        """A view of this system, sharing its weights, with `SearchConfig.test_loss` applied.

        Raises ConfigError if it has no losses whose distributions could be left out or averaged in.
        """
        if test_loss == "as_built":
            return self
        mechanisms = {name: copy.copy(mechanism) for name, mechanism in self.named_mechanisms.items()}
        mixing = [mechanism for mechanism in mechanisms.values() if mechanism.may_mix]
        if not mixing:
            raise ConfigError(
                f"test_loss {test_loss}: this system has no losses of PAST or FUTURE layers that could take part in a "
                "search, or not; leave test_loss out, or take a system such as pfrnn-loss"
            )
        for mechanism in mixing:
            mechanism.mixes = test_loss != "none"
        system = System(self.config, self.backbone, mechanisms)
        system.search_head, system.training = self.search_head, self.training
        return system

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def logit_cap(self) -> float | None:
        """What the logits of the vocabulary head are softly capped at; None for all systems built here."""
        return getattr(self.backbone, "logit_cap", None)

    def encode(self, batch: Batch, trace: TraceWriter | None = None) -> Encoded:
        """Encode the source (and context) of a batch: everything that is computed once per sentence."""
        active = ActiveMechanisms(self.named_mechanisms, {}, {}, forced=True, trace=trace)
        batch = self._with_context(batch, active)
        for name, mechanism in self.named_mechanisms.items():
            active.states[name].sentence.update(mechanism.read(batch, active.states[name]))
        if self.context.states and batch.context is not None:
            states = context_states(self.backbone, batch.context, self.context.outputs, self._stand_ins)
            for name, mechanism in self.named_mechanisms.items():
                active.states[name].sentence.update(mechanism.remember(states, active.states[name]))
        memory = self.backbone.encode(batch.source, batch.source_mask, active)
        for name, mechanism in self.named_mechanisms.items():
            active.states[name].sentence.update(mechanism.prepare(memory, batch.source_mask, active.states[name]))
        sentence: Tensors = {name: dict(state.sentence) for name, state in active.states.items()}
        sentence[BACKBONE] = self.backbone.prepare(memory, batch.source_mask)
        return Encoded(sentence, batch.source_mask)

    def _with_context(self, batch: Batch, active: ActiveMechanisms) -> Batch:
        """The batch with exactly the context that is read, or none; records the context's words in a trace."""
        use = self.context
        if not use.sentences or use.joined:
            return batch if batch.context is None else replace(batch, context=None)
        batch_context = batch.context
        context = Context.none(batch, use.entries) if batch_context is None else batch_context.reaching(use.entries)
        _record_words(active, "context", context.words, context.mask, use.after)
        if use.outputs and context.outputs is not None and context.outputs_mask is not None:
            _record_words(active, "context_output", context.outputs, context.outputs_mask)
        return replace(batch, context=context)

    def _first(self, encoded: Encoded) -> Tensors:
        """The initial state of every mechanism, [S, 1, ...]."""
        memory = encoded.sentence[BACKBONE]["memory"]
        active = ActiveMechanisms(self.named_mechanisms, encoded.sentence, {}, forced=True)
        return {
            name: mechanism.start(memory, encoded.mask, active.states[name])
            for name, mechanism in self.named_mechanisms.items()
        }

    def forward(self, encoded: Encoded, words: Tensor, mask: Tensor, trace: TraceWriter | None = None) -> Forced:
        """Force the input words [S, T] (BOS first), mask [S, T] of real positions."""
        active = ActiveMechanisms(
            self.named_mechanisms, encoded.sentence, self._first(encoded), forced=True, trace=trace
        )
        output, view = self.backbone.force(words, mask, encoded.sentence[BACKBONE], encoded.mask, active)
        predictions = self._predictions(view.show(output=output), active, every=self.training or trace is not None)
        weight = (
            math.prod(mechanism.main_weight for mechanism in self.named_mechanisms.values()) if self.training else 1.0
        )
        return Forced(Prediction("main", output, weight=weight), words, view, active, predictions)

    def _predictions(self, view: View, active: ActiveMechanisms, every: bool) -> list[Prediction]:
        """The predictions of mechanisms: all (`every`), or only those that mix into the scores."""
        predictions = (
            prediction
            for name, mechanism in self.named_mechanisms.items()
            if every or mechanism.mixes
            for prediction in mechanism.predictions(view, active.states[name])
        )
        return [prediction for prediction in predictions if every or prediction.mixes]

    def losses(
        self, forced: Forced, batch: Batch, label_smoothing: float = 0.0, summed: bool = False
    ) -> dict[str, Tensor]:
        """Weighted sums per sentence [S] of every loss term; `main` is the translation's cross-entropy, in nats.

        summed: give the sum of all sentences, a scalar, where that is less work.
        """
        matrix, bias = self.backbone.output_matrix
        predictions = [forced.main, *forced.predictions]
        terms = prediction_losses(
            predictions,
            matrix,
            bias,
            batch.target,
            batch.target_mask,
            label_smoothing,
            tokens=batch.target_tokens,
            fixed_shapes=batch.sentences is not None,
            summed=summed,
        )
        losses = {prediction.name: prediction.weight * terms[prediction.name] for prediction in predictions}
        for name, mechanism in self.named_mechanisms.items():
            losses.update(mechanism.losses(forced.view, forced.active.states[name], batch))
        return losses

    def token_log_probs(self, forced: Forced, target: Tensor) -> dict[str, Tensor]:
        """Log-probabilities of the words [S, T], in nats, by the system (`main`) and by each prediction of words.

        If predictions mix, `decoder` is the vocabulary head without the mixture.
        """
        matrix, bias = self.backbone.output_matrix
        values: dict[str, Tensor] = {}
        for prediction in [forced.main, *(p for p in forced.predictions if p.target == "word")]:
            head, head_bias = prediction.head(matrix, bias)
            vectors, cap = prediction.vectors.flatten(0, 1), self.logit_cap if prediction.matrix is None else None
            target_logits = word_logits(vectors, head, target.flatten(), head_bias, cap)
            values[prediction.name] = (target_logits - log_partition(vectors, head, head_bias, cap)).view(target.shape)
        if mixing := [values[prediction.name] for prediction in forced.predictions if prediction.mixes]:
            values["decoder"] = values["main"]
            values["main"] = mixture([values["main"], *mixing])
        return values

    def scores(self, forced: Forced) -> Scores:
        """Scores [S, T, V] at every position of a forced pass: logits, or log-probabilities if predictions mix."""
        return self._mixed(self._logits(forced.main.vectors), forced.predictions)

    def _logits(self, vectors: Tensor) -> Tensor:
        matrix, bias = self.backbone.output_matrix
        return logits(vectors, matrix, bias, self.logit_cap)

    def _mixed(self, values: Tensor, predictions: Sequence[Prediction]) -> Scores:
        """The head's logits [S, N, V] unchanged, or the mean of all distributions that mix."""
        mixing = [
            logits(prediction.vectors, *prediction.head(*self.backbone.output_matrix))
            for prediction in predictions
            if prediction.mixes
        ]
        if not mixing:
            return Scores(values, False)
        return Scores(mixed_distributions([values, *mixing]), True)

    def start(self, encoded: Encoded, fixed: FixedShapes | None = None) -> State:
        """The initial state of a search: one empty hypothesis per sentence, with fixed shapes as many as beams.

        Raises ConfigError if the backbone has no steps of fixed shapes.
        """
        active = ActiveMechanisms(self.named_mechanisms, encoded.sentence, {}, forced=False)
        room, first_states = self.backbone.start(encoded.sentence[BACKBONE], active, fixed)
        hypothesis = {BACKBONE: first_states}
        first = self._first(encoded)
        hypothesis.update(
            {name: {key: value.contiguous() for key, value in named.items()} for name, named in first.items() if named}
        )
        sentence = {**encoded.sentence, BACKBONE: {**encoded.sentence[BACKBONE], **room}}
        state = State(0, encoded.mask, sentence, hypothesis)
        if fixed is None:
            return state
        return state.select(None, encoded.mask.new_zeros(len(encoded.mask), fixed.beams, dtype=torch.long))

    def step(self, words: Tensor, state: State) -> tuple[Scores, State]:
        """Extend every hypothesis by its last word: words [S, K] -> logits [S, K, V] of the next, and the new state.

        Do not use the old state again: a backbone may have written into its tensors.
        """
        active = ActiveMechanisms(self.named_mechanisms, state.sentence, state.hypothesis, forced=False)
        output, stepped, view = self.backbone.step(
            words, state.position, state.sentence[BACKBONE], state.hypothesis[BACKBONE], state.mask, active
        )
        hypothesis = {BACKBONE: stepped}
        hypothesis.update(
            {
                name: dict(mechanism_state.after)
                for name, mechanism_state in active.states.items()
                if mechanism_state.after
            }
        )
        head = self.search_head
        values = self._logits(output) if head is None else head(output)
        scores = self._mixed(values, self._predictions(view, active, every=False))
        return scores, State(state.position + 1, state.mask, state.sentence, hypothesis)


def _record_words(active: ActiveMechanisms, name: str, words: Tensor, mask: Tensor, after: int = 0) -> None:
    """Record the words of a grid [S, K, C] in order, and the distance of each word's sentence."""
    if active.wants(f"{name}.words") or active.wants(f"{name}.distance"):
        order = WordOrder.of(mask, after)
        active.record(f"{name}.words", (name,), order.gather(words))
        active.record(f"{name}.distance", (name,), order.distance)


def _context_of(mechanisms: Mapping[str, Mechanism]) -> ContextUse:
    """The joint context use of all mechanisms; raises ConfigError if they disagree."""
    uses = {name: mechanism.context for name, mechanism in mechanisms.items() if mechanism.context.sentences}
    if len({use.sentences for use in uses.values()}) > 1:
        reaches = ", ".join(f"{name} {use.sentences}" for name, use in uses.items())
        raise ConfigError(f"mechanisms read unlike numbers of sentences before ({reaches}); give context_sentences")
    try:
        return ContextUse.of_all(uses.values())
    except ValueError as error:
        raise ConfigError(f"{' and '.join(uses)}: {error}; leave one of them out") from None
