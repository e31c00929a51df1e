"""What a mechanism is: the hook points it may use, what it sees there, and the state that it keeps.

A mechanism is one idea of one paper. It is a module with parameters, a position-wise pass, loss terms and a trace.
This file knows no backbone, no search and no particular mechanism: a backbone offers hook points, a mechanism names
those it uses, and `core_models.system` brings the two together.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn

from core_models.layers.deferred_linear import images
from core_models.text.documents import ContextUse

if TYPE_CHECKING:
    from core_models.text.batches import Batch
    from core_models.traces import TraceWriter


class HookPoint(enum.Enum):
    """Where in a backbone a mechanism may work. STACK_OUTPUT is before the stack's final norm; READOUT is before the
    decoder's final norm (or the tanh of a recurrent readout), OUTPUT after it: what the vocabulary head reads. Those of
    attention and TRANSITION, what the attended context adds to the gates of the unit after the attention, exist only in
    a decoder that steps through time (RNNSearch)."""

    ENCODER_LAYER_INPUT = enum.auto()
    ENCODER_SUBLAYER = enum.auto()
    ENCODER_STACK_OUTPUT = enum.auto()
    DECODER_LAYER_INPUT = enum.auto()
    DECODER_SUBLAYER = enum.auto()
    DECODER_STACK_OUTPUT = enum.auto()
    BEFORE_ATTENTION = enum.auto()
    ENERGY = enum.auto()
    TRANSITION = enum.auto()
    AFTER_ATTENTION = enum.auto()
    READOUT = enum.auto()
    OUTPUT = enum.auto()


@dataclass(frozen=True)
class BackboneSpec:
    """What a backbone lends to a mechanism when it is built, and nothing more.

    `widths` holds embedding, stream, memory, state, guide, readout, output; in a recurrent decoder, context, energy and
    transition.
    `source_embedding` and `target_embedding` map word numbers [...] to raw embeddings [..., width]: no scale, no
    position; they are functions, not modules, so that a mechanism cannot adopt the backbone's tables as its own
    parameters. `final_norm` says that a norm follows STACK_OUTPUT, `dropout` with which probability the backbone drops
    what it adds, `encoder_layer` makes a new layer like those of its encoder, if it has such.
    `output_matrix` gives the vocabulary head's matrix and bias, `tied` says that it embeds target words too; `summary`
    maps a memory [S, I, d] and its mask to the summary of the source that a recurrent decoder begins with, [S, d'].
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
    encoder_layer: Callable[[], nn.Module] | None = None
    output_matrix: Callable[[], tuple[Tensor, Tensor | None]] | None = None
    tied: bool = True
    summary: Callable[[Tensor, Tensor], Tensor] | None = None


class Notes(dict[str, Tensor]):
    """Named tensors of one pass; a missing name says which there are."""

    def __missing__(self, name: str) -> Tensor:
        raise KeyError(f"no tensor named {name!r} here; there are: {', '.join(self) or 'none'}")


@dataclass
class View:
    """What the backbone shows at N positions: the encoder's source positions, or T target positions when forced, one
    in a forced recurrence, K beams in the search. Reading a field that is not filled yet raises AttributeError."""

    side: Literal["encoder", "decoder"]
    _fields: dict[str, Any] = field(default_factory=dict)

    # layer: int · mask [S, N] (None when stepping) · words [S, N] that came in · embedded [S, N, d] · memory [S, I, d]
    # memory_mask [S, I] · layers (the embedding first, through the final norm when read) · previous (s_{t-1}) · query
    # weights · context
    # guide (un-normalised stack output, or [s; c]) · state (OUTPUT, had nothing stood on READOUT)
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
                f"the {self.side} shows no {name!r} here; it shows: {', '.join(fields) or 'nothing yet'}"
            )
        if callable(fields[name]):
            fields[name] = fields[name]()
        return fields[name]


class MechanismState:
    """The tensors of one mechanism in one pass, and its trace.

    sentence: what `read` and `prepare` gave, [S, ...]. before / after: what the position before left and what this one
    leaves, [S, N, ...]. notes: anything for `predictions` and `losses` of the same pass. attended: at TRANSITION and
    AFTER_ATTENTION the images [S, N, ...] of the attended context under the mechanism's `attended_maps`.
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
        """Leave `value` [S, N, ...] for the next position and return what the position before left.

        A forced pass shifts along the target axis and begins with what `start` gave; a step reads the stored tensor.
        """
        self.after[name] = value
        if not self._forced:
            return self.before[name]
        start = self.before[name].to(value.dtype)
        return torch.cat([start.expand(value.shape[0], 1, *value.shape[2:]), value[:, :-1]], dim=1)

    def wants(self, name: str) -> bool:
        """Does a trace want an array of this name?"""
        return self._trace is not None and self._trace.wants(f"{self._owner}.{name}")

    def record(
        self, name: str, axes: Sequence[str], value: Tensor | Callable[[], Tensor], sums_to_one: str | None = None
    ) -> None:
        """Write an array into the trace, if one wants it. `value` begins with the sentence axis, then `axes`."""
        if self._trace is not None and self.wants(name):
            self._trace.record(f"{self._owner}.{name}", axes, value() if callable(value) else value, sums_to_one)


@dataclass(frozen=True)
class Bag:
    """Which words are in a position's bag, and what its loss is.

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
class Prediction:
    """A prediction over the vocabulary at every target position, for the fused vocabulary head.

    vectors [S, T, d] are multiplied by `matrix` [V, d] (None: the output embedding); right at position t is y_t, or the
    bag of words before or after it. `mask` [S, T] leaves positions out, `weight` is what the term weighs in the loss.
    With `mixes` its probabilities, and those of all others that mix, are averaged into the system's own.
    """

    name: str
    vectors: Tensor
    matrix: Tensor | None = None
    bias: Tensor | None = None
    mask: Tensor | None = None
    weight: float = 1.0
    target: Literal["word", "past_bag", "future_bag"] = "word"
    bag: Bag = Bag()
    mixes: bool = False

    def head(self, matrix: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The matrix [V, d] and bias [V] it goes through: its own, or the output's that are given."""
        return (matrix, bias) if self.matrix is None else (self.matrix, self.bias)


class ContextStates(NamedTuple):
    """States of the sentences before, [S, K, C, d] with a mask [S, K, C], and of their translations if these are read;
    no gradient passes through."""

    memory: Tensor
    mask: Tensor
    outputs: Tensor | None = None
    outputs_mask: Tensor | None = None


class Options(BaseModel):
    """The options of a mechanism, validated: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Mechanism(nn.Module):
    """One idea of one paper: subclass, name the hook points, and write the passes that are needed.

    `Options` describes the configuration; `hook_points` may be narrowed in __init__ by options. Refused at build: a
    hook point the backbone lacks, and a mechanism that replaces the stream after another has changed it.
    """

    Options: ClassVar[type[Options]] = Options
    hook_points: Sequence[HookPoint] = ()
    replaces: Sequence[HookPoint] = ()
    context: ContextUse = ContextUse()  # what it reads of the sentences before
    mixes: bool = False  # its predictions enter the scores: asked for at every position, forced and stepping
    may_mix: bool = False  # whether they do is for a search to say too: SearchConfig.test_loss
    main_weight: float = 1.0  # of the translation's own cross-entropy in training
    reads_summary: bool = False  # of the source: else a decoder that begins with zeros leaves it out

    def __init__(self, spec: BackboneSpec, options: Any) -> None:
        super().__init__()
        self.options = options

    def read(self, batch: Batch, own: MechanismState) -> dict[str, Tensor]:
        """Before the encoder runs: tensors [S, ...] made of context or source words."""
        return {}

    @property
    def attended_maps(self) -> Sequence[nn.Linear]:
        """Linear maps of the attended context; worked out together with the backbone's: `MechanismState.attended`."""
        return ()

    def remember(self, states: ContextStates, own: MechanismState) -> dict[str, Tensor]:
        """Before the encoder runs, if `context.states`: tensors [S, ...] made of the states of the sentences before."""
        return {}

    def prepare(self, memory: Tensor, memory_mask: Tensor, own: MechanismState) -> dict[str, Tensor]:
        """After the encoder: plans over the memory [S, I, d], made once per sentence."""
        return {}

    def start(self, memory: Tensor, memory_mask: Tensor, own: MechanismState) -> dict[str, Tensor]:
        """What "the position before the first" left, [S, 1, ...]."""
        return {}

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own: MechanismState) -> Tensor:
        """The pass at a hook point: x [S, N, ...] in, x out. Position-wise; it never asks whether it is forced."""
        return x

    def predictions(self, view: View, own: MechanismState) -> list[Prediction]:
        """Predictions over the vocabulary: asked for in training, for traces, and always if the mechanism mixes."""
        return []

    def losses(self, view: View, own: MechanismState, batch: Batch) -> dict[str, Tensor]:
        """The other loss terms: weighted sums per sentence [S], float32 or better."""
        return {}

    def begin_from(self, spec: BackboneSpec, fresh: Collection[str]) -> None:
        """Another run's weights were copied into the system; `fresh` names this mechanism's parameters it had not."""


def refuse_unread(
    options: Options, read_with: Mapping[str, tuple[str, str]], usual: Mapping[str, Any] | None = None
) -> None:
    """Refuse options that nothing reads: each in `read_with` matters only where another has, or holds, a value.

    usual: values that options have by themselves, where these are not the defaults. Raises ValueError.
    """
    for option, (other, needed) in read_with.items():
        found = getattr(options, other)
        held = found if isinstance(found, tuple) else (found,)
        default = (usual or {}).get(option, type(options).model_fields[option].default)
        if needed not in held and getattr(options, option) != default:
            said = ", ".join(map(str, held)) or "none"
            raise ValueError(f"{option}: does nothing where {other} is {said}; leave it out, or give {needed} there")
