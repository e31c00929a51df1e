"""The tables of a model of `transformers`: words by our numbers, scales beside them, the bias of the vocabulary head.

`renumbered` swaps rows in place, so that no table is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from core_models.layers.attention import NOWHERE
from core_models.text.vocabulary import BOS, EOS, PAD, UNK


class Table(nn.Module):
    """A table of embeddings and its scale apart, so that hooks on `table` see rows as they are stored."""

    def __init__(self, table: nn.Embedding, scale: float) -> None:
        super().__init__()
        self.table, self.scale = table, scale

    def forward(self, words: Tensor) -> Tensor:
        return self.table(words) * self.scale


def table_of(stack: Any) -> nn.Embedding:
    """The table of a stack as it is stored; a scale within it is put beside it."""
    table = stack.embed_tokens
    if isinstance(table, Table):  # of both stacks
        return table.table
    scale = getattr(table, "embed_scale", 1.0)
    if isinstance(scale, Tensor):  # these families round it to the type of the weights
        scale = scale.to(table.weight.dtype).item()
    if scale == 1:
        return table
    plain = nn.Embedding(*table.weight.shape, device="meta")
    plain.weight = table.weight
    stack.embed_tokens = Table(plain, scale)
    return plain


def renumbered(
    model: Any, pad: int | None, unknown: int | None, begin: int | None, end: int
) -> tuple[list[int], list[int]]:
    """Swap rows of all tables in place so that these words are PAD, UNK, BOS and EOS.

    For each word that the model does not have, None, tables get one row more, which is never put out. Returns for
    source and target their number of each of our words; for a row more it is their number of words or above.
    """
    wanted = {PAD: pad, UNK: unknown, BOS: begin, EOS: end}
    more = sum(theirs is None for theirs in wanted.values())
    if more:
        _add_rows(model, more)
    source, head = (module.weight for module in (vocabulary_modules(model)[0], vocabulary_modules(model)[-1]))
    tables = {id(module.weight): module.weight for module in vocabulary_modules(model)}
    bias = getattr(model, "final_logits_bias", None)
    if bias is not None:
        fill = bias.new_full((1, len(head) - bias.shape[1]), NOWHERE)
        model.final_logits_bias = bias = torch.cat([bias, fill], 1)
    orders = {}
    with torch.no_grad():
        for weight in tables.values():
            order, added = list(range(len(weight))), iter(range(len(weight) - more, len(weight)))
            for ours, theirs in wanted.items():
                place = order.index(next(added) if theirs is None else theirs)
                order[ours], order[place] = order[place], order[ours]
                weight[[ours, place]] = weight[[place, ours]]
                if bias is not None and weight is head:
                    bias[:, [ours, place]] = bias[:, [place, ours]]
            orders[id(weight)] = order
    return orders[id(source)], orders[id(head)]


def _add_rows(model: Any, count: int) -> None:
    """Give every table so many rows more; tied ones stay tied."""
    tables = {id(weight): weight for weight in (module.weight for module in vocabulary_modules(model))}
    for weight in tables.values():
        longer = nn.Parameter(torch.cat([weight.detach(), weight.new_zeros(count, weight.shape[1])]))
        for module in model.modules():
            if getattr(module, "weight", None) is weight:
                module.weight = longer


def vocabulary_modules(model: Any) -> tuple[Any, ...]:
    """The modules of the source's and the target's embeddings, if these are two, and of the vocabulary head."""
    if not model.config.is_encoder_decoder:
        return model.get_input_embeddings(), model.get_output_embeddings()
    return model.get_encoder().embed_tokens, model.get_decoder().embed_tokens, model.get_output_embeddings()


def head_bias(model: Any, missing: Sequence[int]) -> Tensor | None:
    """The bias of the vocabulary head [V], or None if it adds nothing; missing: our words that the model lacks."""
    weight = model.get_output_embeddings().weight
    bias = getattr(model, "final_logits_bias", None)
    wide = torch.promote_types(weight.dtype, torch.float32)  # half precision has no number as low as NOWHERE
    bias = weight.new_zeros(len(weight), dtype=wide) if bias is None else bias[0].to(wide)
    if missing:
        bias = bias.index_fill(0, torch.tensor(list(missing), device=bias.device), NOWHERE)
    return bias if bool(bias.any()) else None
