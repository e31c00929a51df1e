"""Query-guided capsules (Yang 2019): the context words, routed to a few capsules under guidance of the sentence.

Every context word, with an encoding of its distance, is an input capsule (Eq. 6); the sum of the sentence's embeddings
guides the routing (Eq. 5, Algorithm 1); an attention sublayer in every encoder layer reads the capsules (section 3.3).
The word order within a context sentence is ignored. Everything is computed once per sentence, so a step needs no state.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import torch
from pydantic import Field
from torch import Tensor, nn

from core_models.interface.mechanism import BackboneSpec, HookPoint, Mechanism, MechanismState, View
from core_models.layers.dropout import Dropout
from core_models.mechanisms.document_context import (
    ContextAttention,
    ContextOptions,
    LayerShares,
    only_where,
    xavier,
)
from core_models.mechanisms.sides import SUBLAYER
from core_models.routing.algorithms import squash
from core_models.routing.query_guided import Correlation, QueryRouting, correlations, query_guided_routing
from core_models.text.batches import Context, WordOrder
from core_models.text.vocabulary import EOS

if TYPE_CHECKING:
    from core_models.text.batches import Batch


class QueryCapsulesOptions(ContextOptions):
    capsules: int = Field(4, gt=0, description="m")
    iterations: int = Field(4, gt=0, description="r; the first one's couplings are uniform")
    correlation: Correlation = Field("pearson", description="or Eq. 7 as published, which is none (E2)")
    transforms: Literal["shared", "per_distance"] = Field("shared", description="W_j, or W_kj of each distance (E3)")
    grouping: Literal["joint", "per_sentence"] = Field(
        "joint", description="all context words together make m capsules, or each sentence's make m (E6)"
    )
    squash_inputs: bool = Field(False, description="squash u_i, as Eq. 8's text would have it (E7)")
    query_pool: Literal["sum", "mean", "unit"] = Field(
        "sum", description="of the embeddings; a sum is so long that four iterations hardly turn it (E8)"
    )
    query_end: bool = Field(False, description="</s> is a word of the query")
    scale: Literal["unit", "none"] = Field(
        "unit",
        description="what the encoder reads of the capsules: times sqrt(d), so that a capsule of length 1 has numbers "
        "about 1, or the squashed vectors as they are, which are the smaller the wider the model is",
    )
    detach: bool = Field(False, description="gradients go through the last iteration only")


class QueryCapsules(Mechanism):
    """QCN, on a backbone with a stack of encoder layers."""

    Options = QueryCapsulesOptions
    options: QueryCapsulesOptions
    hook_points = (SUBLAYER["encoder"],)

    def __init__(self, spec: BackboneSpec, options: QueryCapsulesOptions) -> None:
        super().__init__(spec, options)
        self.context = options.use()
        self.embed = spec.source_embedding
        embedding, width = spec.widths["embedding"], spec.widths["stream"]
        self.from_word = xavier(nn.Linear(embedding, width))  # f of Eq. 6: its part of the embedding, ...
        self.from_distance = nn.Parameter(torch.empty(options.context_sentences, width))  # ... and of the one-hot k
        self.to_query = xavier(nn.Linear(embedding, width))  # g of Eq. 5
        if options.detach and options.iterations > 1:
            self.to_query.requires_grad_(False)  # the query enters before the last iteration: it stays as it was drawn
        sets = options.context_sentences if options.transforms == "per_distance" else 1
        self.transform = nn.Parameter(torch.empty(sets, options.capsules, width, width))  # W_j, v = u W
        nn.init.xavier_uniform_(self.from_distance)
        for matrix in self.transform.data.flatten(0, 1):
            nn.init.xavier_uniform_(matrix)
        self.sublayers = nn.ModuleList(ContextAttention(spec) for _ in range(spec.layers["encoder"]))
        self.after = nn.ModuleList(
            nn.Identity() if spec.final_norm else nn.LayerNorm(width) for _ in range(spec.layers["encoder"])
        )
        self.drop = Dropout(spec.dropout)
        self.shares = LayerShares("attention", ("source", "capsule"), spec.layers["encoder"])

    def read(self, batch: Batch, own_state: MechanismState) -> dict[str, Tensor]:
        """Compute the capsules, which only the encoder reads."""
        context = batch.context
        if context is None:
            raise ValueError("a batch for query-guided capsules has a context, of absent sentences if need be")
        order = context.order()
        words = squash(self._inputs(context)) if self.options.squash_inputs else self._inputs(context)  # [S, K, C, d]
        query, reach = self._query(batch), context.words.shape[1]
        joint = self.options.grouping == "joint"
        routed = order.gather(words) if joint else words.flatten(0, 1)
        if joint:
            routing = self._route(routed, query, order.mask, (order.distance - 1).clamp(min=0))
            capsules, real = routing.capsules, context.present.any(1, keepdim=True)
        else:
            number = torch.arange(reach, device=words.device)[:, None].expand(context.words.shape)
            each = (routed, query.repeat_interleave(reach, 0), context.mask.flatten(0, 1))
            routing = self._route(*each, number.flatten(0, 1))
            capsules, real = routing.capsules.unflatten(0, (-1, reach)).flatten(1, 2), context.present
        own_state.notes["capsules"] = capsules
        own_state.notes["real"] = real.repeat_interleave(self.options.capsules, 1)  # [S, m] or [S, K m]
        self._record(own_state, order, reach, routing, routed)
        return {}

    def _inputs(self, context: Context) -> Tensor:
        """Input capsules u of every context word, [S, K, C, d] (Eq. 6)."""
        return self.from_word(self.embed(context.words)) + self.from_distance[None, :, None]

    def _query(self, batch: Batch) -> Tensor:
        """Query q of every sentence, [S, d] (Eq. 5)."""
        real = batch.source_mask if self.options.query_end else batch.source_mask & (batch.source != EOS)
        weights = real[..., None].to(self.from_distance.dtype)
        pooled = (self.embed(batch.source) * weights).sum(1)
        if self.options.query_pool == "mean":
            pooled = pooled / weights.sum(1).clamp(min=1)
        query = self.to_query(pooled)
        return nn.functional.normalize(query, dim=-1, eps=1e-6) if self.options.query_pool == "unit" else query

    def _route(self, words: Tensor, query: Tensor, mask: Tensor, groups: Tensor) -> QueryRouting:
        options = self.options
        by_distance = options.transforms == "per_distance"
        return query_guided_routing(
            words,
            query,
            self.transform if by_distance else self.transform[0],
            mask,
            options.iterations,
            options.correlation,
            groups=groups if by_distance else None,
            detach=options.detach,
        )

    def _record(
        self, own_state: MechanismState, order: WordOrder, reach: int, routing: QueryRouting, words: Tensor
    ) -> None:
        """Record couplings, correlations and their sum by context word and iteration, and the change of the queries.

        Both kinds of correlation with these queries are recorded, whichever is used for routing (E2).
        """
        joint = self.options.grouping == "joint"

        def by_word(values: Tensor) -> Tensor:
            """Reorder [iterations, S, n, m] or [iterations, S K, C, m] to [S, iterations, n, m]."""
            if joint:
                return values.movedim(0, 1)
            return order.gather(values.unflatten(1, (-1, reach)).movedim(0, 3)).movedim(2, 1)

        axes = ("iteration", "context", "capsule")
        own_state.record("couplings", axes, lambda: by_word(routing.assignments), "capsule")
        own_state.record("correlations", axes, lambda: by_word(routing.correlations))
        own_state.record("weights", axes, lambda: by_word(routing.assignments + routing.correlations))

        def of_kind(kind: Correlation) -> Tensor:
            return by_word(torch.tanh(correlations(words[None], routing.queries[:-1], kind)))

        for kind in get_args(Correlation):
            own_state.record(kind, axes, partial(of_kind, kind))

        def by_capsule(values: Tensor) -> Tensor:
            """Reorder [iterations, S or S K, m] to [S, iterations, m or K m]."""
            return (values if joint else values.unflatten(1, (-1, reach)).flatten(2)).movedim(0, 1)

        turned = nn.functional.cosine_similarity
        first, later = routing.queries[:1], routing.queries[1:]
        own_state.record("query_cosine", ("iteration", "capsule"), lambda: by_capsule(turned(later, first, dim=-1)))
        own_state.record("lengths", ("capsule",), lambda: own_state.notes["capsules"].norm(dim=-1))

    def at(self, hook_point: HookPoint, x: Tensor, view: View, own_state: MechanismState) -> Tensor:
        sublayer, capsules, real = self.sublayers[view.layer], own_state.notes["capsules"], own_state.notes["real"]
        if self.options.scale == "unit":
            capsules = capsules * capsules.shape[-1] ** 0.5  # the lengths keep their ratios
        keys = sublayer.attention.keys_and_values(capsules.to(x.dtype))
        change, share = sublayer(x, keys, real, self.shares.is_recorded(own_state))
        self.shares.add(own_state, view.layer, share)
        return only_where(real.any(1), self.after[view.layer](x + self.drop(change)), x)
