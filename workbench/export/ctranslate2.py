"""Export of a run as a CTranslate2 model: a folder that translates without PyTorch and the workbench.

    OUT/{model.bin, config.json, *_vocabulary.json}  OUT/{source,target}.model (SentencePiece)  OUT/README.txt

A parameter without a counterpart is refused by its name. Knows the Transformer's modules and CTranslate2's
specification of them; runs neither.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import SearchConfig
from core_models.files.atomic_folders import anything, atomic_replace_folder
from core_models.settings import nearest
from workbench.export.plain_transformer import (
    CopiedParameters,
    refuse_dictionaries,
    refuse_other_systems,
    refuse_taken,
    stored_positions,
)
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from core_models.checkpoint import Trained

ENGINE = "CTranslate2"
README = """\
{name} as a CTranslate2 model, {quantization}. To run it: pip install ctranslate2 sentencepiece

    import ctranslate2, sentencepiece
    source, target = (sentencepiece.SentencePieceProcessor(f"{folder}/{{side}}.model") for side in ("source", "target"))
    translator = ctranslate2.Translator("{folder}", device="cpu", intra_threads=1)
    pieces = source.encode(["a sentence", "another"], out_type=str)
    found = translator.translate_batch(
        pieces, max_batch_size=32, beam_size={beam}, length_penalty={alpha:g}, patience=2, return_end_token=True,
        max_input_length=0, max_decoding_length={longest}, min_decoding_length=0,
        suppress_sequences=[["<pad>"], ["<s>"]])
    print(target.decode([one.hypotheses[0] for one in found]))

What makes this the search of the workbench: scores are divided by length ** length_penalty, the workbench's
`penalty: power`, with </s> counted (return_end_token); <pad> and <s> are never put out; an empty translation may be
(min_decoding_length). What differs: this search ends when patience x beam_size hypotheses have ended, the workbench's
when no other can overtake the best (with patience=1 it is faster, and now and then finds a worse translation); a
translation may have max_decoding_length pieces, in the workbench also no more than {factor:g} x source + {offset};
sources and translations of up to {positions} pieces have positions.
"""
GNMT = """\
This run's own search has `penalty: gnmt`, ((5 + length) / 6) ** {alpha:g}, which CTranslate2 does not know: for
the same translations give the workbench `--search penalty=power` too.
"""

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}  # our names, and CTranslate2's


def check_quantization(quantization: str) -> None:
    """Raise RunError if the package `ctranslate2` is missing, or has no quantization of this name."""
    try:
        from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES
    except ImportError:
        raise RunError(
            "the package ctranslate2 is not installed; install it: pip install 'nmt-workbench[export]'"
        ) from None
    if quantization not in ACCEPTED_MODEL_TYPES:
        raise RunError(f"--quantization {quantization!r}: {nearest(quantization, ACCEPTED_MODEL_TYPES)}")


def export_ctranslate2(run: Run, out: Path, quantization: str = "float32") -> Path:
    """Write a Transformer without mechanisms as a CTranslate2 model folder, atomically.

    quantization: storage type of the weights by CTranslate2's name (float32, int8, float16, ...). Raises RunError if
    the run is another system, the folder exists already, or the package `ctranslate2` is missing.
    """
    refuse_other_systems(run.config.model, run.name, ENGINE)
    refuse_taken(out)
    check_quantization(quantization)
    from core_models.checkpoint import open_trained

    trained = open_trained(run.reference)
    refuse_dictionaries(trained, run.name, ENGINE)
    spec = specify(trained)
    spec.validate()
    spec.optimize(quantization)
    search = run.config.search
    readme = how_to_run(run.name, out, quantization, search, stored_positions(run.config.model, search))
    with atomic_replace_folder(out, "export ctranslate2", anything) as unfinished:
        spec.save(str(unfinished))
        trained.source_vocabulary.save(unfinished / "source.model")
        trained.target_vocabulary.save(unfinished / "target.model")
        (unfinished / "README.txt").write_text(readme, encoding="utf-8")
    return out


def how_to_run(name: str, folder: Path, quantization: str, search: SearchConfig, positions: int) -> str:
    """Six lines of Python that translate with the model, and the differences of its search from the run's."""
    text = README.format(
        name=name,
        quantization=quantization,
        folder=folder.as_posix(),
        beam=search.beam,
        alpha=search.length_penalty,
        longest=min(search.max_length, positions),
        factor=search.length_factor,
        offset=search.length_offset,
        positions=positions,
    )
    return text + (GNMT.format(alpha=search.length_penalty) if search.penalty == "gnmt" else "")


def specify(trained: Trained) -> Any:
    """The system as a `ctranslate2.specs.TransformerSpec`; raises RunError for a parameter without a counterpart."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    model: Any = trained.system.backbone
    config = trained.config.model
    spec = TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=getattr(Activation, ACTIVATIONS[config.activation_function]),
    )
    spec.config.layer_norm_epsilon = model.encoder[0].attention_norm.eps
    spec.config.add_source_eos = True
    for register, vocabulary in (
        (spec.register_source_vocabulary, trained.source_vocabulary),
        (spec.register_target_vocabulary, trained.target_vocabulary),
    ):
        register(vocabulary.pieces(range(len(vocabulary))))
    transfer = _Transfer(stored_positions(config, trained.config.search))
    transfer.stack(spec.encoder, spec.encoder.embeddings[0], model.source_table, model.source_positions)
    transfer.stack(spec.decoder, spec.decoder.embeddings, model.target_table, model.target_positions)
    transfer.output(spec.decoder.projection, *model.output_matrix)
    for layer, block in zip(spec.encoder.layer, model.encoder, strict=True):
        transfer.block(layer, block)
    for layer, block in zip(spec.decoder.layer, model.decoder, strict=True):
        transfer.block(layer, block)
        transfer.cross_attention(layer.attention, block)
    if config.norm == "pre":
        transfer.norm(spec.encoder.layer_norm, model.encoder_norm)
        transfer.norm(spec.decoder.layer_norm, model.decoder_norm)
    transfer.parameters.check(trained.system, ENGINE)
    return spec


class _Transfer:
    """Copies parameters to CTranslate2's specification and keeps track of the copied ones."""

    def __init__(self, positions: int) -> None:
        self.positions = positions
        self.parameters = CopiedParameters()
        self.tensor = self.parameters.tensor

    def linear(self, spec: Any, module: nn.Linear) -> None:
        spec.weight, spec.bias = self.tensor(module.weight), self.tensor(module.bias)

    def norm(self, spec: Any, module: nn.LayerNorm) -> None:
        spec.gamma, spec.beta = self.tensor(module.weight), self.tensor(module.bias)

    def stack(self, spec: Any, embeddings: Any, table: nn.Embedding, positions: Any) -> None:
        """Copy embeddings, which CTranslate2 scales by sqrt(width) too, and positions row by row.

        CTranslate2's own sinusoids have all sines before all cosines, begin at 1 and have other rates.
        """
        embeddings.weight = self.tensor(table.weight)
        if positions.learned is not None:
            self.tensor(positions.learned)
        spec.position_encodings.encodings = positions(0, self.positions).detach().float()

    def output(self, spec: Any, weight: Tensor, bias: Tensor | None) -> None:
        spec.weight = self.tensor(weight)
        if bias is not None:
            spec.bias = self.tensor(bias)

    def block(self, spec: Any, block: Any) -> None:
        """Copy self-attention (queries, keys and values in one matrix in this order on both sides) and feed-forward."""
        self.norm(spec.self_attention.layer_norm, block.attention_norm)
        self.linear(spec.self_attention.linear[0], block.attention.project)
        self.linear(spec.self_attention.linear[1], block.attention.output)
        self.norm(spec.ffn.layer_norm, block.feed_forward_norm)
        self.linear(spec.ffn.linear_0, block.expand)
        self.linear(spec.ffn.linear_1, block.contract)

    def cross_attention(self, spec: Any, block: Any) -> None:
        self.norm(spec.layer_norm, block.cross_norm)
        for linear, module in zip(
            spec.linear, (block.cross.query, block.cross.memory, block.cross.output), strict=True
        ):
            self.linear(linear, module)
