"""Runs that are not whole and requests that cannot be served: one sentence with the file at fault, nothing written."""

from __future__ import annotations

import io
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from core_models.checkpoint import read_tensors, write_tensors, write_weights
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.parallel import read_lines, write_lines
from core_models.text.vocabulary import Vocabulary
from tests.bad_input.conftest import SOURCES, TARGETS
from workbench.store.runs import open_run

pytestmark = pytest.mark.long


def _change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def _tensors(run: Path, change) -> None:
    path = run / "weights.safetensors"
    write_tensors(path, change(read_tensors(path)))


def _vocabulary(run: Path, size: int) -> None:
    other = Vocabulary.train(SOURCES + TARGETS, size)
    for side in ("source", "target"):
        other.save(run / "vocabulary" / f"{side}.model")


def _without_digests(run: Path) -> None:
    """As a run was laid out before its configuration knew its vocabularies."""
    path = run / "config.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("vocabulary:")], encoding="utf-8")


RUNS = {
    "missing weights": (
        lambda run: (run / "weights.safetensors").unlink(),
        "weights.safetensors: there are no weights here; train the run, or copy it again",
    ),
    "cut weights": (
        lambda run: _cut(run / "weights.safetensors", 1000),
        "weights.safetensors: not a readable safetensors file",
    ),
    "weights of another system": (
        lambda run: _tensors(run, lambda t: {"x": torch.zeros(2), **t}),
        "x belongs to another system; copy both from one run",
    ),
    "weights of another shape": (
        lambda run: _tensors(run, lambda t: {**t, sorted(t)[0]: torch.zeros(7, 7)}),
        "is [7, 7], the configuration asks for [",
    ),
    "a pickle for weights": (
        lambda run: (run / "weights.safetensors").write_bytes(pickle.dumps([1])),
        "or a pickle, which this program never opens; copy it again",
    ),
    "a folder for weights": (
        lambda run: _folder(run / "weights.safetensors"),
        "weights.safetensors: there are no weights here",
    ),
    "another vocabulary": (
        lambda run: _vocabulary(run, 38),
        "source.model: not the vocabulary that this run was trained with",
    ),
    "a vocabulary that does not fit": (
        lambda run: (_vocabulary(run, 38), _without_digests(run)),
        "(a row a piece, so the vocabulary beside it may be",
    ),
    "sides that do not fit": (
        lambda run: (Vocabulary.train(SOURCES, 34).save(run / "vocabulary" / "source.model"), _without_digests(run)),
        "tie_embeddings: all needs one joint vocabulary, here are 34 source and 100 target pieces",
    ),
    "an empty vocabulary": (
        lambda run: (run / "vocabulary" / "source.model").write_bytes(b""),
        "source.model: not a usable SentencePiece model: the file is empty",
    ),
    "a cut vocabulary": (
        lambda run: _cut(run / "vocabulary" / "source.model", 700),
        "source.model: not a usable SentencePiece model: it is cut short or something else; copy it again",
    ),
    "no configuration": (lambda run: (run / "config.yaml").unlink(), "no run here: config.yaml is missing"),
    "a cut configuration": (lambda run: _cut(run / "config.yaml", 60), "config.yaml: "),
    "no text for a configuration": (
        lambda run: (run / "config.yaml").write_bytes(b"\x80\xff\0"),
        "config.yaml: not readable as YAML",
    ),
    "a key that is unknown": (
        lambda run: _change(run / "config.yaml", "  dropout:", "  dropuot:"),
        "config.yaml: unknown key 'model.dropuot'; did you mean 'dropout'?",
    ),
    "a key that is not text": (
        lambda run: _change(run / "config.yaml", "training:", "1:"),
        "config.yaml: the key 1 is not text",
    ),
    "a mechanism twice": (
        lambda run: _change(run / "config.yaml", "  mechanisms:\n", "  mechanisms:\n  - future_cost: {}\n"),
        "future_cost is named twice; one system has one of it",
    ),
    "an unknown mechanism": (
        lambda run: _change(run / "config.yaml", "- future_cost:", "- future_cots:"),
        "there is no 'future_cots'; did you mean 'future_cost'?",
    ),
    "two mechanisms in each other's way": (
        lambda run: _change(
            run / "config.yaml", "  mechanisms:\n", "  mechanisms:\n  - em_routing: {}\n  - linear_combination: {}\n"
        ),
        "replaces the stream at ENCODER_STACK_OUTPUT, which em_routing has changed before; leave one of the two out",
    ),
    "a mechanism on a backbone without its place": (
        lambda run: (
            _change(run / "config.yaml", "backbone: transformer", "backbone: rnnsearch"),
            _change(run / "config.yaml", "  mechanisms:\n", "  mechanisms:\n  - em_routing: {}\n"),
        ),
        "em_routing on rnnsearch: there is no stack of layers in this encoder that could be aggregated",
    ),
    "two mechanisms in one": (
        lambda run: _change(run / "config.yaml", "- future_cost:", "- coverage: {}\n    future_cost:"),
        "mechanisms: each entry is one name with its options",
    ),
}


def _cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("case", RUNS)
def test_a_spoiled_run_is_refused_with_the_file_at_fault(run, refused, case):
    spoil, message = RUNS[case]
    spoil(run)
    assert message in refused("translate", "runs/one", "--input", "in.txt", "--output", "out.txt")


REQUESTS = {
    "a device that is not there": (
        ("--input", "in.txt", "--device", "cuda:99"),
        "device 'cuda:99': PyTorch finds no such device",
    ),
    "a prefix of unknown words": (
        ("--input", "in.txt", "--prefix", "der 漢字 Hund"),
        "no pieces for '漢字'; a translation can only begin with what it can write: write it otherwise or leave it out",
    ),
    "an output folder that is not there": (
        ("--input", "in.txt", "--output", "no/out.txt"),
        "--output no/out.txt: name a file in",
    ),
    "a folder for an output": (
        ("--input", "in.txt", "--output", "runs"),
        "--output runs: name a file in a folder that is there",
    ),
    "a folder for an input": (("--input", "runs"), "runs: a folder, not a file; name the file in it"),
    "no beam": (("--input", "in.txt", "--beam", 0), "search: beam: input should be greater than 0 (given: 0)"),
    "a negative penalty": (
        ("--input", "in.txt", "--length-penalty", -1),
        "search: length_penalty: input should be greater than",
    ),
    "more than the beam": (("--input", "in.txt", "--n-best", 9), "n_best: 9 hypotheses cannot come from a beam of 2"),
    "no n best": (("--input", "in.txt", "--n-best", 0), "search: n_best: input should be greater than 0 (given: 0)"),
    "draws below none": (("--input", "in.txt", "--num-samples", -1), "'--num-samples'"),
    "draws at no temperature": (
        ("--input", "in.txt", "--num-samples", 2, "--temperature", 0),
        "temperature 0: choose one from 0.0001 to 10000",
    ),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_that_cannot_be_served_is_refused(run, refused, case):
    arguments, message = REQUESTS[case]
    assert message in refused("translate", "runs/one", *arguments)


@pytest.mark.parametrize("step", ["²", "../../two/weights", "9" * 5000, "one"])
def test_a_checkpoint_that_is_none_is_refused(run, refused, step):
    shutil.copytree(run, run.parent / "two")
    said = refused("translate", f"runs/one@{step}", "--input", "in.txt")
    assert "has no checkpoint" in said or "no run here" in said


def test_standard_input_that_is_no_text_is_refused(run, refused, monkeypatch):
    for given, message in ((b"", "standard input is empty"), (b"a\nb\xff\n", "standard input:2: not UTF-8 (byte 0xff")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert message in refused("translate", "runs/one", "--input", "-")


def test_an_ensemble_of_different_vocabularies_is_refused(run, refused):
    other = shutil.copytree(run, run.parent / "other")
    _vocabulary(other, 38)
    _without_digests(other)
    write_weights(other / "weights.safetensors", build(describe("future-cost-2:preset=tiny"), 38))
    said = refused("translate", "runs/one", "runs/other", "--ensemble", "--input", "in.txt")
    assert "runs/other and runs/one have different vocabularies; an ensemble needs one: train both on the same" in said


def test_a_source_of_5000_words_is_translated_or_refused_with_its_length(run, prepared, refused, done):
    write_lines(run.parents[1] / "in.txt", ["the old dog sees " * 1250, "the tree"])
    done("translate", "runs/one", "--input", "in.txt", "--output", "out.txt")
    assert len(read_lines(run.parents[1] / "out.txt")) == 2
    _change(run / "config.yaml", "position_embedding: sinusoidal", "position_embedding: learned")
    system = build(describe("future-cost-2:preset=tiny,position_embedding=learned"), len(prepared.source_vocabulary))
    write_weights(run / "weights.safetensors", system)
    said = refused("translate", "runs/one", "--input", "in.txt")
    assert "positions does not fit the 1024 learned ones of this model; shorten it" in said


def test_init_from_another_architecture_is_refused_before_a_run_is_begun(run, prepared, refused):
    begin = ("train", "transformer:preset=tiny,norm=post", "--data", prepared.folder, "--out", "new", "--init-from")
    said = refused(*begin, "runs/one")
    assert f"init_from {run}: another architecture: norm (pre there, post here); begin from a run that has" in said
    assert "runs/none/config.yaml: there is no such file; check the path" in refused(*begin, "runs/none")


def test_a_run_whose_data_was_prepared_again_otherwise_is_not_resumed(run, texts, refused):
    _change(run / "config.yaml", f"data: {open_run(run).config.data}", f"data: {texts / 'prepared'}")
    said = refused("resume", "runs/one", "--device", "cpu")
    assert "its source vocabulary is not the one of" in said
    assert "prepare it as it was, or train a new run" in said


@pytest.mark.parametrize("name", ["hypotheses.txt", "references.txt", "sources.txt"])
def test_translations_of_another_length_than_the_test_set_are_refused(run, refused, name):
    path = run / "translations" / "test" / name
    path.write_text("der\n", encoding="utf-8")
    assert f"{name} has 1 lines, but the test set test has 2 sentences" in refused(
        "evaluate", "runs/one", "--n-resamples", 40
    )


def test_given_translations_of_another_length_are_refused(run, refused):
    write_lines(run.parents[1] / "out.txt", ["der"])
    said = refused("score", "runs/one", "--source", "in.txt", "--target", "out.txt")
    assert (
        "in.txt has 2 lines but out.txt has 1: at line 2 out.txt has ended and in.txt goes on with 'the tree'" in said
    )


def test_broken_results_are_named(run, refused):
    (run / "translations" / "test" / "meta.json").write_text("[1]", encoding="utf-8")
    assert "no finished translation here" in refused("evaluate", "runs/one")
    assert "no finished translation here" in refused("trace", "runs/one")


def test_translations_in_pieces_of_another_vocabulary_are_not_traced(run, refused):
    _change(run / "translations" / "test" / "details.jsonl", '"tokens": ["', '"tokens": ["漢')
    assert "the target vocabulary has no piece '漢" in refused("trace", "runs/one")


def test_a_pickle_of_trees_or_a_broken_index_is_named(run):
    (run / "traces" / "test").mkdir(parents=True)
    (run / "traces" / "test" / "index.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"index\.json: not readable .*trace the run again"):
        open_run(run).traces("test")
    folder = run / "translations" / "test"
    np.save(folder / "trees.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(
        ValueError, match=r"trees\.npy: the tree of sentence 0 cannot be read .*translate the test set again"
    ):
        open_run(run).translations("test").tree(0)
