"""What the whole distribution over the vocabulary says at each position: of the output, and read off every layer.

A layer's vectors go through the decoder's final norm and the output matrix as if the stack ended there (the logit lens:
nostalgebraist 2020, "interpreting GPT: the logit lens"). Knows systems and traces, no architecture: a decoder that
shows no layers has no lens. A prediction of bags of words says where in its ranking each word of the sentence stands.
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
HELD_LOGITS = 1 << 24  # numbers over the vocabulary that are held at once
# A mechanism that stands here changes the stream after the last layer.
_AFTER_THE_STACK = (HookPoint.DECODER_STACK_OUTPUT, HookPoint.READOUT, HookPoint.OUTPUT)


def measures(vectors: Tensor, matrix: Tensor, words: Tensor, bias: Tensor | None = None) -> dict[str, Tensor]:
    """What softmax(vectors . matrix + bias) says of itself and of `words`.

    vectors [P, d], matrix [V, d], words [P] -> [P] each: log_prob of the word and entropy, both in nats; rank of the
    word, 1 being the most probable one (equal words share the better rank); best, the number of the most probable word,
    and best_log_prob.
    """
    rows = max(1, HELD_LOGITS // len(matrix))
    parts = [
        _measures(logits(vectors[start : start + rows], matrix, bias), words[start : start + rows])
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
    """Which rank each word of a sentence has by the prediction at each of its positions: words [S, T] -> [S, T, T].

    matrix, bias: the output's, for a prediction that has no matrix of its own. 1 is the most probable word, and equal
    words share the better rank; padding is no word.
    """
    head, offsets = prediction.head(matrix, bias)
    ranks = []
    for vectors, words in zip(prediction.vectors, target, strict=True):  # [T, V] at once
        energies = logits(vectors, head, offsets)
        energies[:, PAD] = -torch.inf
        chosen = energies[:, words].contiguous()  # [T, T]
        ordered = energies.sort(dim=-1).values
        ranks.append(1 + len(head) - torch.searchsorted(ordered, chosen, right=True))
    return torch.stack(ranks)


def layer_vectors(forced: Forced) -> list[Tensor] | None:
    """[S, T, d] of the embedding and each decoder layer, as the vocabulary head would read them; None without layers.

    Where mechanisms change the stream after the last layer, what they made of it comes as one more.
    """
    layers = getattr(forced.view, "layers", None)
    if layers is not None and forced.active.any_at(*_AFTER_THE_STACK):
        return [*layers, forced.main.vectors]
    return layers


def _of_the_mixture(system: System, forced: Forced, target: Tensor) -> dict[str, Tensor]:
    """What the mean of several distributions says: there are no vectors behind it."""
    found = _measures(system.scores(forced).values.flatten(0, 1), target.flatten())
    return {name: value.view(target.shape) for name, value in found.items()}


def record(system: System, forced: Forced, target: Tensor, writer: TraceWriter) -> None:
    """Write what is wanted of MEASURES ("target") and, as lens.NAME, of LENS_MEASURES ("layer", "target"); of each
    prediction of a word, as NAME.rank ("target"), the rank of the right one, and of each prediction of a bag, under the
    same name ("target", "target_key"), the rank of every word at every position.

    target [S, T]: the words whose log_prob and rank are meant. The last layer of the lens is the system's own output.
    """
    matrix, bias = system.backbone.output_matrix
    for prediction in forced.predictions:
        if not writer.wants(f"{prediction.name}.rank"):
            continue
        if prediction.target == "word":
            head, offsets = prediction.head(matrix, bias)
            ranks = measures(prediction.vectors.flatten(0, 1), head, target.flatten(), offsets)["rank"]
            writer.record(f"{prediction.name}.rank", ("target",), ranks.view(target.shape))
        else:
            ranks = bag_ranks(prediction, matrix, bias, target)
            writer.record(f"{prediction.name}.rank", ("target", "target_key"), ranks)

    def measured(vectors: Tensor) -> dict[str, Tensor]:
        found = measures(vectors.flatten(0, 1), matrix, target.flatten(), bias)
        return {name: value.view(target.shape) for name, value in found.items()}

    if any(map(writer.wants, MEASURES)):
        mixes = any(prediction.mixes for prediction in forced.predictions)
        own = _of_the_mixture(system, forced, target) if mixes else measured(forced.main.vectors)
        for name in MEASURES:
            writer.record(name, ("target",), own[name])
    if not any(writer.wants(f"lens.{name}") for name in LENS_MEASURES):
        return
    if (layers := layer_vectors(forced)) is not None:
        read = [measured(vectors) for vectors in layers]
        for name in LENS_MEASURES:
            writer.record(f"lens.{name}", ("layer", "target"), torch.stack([one[name] for one in read], dim=1))
