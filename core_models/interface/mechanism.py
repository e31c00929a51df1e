"""The interface of a mechanism: its hook points, the view it gets there, and its state.

A mechanism is one idea of one paper: a module with parameters, a position-wise pass, loss terms and a trace. A backbone
offers hook points, a mechanism names those it uses, and `core_models.system` connects the two.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from core_models.layers.deferred_linear import images
from core_models.settings import Section
from core_models.text.documents import ContextUse

if TYPE_CHECKING:
    from core_models.text.batches import Batch
    from core_models.traces import TraceWriter


class HookPoint(enum.Enum):
    """The places in a backbone at which a mechanism may change the stream, [S, N, d] but where another shape is said.

    Of a Transformer (TransformerLens's names in brackets), ENCODER_ and DECODER_ alike:

    - LAYER_INPUT: what a layer reads (resid_pre). SUBLAYER: after self-attention is added, before the attention to the
      memory or the feed-forward sublayer (resid_mid).
    - HEADS, DECODER_CROSS_HEADS: what an attention's heads found, [S, N, H, e], before its output map (z).
      DECODER_CROSS: what the attention to the memory found, before it is added (attn_out).
    - STACK_OUTPUT: after the last layer (resid_post), before the stack's final norm.

    Of a recurrent decoder (RNNSearch):

    - BEFORE_ATTENTION: the state that asks the attention. ENERGY: the attention's summed images before their tanh,
      [S, N, I, a]. TRANSITION: the attended context's term in the gates of the unit after the attention.
      AFTER_ATTENTION: that unit's state.

    Of both decoders:

    - READOUT: before the final norm, or the tanh of a recurrent readout. OUTPUT: after it, the input of the vocabulary
      head.
    """

    ENCODER_LAYER_INPUT = enum.auto()
    ENCODER_HEADS = enum.auto()
    ENCODER_SUBLAYER = enum.auto()
    ENCODER_STACK_OUTPUT = enum.auto()
    DECODER_LAYER_INPUT = enum.auto()
    DECODER_HEADS = enum.auto()
    DECODER_SUBLAYER = enum.auto()
    DECODER_CROSS_HEADS = enum.auto()
    DECODER_CROSS = enum.auto()
    DECODER_STACK_OUTPUT = enum.auto()
    BEFORE_ATTENTION = enum.auto()
    ENERGY = enum.auto()
    TRANSITION = enum.auto()
    AFTER_ATTENTION = enum.auto()
    READOUT = enum.auto()
    OUTPUT = enum.auto()


@dataclass(frozen=True)
class BackboneSpec:
    """The properties of a backbone that a mechanism may use when it is built.

    `widths` has the keys embedding, stream, memory, state, guide, readout, output; in a Transformer also head (e), in a
    recurrent decoder context, energy and transition.
    `source_embedding` and `target_embedding` map word numbers [...] to raw embeddings [..., width], without scale and
    position; they are functions, not modules, so that the backbone's tables do not become parameters of the mechanism.
    `final_norm`: a norm follows STACK_OUTPUT; `dropout`, `attention_dropout`: the backbone's dropout probabilities;
    `encoder_layer` builds a new layer like those of the encoder, if it has layers.
    `output_matrix` returns the vocabulary head's matrix and bias, `tied`: it also embeds target words; `summary` maps a
    memory [S, I, d] and its mask to the summary of the source that a recurrent decoder starts from, [S, d'].
    """

    hook_points: frozenset[HookPoint]
    layers: Mapping[Literal["encoder", "decoder"], int]
    heads: int
    widths: Mapping[str, int]
    source_embedding: Callable[[Tensor], Tensor]
    target_embedding: Callable[[Tensor], Tensor]
    vocabulary_size: int
    final_norm: bool = False
    dropout: float = 0.0
    attention_dropout: float = 0.0
    encoder_layer: Callable[[], nn.Module] | None = None
    output_matrix: Callable[[], tuple[Tensor, Tensor | None]] | None = None
    tied: bool = True
    summary: Callable[[Tensor, Tensor], Tensor] | None = None


class Notes(dict[str, Tensor]):
    """Named tensors of one pass; the KeyError of a missing name lists the known ones."""

    def __missing__(self, name: str) -> Tensor:
        raise KeyError(f"no tensor named {name!r}; there are: {', '.join(self) or 'none'}")


@dataclass
class View:
    """The tensors that a backbone shows to mechanisms at N positions.

    N is the encoder's source positions, the T target positions of a forced pass, 1 in a forced recurrence, or the K
    beams of a search. Reading a field that is not filled yet raises AttributeError. The fields:

    - layer: the layer's number; layers: the inputs of all layers so far, the embedding first, through the final norm
      when read
    - mask [S, N] (None when stepping); words [S, N], the inputs; embedded [S, N, d]
    - memory [S, I, d]; memory_mask [S, I]
    - previous: s_{t-1}; query: the state that asks the attention, at DECODER_CROSS what it was asked with
    - weights [S, N, I] and context [S, N, d] of a recurrent decoder's attention
    - guide: stack output before its norm, or [s; c]; state: OUTPUT as if no mechanism were at READOUT
    - output: what the vocabulary head reads, for predictions
    """

    side: Literal["encoder", "decoder"]
    _fields: dict[str, Any] = field(default_factory=dict)

    def show(self, **fields: Any) -> View:
        """Fill fields; a zero-argument function is called when the field is first read."""
        self._fields.update(fields)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        fields = self.__dict__.get("_fields", {})
        if name not in fields:
            raise AttributeError(
                f"the {self.side} has no {name!r} at this hook point; it has: {', '.join(fields) or 'no field yet'}"
            )
        if callable(fields[name]):
            fields[name] = fields[name]()
        return fields[name]


class MechanismState:
    """The tensors of one mechanism in one pass, and its trace.

    sentence: the results of `read`, `remember` and `prepare`, [S, ...]. before, after: the state left by the previous
    position and by this one, [S, N, ...]. notes: tensors for `predictions` and `losses` of the same pass. attended: at
    TRANSITION and AFTER_ATTENTION the images [S, N, ...] of the attended context under the mechanism's `attended_maps`.
    linear(maps, x): the images of x under linear maps; in a forced recurrence one product (`layers.deferred_linear`).
    """

    def __init__(
        self,
        sentence: Mapping[str, Tensor],
        before: Mapping[str, Tensor],
        forced: bool,
        trace: TraceWriter | None = None,
        owner: str = "",
    ) -> None:
        self.sentence = Notes(sentence)
        self.before = Notes(before)
        self.after = Notes()
        self.notes = Notes()
        self.attended: tuple[Tensor, ...] = ()
        self.linear: Callable[[Sequence[nn.Linear], Tensor], tuple[Tensor, ...]] = images
        self._forced, self._trace, self._owner = forced, trace, owner

    def shift(self, name: str, value: Tensor) -> Tensor:
        """Store `value` [S, N, ...] for the next position and return the value of the previous position.

        A forced pass shifts along the target axis, beginning with the result of `start`; a step reads the stored
        tensor.
        """
        self.after[name] = value
        if not self._forced:
            return self.before[name]
        start = self.before[name].to(value.dtype)
        return torch.cat([start.expand(value.shape[0], 1, *value.shape[2:]), value[:, :-1]], dim=1)

    def wants(self, name: str) -> bool:
        """True if the trace records an array of this name."""
        return self._trace is not None and self._trace.wants(f"{self._owner}.{name}")

    def record(
        self, name: str, axes: Sequence[str], value: Tensor | Callable[[], Tensor], sums_to_one: str | None = None
    ) -> None:
        """Write an array into the trace if it records it. `value` has the sentence axis first, then `axes`."""
        if self._trace is not None and self.wants(name):
            self._trace.record(f"{self._owner}.{name}", axes, value() if callable(value) else value, sums_to_one)


@dataclass(frozen=True)
class Bag:
    """The words in the bag of a position, and its loss.

    span: `inclusive` y_<=t is past and y_>=t future, `strict` y_<t and y_>t, `analysis` y_<=t and y_>t. With `begins`
    the strict past has BOS before y_1. The loss is the mean over the bag, or its sum, and the mean over all positions
    whose bag is not empty. `label_smoothing` gives every other word but PAD eps / (V - 2), as in the code that
    Zheng 2019 released; `without_pad` leaves PAD out of the softmax.
    """

    span: Literal["inclusive", "strict", "analysis"] = "inclusive"
    mean: bool = True
    begins: bool = False
    label_smoothing: float = 0.0
    without_pad: bool = False


@dataclass(frozen=True)
class WordPrior:
    """A distribution q(v | y) over words, given the correct word y; its loss is KL(q || P) in nats.

    q is `floor` for every word from number `first` on, and `shares[r]` [k] more for the r-th of the words near y; below
    `first` it is 0. `nearest` maps words [P] to those near them [P, k], the word itself first; a row of -1 is a word
    without a distribution, and so without a loss. entropy: of q, in nats, the same for all words.
    """

    nearest: Callable[[Tensor], Tensor]
    shares: Tensor
    floor: float
    entropy: float
    first: int


@dataclass(frozen=True)
class Prediction:
    """A prediction over the vocabulary at every target position, for the fused vocabulary head.

    vectors [S, T, d] are multiplied by `matrix` [V, d] (None: the output embedding); the target at position t is y_t,
    the bag of words before or after it, or the distribution `prior` gives for y_t. `mask` [S, T] leaves positions out,
    `weight` is the weight of the loss term. With `mixes`, its probabilities and those of all others that mix are
    averaged with the system's.
    """

    name: str
    vectors: Tensor
    matrix: Tensor | None = None
    bias: Tensor | None = None
    mask: Tensor | None = None
    weight: float = 1.0
    target: Literal["word", "past_bag", "future_bag", "prior"] = "word"
    bag: Bag = Bag()
    prior: WordPrior | None = None
    mixes: bool = False

    def head(self, matrix: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The matrix [V, d] and bias [V] of this prediction, or the given ones of the output."""
        return (matrix, bias) if self.matrix is None else (self.matrix, self.bias)


class ContextStates(NamedTuple):
    """States of context sentences [S, K, C, d] with mask [S, K, C], and of their translations if these are read.

    No gradient passes through.
    """

    memory: Tensor
    mask: Tensor
    outputs: Tensor | None = None
    outputs_mask: Tensor | None = None


class Options(Section):
    """The options of a mechanism, validated: unknown keys are rejected."""


class Mechanism(nn.Module):
    """Base class of mechanisms: subclass, name the hook points, and write the methods that are needed.

    `Options` describes the configuration; `hook_points` may be narrowed in __init__ by options. Building a
    system fails if the backbone lacks a hook point, or if a mechanism replaces a stream that another has changed. An
    attention of `replaced_maps` has no output map: what the mechanism returns is joined, [S, N, H, e] -> [S, N, H e].
    """

    Options: ClassVar[type[Options]] = Options
    hook_points: Sequence[HookPoint] = ()
    replaces: Sequence[HookPoint] = ()
    replaced_maps: Collection[tuple[HookPoint, int]] = ()  # HEADS and layer of attentions whose output map it replaces
    context: ContextUse = ContextUse()  # the context sentences it reads
    mixes: bool = False  # its predictions enter the scores, at every position, forced and stepping
    may_mix: bool = False  # SearchConfig.test_loss may switch `mixes` on or off
    main_weight: float = 1.0  # of the translation's cross-entropy in training
    reads_summary: bool = False  # of the source; otherwise a decoder that starts from zeros has no summary

    def __init__(self, spec: BackboneSpec, options: Any) -> None:
        super().__init__()
        self.options = options

    def read(self, batch: Batch, own_state: MechanismState) -> dict[str, Tensor]:
        """Called before the encoder: tensors [S, ...] computed from context or source words."""
        return {}

    @property
    def attended_maps(self) -> Sequence[nn.Linear]:
        """Linear maps of the attended context, applied together with the backbone's: `MechanismState.attended`."""
        return ()

    def remember(self, states: ContextStates, own_state: MechanismState) -> dict[str, Tensor]:
        """Called before the encoder if `context.states`: tensors [S, ...] computed from states of context sentences."""
        return {}

    def prepare(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """Called after the encoder, once per sentence: tensors [S, ...] computed from the memory [S, I, d]."""
        return {}

    def start(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """The initial state, as if left by a position before the first, [S, 1, ...]."""
        return {}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        """The pass at a hook point: x [S, N, ...] in, x out; position-wise, the same when forced and stepping."""
        return x

    def predictions(self, view: View, own_state: MechanismState) -> list[Prediction]:
        """Predictions over the vocabulary: called in training, for traces, and always if the mechanism mixes."""
        return []

    def losses(self, view: View, own_state: MechanismState, batch: Batch) -> dict[str, Tensor]:
        """Further loss terms: weighted sums per sentence [S], float32 or better."""
        return {}

    def begin_training(self) -> None:
        """Called before the first step of each call of a training, with the weights that it begins or goes on with."""

    def begin_from(self, spec: BackboneSpec, fresh: Collection[str]) -> None:
        """Called after weights of another run were copied; `fresh`: this mechanism's parameters without a match."""


def reject_unused_options(
    options: Options, requires: Mapping[str, tuple[str, str]], defaults: Mapping[str, Any] | None = None
) -> None:
    """Raise ValueError for an option that was set but has no effect.

    requires: option -> (other option, value): the option is read only if the other has, or contains, the value.
    defaults: values that replace the declared defaults of some options.
    """
    for option, (other, needed) in requires.items():
        value = getattr(options, other)
        values = value if isinstance(value, tuple) else (value,)
        default = (defaults or {}).get(option, type(options).model_fields[option].default)
        if needed not in values and getattr(options, option) != default:
            current = ", ".join(map(str, values)) or "none"
            raise ValueError(
                f"{option}: does nothing while {other} is {current}; leave it out, or set {other} to {needed}"
            )
