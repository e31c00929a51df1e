"""A checkpoint of fairseq becomes a run of our own, which lists, translates, scores and traces as every run."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from core_models import load
from core_models.config import read_config
from core_models.settings import ConfigError
from tests.fairseq_models import (
    END,
    SOURCE_WORDS,
    TARGET_WORDS,
    Reference,
    random_tensors,
    settings,
    write_checkpoint,
    write_dictionaries,
)
from workbench import cli
from workbench.experiments.fairseq_runs import open_fairseq
from workbench.export.ctranslate2 import export_ctranslate2
from workbench.export.huggingface import export_huggingface
from workbench.store.runs import RunError, list_runs

pytestmark = pytest.mark.long

SOURCES = ["xx4 xx9 xx7", "xx5", "xx18 xx6 xx8 xx12 xx11 xx4", "xx10 xx10"]


@pytest.fixture(scope="module")
def given():
    return settings(encoder_normalize_before=True, decoder_normalize_before=True)


@pytest.fixture(scope="module")
def tensors(given):
    return random_tensors(given)


@pytest.fixture(scope="module")
def folder(given, tensors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fairseq")
    write_checkpoint(folder / "checkpoint_best.pt", given, tensors)
    write_dictionaries(folder)
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return open_fairseq(
        folder / "checkpoint_best.pt", folder / "runs" / "theirs", (folder / "dict.xx.txt", folder / "dict.yy.txt")
    )


def numbers(text: str) -> list[int]:
    return [int(word[2:]) for word in text.split()]


@torch.no_grad()
def test_greedy_translations_and_their_scores_are_those_of_an_independent_transformer(run, given, tensors):
    theirs, translator = Reference(given, tensors), load(run.folder)
    for source, found in zip(SOURCES, translator.translate(SOURCES, beam=1, max_length=12), strict=True):
        words, log_probs = [], []
        while len(log_probs) < 12:
            row = theirs.log_probs(numbers(source), words)[-1]
            row[:2] = -torch.inf  # <s> and <pad> are never put out
            log_probs.append(float(row.max()))
            if int(row.argmax()) == END:
                break
            words.append(int(row.argmax()))
        names = ["<unk>" if word == 3 else f"yy{word}" for word in words]
        assert found.text == " ".join(names)
        assert found.tokens == [*names, *(["</s>"] if found.finished else [])]
        assert found.token_log_probs == pytest.approx(log_probs, abs=1e-5)


def test_it_stays_when_the_checkpoint_goes_and_is_listed_searched_and_traced(run, folder, given, tensors, tmp_path):
    (listed,) = list_runs(run.folder.parent)
    assert (listed.problem, listed.system, listed.finished) == (None, "transformer_iwslt_de_en", True)
    path = write_checkpoint(tmp_path / "moved.pt", given, tensors)
    other = open_fairseq(path, tmp_path / "other", (folder / "dict.xx.txt", folder / "dict.yy.txt"))
    path.unlink()
    ours, theirs = (load(one.folder).translate(SOURCES, record=True, trace=["*"]) for one in (run, other))
    for one, another in zip(ours, theirs, strict=True):
        assert (one.text, one.tree, one.score) == (another.text, another.tree, another.score)
        np.testing.assert_allclose(one.trace["decoder.cross_attention"].values.sum(-1), 1, atol=1e-3)
    assert read_config(run.folder).search.penalty == "power"


def test_the_command_copies_a_checkpoint_and_refuses_another_dictionary(folder, tmp_path):
    words = ["open", "fairseq", str(folder / "checkpoint_best.pt"), "--as", "theirs", "--runs", str(tmp_path),
             "--source-dict", str(folder / "dict.xx.txt"), "--target-dict"]  # fmt: skip
    refused = CliRunner().invoke(cli.app, [*words, str(folder / "dict.xx.txt")])
    assert isinstance(refused.exception, ConfigError)
    assert "15 words and 4 of its own, and the checkpoint has 23 embeddings" in str(refused.exception)
    assert not (tmp_path / "theirs").exists()
    done = CliRunner().invoke(cli.app, [*words, str(folder / "dict.yy.txt")])
    assert done.output.startswith(f"{tmp_path / 'theirs'}: transformer_iwslt_de_en, a copy of ")


def test_texts_are_cut_by_the_codes_of_their_side(folder, tmp_path):
    pytest.importorskip("subword_nmt", reason="the extra `fairseq` is not installed")
    for side, words in (("xx", SOURCE_WORDS), ("yy", TARGET_WORDS)):
        pieces = ["low@@", "er", "l@@", "o@@", "w@@", "e@@", "r", *(f"{side}{k}" for k in range(words - 11))]
        (tmp_path / f"dict.{side}.txt").write_text("".join(f"{piece} 1\n" for piece in pieces))
    (tmp_path / "codes.xx").write_text("#version: 0.2\nl o\nlo w\ne r</w>\n")
    (tmp_path / "codes.yy").write_text("#version: 0.2\ne r</w>\n")
    run = open_fairseq(
        folder / "checkpoint_best.pt", tmp_path / "run", (tmp_path / "dict.xx.txt", tmp_path / "dict.yy.txt"),
        (tmp_path / "codes.xx", tmp_path / "codes.yy"),
    )  # fmt: skip
    (found,) = load(run.folder).score(["lower"], ["lower"])
    assert found.source_tokens == ["low@@", "er", "</s>"]
    assert found.tokens == ["l@@", "o@@", "w@@", "er", "</s>"]
    assert found.text == "lower"


@pytest.mark.parametrize("export", [export_ctranslate2, export_huggingface])
def test_exports_of_sentencepiece_refuse_a_dictionary(run, tmp_path, export):
    pytest.importorskip("ctranslate2" if export is export_ctranslate2 else "transformers")
    with pytest.raises(RunError, match="reads a dictionary"):
        export(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
