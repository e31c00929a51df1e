"""What exports to other engines ask of a run: a Transformer without mechanisms, all of whose parameters are copied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core_models.config import ModelConfig, SearchConfig
from core_models.files.atomic_folders import mend
from core_models.text.vocabulary import KINDS
from workbench.store.runs import RunError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from core_models.checkpoint import Trained


def refuse_other_systems(model: ModelConfig, name: str, engine: str) -> None:
    """Raise RunError for a model that the engine cannot compute: another backbone, or mechanisms."""
    if model.backbone != "transformer":
        raise RunError(
            f"{name}: {engine} knows the Transformer, not {model.backbone}; take a transformer without mechanisms"
        )
    if model.mechanisms:
        kinds = ", ".join(kind for entry in model.mechanisms for kind in entry)
        raise RunError(f"{name}: {engine} has no {kinds}; take a transformer without mechanisms")


def refuse_dictionaries(trained: Trained, name: str, engine: str) -> None:
    """Raise RunError for a system whose vocabularies are no SentencePiece models."""
    if any(vocabulary.kind not in KINDS for vocabulary in (trained.source_vocabulary, trained.target_vocabulary)):
        raise RunError(f"{name} reads a dictionary of words, and only SentencePiece models are exported for {engine}")


def refuse_taken(out: Path) -> None:
    """Raise RunError if the folder to write exists already."""
    if mend(out).exists():
        raise RunError(f"{out}: is there already; choose another folder, or remove it")


def stored_positions(model: ModelConfig, search: SearchConfig) -> int:
    """The number of positions in the model's table; sinusoids have as many rows as are stored."""
    return model.max_positions if model.position_embedding == "learned" else max(model.max_positions, search.max_length)


class CopiedParameters:
    """Copies of parameters in float32, and which of a system's have one."""

    def __init__(self) -> None:
        self._copied: set[int] = set()

    def tensor(self, parameter: Tensor) -> Tensor:
        self._copied.add(id(parameter))
        return parameter.detach().float()

    def check(self, system: nn.Module, engine: str) -> None:
        """Raise RunError that names the parameters that were not copied."""
        left = [name for name, parameter in system.named_parameters() if id(parameter) not in self._copied]
        if left:
            raise RunError(f"{engine} has no place for {', '.join(left[:3])}; this system cannot be exported")
