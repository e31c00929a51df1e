"""Export of a run for Hugging Face's `transformers`: a folder that AutoModelForSeq2SeqLM and AutoTokenizer open.

    OUT/{config.json, generation_config.json, model.safetensors}  OUT/{tokenizer.json, tokenizer_config.json}
    OUT/target/{tokenizer.json, ...} if the target has its own vocabulary  OUT/README.txt

The classes are the library's own, chosen by norm and positions: nothing is executed from the folder. A parameter
without a counterpart is refused by its name. Knows the Transformer's modules and the names of theirs; runs neither.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import ModelConfig, SearchConfig
from core_models.files.atomic_folders import anything, atomic_replace_folder
from core_models.text.vocabulary import BOS, EOS, PAD
from workbench.export.huggingface_tokenizer import huggingface_tokenizer
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

ENGINE = "transformers"
NO_WORD = -1e9  # logit of the rows that fill up the smaller of two vocabularies
README = """\
{name} as a {architecture} of Hugging Face. To run it: pip install 'transformers>=5,<6' torch

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
    folder = "{folder}"
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    source = AutoTokenizer.from_pretrained(folder)
    target = {target}
    batch = source(["a sentence", "another"], padding=True, return_tensors="pt")
    print(target.batch_decode(model.generate(**batch), skip_special_tokens=True))

generation_config.json makes this the search of the workbench: beam {beam}, scores divided by length ** {alpha:g} with
</s> counted, <pad> and <s> never put out, no end before no other hypothesis can overtake. What differs: a translation
may have {longest} pieces, in the workbench also no more than {factor:g} x source + {offset}, and a hypothesis that is
cut there stands among the finished ones; sources and translations of up to {positions} pieces have positions.
"""
GNMT = """\
Warning: this run's own search has `penalty: gnmt`, ((5 + length) / 6) ** {alpha:g}, which `generate` does not know: a
few translations will differ. For the same ones give the workbench `--search penalty=power` too.
"""
KEEPING = """\
Warning: this run's own search has `finished_hypotheses: keep`, which `generate` does not know: it drops them.
"""
TABLES = """\
Marian computes positions and leaves these learned ones out when it saves: keep this folder's model.safetensors.
"""


def check_transformers() -> None:
    """Raise RunError if the package `transformers` is missing, or of a version other than 5."""
    try:
        from transformers import __version__
    except ImportError:
        __version__ = ""
    if not __version__.startswith("5."):
        found = f"of version {__version__}, not 5" if __version__ else "not installed"
        raise RunError(
            f"the package transformers is {found}; install it: pip install 'nmt-workbench[huggingface]'"
        ) from None


def export_huggingface(run: Run, out: Path) -> Path:
    """Write a Transformer without mechanisms as a model folder of `transformers`, atomically.

    Raises RunError if the run is another system, the folder exists already, or the package is missing.
    """
    refuse_other_systems(run.config.model, run.name, ENGINE)
    refuse_taken(out)
    check_transformers()
    from core_models.checkpoint import open_trained

    trained = open_trained(run.reference)
    refuse_dictionaries(trained, run.name, ENGINE)
    with atomic_replace_folder(out, "export huggingface", anything) as unfinished:
        write_model(trained, unfinished)
        readme = how_to_run(trained, run.name, out)
        (unfinished / "README.txt").write_text(readme, encoding="utf-8")
    return out


def write_model(trained: Trained, folder: Path) -> None:
    """Write configuration, weights, settings of `generate` and tokenizers into an empty folder."""
    from core_models.checkpoint import write_tensors

    model, search = trained.config.model, trained.config.search
    positions = stored_positions(model, search)
    sizes = len(trained.source_vocabulary), len(trained.target_vocabulary)
    configuration(model, positions, *sizes).save_pretrained(folder)
    # Not `save_pretrained` of a model: Marian's leaves learned positions out.
    write_tensors(folder / "model.safetensors", converted(trained))
    generation(search, positions).save_pretrained(folder)
    huggingface_tokenizer(trained.source_vocabulary, positions).save_pretrained(folder)
    if not _joint(trained):
        huggingface_tokenizer(trained.target_vocabulary, positions).save_pretrained(folder / "target")


def _joint(trained: Trained) -> bool:
    return trained.source_vocabulary.digest == trained.target_vocabulary.digest


def architecture(model: ModelConfig) -> str:
    """The class that computes this Transformer: post-norm is Marian's, pre-norm Pegasus's or Blenderbot's."""
    if model.norm == "post":
        return "Marian"
    return "Blenderbot" if model.position_embedding == "learned" else "Pegasus"


def configuration(model: ModelConfig, positions: int, source_words: int, target_words: int) -> Any:
    """The model's configuration of `transformers`."""
    import transformers

    family = architecture(model)
    if family == "Marian":
        tied = {
            "vocab_size": source_words,
            "decoder_vocab_size": target_words,
            "share_encoder_decoder_embeddings": model.tie_embeddings == "all",
            "tie_word_embeddings": model.tie_embeddings != "none",
        }
    else:  # one number of words, and all tables tied or none
        tied = {"vocab_size": max(source_words, target_words), "tie_word_embeddings": model.tie_embeddings == "all"}
    class_name = {"Marian": "MarianMTModel"}.get(family, f"{family}ForConditionalGeneration")
    return getattr(transformers, f"{family}Config")(
        **tied,
        architectures=[class_name],
        dtype="float32",
        d_model=model.d_model,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        encoder_attention_heads=model.heads,
        decoder_attention_heads=model.heads,
        encoder_ffn_dim=model.ffn_dim,
        decoder_ffn_dim=model.ffn_dim,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
        activation_dropout=model.activation_dropout,
        activation_function=model.activation_function,
        scale_embedding=True,
        max_position_embeddings=positions,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )


def generation(search: SearchConfig, positions: int) -> Any:
    """The settings of `generate` that make its beam search the workbench's with `penalty: power`."""
    from transformers import GenerationConfig

    return GenerationConfig(
        num_beams=search.beam,
        length_penalty=search.length_penalty,
        early_stopping="never",
        max_new_tokens=min(search.max_length, positions),
        suppress_tokens=[PAD, BOS],
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )


def how_to_run(trained: Trained, name: str, folder: Path) -> str:
    """Seven lines of Python that translate with the model, and the differences of its search from the run's."""
    model, search = trained.config.model, trained.config.search
    positions = stored_positions(model, search)
    text = README.format(
        name=name,
        architecture=architecture(model),
        folder=folder.as_posix(),
        target="source" if _joint(trained) else 'AutoTokenizer.from_pretrained(f"{folder}/target")',
        beam=search.beam,
        alpha=search.length_penalty,
        longest=min(search.max_length, positions),
        factor=search.length_factor,
        offset=search.length_offset,
        positions=positions,
    )
    notes = {
        GNMT: search.penalty == "gnmt" and search.length_penalty > 0,
        KEEPING: search.finished_hypotheses == "keep",
        TABLES: architecture(model) == "Marian" and model.position_embedding == "learned",
    }
    return text + "".join(note.format(alpha=search.length_penalty) for note, holds in notes.items() if holds)


def converted(trained: Trained) -> dict[str, Tensor]:
    """The system's parameters by their names in `transformers`; raises RunError for one without a counterpart."""
    model: Any = trained.system.backbone
    config = trained.config.model
    stored = stored_positions(config, trained.config.search)
    transfer = _Transfer(config)
    transfer.tables(model, len(trained.source_vocabulary), len(trained.target_vocabulary))
    for side, blocks, positions, norm in (
        ("encoder", model.encoder, model.source_positions, model.encoder_norm),
        ("decoder", model.decoder, model.target_positions, model.decoder_norm),
    ):
        table = positions(0, stored) if positions.learned is None else positions.learned
        transfer.tensor(f"model.{side}.embed_positions.weight", table)
        for number, block in enumerate(blocks):
            transfer.block(f"model.{side}.layers.{number}", block)
        if config.norm == "pre":
            transfer.norm(f"model.{side}.layer_norm", norm)
    transfer.parameters.check(trained.system, ENGINE)
    return transfer.tensors


class _Transfer:
    """Copies parameters under their new names, and keeps track of the copied ones.

    Theirs have all sines of a position before all cosines, ours have them by turns: with sinusoidal positions the units
    of the model's width are put into their order wherever they are read or written.
    """

    def __init__(self, config: ModelConfig) -> None:
        import torch

        self.config = config
        self.parameters = CopiedParameters()
        self.tensors: dict[str, Tensor] = {}
        units = torch.arange(config.d_model)
        learned = config.position_embedding == "learned"
        self.units = units if learned else torch.cat([units[0::2], units[1::2]])

    def tensor(self, name: str, parameter: Tensor, width_axis: int = -1) -> None:
        self.tensors[name] = self.parameters.tensor(parameter).index_select(width_axis, self.units)

    def tables(self, model: Any, source_words: int, target_words: int) -> None:
        """Copy the tables that are not tied to another; Pegasus and Blenderbot tie all tables or none."""
        if self.config.tie_embeddings == "all":
            self.tensor("model.shared.weight", model.source_table.weight)
            return
        self.tensor("model.encoder.embed_tokens.weight", model.source_table.weight)
        self.tensor("model.decoder.embed_tokens.weight", model.target_table.weight)
        if self.config.tie_embeddings == "none" or architecture(self.config) != "Marian":
            self.tensor("lm_head.weight", model.vocabulary.weight)
        if architecture(self.config) != "Marian":
            self._fill_up(target_words, max(source_words, target_words))

    def _fill_up(self, target_words: int, words: int) -> None:
        """Give all tables the larger vocabulary's number of rows; none of the new ones can be put out.

        `model.shared` is read by nothing when tables are not tied, but has to be there.
        """
        import torch

        for name in ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"):
            table = self.tensors[name]
            self.tensors[name] = torch.cat([table, table.new_zeros(words - len(table), table.shape[1])])
        self.tensors["model.shared.weight"] = self.tensors["model.encoder.embed_tokens.weight"].clone()
        bias = self.tensors["final_logits_bias"] = torch.zeros(1, words)
        bias[:, target_words:] = NO_WORD

    def block(self, name: str, block: Any) -> None:
        """Copy a layer; queries, keys and values are of one matrix here, and of three there."""
        query, key, value = ("q_proj", "k_proj", "v_proj")
        self.projections(f"{name}.self_attn", (query, key, value), block.attention.project)
        self.writing(f"{name}.self_attn.out_proj", block.attention.output)
        self.norm(f"{name}.self_attn_layer_norm", block.attention_norm)
        if hasattr(block, "cross"):
            self.projections(f"{name}.encoder_attn", (query,), block.cross.query)
            self.projections(f"{name}.encoder_attn", (key, value), block.cross.memory)
            self.writing(f"{name}.encoder_attn.out_proj", block.cross.output)
            self.norm(f"{name}.encoder_attn_layer_norm", block.cross_norm)
        self.projections(name, ("fc1",), block.expand)
        self.writing(f"{name}.fc2", block.contract)
        self.norm(f"{name}.final_layer_norm", block.feed_forward_norm)

    def projections(self, name: str, parts: tuple[str, ...], module: nn.Linear) -> None:
        """Copy a matrix that reads the model's width, cut into parts of equal size."""
        weights = self.parameters.tensor(module.weight)[:, self.units].chunk(len(parts))
        for part, weight, bias in zip(
            parts, weights, self.parameters.tensor(module.bias).chunk(len(parts)), strict=True
        ):
            self.tensors[f"{name}.{part}.weight"] = weight.clone()
            self.tensors[f"{name}.{part}.bias"] = bias.clone()

    def writing(self, name: str, module: nn.Linear) -> None:
        """Copy a matrix that writes the model's width."""
        self.tensor(f"{name}.weight", module.weight, 0)
        self.tensor(f"{name}.bias", module.bias)

    def norm(self, name: str, module: nn.LayerNorm) -> None:
        self.tensor(f"{name}.weight", module.weight)
        self.tensor(f"{name}.bias", module.bias)
