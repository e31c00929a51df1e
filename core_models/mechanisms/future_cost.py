"""Future cost (Duan 2020): a gated cell estimates the cost of the next target word one step ahead.

H_i is the decoder output at position i before any mechanism changed it, y_i the word generated there. The cell computes
the future context F_i from both (Eq. 8-11); a second softmax over F_i predicts y_{i+1} (Eq. 12). Model I learns from
that prediction only; Model II also adds F_{i-1}, through a scalar gate, to the input of the head at i (section 4.2).
F_i uses the un-fused H_i, so nothing is recurrent: position i needs H_{i-1}, which `shift` provides.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import (
    BackboneSpec,
    HookPoint,
    Mechanism,
    MechanismState,
    Options,
    Prediction,
    View,
)
from core_models.text.vocabulary import BOS, EOS


class FutureCostOptions(Options):
    model: Literal[1, 2] = 1
    weight: float = Field(0.5, ge=0, description="lambda of Eq. 14")
    future_from: Literal[0, 1] = Field(0, description="first i whose F_i predicts y_{i+1}; Eq. 13 prints 1 (C3)")
    tied_head: bool = Field(True, description="share the output embedding with the future softmax (C5)")
    main_tanh_head: bool = Field(False, description="Eq. 6 as published: tanh(W_w H) before the main softmax (C5)")
    first_symbol: Literal["eos", "bos"] = Field("eos", description='the embedding that stands for "</s>" in F_0 (C10)')


class FutureCost(Mechanism):
    """Models I and II. Adds 7 d^2 parameters with a tied head, and 2 d more for Model II."""

    Options = FutureCostOptions
    options: FutureCostOptions
    hook_points = (HookPoint.OUTPUT,)

    def __init__(self, spec: BackboneSpec, options: FutureCostOptions) -> None:
        super().__init__(spec, options)
        width = spec.widths["state"]
        same = spec.widths["memory"] == width
        self.first_state = nn.Identity() if same else nn.Linear(spec.widths["memory"], width, bias=False)
        self.embed = spec.target_embedding
        self.from_word = nn.Linear(spec.widths["embedding"], 3 * width, bias=False)  # W_r, W_z, W
        self.from_state = nn.Linear(width, 2 * width, bias=False)  # U_r, U_z
        self.from_reset = nn.Linear(width, width, bias=False)  # U
        self.future_head = nn.Linear(width, width, bias=False)  # W_w of Eq. 12
        self.future_matrix = None if options.tied_head else nn.Parameter(torch.empty(spec.vocabulary_size, width))
        self.main_head = nn.Linear(width, width, bias=False) if options.main_tanh_head else None
        self.gate = nn.Linear(2 * width, 1, bias=False) if options.model == 2 else None
        for parameter in self.parameters():
            nn.init.xavier_uniform_(parameter)

    def start(self, memory: Tensor, memory_mask: Tensor, own_state: MechanismState) -> dict[str, Tensor]:
        """State H_0: the masked mean of the source representation (C9), [S, 1, d]."""
        real = memory_mask[..., None].to(memory.dtype)
        mean = (memory * real).sum(1) / real.sum(1).clamp(min=1)
        return {"state": self.first_state(mean)[:, None]}

    def cell(self, word: Tensor, state: Tensor) -> Tensor:
        """Future context F_i from E[y_i] and H_i, Eq. 8-11: [..., d_word], [..., d] -> [..., d]."""
        word_reset, word_update, word_candidate = self.from_word(word).chunk(3, dim=-1)
        state_reset, state_update = self.from_state(state).chunk(2, dim=-1)
        reset = torch.sigmoid(word_reset + state_reset)
        update = torch.sigmoid(word_update + state_update)
        candidate = torch.relu(word_candidate + self.from_reset(reset * state))
        return update * candidate + (1 - update) * state

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        own_state.notes["before"] = own_state.shift("state", view.state)  # H_{i-1}
        if self.gate is None:
            return self._main(x)  # Model I decodes as its baseline does (C6)
        future = self._future(view, own_state)
        gate = torch.sigmoid(self.gate(torch.cat([x, future], dim=-1)))
        own_state.record("gate", ("target",), lambda: gate[..., 0])
        return self._main(x + gate * future)

    def _future(self, view: View, own_state: MechanismState) -> Tensor:
        """Future context F_{i-1} from the input word y_{i-1} and H_{i-1}; F_0 reads EOS for "</s>", or BOS (C10)."""
        if "future" not in own_state.notes:
            words = view.words
            if self.options.first_symbol == "eos":
                words = torch.where(words == BOS, EOS, words)
            own_state.notes["future"] = self.cell(self.embed(words), own_state.notes["before"])
        return own_state.notes["future"]

    def _main(self, x: Tensor) -> Tensor:
        return x if self.main_head is None else torch.tanh(self.main_head(x))

    def predictions(self, view: View, own_state: MechanismState) -> list[Prediction]:
        """The prediction of y_i from F_{i-1}, aligned with the main prediction."""
        future = self._future(view, own_state)
        mask = None
        if self.options.future_from == 1:
            mask = torch.arange(future.shape[1], device=future.device).expand(future.shape[:2]) > 0
        vectors = torch.tanh(self.future_head(future))
        return [Prediction("future_cost", vectors, matrix=self.future_matrix, mask=mask, weight=self.options.weight)]
