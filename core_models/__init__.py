"""PyTorch translation systems: backbones, mechanisms, training, search and traces; independent of analyses and app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core_models.system_builder import build
    from core_models.system_catalogue import catalogue
    from core_models.translator import Translation, Translator, load

__all__ = ["Translation", "Translator", "build", "catalogue", "load"]
_HOMES = {
    "build": "system_builder",
    "catalogue": "system_catalogue",
    "load": "translator",
    "Translator": "translator",
    "Translation": "translator",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import core_models` stays free of torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'core_models' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"core_models.{_HOMES[name]}"), name)
