"""Commands as a user gives them, a small text to be spoiled, and an untrained run."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from core_models.checkpoint import write_weights
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.parallel import ParallelText, write_lines
from core_models.text.prepared import prepare
from core_models.training.fit import fit
from core_models.translator import Translation
from tests.core_models.conftest import lay_out_run
from workbench import cli
from workbench.evaluation.scoring import score_table
from workbench.evaluation.translate import test_set, trace_test, translate_test
from workbench.store.runs import open_run
from workbench.store.translation_writer import write_translations
from workbench.store.translations import TestSet as TestedOn

_NOUNS = ("dog", "man", "tree", "house", "captain", "window", "garden", "letter", "kitchen")
_VERBS = ("sees", "loves", "finds", "carries")
SOURCES = [
    f"the old {noun} {verb} the {other} ." for noun, other in zip(_NOUNS, _NOUNS[::-1], strict=True) for verb in _VERBS
]
TARGETS = [line.replace("the", "der").replace("sees", "sieht").replace("finds", "findet") for line in SOURCES]


def content_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    """refused(arguments) -> the one sentence that a command ends with; it has left all files as they were."""

    def run(*arguments: object) -> str:
        before = content_of(tmp_path)
        with pytest.raises(SystemExit) as stopped:
            run_command(monkeypatch, arguments)
        said = capsys.readouterr().err.strip()
        assert stopped.value.code == 2, said
        assert any(line.startswith(("workbench: ", "Usage: ")) for line in said.splitlines())
        assert "Traceback" not in said
        assert content_of(tmp_path) == before
        return said

    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture
def done(tmp_path, capsys, monkeypatch):
    """done(arguments) -> what a command prints that ends well."""

    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as stopped:
            run_command(monkeypatch, arguments)
        said = capsys.readouterr()
        assert not stopped.value.code, said.err
        return said.out

    monkeypatch.chdir(tmp_path)
    return run


def run_command(monkeypatch, arguments) -> None:
    monkeypatch.setattr(sys, "argv", ["workbench", *map(str, arguments)])
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")  # else main starts itself again with the allocator's settings
    cli.main()


@pytest.fixture(scope="session")
def earlier(tmp_path_factory) -> Path:
    text = ParallelText("text", SOURCES, TARGETS)
    return prepare(tmp_path_factory.mktemp("earlier") / "prepared", text, text, pieces=38).folder


@pytest.fixture
def texts(tmp_path, earlier) -> Path:
    """A folder with a training and a dev text, and with what was prepared from them before."""
    for name in ("x", "dev"):
        write_lines(tmp_path / f"{name}.en", SOURCES)
        write_lines(tmp_path / f"{name}.de", TARGETS)
    shutil.copytree(earlier, tmp_path / "prepared")
    return tmp_path


@pytest.fixture(scope="session")
def pristine(prepared, tmp_path_factory) -> Path:
    """An untrained run with weights, vocabulary and translations of two sentences."""
    folder = lay_out_run(
        tmp_path_factory.mktemp("pristine") / "runs" / "one",
        prepared,
        "future-cost-2",
        {"beam": 2, "max_length": 6},
        precision="float32",
    )
    torch.manual_seed(1)
    system = build(describe("future-cost-2:preset=tiny"), len(prepared.source_vocabulary))
    write_weights(folder / "weights.safetensors", system)
    vocabulary = prepared.target_vocabulary
    texts = ("der Hund", "der Baum")
    pieces = [vocabulary.pieces(ids) for ids in vocabulary.encode(texts)]
    found = [
        Translation(text, [*words, "</s>"], ["</s>"], -1.0, -1.0, [-0.5], True, [])
        for text, words in zip(texts, pieces, strict=True)
    ]
    write_translations(open_run(folder), TestedOn("test", ["the", "one"], ["der", "die"], None), found, {}, 1.0)
    return folder


@pytest.fixture(scope="session")
def whole_run(prepared, tmp_path_factory) -> Path:
    """A run with every file that training, translating, tracing and scoring leave in its folder."""
    folder = lay_out_run(
        tmp_path_factory.mktemp("whole") / "runs" / "one",
        prepared,
        "future-cost-2",
        {"beam": 2, "n_best": 2, "length_offset": 4},
        precision="float32",
        validate_every=2,
    )
    fit(folder, device="cpu")
    run = open_run(folder)
    test, truth = test_set(run, "test")
    made = translate_test(
        run,
        replace(test, sources=test.sources[:6], references=test.references[:6], documents=test.documents[:6]),
        truth,
        trees=True,
    )
    trace_test(run, made, ("*",))
    score_table([run], "test", samples=10)
    return folder


@pytest.fixture
def spoiled_run(whole_run, tmp_path) -> Path:
    """A copy of `whole_run` to be spoiled."""
    shutil.copytree(whole_run.parent, tmp_path / "runs", symlinks=True)
    write_lines(tmp_path / "in.txt", ["the old dog", "the tree"])
    return tmp_path / "runs" / "one"


@pytest.fixture
def run(pristine, tmp_path) -> Path:
    """A run to be spoiled, in a folder of runs, and a file to be translated with it."""
    shutil.copytree(pristine.parent, tmp_path / "runs")
    write_lines(tmp_path / "in.txt", ["the old dog", "the tree"])
    return tmp_path / "runs" / "one"
