"""What a trace holds of PAST and FUTURE layers: their states, how they change, and with what the change agrees.

Per target position t: what stands there belongs to the step that predicts word t.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from core_models.late_products import images
from core_models.mechanisms.base import Own, View
from core_models.text.vocabulary import EOS

if TYPE_CHECKING:
    from core_models.mechanisms.past_future_layers import PastFutureLayers


def record_contents(layers: PastFutureLayers, view: View, own: Own) -> None:
    """Write, for each layer and at READOUT of a forced pass:

    SIDE.state s_t, SIDE.norm |s_t|, SIDE.change |s_t - s_{t-1}|, SIDE.update_gate (the mean share that is kept),
    SIDE.cosine_context, of the change, signed so that it should be c_t, with c_t as the layer's unit reads it, and,
    where there is a loss, SIDE.cosine_word, of the vector that predicts with the word's embedding; of both layers,
    where s^F_0 is the source's summary, whole.cosine and whole.distance of s^P_t + s^F_t and s^F_0, the distance in
    units of |s^F_0|.
    """
    one = ("target",)
    for side in layers.sides:
        own.record(f"{side}.state", ("target", "unit"), own.after[side])
        measured = {"norm": _norm, "change": _change, "update_gate": _gate, "cosine_context": _with_context}
        if side in layers.heads:
            measured["cosine_word"] = _with_word
        for name, measure in measured.items():
            own.record(f"{side}.{name}", one, partial(measure, layers, side, view, own))
    if len(layers.sides) == 2 and layers.reads_summary:
        own.record("whole.cosine", one, lambda: cosine_similarity(*_wholes(layers, view, own), dim=-1))
        own.record("whole.distance", one, lambda: _distance(*_wholes(layers, view, own)))


def _norm(layers: PastFutureLayers, side: str, view: View, own: Own) -> Tensor:
    return own.after[side].norm(dim=-1)


def _change(layers: PastFutureLayers, side: str, view: View, own: Own) -> Tensor:
    return (own.after[side] - own.before[side]).norm(dim=-1)


def _context(layers: PastFutureLayers, side: str, view: View) -> tuple[Tensor, ...]:
    return images(layers.units[side].from_context, view.context)


def _gate(layers: PastFutureLayers, side: str, view: View, own: Own) -> Tensor:
    unit = layers.units[side]
    recurrent = images(unit.from_state, own.before[side])
    return unit.gated(_context(layers, side, view), recurrent, images)[0].mean(-1)


def _with_context(layers: PastFutureLayers, side: str, view: View, own: Own) -> Tensor:
    minuend, subtrahend = layers.change_of(side, own)
    read = layers.units[side].content(_context(layers, side, view))
    return cosine_similarity(minuend - subtrahend, read, dim=-1)


def _with_word(layers: PastFutureLayers, side: str, view: View, own: Own) -> Tensor:
    """The right word at t is the one that comes in at t + 1, behind the last one EOS."""
    last = torch.full_like(view.words[:, :1], EOS)
    following = torch.cat([view.words[:, 1:], last], dim=1)
    real = torch.cat([view.mask[:, 1:], torch.zeros_like(view.mask[:, :1])], dim=1)
    words = torch.where(real, following, EOS)
    head = layers.heads[side]
    embedded = layers.embed(words) if head.matrix is None else head.matrix[words]
    return cosine_similarity(head(*layers.change_of(side, own)), embedded, dim=-1)


def _wholes(layers: PastFutureLayers, view: View, own: Own) -> tuple[Tensor, Tensor]:
    """s^P_t + s^F_t [S, T, d] and the source as it was summed up at first [S, 1, d]."""
    return own.after["past"] + own.after["future"], layers.summary(view.memory, view.memory_mask)[:, None]


def _distance(sums: Tensor, whole: Tensor) -> Tensor:
    return (sums - whole).norm(dim=-1) / whole.norm(dim=-1)
