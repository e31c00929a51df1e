"""Sets by name: the libraries' real calls on local folders in the libraries' own layouts."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from core_models.text import imports
from core_models.text.parallel import ParallelText, TextError
from workbench import cli

PAIRS = [("a house", "ein Haus"), ("two\nlines", "zwei\r\nZeilen"), ("a\u2028b", "c")]


def _huggingface_folder(tmp_path, records):
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path / "set"


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    library = pytest.importorskip("datasets", reason="the extra `datasets` is not installed")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return library


@pytest.mark.parametrize("nested", [True, False])
def test_a_local_translation_folder(datasets, tmp_path, nested):
    records = [{"translation": {"en": en, "de": de}} if nested else {"en": en, "de": de} for en, de in PAIRS]
    text = imports.import_huggingface(_huggingface_folder(tmp_path, records), "de", "en", "train")
    assert text == ParallelText("set-train", ["ein Haus", "zwei Zeilen", "c"], ["a house", "two lines", "a\u2028b"])


def test_a_set_saved_to_disk_with_documents(datasets, tmp_path):
    columns = {"en": ["a", "b"], "de": ["A", "B"], "talk": [7, 8]}
    datasets.DatasetDict({"dev": datasets.Dataset.from_dict(columns)}).save_to_disk(str(tmp_path / "saved"))
    text = imports.import_huggingface(tmp_path / "saved", "en", "de", "dev", document_column="talk")
    assert text == ParallelText("saved-dev", ["a", "b"], ["A", "B"], ["7", "8"])
    with pytest.raises(TextError, match="none 'fr'; there is en, de, talk"):
        imports.import_huggingface(tmp_path / "saved", "en", "fr", "dev")


def test_the_command_takes_a_configuration_and_a_column_of_documents(datasets, tmp_path):
    """A folder as on the hub: its README names the files of each configuration."""
    folder = tmp_path / "set"
    folder.mkdir()
    configs = "".join(f"- config_name: {name}\n  data_files: {name}.jsonl\n" for name in ("de-en", "fr-en"))
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", encoding="utf-8")
    for name in ("de-en", "fr-en"):
        records = [{"translation": dict.fromkeys(name.split("-"), f"{name} {row}"), "talk": row} for row in (1, 2)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    asked = ["data", "import", str(folder), "--pair", "en-de", "--out", str(tmp_path / "out" / "text")]
    done = CliRunner().invoke(cli.app, [*asked, "--configuration", "de-en", "--documents", "talk"])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    found = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    assert json.loads(found.pop(".text.workbench.json"))["files"].keys() == found.keys()
    assert found == {"text.en": "de-en 1\nde-en 2\n", "text.de": "de-en 1\nde-en 2\n", "text.docids": "1\n2\n"}


def test_an_absent_split_is_named(datasets, tmp_path):
    folder = _huggingface_folder(tmp_path, [{"translation": {"en": "a", "de": None}}])
    with pytest.raises(TextError, match="split 'dev'"):
        imports.import_huggingface(folder, "en", "de", "dev")
    with pytest.raises(TextError, match=r"record 0 \(from 0\) has no text in 'de'"):
        imports.import_huggingface(folder, "en", "de", "train")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # what Python itself does with a module that is barred
    with pytest.raises(TextError, match=r"pip install 'nmt-workbench\[datasets\]'"):
        imports.import_huggingface("wmt14", "de", "en", "test")


def _sgm(kind, language, documents):
    body = "".join(
        f'<doc sysid="{kind}" docid="{name}" genre="news" origlang="en">\n<p>\n'
        + "".join(f'<seg id="{i}">{line}</seg>\n' for i, line in enumerate(lines, 1))
        + "</p>\n</doc>\n"
        for name, lines in documents.items()
    )
    return f'<{kind}set setid="newstest2017" srclang="any" trglang="{language}">\n{body}</{kind}set>\n'


def _import_in_own_process(cache, test_set="wmt17", pair="en-de"):
    """sacreBLEU reads the variable SACREBLEU once, when it is imported."""
    program = (
        "import dataclasses, json, sys; from core_models.text.imports import import_sacrebleu\n"
        "print(json.dumps(dataclasses.asdict(import_sacrebleu(*sys.argv[1:]))))"
    )
    # A proxy that refuses: the test never reaches the network.
    closed = {"SACREBLEU": str(cache), "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    return subprocess.run(
        [sys.executable, "-c", program, test_set, pair], env={**os.environ, **closed}, capture_output=True, text=True
    )


def test_a_sacrebleu_set_from_its_folder(tmp_path):
    from sacrebleu.dataset import DATASETS

    known = DATASETS["wmt17"]
    raw = tmp_path / "wmt17" / "raw"
    # The set's first source and reference, where its own table says that the fetched archive leaves them.
    contents = (
        ("src", {"d1": ["One.", "Two  words."], "d2": ["Three."]}),
        ("ref", {"d1": ["Eins.", "Zwei."], "d2": ["Drei."]}),
    )
    for path, (kind, documents) in zip(known.langpairs["en-de"], contents, strict=True):
        (raw / path).parent.mkdir(parents=True, exist_ok=True)
        (raw / path).write_text(_sgm(kind, "de", documents), encoding="utf-8")
    from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

    local = FakeSGMLDataset("wmt17", data=[], langpairs={"en-de": known.langpairs["en-de"]})
    local._outdir, local._rawdir = str(tmp_path / "wmt17"), str(raw)
    local.process_to_text("en-de")  # writes the text files as sacreBLEU itself does after fetching
    result = _import_in_own_process(tmp_path)
    assert json.loads(result.stdout) == {
        "name": "wmt17.en-de",
        "sources": ["One.", "Two words.", "Three."],
        "targets": ["Eins.", "Zwei.", "Drei."],
        "documents": ["d1", "d1", "d2"],
    }


def test_offline_sacrebleu_says_what_to_do(tmp_path):
    result = _import_in_own_process(tmp_path)
    assert "TextError: sacreBLEU's wmt17 en-de is not on this machine and could not be fetched" in result.stderr
    assert "connect to the network, or copy the set into sacreBLEU's folder" in result.stderr


def test_unknown_sets_and_pairs_are_named():
    with pytest.raises(TextError, match=r"no test set 'wmt99'; it has .*wmt17"):
        imports.import_sacrebleu("wmt99", "en-de")
    with pytest.raises(TextError, match=r"wmt17 has no pair 'en-xx'; it has .*en-de"):
        imports.import_sacrebleu("wmt17", "en-xx")
