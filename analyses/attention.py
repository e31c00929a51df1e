"""Attention as a map: mean over layers and heads, rollout through a stack, pieces joined to words.

Weights are distributions: each row sums to one along its last axis, and every map made here keeps that. Works on arrays
and pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

START, END = "<s>", "</s>"
SPACE = "▁"  # begins a word in SentencePiece's pieces
CONTINUED = "@@"  # ends a piece of subword-nmt's that the next one continues


def average(weights: np.ndarray, layer: int | None = None, head: int | None = None) -> np.ndarray:
    """One map [query, key] of weights[layer, head, query, key]: of a layer and head (from 1), or the mean over all.

    Raises ValueError where there is no such layer or head.
    """
    weights = _checked(weights)
    for axis, (name, number) in enumerate((("layer", layer), ("head", head))):
        if number is not None and not 1 <= number <= weights.shape[axis]:
            raise ValueError(f"There is no {name} {number}: this attention has {name}s 1 to {weights.shape[axis]}.")
    layers = weights if layer is None else weights[layer - 1 : layer]
    return (layers if head is None else layers[:, head - 1 : head]).mean(axis=(0, 1))


def rollout(weights: np.ndarray, residual: float = 0.5) -> np.ndarray:
    """Attention rollout to each position of each layer: weights[layer, head, query, key] -> [layer, query, key].

    R_l = (residual I + (1 - residual) mean over heads of A_l) R_{l-1}, R_0 = I (Abnar and Zuidema 2020, Eq. 1,
    with residual 1/2: the residual connection carries as much as the attention).
    """
    weights = _checked(weights)
    if weights.shape[2] != weights.shape[3]:
        raise ValueError(f"Rollout needs self-attention, as many queries as keys, not {weights.shape[2:]}.")
    reached, layers = np.eye(weights.shape[3]), []
    for share in weights.mean(axis=1):
        reached = _step(share @ reached, reached, residual)
        layers.append(reached)
    return np.stack(layers)


@dataclass(frozen=True)
class DecoderRollout:
    """Rollout of each decoder layer and target position, over source words and over the target words read so far.

    source [layer, target, source] and target [layer, target, target_key]; over both together a row sums to one.
    """

    source: np.ndarray
    target: np.ndarray


def decoder_rollout(
    self_attention: np.ndarray,
    cross: np.ndarray,
    encoder: np.ndarray | None = None,
    residual: float = 0.5,
) -> DecoderRollout:
    """Rollout through a decoder: each layer mixes its self-attention, then its attention to the source.

    self_attention[layer, head, target, target_key], cross[layer, head, target, source], encoder[layer, head, source,
    source_key] (None: the memory is taken for the source words themselves). Applies the rule of `rollout` to each of
    the two sub-layers: a cross-attention A contributes A R, where R is the encoder's rollout.
    """
    self_attention, cross = _checked(self_attention), _checked(cross)
    if len(self_attention) != len(cross) or self_attention.shape[2] != cross.shape[2]:
        raise ValueError(
            f"Self-attention {self_attention.shape} and cross-attention {cross.shape} are not of one decoder."
        )
    memory = np.eye(cross.shape[3]) if encoder is None else rollout(encoder, residual)[-1]
    source, target = np.zeros(cross.shape[2:]), np.eye(self_attention.shape[3])
    sources, targets = [], []
    for self_weights, cross_weights in zip(self_attention.mean(axis=1), cross.mean(axis=1), strict=True):
        source, target = _step(self_weights @ source, source, residual), _step(self_weights @ target, target, residual)
        source, target = _step(cross_weights @ memory, source, residual), residual * target
        sources.append(source)
        targets.append(target)
    return DecoderRollout(np.stack(sources), np.stack(targets))


def _step(attended: np.ndarray, previous: np.ndarray, residual: float) -> np.ndarray:
    return residual * previous + (1 - residual) * attended


def _checked(weights: np.ndarray) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 4 or 0 in weights.shape:
        raise ValueError(f"Attention weights must be [layer, head, query, key] and not empty, got {weights.shape}.")
    return weights


def word_numbers(pieces: Sequence[str]) -> list[int]:
    """The number (from 0) of the word that each piece belongs to: ▁ begins a word, <s> and </s> are words.

    Where no piece has ▁, all begin one but those after a piece that ends in @@.
    """
    numbers, has_spaces = [0] * len(pieces), _has_spaces(pieces)
    for position, (before, piece) in enumerate(pairwise(pieces), start=1):
        begins = piece.startswith(SPACE) if has_spaces else not before.endswith(CONTINUED)
        begins = begins or piece == END or before == START
        numbers[position] = numbers[position - 1] + begins
    return numbers


def _has_spaces(pieces: Sequence[str]) -> bool:
    return any(piece.startswith(SPACE) for piece in pieces)


def joined(pieces: Sequence[str]) -> list[str]:
    """Join pieces to words, as many as `word_numbers` counts."""
    words: list[str] = []
    mark = "" if _has_spaces(pieces) else CONTINUED
    for number, piece in zip(word_numbers(pieces), pieces, strict=True):
        if number == len(words):
            words.append(piece.removeprefix(SPACE))
        else:
            words[number] = words[number].removesuffix(mark) + piece
    return words


def text_of(pieces: Sequence[str]) -> str:
    """Join pieces to a text without </s>."""
    return " ".join(joined([piece for piece in pieces if piece != END])) if pieces else ""


def to_words(weights: np.ndarray, queries: Sequence[str], keys: Sequence[str]) -> np.ndarray:
    """Turn a map of pieces into one of words: sum over a key's pieces, mean over a query's; rows still sum to one."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(queries), len(keys)):
        raise ValueError(f"A map {weights.shape} is not of {len(queries)} queries and {len(keys)} keys.")
    down, across = (np.eye(numbers[-1] + 1)[numbers] for numbers in (word_numbers(queries), word_numbers(keys)))
    return (down / down.sum(axis=0)).T @ weights @ across


def without_end(
    weights: np.ndarray, queries: Sequence[str], keys: Sequence[str]
) -> tuple[np.ndarray, list[str], list[str]]:
    """The map, queries and keys without </s>, which is not part of an alignment."""
    down, across = ([position for position, token in enumerate(side) if token != END] for side in (queries, keys))
    return np.asarray(weights)[np.ix_(down, across)], [queries[i] for i in down], [keys[i] for i in across]
