"""Checkpoints of fairseq's Transformer as tensors of ours: what is read, what is refused, which tensor becomes which.

Nothing in a checkpoint is executed: torch reads tensors, numbers, texts and argparse's Namespace, and refuses the rest.
Sinusoids are stored as a table of positions: fairseq's begin at 2, have other rates and all sines first.
"""

from __future__ import annotations

import argparse
import math
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from core_models.config import MOST_PARTS, MOST_UNITS, ModelConfig
from core_models.files.run_files import TENSORS, check
from core_models.settings import ConfigError, Section, parse
from core_models.system_builder import build

# Counters of a training may be numbers of NumPy, which older versions of it call numpy.core.
_NUMBER = np.float64(0).__reduce__()[0]
PASSIVE = [
    argparse.Namespace, (_NUMBER, "numpy.core.multiarray.scalar"), (_NUMBER, "numpy._core.multiarray.scalar"), np.dtype,
    *(type(np.dtype(name)) for name in ("float64", "float32", "int64")),
]  # fmt: skip
ARCHITECTURES = Literal[
    "transformer", "transformer_tiny", "transformer_iwslt_de_en", "transformer_wmt_en_de",
    "transformer_vaswani_wmt_en_de_big", "transformer_vaswani_wmt_en_fr_big", "transformer_wmt_en_de_big",
    "transformer_wmt_en_de_big_t2t", "transformer_align", "transformer_wmt_en_de_big_align",
]  # fmt: skip
# Settings that change what is computed and have no counterpart here.
UNKNOWN = (
    "layernorm_embedding", "no_cross_attention", "cross_self_attention", "no_decoder_final_norm", "adaptive_input",
    "adaptive_softmax_cutoff", "char_inputs", "base_layers", "encoder_layers_to_keep", "decoder_layers_to_keep",
    "decoder_recurrent_stacking",
)  # fmt: skip
OFF = ("None", "False", "0", "")
BEGIN, PADDING, END, UNKNOWN_WORD = 0, 1, 2, 3  # of a dictionary of fairseq
FIRST_POSITION = PADDING + 1
MOST_SINUSOIDS = 1 << 14  # rows of their table: a larger setting means no limit, and would take gigabytes
# Our PAD, UNK, BOS and EOS by theirs, in tables that are read: their decoder begins with </s>.
READ = (PADDING, UNKNOWN_WORD, END, END)
WRITTEN = (PADDING, UNKNOWN_WORD, BEGIN, END)
_NO_WEIGHTS = re.compile(r"(encoder|decoder)\.(version|embed_positions\._float_tensor)")
_FORMER_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


class Arguments(Section):
    """The settings of a checkpoint that its tensors do not show."""

    arch: ARCHITECTURES
    encoder_attention_heads: int = Field(gt=0, le=MOST_PARTS)
    decoder_attention_heads: int = Field(gt=0, le=MOST_PARTS)
    encoder_normalize_before: bool = False
    decoder_normalize_before: bool = False
    encoder_learned_pos: bool = False
    decoder_learned_pos: bool = False
    no_token_positional_embeddings: bool = False
    no_scale_embedding: bool = False
    activation_fn: Literal["relu", "gelu"] = "relu"
    max_source_positions: int = Field(1024, gt=0, le=MOST_UNITS)
    max_target_positions: int = Field(1024, gt=0, le=MOST_UNITS)
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0


def read_checkpoint(path: Path) -> tuple[Arguments, dict[str, Tensor]]:
    """The settings and tensors of a checkpoint; raises ConfigError for one that may not be opened, or is none."""
    content = _unpickled(path)
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise ConfigError(f"{path}: no checkpoint of fairseq: there is no `model` in it; give its checkpoint_best.pt")
    tensors = {
        _current_name(str(name)): tensor
        for name, tensor in content["model"].items()
        if not _NO_WEIGHTS.fullmatch(str(name))
    }
    if odd := [name for name, tensor in tensors.items() if not _whole(tensor)]:
        raise ConfigError(f"{path}: {odd[0]} is no whole tensor of finite numbers; copy the checkpoint again")
    given = _given(content)
    if unknown := [name for name in UNKNOWN if str(given.get(name)) not in OFF]:
        raise ConfigError(f"{path}: a model with {unknown[0]}, which cannot be computed here; open one without it")
    known = {name: given[name] for name in Arguments.model_fields if name in given}
    return parse(Arguments, known, where=str(path)), tensors


def _whole(tensor: Any) -> bool:
    """Return True for a tensor whose numbers are all stored, not repeated, and finite."""
    if not isinstance(tensor, Tensor) or tensor.layout != torch.strided or tensor.device.type != "cpu":
        return False
    stored = tensor.nbytes <= tensor.untyped_storage().nbytes()
    return stored and tensor.is_floating_point() and bool(torch.isfinite(tensor).all())


def _unpickled(path: Path) -> Any:
    try:
        check(path, TENSORS)
        with torch.serialization.safe_globals(PASSIVE):
            # Mapped, where the format allows it, so that the optimizer's state beside the model is never read.
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such checkpoint; name a file such as checkpoint_best.pt") from None
    except pickle.UnpicklingError as error:
        name = re.search(r"GLOBAL (\S+)", str(error))
        what = f"it asks for {name[1]}, which" if name else "it holds something that"
        raise ConfigError(
            f"{path}: {what} is never run or built here; in an environment that trusts the file, save it again with "
            "no more than `model` and, as a Namespace, `args`"
        ) from None
    except (OSError, RuntimeError, ValueError, EOFError, KeyError, AttributeError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise ConfigError(f"{path}: not a readable checkpoint ({reason}); copy it again") from None


def _given(content: Mapping[str, Any]) -> dict[str, Any]:
    """The model's settings: `args` in earlier versions of fairseq, `cfg.model` in later ones."""
    settings = content.get("args")
    if settings is None:
        settings = content.get("cfg")
        settings = settings.get("model") if isinstance(settings, Mapping) else None
    if isinstance(settings, argparse.Namespace):
        settings = vars(settings)
    if not isinstance(settings, Mapping):
        settings = {}
    given = {str(name): value for name, value in settings.items()}
    for side in ("encoder", "decoder"):  # by side in the latest versions
        if isinstance(inner := given.get(side), Mapping):
            given |= {f"{side}_{name}": value for name, value in inner.items()}
    if "arch" not in given and "_name" in given:
        given["arch"] = given["_name"]
    return {name: value for name, value in given.items() if value is not None}


def _current_name(name: str) -> str:
    """A tensor's name in fairseq's latest version."""
    if name == "decoder.embed_out":
        return "decoder.output_projection.weight"
    if former := re.fullmatch(r"((encoder|decoder)\.layers\.\d+)\.layer_norms\.(\d)\.(weight|bias)", name):
        norms = _FORMER_NORMS[former[2]]
        if int(former[3]) < len(norms):
            return f"{former[1]}.{norms[int(former[3])]}.{former[4]}"
    return name


def converted(arguments: Arguments, tensors: Mapping[str, Tensor], where: str) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The configuration of our Transformer and its parameters by name; raises ConfigError for a tensor without one."""
    if arguments.encoder_normalize_before != arguments.decoder_normalize_before:
        raise ConfigError(f"{where}: one side is pre-norm, the other post-norm; only both alike can be computed here")
    if arguments.encoder_attention_heads != arguments.decoder_attention_heads:
        raise ConfigError(f"{where}: encoder and decoder have other numbers of heads, which cannot be computed here")
    conversion = _Conversion(arguments, tensors, where)
    try:
        config = conversion.run()
    except (RuntimeError, IndexError) as error:  # matrices of shapes that cannot be cut or joined
        raise ConfigError(f"{where}: its tensors do not fit each other ({error}); copy the checkpoint again") from None
    found = {f"backbone.{name}": tensor.float().clone() for name, tensor in conversion.found.items()}
    _check_shapes(config, found, where)
    return config, found


def _check_shapes(config: ModelConfig, found: Mapping[str, Tensor], where: str) -> None:
    words = (len(found[f"backbone.{name}.weight"]) for name in ("source_table", "target_table"))
    with torch.device("meta"):
        expected = {name: list(parameter.shape) for name, parameter in build(config, *words).named_parameters()}
    for name, shape in expected.items():
        if list(found[name].shape) != shape:
            raise ConfigError(
                f"{where}: {name.removeprefix('backbone.')} would be {list(found[name].shape)}, and has to be {shape}; "
                "copy the checkpoint again"
            )


class _Conversion:
    """Takes tensors by their names and files them under ours; `left` are those that were not asked for."""

    def __init__(self, arguments: Arguments, tensors: Mapping[str, Tensor], where: str) -> None:
        self.arguments, self.left, self.where = arguments, dict(tensors), where
        self.found: dict[str, Tensor] = {}
        self.width = 0

    def run(self) -> ModelConfig:
        """File all tensors; the configuration of the Transformer that they are of."""
        self.tables()
        positions = self.positions()
        layers = {side: self.stack(side) for side in ("encoder", "decoder")}
        if self.left:
            raise ConfigError(
                f"{self.where}: {min(self.left)} has no place in a Transformer here; only fairseq's plain one opens"
            )
        arguments = self.arguments
        config = {
            "preset": None,
            "d_model": self.width,
            "embedding": self.width,
            "encoder_layers": layers["encoder"],
            "decoder_layers": layers["decoder"],
            "heads": arguments.encoder_attention_heads,
            "ffn_dim": len(self.found["encoder.0.expand.weight"]),
            "norm": "pre" if arguments.encoder_normalize_before else "post",
            "tie_embeddings": "none",
            "position_embedding": "learned",
            "max_positions": positions,
            "dropout": arguments.dropout,
            "attention_dropout": arguments.attention_dropout,
            "activation_dropout": arguments.activation_dropout,
            "activation_function": arguments.activation_fn,
        }
        return parse(ModelConfig, config, where=self.where)

    def take(self, name: str) -> Tensor:
        if name not in self.left:
            raise ConfigError(f"{self.where}: there is no {name} in it, so it is no encoder-decoder of fairseq's")
        return self.left.pop(name)

    def tables(self) -> None:
        """Tables are never shared: <s> is read as their </s>, and put out as their <s>."""
        source, target = (self.take(f"{side}.embed_tokens.weight") for side in ("encoder", "decoder"))
        output = self.left.pop("decoder.output_projection.weight", target)
        if any(table.dim() != 2 or len(table) <= UNKNOWN_WORD for table in (source, target, output)):
            raise ConfigError(f"{self.where}: its embeddings are no tables of words; copy the checkpoint again")
        self.width = source.shape[1]
        if self.width < 4 or self.width % 2:
            raise ConfigError(f"{self.where}: embeddings of width {self.width}, which cannot be computed here")
        scale = math.sqrt(self.width) if self.arguments.no_scale_embedding else 1.0
        for name, table, control in (
            ("source_table", source, READ),
            ("target_table", target, READ),
            ("vocabulary", output, WRITTEN),
        ):
            rows = torch.tensor([*control, *range(len(control), len(table))])
            scaled = table.float() / (1.0 if name == "vocabulary" else scale)
            self.found[f"{name}.weight"] = scaled[rows]

    def positions(self) -> int:
        """File tables of positions of one length, and return it."""
        arguments = self.arguments
        sides = {"encoder": arguments.encoder_learned_pos, "decoder": arguments.decoder_learned_pos}
        tables = {}
        for side, learned in sides.items():
            if learned and not arguments.no_token_positional_embeddings:
                tables[side] = self.take(f"{side}.embed_positions.weight")[FIRST_POSITION:]
        most = min(max(arguments.max_source_positions, arguments.max_target_positions), MOST_SINUSOIDS)
        length = min((len(table) for table in tables.values()), default=most)
        for side, name in (("encoder", "source"), ("decoder", "target")):
            if arguments.no_token_positional_embeddings:
                table = torch.zeros(length, self.width)
            else:
                table = tables[side][:length] if side in tables else sinusoids(length, self.width)
            self.found[f"{name}_positions.learned"] = table
        return length

    def stack(self, side: str) -> int:
        """File the layers of a side and its final norm, and return the number of layers."""
        number = 0
        while any(name.startswith(f"{side}.layers.{number}.") for name in self.left):
            theirs, ours = f"{side}.layers.{number}", f"{side}.{number}"
            self._projected(f"{theirs}.self_attn", f"{ours}.attention.project", ("q_proj", "k_proj", "v_proj"))
            self._both(f"{theirs}.self_attn.out_proj", f"{ours}.attention.output")
            self._both(f"{theirs}.self_attn_layer_norm", f"{ours}.attention_norm")
            if side == "decoder":
                self._split_if_joint(f"{theirs}.encoder_attn")
                self._both(f"{theirs}.encoder_attn.q_proj", f"{ours}.cross.query")
                self._projected(f"{theirs}.encoder_attn", f"{ours}.cross.memory", ("k_proj", "v_proj"))
                self._both(f"{theirs}.encoder_attn.out_proj", f"{ours}.cross.output")
                self._both(f"{theirs}.encoder_attn_layer_norm", f"{ours}.cross_norm")
            self._both(f"{theirs}.fc1", f"{ours}.expand")
            self._both(f"{theirs}.fc2", f"{ours}.contract")
            self._both(f"{theirs}.final_layer_norm", f"{ours}.feed_forward_norm")
            number += 1
        if not number:
            raise ConfigError(f"{self.where}: its {side} has no layers, so it is no encoder-decoder of fairseq's")
        if self.arguments.encoder_normalize_before:
            self._both(f"{side}.layer_norm", f"{side}_norm")
        return number

    def _both(self, theirs: str, ours: str) -> None:
        for kind in ("weight", "bias"):
            self.found[f"{ours}.{kind}"] = self.take(f"{theirs}.{kind}")

    def _projected(self, theirs: str, ours: str, parts: tuple[str, ...]) -> None:
        """Matrices of queries, keys and values, which are one here."""
        self._split_if_joint(theirs)
        for kind in ("weight", "bias"):
            self.found[f"{ours}.{kind}"] = torch.cat([self.take(f"{theirs}.{part}.{kind}") for part in parts])

    def _split_if_joint(self, theirs: str) -> None:
        """Earlier versions of fairseq have one matrix too."""
        for kind in ("weight", "bias"):
            if (joint := self.left.pop(f"{theirs}.in_proj_{kind}", None)) is not None:
                for part, tensor in zip(("q_proj", "k_proj", "v_proj"), joint.chunk(3), strict=True):
                    self.left[f"{theirs}.{part}.{kind}"] = tensor


def sinusoids(length: int, width: int) -> Tensor:
    """Sinusoids of fairseq from its first position on, [length, width]: all sines, then all cosines."""
    half = width // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float32) * (-math.log(10000) / (half - 1)))
    angles = torch.arange(FIRST_POSITION, FIRST_POSITION + length, dtype=torch.float32)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)
