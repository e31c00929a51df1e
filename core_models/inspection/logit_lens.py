"""Measures of the distribution over the vocabulary at each position: of the output, and of every layer (logit lens).

A layer's vectors go through the decoder's final norm and the output matrix as if the stack ended there (nostalgebraist
2020, "interpreting GPT: the logit lens"). A decoder that shows no layers has no lens. For predictions of bags of words,
the rank of each word of the sentence is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core_models.interface.mechanism import HookPoint
from core_models.layers.vocabulary_head import logits
from core_models.text.vocabulary import PAD

if TYPE_CHECKING:
    from core_models.interface.mechanism import Prediction
    from core_models.system import Forced, System
    from core_models.traces import TraceWriter

MEASURES = ("entropy", "rank", "best", "best_log_prob")
LENS_MEASURES = ("log_prob", *MEASURES)
HELD_LOGITS = 1 << 24  # logits in memory at once
# Hook points at which a mechanism changes the stream after the last layer.
_AFTER_THE_STACK = (HookPoint.DECODER_STACK_OUTPUT, HookPoint.READOUT, HookPoint.OUTPUT)


def measures(
    vectors: Tensor, matrix: Tensor, words: Tensor, bias: Tensor | None = None, cap: float | None = None
) -> dict[str, Tensor]:
    """Measures of the distribution softmax(vectors . matrix + bias) and of `words` under it; cap: of its logits.

    vectors [P, d], matrix [V, d], words [P] -> [P] each: log_prob of the word and entropy, both in nats; rank of the
    word, 1 for the most probable (ties share the better rank); best, the number of the most probable word, and
    best_log_prob.
    """
    rows = max(1, HELD_LOGITS // len(matrix))
    parts = [
        _measures(logits(vectors[start : start + rows], matrix, bias, cap), words[start : start + rows])
        for start in range(0, len(vectors), rows)
    ]
    return {name: torch.cat([part[name] for part in parts]) for name in LENS_MEASURES}


def _measures(energies: Tensor, words: Tensor) -> dict[str, Tensor]:
    log_probs = torch.log_softmax(energies, dim=-1)
    best_log_prob, best = log_probs.max(-1)
    return {
        "log_prob": log_probs.gather(-1, words[:, None])[:, 0],
        "entropy": -(log_probs.exp() * log_probs).sum(-1),
        "rank": 1 + (energies > energies.gather(-1, words[:, None])).sum(-1),
        "best": best,
        "best_log_prob": best_log_prob,
    }


def bag_ranks(prediction: Prediction, matrix: Tensor, bias: Tensor | None, target: Tensor) -> Tensor:
    """Rank of each word of a sentence under the prediction at each position: words [S, T] -> [S, T, T].

    matrix, bias: those of the output, for a prediction without its own. Rank 1 is the most probable word, ties share
    the better rank; padding is excluded.
    """
    head, offsets = prediction.head(matrix, bias)
    ranks = []
    for vectors, words in zip(prediction.vectors, target, strict=True):  # [T, V] at once
        energies = logits(vectors, head, offsets)
        energies[:, PAD] = -torch.inf
        word_energies = energies[:, words].contiguous()  # [T, T]
        ordered = energies.sort(dim=-1).values
        ranks.append(1 + len(head) - torch.searchsorted(ordered, word_energies, right=True))
    return torch.stack(ranks)


def layer_vectors(forced: Forced) -> list[Tensor] | None:
    """Vectors [S, T, d] of the embedding and each decoder layer, as input of the vocabulary head; None without layers.

    If mechanisms change the stream after the last layer, their result is appended.
    """
    layers = getattr(forced.view, "layers", None)
    if layers is not None and forced.active.any_at(*_AFTER_THE_STACK):
        return [*layers, forced.main.vectors]
    return layers


def _of_the_mixture(system: System, forced: Forced, target: Tensor) -> dict[str, Tensor]:
    """Measures of the mean of several distributions, which has no vectors."""
    values = _measures(system.scores(forced).values.flatten(0, 1), target.flatten())
    return {name: value.view(target.shape) for name, value in values.items()}


def record(system: System, forced: Forced, target: Tensor, writer: TraceWriter) -> None:
    """Record the requested measures of a forced pass.

    MEASURES with axes ("target"); as lens.NAME, LENS_MEASURES ("layer", "target"); as NAME.rank the rank of the correct
    word ("target") for a prediction of words, and of every word at every position ("target", "target_key") for a
    prediction of bags. target [S, T]: the words whose log_prob and rank are recorded. The last layer of the lens is the
    system's output.
    """
    matrix, bias = system.backbone.output_matrix
    for prediction in forced.predictions:
        if prediction.target == "prior" or not writer.wants(f"{prediction.name}.rank"):
            continue
        if prediction.target == "word":
            head, offsets = prediction.head(matrix, bias)
            ranks = measures(prediction.vectors.flatten(0, 1), head, target.flatten(), offsets)["rank"]
            writer.record(f"{prediction.name}.rank", ("target",), ranks.view(target.shape))
        else:
            ranks = bag_ranks(prediction, matrix, bias, target)
            writer.record(f"{prediction.name}.rank", ("target", "target_key"), ranks)

    def measure(vectors: Tensor) -> dict[str, Tensor]:
        values = measures(vectors.flatten(0, 1), matrix, target.flatten(), bias, system.logit_cap)
        return {name: value.view(target.shape) for name, value in values.items()}

    if any(map(writer.wants, MEASURES)):
        mixes = any(prediction.mixes for prediction in forced.predictions)
        output_measures = _of_the_mixture(system, forced, target) if mixes else measure(forced.main.vectors)
        for name in MEASURES:
            writer.record(name, ("target",), output_measures[name])
    if not any(writer.wants(f"lens.{name}") for name in LENS_MEASURES):
        return
    if (layers := layer_vectors(forced)) is not None:
        measured_layers = [measure(vectors) for vectors in layers]
        for name in LENS_MEASURES:
            writer.record(
                f"lens.{name}",
                ("layer", "target"),
                torch.stack([layer_measures[name] for layer_measures in measured_layers], dim=1),
            )
