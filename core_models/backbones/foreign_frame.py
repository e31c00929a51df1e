"""Words that frame a text for a foreign model: they are added before it is read, and are positions to nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from core_models.interface.search_state import FixedShapes
from core_models.settings import ConfigError
from core_models.text.vocabulary import BOS, PAD


def refuse_fixed_shapes(fixed: FixedShapes | None) -> None:
    """Raise ConfigError where a search asks an opened model for steps whose shapes do not grow."""
    if fixed is not None:
        raise ConfigError("search.compile: the steps of an opened model grow with the output; leave compile out")


@dataclass(frozen=True)
class Frame:
    """Words around texts, by our numbers. target: the decoder's prompt, whose last word is what BOS stands for."""

    source_before: tuple[int, ...] = ()
    source_after: tuple[int, ...] = ()  # behind EOS
    target: tuple[int, ...] = (BOS,)

    @property
    def source_words(self) -> int:
        """The number of words around a source."""
        return len(self.source_before) + len(self.source_after)

    def around(self, words: Tensor, mask: Tensor, room: float) -> Tensor:
        """Source words [S, I] with mask [S, I] in their frame, [S, I'].

        Raises ConfigError for more than `room` positions.
        """
        if words.shape[1] + self.source_words > room:
            raise ConfigError(
                f"a source of {words.shape[1] + self.source_words} pieces does not fit the {room} positions of this "
                "model; shorten it"
            )
        before, after = (
            torch.tensor(part, dtype=words.dtype, device=words.device).expand(len(words), -1)
            for part in (self.source_before, self.source_after)
        )
        framed = torch.cat([before, words, torch.full_like(after, PAD)], 1)
        ends = before.shape[1] + mask.sum(1, keepdim=True) + torch.arange(after.shape[1], device=words.device)
        return framed.scatter(1, ends, after)

    def mask_around(self, mask: Tensor) -> Tensor:
        """The mask [S, I'] of framed sources, of theirs without it [S, I]."""
        places = torch.arange(mask.shape[1] + self.source_words, device=mask.device)
        return places < mask.sum(1, keepdim=True) + self.source_words

    def folded(self, shares: Tensor, mask: Tensor) -> Tensor:
        """Shares [S, layers, H, N, I'] -> [..., I]: the frame's are added to the first word's and to those of EOS."""
        start, (sentences, words) = len(self.source_before), mask.shape
        rows = mask.view(sentences, 1, 1, 1, words)
        kept = shares[..., start : start + words] * rows
        kept[..., 0] += shares[..., :start].sum(-1)
        behind = shares[..., start:].sum(-1) - (shares[..., start : start + words] * rows).sum(-1)
        last = rows & ~pad(rows[..., 1:], (0, 1))
        return kept + last * behind[..., None]

    @property
    def prompt(self) -> tuple[int, ...]:
        """The decoder's prompt before the word that BOS stands for."""
        return self.target[:-1]

    def behind_prompt(self, words: Tensor) -> Tensor:
        """Input words [S, T] behind the prompt, [S, T']."""
        prompt = torch.tensor(self.prompt, dtype=words.dtype, device=words.device)
        return torch.cat([prompt.expand(len(words), -1), self.prompted(words)], 1)

    def without_prompt(self, shares: Tensor) -> Tensor:
        """Self-attention [S, layers, H, T', T'] -> [..., T, T]: the prompt's is added to BOS."""
        start = len(self.prompt)
        own = shares[..., start:, :]
        kept = own[..., start:].clone()
        kept[..., 0] += own[..., :start].sum(-1)
        return kept

    def prompted(self, words: Tensor) -> Tensor:
        """Input words with the prompt's last word in place of BOS."""
        return torch.where(words == BOS, self.target[-1], words)
