"""Dynamic PAST and FUTURE (Zheng 2019): translated and untranslated source contents at every target position.

The decoding state z_t guides the separation of the source words (`guided_contents`); the vocabulary head reads, through
its norm, o_t = z_t + FFN([z_t; PAST; FUTURE]) (section 3.2). Two auxiliary losses supervise the contents: the bags of
past and future words (L_BoW), and agreement with the mean past and future decoding states (L_BCA, section 3.3). No
position depends on an earlier one, so a decoding step needs no state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from core_models.interface.mechanism import (
    BackboneSpec,
    Bag,
    HookPoint,
    Mechanism,
    MechanismState,
    Options,
    Prediction,
    View,
    reject_unused_options,
)
from core_models.layers.dropout import Dropout
from core_models.losses.bag_of_words import Side, content_agreement, running_means
from core_models.mechanisms.guided_contents import (
    AttentionContents,
    CapsuleContents,
    ClassifierContents,
    GuidedContents,
    UniformContents,
)
from core_models.routing.guided import GuidedRoutingOptions

if TYPE_CHECKING:
    from core_models.text.batches import Batch

SIDES: tuple[Side, ...] = ("past", "future")
# Options of the released code where it differs from the paper (A2, A3, A5 to A8); each can be overridden.
RELEASED: Mapping[str, Any] = {
    "agreement": "bounded",
    "initialisation": "released",
    "bag": "strict",
    "bag_begins": True,
    "bag_head": "tanh",
    "bag_smoothing": 0.1,
    "bca_direction": "from_contents",
    "bca_target": "output",
    "bca_span": "strict_past",
    "bca_reduce": "mean",
}

# Options that are read only if another option has, or contains, this value.
REQUIRES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("iterations", "agreement", "detach"), ("routing", "guided")),
    "attention_squash": ("routing", "attention"),
    "hidden": ("combination", "feed_forward"),
    **dict.fromkeys(("lambda_1", "bag", "bag_begins", "bag_loss", "bag_smoothing", "bag_head"), ("losses", "bow")),
    **dict.fromkeys(("lambda_2", "bca_direction", "bca_target", "bca_span", "bca_reduce"), ("losses", "bca")),
    "bca_detach_target": ("losses", "bca"),
}


class GuidedCapsulesOptions(Options):
    variant: Literal["literal", "released"] = Field("literal", description="the text, or the code released with it")
    routing: Literal["guided", "classifier", "attention"] = Field("guided", description="GDR, CLF or ATTN")
    capsules: int = Field(4, ge=0, description="J, of PAST and FUTURE together")
    capsule_width: int | None = Field(None, gt=0, description="d_c; in the base model 256, released 60, else to scale")
    redundant: bool | None = Field(None, description="half as many capsules again for neither; guided routing has them")
    iterations: int = Field(3, gt=0)
    agreement: Literal["paper", "bounded"] = Field("paper", description="Eq. 7, or tanh(Eq. 7) / sqrt(d_c)")
    detach: bool = Field(False, description="gradients go through the last iteration only")
    attention_squash: bool = Field(
        True, description="squash what ATTN gathers; else L_BCA begins with gradients 20 times the Transformer's"
    )
    combination: Literal["feed_forward", "gate", "linear"] = Field(
        "feed_forward", description="linear: one more term of a readout that is a sum, as in a recurrent decoder"
    )
    hidden: int | None = Field(
        None, gt=0, description="of the feed-forward combination; four times the decoder's width"
    )
    initialisation: Literal["xavier", "released"] = Field(
        "xavier", description="released draws so near zero that the routing stays uniform for very long"
    )
    losses: tuple[Literal["bow", "bca"], ...] = ()
    lambda_1: float = Field(1.0, ge=0, description="weight of the bags of words")
    lambda_2: float = Field(1.0, ge=0, description="weight of the content agreement")
    bag: Literal["inclusive", "strict", "analysis"] = Field(
        "inclusive", description="inclusive: y_t is in both bags; strict: in neither; analysis: in that of PAST (A5)"
    )
    bag_begins: bool = Field(False, description="BOS is a past word of the strict bag")
    bag_loss: Literal["mean", "sum"] = Field("mean", description="over the words of a bag (A6)")
    bag_smoothing: float = Field(0.0, ge=0, lt=1)
    bag_head: Literal["linear", "tanh"] = Field(
        "linear", description="tanh has a bias, and PAD out of the softmax (A7)"
    )
    bca_direction: Literal["to_contents", "from_contents"] = Field("to_contents", description="what W_BCA maps (A8)")
    bca_target: Literal["state", "normed", "output"] = Field(
        "state", description="means of z, of z through the decoder's norm, or of what the head reads"
    )
    bca_span: Literal["inclusive", "strict_past"] = "inclusive"
    bca_reduce: Literal["sum", "mean"] = Field("sum", description="squares over the width")
    bca_detach_target: bool = False

    @model_validator(mode="before")
    @classmethod
    def _as_released(cls, values: Any) -> Any:
        released = isinstance(values, Mapping) and values.get("variant") == "released"
        return {**RELEASED, **values} if released else values

    @field_validator("losses", mode="before")
    @classmethod
    def _one_loss(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _possible(self) -> GuidedCapsulesOptions:
        if self.capsules < 2:
            why = (
                "a bag of words is predicted from capsules" if "bow" in self.losses else "PAST and FUTURE are capsules"
            )
            raise ValueError(f"capsules: {self.capsules}, but {why}; give at least 2")
        if self.capsules % 2:
            raise ValueError(f"capsules: {self.capsules} cannot be halved into PAST and FUTURE; give an even number")
        if self.redundant is not None and self.routing != "guided":
            raise ValueError(
                f"redundant: capsules that take what is neither PAST nor FUTURE belong to guided routing, not to the "
                f"{self.routing}; leave the option out"
            )
        defaults = RELEASED if self.variant == "released" else None
        reject_unused_options(self, REQUIRES, defaults)
        if self.iterations == 1:
            reject_unused_options(self, dict.fromkeys(("agreement", "detach"), ("iterations", "2")), defaults)
        return self


class GuidedCapsules(Mechanism):
    """GDR and its baselines CLF and ATTN, on any backbone with a readout."""

    Options = GuidedCapsulesOptions
    options: GuidedCapsulesOptions
    hook_points: Sequence[HookPoint] = (HookPoint.READOUT,)

    def __init__(self, spec: BackboneSpec, options: GuidedCapsulesOptions) -> None:
        super().__init__(spec, options)
        if options.bca_target == "output":
            self.hook_points = (HookPoint.READOUT, HookPoint.OUTPUT)
        guide, memory, stream = (spec.widths[name] for name in ("guide", "memory", "stream"))
        width = options.capsule_width or (round(60 * stream / 512) if options.variant == "released" else stream // 2)
        content = options.capsules // 2 * width
        guided = options.routing != "guided" or options.iterations > 1
        self.query_norm = nn.LayerNorm(guide) if guided else nn.Identity()
        self.contents = self._contents(memory, guide, width, content)
        self.contents.initialize(options.initialisation == "released")
        parts, hidden = guide + 2 * content, options.hidden or 4 * stream
        readout = spec.widths["readout"]
        self.combine: nn.Module
        if options.combination == "feed_forward":
            self.combine = FeedForward(parts, hidden, readout, spec.dropout)
        else:
            self.combine = Gate(parts, readout) if options.combination == "gate" else Term(parts - guide, readout)
        self.drop = Dropout(spec.dropout)
        lacks_norm = HookPoint.DECODER_STACK_OUTPUT in spec.hook_points and not spec.final_norm
        self.norm = nn.LayerNorm(spec.widths["readout"]) if lacks_norm else nn.Identity()
        self._loss_maps(spec, content)

    def _contents(
        self, memory: int, guide: int, width: int, content: int
    ) -> CapsuleContents | ClassifierContents | AttentionContents:
        options = self.options
        if options.routing == "classifier":
            return ClassifierContents(memory, guide, width, content)
        if options.routing == "attention":
            return AttentionContents(memory, guide, width, content, options.attention_squash)
        redundant = options.redundant is not False
        if options.iterations == 1:
            return UniformContents(memory, options.capsules, width, redundant)
        how = GuidedRoutingOptions(iterations=options.iterations, agreement=options.agreement, detach=options.detach)
        return GuidedContents(memory, guide, options.capsules, width, redundant, how)

    def _loss_maps(self, spec: BackboneSpec, content: int) -> None:
        """Build the maps used by the losses only: capsules to word vectors, and means to capsules or the reverse."""
        options = self.options
        self.bag_heads, self.agree = nn.ModuleDict(), nn.ModuleDict()
        if "bow" in options.losses:
            biased = options.bag_head == "tanh"
            self.bag_heads.update({s: nn.Linear(content, spec.widths["output"], bias=biased) for s in SIDES})
        if "bca" in options.losses:
            states = spec.widths[{"state": "guide", "normed": "state", "output": "output"}[options.bca_target]]
            shape = (states, content) if options.bca_direction == "to_contents" else (content, states)
            self.agree.update({s: nn.Linear(*shape, bias=False) for s in SIDES})
        for linear in self.bag_heads.values():
            nn.init.xavier_uniform_(linear.weight)
        for linear in self.agree.values():
            # Images of normed states start as long as a capsule, whose length is below one.
            nn.init.normal_(linear.weight, std=linear.weight.numel() ** -0.5)

    def prepare(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        return self.contents.plan(memory, memory_mask)

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        if hook_point is HookPoint.OUTPUT:
            own_state.notes["output"] = x
            return x
        past, future = self.contents(self.query_norm(view.guide), view.memory_mask, own_state)
        own_state.notes["past"], own_state.notes["future"] = past, future
        own_state.record(
            "content_lengths", ("target", "group"), lambda: torch.stack([past.norm(dim=-1), future.norm(dim=-1)], -1)
        )
        parts = torch.cat([view.guide, past.to(x.dtype), future.to(x.dtype)], dim=-1)
        return self.norm(x + self.drop(self.combine(parts)))

    def predictions(self, view: View, own_state: MechanismState) -> list[Prediction]:
        """Predictions of the past and future bags of words at every position."""
        options = self.options
        tanh = options.bag_head == "tanh"
        bag = Bag(options.bag, options.bag_loss == "mean", options.bag_begins, options.bag_smoothing, tanh)
        vectors_of = {side: head(own_state.notes[side].to(head.weight.dtype)) for side, head in self.bag_heads.items()}
        return [
            Prediction(
                f"{side}_bag",
                torch.tanh(vectors) if tanh else vectors,
                weight=options.lambda_1,
                target="past_bag" if side == "past" else "future_bag",
                bag=bag,
            )
            for side, vectors in vectors_of.items()
        ]

    def losses(self, view: View, own_state: MechanismState, batch: Batch) -> dict[str, Tensor]:
        """Squared distance of contents and mean states, averaged over positions."""
        options, terms = self.options, {}
        if not self.agree:
            return {}
        states = self._targets(view, own_state)
        for side in SIDES:
            inclusive = side == "future" or options.bca_span == "inclusive"
            means = running_means(states, batch.target_mask, side, inclusive)
            contents, agree = own_state.notes[side], self.agree[side]
            mapped = (contents, agree(means)) if options.bca_direction == "to_contents" else (agree(contents), means)
            distance = content_agreement(*mapped, batch.target_mask, options.bca_reduce == "mean")
            terms[f"{side}_agreement"] = options.lambda_2 * distance
        return terms

    def _targets(self, view: View, own_state: MechanismState) -> Tensor:
        """The decoding states whose means the contents should agree with, [S, T, d]."""
        kind = self.options.bca_target
        states = own_state.notes["output"] if kind == "output" else view.state if kind == "normed" else view.guide
        return states.detach() if self.options.bca_detach_target else states


class FeedForward(nn.Module):
    """Feed-forward combination W_2 drop(relu(W_1 norm([z; PAST; FUTURE])))."""

    def __init__(self, parts: int, hidden: int, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(parts)
        self.expand, self.contract = nn.Linear(parts, hidden), nn.Linear(hidden, width)
        self.drop = Dropout(dropout)
        for linear in (self.expand, self.contract):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, parts: Tensor) -> Tensor:
        return self.contract(self.drop(torch.relu(self.expand(self.norm(parts)))))


class Gate(nn.Module):
    """Gated combination sum_k sigmoid(G_k x) * (U_k x), x = norm([z; PAST; FUTURE]), k over the three parts.

    The alternative of the released code.
    """

    def __init__(self, parts: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(parts)
        self.gate, self.change = nn.Linear(parts, 3 * width), nn.Linear(parts, 3 * width)
        for linear in (self.gate, self.change):
            for matrix in linear.weight.data.chunk(3):
                nn.init.xavier_uniform_(matrix)
            nn.init.zeros_(linear.bias)

    def forward(self, parts: Tensor) -> Tensor:
        x = self.norm(parts)
        return (torch.sigmoid(self.gate(x)) * self.change(x)).unflatten(-1, (3, -1)).sum(-2)


class Term(nn.Module):
    """Linear combination W [PAST; FUTURE]: the readout already adds the state."""

    def __init__(self, contents: int, width: int) -> None:
        super().__init__()
        self.contents, self.map = contents, nn.Linear(contents, width, bias=False)
        nn.init.xavier_uniform_(self.map.weight)

    def forward(self, parts: Tensor) -> Tensor:
        return self.map(parts[..., -self.contents :])
