"""Models of other libraries that are hostile or broken: refused in one sentence, and nothing that they bring runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch

from core_models.checkpoint import read_tensors, write_tensors, write_weights
from core_models.system_builder import build
from core_models.system_spec import describe
from tests.core_models.conftest import lay_out_run
from tests.fairseq_models import random_tensors, settings, write_checkpoint, write_dictionaries
from workbench.export.huggingface import export_huggingface
from workbench.store.runs import open_run

pytestmark = pytest.mark.long

RAN = "ran"  # what a payload would make in the folder where the command runs
HF = ("open", "hf", "model", "--as", "theirs", "--runs", "runs")
FAIRSEQ = (
    "open", "fairseq", "model.pt", "--source-dict", "dict.xx.txt", "--target-dict", "dict.yy.txt", "--as", "theirs",
    "--runs", "runs",
)  # fmt: skip
CODE = f"import pathlib; pathlib.Path({RAN!r}).touch()\n"


class Payload:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, (RAN,)


class Harmless:
    """A class of ours, which another machine need not have."""


def _edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def _pickled(model: Path) -> None:
    (model / "model.safetensors").unlink()
    torch.save({"weight": Payload()}, model / "pytorch_model.bin")


def _sharded(model: Path, shard: str) -> None:
    (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": shard}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def _header(content: bytes):
    def spoil(model: Path) -> None:
        (model / "model.safetensors").write_bytes(content)

    return spoil


def _of_other_shapes(model: Path) -> None:
    tensors = read_tensors(model / "model.safetensors")
    name = "model.encoder.layers.0.fc1.weight"
    write_tensors(model / "model.safetensors", tensors | {name: tensors[name][:-1]})


def _with_more_pieces(model: Path) -> None:
    tokenizer = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary |= {f"more{number}": len(vocabulary) + number for number in range(300)}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def _linked(name: str):
    def spoil(model: Path) -> None:
        (model / name).rename(model.parent / f"outside-{name}")
        (model / name).symlink_to(Path("..") / f"outside-{name}")

    return spoil


def _with_code(name: str, **changes):
    def spoil(model: Path) -> None:
        _edit(model / name, **changes)
        for module in ("evil", "modeling_evil", "tokenization_evil"):
            (model / f"{module}.py").write_text(CODE, encoding="utf-8")

    return spoil


MODELS = {
    "a pickle alone": (_pickled, "a pickle is never opened; store it as safetensors"),
    "code of the model": (
        _with_code("config.json", auto_map={"AutoModelForSeq2SeqLM": "modeling_evil.Evil"}),
        "asks for code of its own (auto_map), which is never run",
    ),
    "code of the tokenizer": (
        _with_code("tokenizer_config.json", auto_map={"AutoTokenizer": ["tokenization_evil.Evil", None]}),
        "asks for code of its own (auto_map), which is never run",
    ),
    "a class of the tokenizer": (
        _with_code("tokenizer_config.json", tokenizer_class="EvilTokenizer"),
        "asks for the tokenizer 'EvilTokenizer'",
    ),
    "no safetensors": (_header(b"\x08"), "cannot be opened"),
    "a header longer than the file": (_header(b"\xff" * 8 + b"{}"), "cannot be opened"),
    "a header that is none": (_header(b"\x02" + b"\0" * 7 + b"[]"), "cannot be opened"),
    "a shard that is missing": (lambda model: _sharded(model, "00002-of-00002.safetensors"), "weights are missing"),
    "a shard elsewhere": (lambda model: _sharded(model, "../secret.safetensors"), "weights are missing"),
    "a shard by its whole path": (lambda model: _sharded(model, "/secret.safetensors"), "weights are missing"),
    "a shard that is no name": (lambda model: _sharded(model, 7), "weights are missing"),
    "tensors of other shapes": (_of_other_shapes, "cannot be opened"),
    "more pieces than embeddings": (_with_more_pieces, "they do not fit"),
    "an unknown family": (lambda model: _edit(model / "config.json", model_type="gpt2"), "of the type 'gpt2'"),
    "a family that is no name": (lambda model: _edit(model / "config.json", model_type=["bart"]), "of the type"),
    "weights that are a link": (_linked("model.safetensors"), "a link out of the model's folder"),
    "a configuration that is a link": (_linked("config.json"), "a link out of the model's folder"),
    "a tokenizer that is a link": (_linked("tokenizer.json"), "a link out of the model's folder"),
}  # fmt: skip


@pytest.fixture(scope="session")
def exported(prepared, tmp_path_factory) -> Path:
    pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")
    folder = lay_out_run(tmp_path_factory.mktemp("plain") / "one", prepared, "transformer", {}, precision="float32")
    torch.manual_seed(1)
    system = build(describe("transformer:preset=tiny"), len(prepared.source_vocabulary))
    write_weights(folder / "weights.safetensors", system)
    return export_huggingface(open_run(folder), folder.parent / "model")


@pytest.mark.parametrize("case", MODELS)
def test_a_model_of_hugging_face_is_refused_and_nothing_runs(exported, tmp_path, refused, case):
    spoil, message = MODELS[case]
    model = Path(shutil.copytree(exported, tmp_path / "model"))
    spoil(model)
    said = refused(*HF)
    assert message in said
    assert "\n" not in said
    assert not (tmp_path / RAN).exists()


def test_a_model_in_the_cache_of_hugging_face_is_opened_through_its_links(exported, tmp_path, done):
    """There files are links to ../../blobs."""
    blobs, model = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    shutil.copytree(exported, blobs)
    model.mkdir(parents=True)
    for file in blobs.iterdir():
        (model / file.name).symlink_to(Path("../../blobs") / file.name)
    done("open", "hf", "snapshots/main", *HF[3:])


def _pickle_of(content: object, **options):
    return lambda path: torch.save(content, path, **options)


def _beside(payload: object, **options):
    def write(path: Path) -> None:
        write_checkpoint(path, settings(), random_tensors(settings()), extra_state=payload, **options)

    return write


def _with_settings(**changes):
    return lambda path: write_checkpoint(path, settings(**changes), random_tensors(settings()))


CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)
CHECKPOINTS = {
    "a payload": (_pickle_of(Payload()), "is never run or built here"),
    "a payload in a file of before 1.6": (
        _pickle_of(Payload(), _use_new_zipfile_serialization=False),
        "is never run or built here",
    ),
    "a payload beside a whole model": (_beside({"best": Payload()}), "it asks for posix.mkdir, which is never run"),
    "a plain pickle": (lambda path: path.write_bytes(pickle.dumps(Payload())), "is never run or built here"),
    "a class of somebody": (_beside(Harmless()), "it asks for tests.bad_input.test_foreign_models.Harmless"),
    "a function": (_beside(eval), "it asks for eval, which is never run"),
    "settings that hold themselves": (_with_settings(heads=CIRCLE, encoder_attention_heads=CIRCLE), "heads: "),
    "settings that are tensors": (
        _with_settings(layernorm_embedding=torch.ones(2)),
        "a model with layernorm_embedding",
    ),
    "heads beyond all numbers": (_with_settings(encoder_attention_heads=1 << 80), "encoder_attention_heads: "),
    "positions without end": (_with_settings(max_source_positions=1 << 40), "max_source_positions: "),
    "a text": (lambda path: path.write_text("weights"), "model.pt: "),
    "an empty file": (lambda path: path.write_bytes(b""), "not a readable checkpoint"),
    "a folder": (lambda path: path.mkdir(), "not a readable checkpoint"),
    "a pipe": (os.mkfifo, "a named pipe, not a file"),
    "nothing": (lambda path: None, "no such checkpoint"),
    "a list": (_pickle_of([1]), "no checkpoint of fairseq"),
    "no model": (_pickle_of({"args": None}), "no checkpoint of fairseq"),
    "no settings": (_pickle_of({"model": {"a": torch.ones(1)}}), "arch is missing"),
}


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_a_checkpoint_of_fairseq_is_refused_and_nothing_runs(tmp_path, refused, case):
    write, message = CHECKPOINTS[case]
    write_dictionaries(tmp_path)
    write(tmp_path / "model.pt")
    said = refused(*FAIRSEQ)
    assert message in said
    assert not (tmp_path / RAN).exists()


@pytest.mark.parametrize(("name", "content"), [("dict.xx.txt", "a\n"), ("dict.yy.txt", "\xff"), ("dict.yy.txt", "")])
def test_a_dictionary_that_is_none_is_refused(tmp_path, refused, name, content):
    write_dictionaries(tmp_path)
    write_checkpoint(tmp_path / "model.pt", settings(), random_tensors(settings()))
    (tmp_path / name).write_text(content, encoding="latin-1")
    assert name in refused(*FAIRSEQ)
