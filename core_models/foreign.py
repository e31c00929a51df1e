"""Opening models of Hugging Face from a folder: what is refused, what frames a text, which search is meant.

    MODEL/{config.json, generation_config.json, *.safetensors, tokenizer files}

Nothing is executed or fetched: the families are those of FAMILIES, weights are safetensors, code is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from core_models.backbones.foreign import ForeignEncoderDecoder
from core_models.backbones.foreign_causal import ForeignDecoder, Prompt
from core_models.backbones.foreign_frame import Frame
from core_models.backbones.foreign_tables import renumbered
from core_models.backbones.foreign_transformer import transformer_of
from core_models.config import ModelConfig, SearchConfig
from core_models.foreign_config import ForeignModel
from core_models.foreign_templates import parts_of, prompt_of, special_words
from core_models.settings import ConfigError, parse
from core_models.system import System
from core_models.text.foreign_vocabulary import ForeignVocabulary
from core_models.text.vocabulary import BOS, PAD, UNK

FAMILIES = ("marian", "m2m_100", "mbart", "bart", "blenderbot", "pegasus", "t5", "mt5")
DECODERS = ("llama", "qwen2", "qwen3", "gemma", "gemma2")  # decoder-only, which translate by a template
OF_LANGUAGES = ("m2m_100", "mbart")  # NLLB is an m2m_100
CHANGING_POSITIONS = ("dynamic", "longrope")  # whose rotations depend on the longest text that was read
READ = (".json", ".safetensors", ".model", ".spm", ".txt")  # files that decide what a model computes
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# Settings of `generate` without a counterpart in our search, each with the values that change nothing.
NEUTRAL_SETTINGS: dict[str, tuple[object, ...]] = {
    "no_repeat_ngram_size": (0,), "encoder_no_repeat_ngram_size": (0,), "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,), "min_length": (0, 1), "min_new_tokens": (0,), "num_beam_groups": (1,),
    "diversity_penalty": (0.0,), "do_sample": (False,), "early_stopping": (False, "never"), "sequence_bias": ({},),
    "exponential_decay_length_penalty": (), "guidance_scale": (1.0,), "force_words_ids": ([],),
}  # fmt: skip
SUPPRESSED = ("suppress_tokens", "begin_suppress_tokens", "bad_words_ids")  # words that are never put out
FRAME_WORDS = ("pad_token_id", "bos_token_id", "decoder_start_token_id")  # which our search never puts out either


@dataclass
class Opened:
    """A model with its vocabularies behind our interface."""

    system: System
    source_vocabulary: ForeignVocabulary
    target_vocabulary: ForeignVocabulary


def describe_model(
    path: Path, source_language: str = "", target_language: str = "", dtype: str = "float32", template: str = ""
) -> ForeignModel:
    """What a run stores of a model folder; raises ConfigError for one that cannot be opened."""
    config = check_folder(path)
    family = config["model_type"]
    if family in DECODERS:
        if not template:
            raise ConfigError(
                f"{path}: a {family} is decoder-only; name a text that asks it to translate {{source}}: --template FILE"
            )
        parts_of(template)
        if source_language or target_language:
            raise ConfigError(f"{path}: a {family} reads its languages in the template; leave --from and --to out")
    elif template:
        raise ConfigError(f"{path}: a {family} is an encoder-decoder, which needs no template; leave --template out")
    if family in OF_LANGUAGES and not (source_language and target_language):
        raise ConfigError(f"{path}: a model of several languages; name its codes of two: --from LANG --to LANG")
    if family not in OF_LANGUAGES and (source_language or target_language):
        raise ConfigError(f"{path}: a {family} has no tags of languages; leave --from and --to out")
    stored = {
        "path": str(path.resolve()),
        "model_type": family,
        "digest": digest_of_model(path),
        "source_language": source_language,
        "target_language": target_language,
        "template": template,
        "dtype": dtype,
    }
    return parse(ForeignModel, stored, where=str(path))


def check_folder(path: Path) -> dict[str, Any]:
    """The content of config.json; raises ConfigError for a folder that is no model, or may not be opened."""
    for file in _read_files(path):
        if not _lies_in(path, file):
            raise ConfigError(f"{file}: a link out of the model's folder, which is not followed; copy the file there")
    config = _json(path / "config.json")
    family = config.get("model_type")
    if family not in (*FAMILIES, *DECODERS):
        known = ", ".join((*FAMILIES, *DECODERS))
        raise ConfigError(f"{path}: a model of the type {family!r}; only these can be opened: {known}")
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rotations = scaling.get("rope_type") or scaling.get("type")
    if rotations in CHANGING_POSITIONS:
        raise ConfigError(
            f"{path}: positions of the type {rotations} change with the longest text; it cannot be opened"
        )
    for name in ("config.json", "tokenizer_config.json", "target/tokenizer_config.json"):
        if (path / name).is_file() and "auto_map" in _json(path / name):
            raise ConfigError(f"{path / name}: asks for code of its own (auto_map), which is never run")
    needed = [WEIGHTS]
    if (path / INDEX).is_file():
        shards = _json(path / INDEX).get("weight_map")
        needed = sorted({str(name) for name in shards.values()}) if isinstance(shards, dict) else needed
    for name in needed:
        if Path(name).name != name or not (path / name).is_file():
            pickled = " (a pickle is never opened; store it as safetensors)" if list(path.glob("*.bin")) else ""
            raise ConfigError(f"{path / name}: weights are missing{pickled}; copy the model again")
    return config


def _lies_in(path: Path, file: Path) -> bool:
    """Return True for a file of the folder, or of the cache that Hugging Face keeps: its snapshots link to blobs."""
    allowed = [path.resolve()]
    if path.resolve().parent.name == "snapshots":
        allowed.append(path.resolve().parent.parent / "blobs")
    return any(file.resolve().is_relative_to(folder) for folder in allowed)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path.parent}: no model of Hugging Face: {path.name} is missing") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); copy the model again") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: not a table of settings; copy the model again")
    return content


def digest_of_model(path: Path) -> str:
    """The SHA-256 over names and contents of all files that decide what a model computes."""
    total = hashlib.sha256()
    for file in _read_files(path):
        with file.open("rb") as content:
            total.update(
                f"{file.relative_to(path).as_posix()} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode()
            )
    return total.hexdigest()


def _read_files(path: Path) -> Iterator[Path]:
    for folder in (path, path / "target"):
        if folder.is_dir():
            yield from sorted(
                file
                for file in folder.iterdir()
                if file.suffix in READ and file.is_file() and file.name != "README.txt"
            )


def open_model(stored: ForeignModel, device: str | torch.device = "cpu") -> Opened:
    """Open the model that a run points at; raises ConfigError if it has moved, changed, or does not fit itself."""
    path = Path(stored.path)
    if not path.is_dir():
        raise ConfigError(
            f"{path}: the model of this run is not there any more; put it back, or open it from elsewhere"
        )
    check_folder(path)
    if digest_of_model(path) != stored.digest:
        raise ConfigError(f"{path}: the model has changed since this run was made; open it again under another name")
    model, tokenizers = _model(path, stored), _tokenizers(path, stored)
    if stored.model_type in DECODERS:
        return _opened_decoder(model, tokenizers[0], stored, device)
    source, target = tokenizers
    special = _special(model, target)
    frame = _frame(model, source, target, stored)
    orders = renumbered(model, *special)
    for tokenizer, order in zip(tokenizers, orders, strict=True):
        _check_fit(path, tokenizer, len(order))
    places = [{theirs: ours for ours, theirs in enumerate(order)} for order in orders]
    frame = Frame(
        tuple(places[0][word] for word in frame.source_before),
        tuple(places[0][word] for word in frame.source_after),
        tuple(places[1][word] for word in frame.target),
    )
    has_begin = special[2] is not None
    backbone = transformer_of(model, frame, has_begin) or ForeignEncoderDecoder(model, frame, has_begin)
    system = System(sizes(model.config.to_dict()), backbone, {}).to(device).eval()
    vocabularies = (
        ForeignVocabulary(
            tokenizer, order, stored.digest if source is target else f"{stored.digest}-{side}", side == "target"
        )
        for side, tokenizer, order in zip(("source", "target"), tokenizers, orders, strict=True)
    )
    return Opened(system, *vocabularies)


def _opened_decoder(model: Any, tokenizer: Any, stored: ForeignModel, device: str | torch.device) -> Opened:
    """A decoder-only model behind our interface: both sides have the words of its one tokenizer."""
    _check_fit(Path(stored.path), tokenizer, len(model.get_input_embeddings().weight))
    special = special_words(model, tokenizer, stored.template)
    prompt = prompt_of(stored.template, tokenizer)
    order = renumbered(model, *special)[0]
    places = {theirs: ours for ours, theirs in enumerate(order)}
    before, after = (tuple(places[word] for word in part) for part in prompt)
    missing = [ours for ours, theirs in zip((PAD, UNK, BOS), special, strict=False) if theirs is None]
    backbone = ForeignDecoder(model, Prompt(before, after), missing)
    system = System(sizes(model.config.to_dict()), backbone, {}).to(device).eval()
    vocabularies = (
        ForeignVocabulary(tokenizer, order, f"{stored.digest}-{side}", side == "target", lead)
        for side, lead in zip(("source", "target"), parts_of(stored.template), strict=True)
    )
    return Opened(system, *vocabularies)


def _check_fit(path: Path, tokenizer: Any, rows: int) -> None:
    if len(tokenizer) > rows:
        raise ConfigError(f"{path}: {len(tokenizer)} pieces in the tokenizer, {rows} in the weights; they do not fit")


def _model(path: Path, stored: ForeignModel) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        kind = AutoModelForCausalLM if stored.model_type in DECODERS else AutoModelForSeq2SeqLM
        model, report = kind.from_pretrained(
            path, dtype=getattr(torch, stored.dtype), local_files_only=True, trust_remote_code=False,
            use_safetensors=True, output_loading_info=True,
        )  # fmt: skip
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise ConfigError(
            f"{path}: cannot be opened ({str(error).splitlines()[0][:200]}); copy the model again"
        ) from None
    if missing := sorted(report["missing_keys"]):
        raise ConfigError(f"{path}: the weights have no {', '.join(missing[:3])}; copy the model again")
    return model


def _tokenizers(path: Path, stored: ForeignModel) -> tuple[Any, Any]:
    from transformers import AutoTokenizer

    languages = (
        {"src_lang": stored.source_language, "tgt_lang": stored.target_language} if stored.source_language else {}
    )

    def opened(folder: Path) -> Any:
        _check_tokenizer(folder)
        try:
            return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **languages)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise ConfigError(
                f"{folder}: the tokenizer cannot be opened ({str(error).splitlines()[0][:200]})"
            ) from None

    source = opened(path)
    if getattr(source, "separate_vocabs", False):
        raise ConfigError(f"{path}: a Marian tokenizer of two vocabularies cannot be opened yet")
    own_target = (path / "target" / "tokenizer_config.json").is_file()
    return source, opened(path / "target") if own_target else source


def _check_tokenizer(folder: Path) -> None:
    """Raise ConfigError if a folder asks for a tokenizer that the library does not have, which would be guessed."""
    import transformers

    file = folder / "tokenizer_config.json"
    name = _json(file).get("tokenizer_class") if file.is_file() else None
    if name is not None and not any(hasattr(transformers, str(one)) for one in (name, str(name).removesuffix("Fast"))):
        raise ConfigError(f"{file}: asks for the tokenizer {name!r}, which transformers does not have; use its own")


def _first(number: Any) -> int | None:
    return number[0] if isinstance(number, list) else number


def _special(model: Any, tokenizer: Any) -> tuple[int, int, int | None, int]:
    """Their numbers of <pad>, <unk>, <s> (None: there is none) and </s>."""
    settings, config = model.generation_config, model.config
    pad, end = (_first(getattr(settings, name) if getattr(settings, name) is not None else getattr(config, name, None))
                for name in ("pad_token_id", "eos_token_id"))  # fmt: skip
    unknown = tokenizer.unk_token_id
    if unknown is None:
        unknown = tokenizer.get_vocab().get("<unk>")
    if pad is None or end is None or unknown is None or len({pad, end, unknown}) < 3:
        raise ConfigError("the model has no words of their own for padding, the unknown and the end of a sentence")
    start = _prompt_start(model)
    begin = next((word for word in (tokenizer.bos_token_id, start) if word not in (None, pad, end, unknown)), None)
    return pad, unknown, begin, end


def _prompt_start(model: Any) -> int:
    for settings in (model.generation_config, model.config):
        if getattr(settings, "decoder_start_token_id", None) is not None:
            return _first(settings.decoder_start_token_id)  # type: ignore[return-value]
    raise ConfigError("the model does not say which word its decoder starts with (decoder_start_token_id)")


def _frame(model: Any, source: Any, target: Any, stored: ForeignModel) -> Frame:
    """What the tokenizer adds around a text, and the decoder's prompt, in their numbers."""
    bare, whole = (source("a", add_special_tokens=added)["input_ids"] for added in (False, True))
    place = next((k for k in range(len(whole)) if whole[k : k + len(bare)] == bare), None)
    end = _first(model.config.eos_token_id)
    if place is None or whole[place + len(bare) : place + len(bare) + 1] != [end]:
        raise ConfigError(f"{stored.path}: the tokenizer ends no text with </s>, as this program reads them")
    prompt = [_prompt_start(model)]
    forced = getattr(model.generation_config, "forced_bos_token_id", None)
    if stored.target_language:
        forced = _language(target, stored.target_language)
        _language(source, stored.source_language)
    if forced is not None:
        prompt.append(_first(forced))  # type: ignore[arg-type]
    return Frame(tuple(whole[:place]), tuple(whole[place + len(bare) + 1 :]), tuple(prompt))


def _language(tokenizer: Any, code: str) -> int:
    known = tokenizer.get_vocab()
    for name in (code, f"__{code}__"):
        if name in known:
            return known[name]
    codes = [name.strip("_") for name in tokenizer.all_special_tokens if "_" in name]
    raise ConfigError(f"the model has no language {code!r}; it has {', '.join(codes[:8]) or 'no tags'}, ...")


def sizes(config: Mapping[str, Any]) -> ModelConfig:
    """The sizes of a model, as far as our configuration names them."""
    if config["model_type"] in DECODERS:
        return ModelConfig(
            backbone="foreign_decoder",
            preset=None,
            d_model=config["hidden_size"],
            embedding=config["hidden_size"],
            encoder_layers=config["num_hidden_layers"],  # the same layers read the source
            decoder_layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            ffn_dim=config["intermediate_size"],
        )
    layers = config.get("num_layers")
    return ModelConfig(
        backbone="foreign",
        preset=None,
        d_model=config["d_model"],
        embedding=config["d_model"],
        encoder_layers=config.get("encoder_layers") or layers,
        decoder_layers=config.get("decoder_layers") or config.get("num_decoder_layers") or layers,
        heads=config.get("decoder_attention_heads") or config.get("num_heads"),
        ffn_dim=config.get("decoder_ffn_dim") or config.get("d_ff"),
    )


def search_of(path: Path) -> tuple[SearchConfig, list[str]]:
    """The search that generation_config.json asks for, and the names of its settings without a counterpart."""
    config, file = _json(path / "config.json"), path / "generation_config.json"
    settings = _json(file) if file.is_file() else config  # where `generate` looks too
    family, given = config.get("model_type"), settings.get("length_penalty")
    alpha = 1.0 if given is None else given
    tags = int(family in OF_LANGUAGES or settings.get("forced_bos_token_id") is not None)
    search = SearchConfig(
        beam=settings.get("num_beams") or SearchConfig().beam,
        length_penalty=min(max(alpha, 0.0), 6.0),
        penalty="power",
        penalty_offset=tags,
        max_length=_longest_output(settings, family in DECODERS, tags),
        length_factor=1000.0,
    )
    unknown = [name for name, neutral in NEUTRAL_SETTINGS.items() if settings.get(name) not in (None, *neutral)]
    never_put_out = {settings.get(name) for name in FRAME_WORDS}
    unknown += [name for name in SUPPRESSED if _words_in(settings.get(name)) - never_put_out]
    if alpha != search.length_penalty:
        unknown.append("length_penalty")
    return search, unknown


def _longest_output(settings: Mapping[str, Any], decoder_only: bool, tags: int) -> int:
    """The longest output in pieces: `generate` counts a forced tag too, and in max_length what it begins from."""
    if settings.get("max_new_tokens"):
        return max(settings["max_new_tokens"] - tags, 1)
    if settings.get("max_length") and not decoder_only:
        return max(settings["max_length"] - 1 - tags, 1)
    return SearchConfig().max_length


def _words_in(suppressed: list[int] | list[list[int]] | None) -> set[int]:
    """The words of a list that may not be put out, alone or in a sequence."""
    return {word for entry in suppressed or [] for word in (entry if isinstance(entry, list) else [entry])}
