"""What the layers of a model of `transformers` hold: keys and values of its cache as tensors, and layers' outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn


def observed(block: nn.Module, layers: list[Tensor], with_input: bool) -> Any:
    """A hook that appends a block's output [S, N, d] to `layers`, for the first block after its input."""

    def keep(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if with_input:
            layers.append(inputs[0])
        layers.append(output[0] if isinstance(output, tuple) else output)

    return block.register_forward_hook(keep)


def flat(tensors: Mapping[str, Tensor], prefix: str) -> tuple[Tensor, Tensor]:
    """Keys and values [S, K, H, t, e] of a layer as [S K, H, t, e]."""
    return tensors[f"{prefix}keys"].flatten(0, 1), tensors[f"{prefix}values"].flatten(0, 1)


def cache_of(layers: Sequence[tuple[Tensor, Tensor]]) -> Any:
    """A cache that holds these keys and values, a pair a layer."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    cache = DynamicCache()
    for keys, values in layers:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache


def tensors_of(cache: Any, prefix: str, sentences: int, start: int = 0) -> dict[str, Tensor]:
    """Keys and values of every layer of a cache from a position on, [S, K, H, t, e]."""
    return {
        f"{number}.{prefix}{kind}": getattr(layer, kind)[:, :, start:].unflatten(0, (sentences, -1))
        for number, layer in enumerate(cache.layers)
        for kind in ("keys", "values")
    }
