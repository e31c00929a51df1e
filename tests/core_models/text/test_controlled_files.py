"""The controlled corpus as files and settings: same seed, same bytes; what cannot be generated is refused."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core_models import resources
from core_models.files.file_marks import MARK
from core_models.settings import ConfigError
from core_models.text.controlled import generate, write

SCRIPT = """
import hashlib, pathlib, sys
from core_models.text.controlled import generate, write
folder = pathlib.Path(sys.argv[1])
write(generate(sentences=150, dev=20, test=30, seed=3), folder)
print([(p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(folder.iterdir())])
"""


def test_same_seed_writes_the_same_bytes_whatever_the_hash_order(tmp_path: Path) -> None:
    printed = []
    for hash_seed in ("0", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        folder = tmp_path / hash_seed
        printed.append(
            subprocess.run(
                [sys.executable, "-c", SCRIPT, str(folder)], env=environment, check=True, capture_output=True, text=True
            ).stdout
        )
    assert printed[0] == printed[1]
    suffixes = ("de", "docids", "en", "truth.jsonl")
    names = [f"{split}.{suffix}" for split in ("dev", "test", "train") for suffix in suffixes]
    assert sorted(path.name for path in (tmp_path / "0").iterdir()) == [MARK, *names]


def test_files_hold_what_was_generated_and_another_seed_another_corpus(tmp_path: Path) -> None:
    corpus = generate(sentences=40, dev=10, test=10, seed=1)
    write(corpus, tmp_path / "new" / "folder")
    written = tmp_path / "new" / "folder"
    assert (written / "train.en").read_text(encoding="utf-8").split("\n")[:-1] == corpus.train.sources
    assert (written / "dev.de").read_text(encoding="utf-8").split("\n")[:-1] == corpus.dev.targets
    assert (written / "test.docids").read_text(encoding="utf-8").split("\n")[:-1] == corpus.test.documents
    lines = (written / "train.truth.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == corpus.train.truth
    assert generate(sentences=40, dev=10, test=10, seed=2).train.sources != corpus.train.sources


def test_a_split_does_not_depend_on_the_size_of_the_others() -> None:
    assert generate(20, 10, 50).test == generate(60, 20, 50).test


def test_a_further_test_set_has_long_sentences_only_and_changes_no_other(tmp_path: Path) -> None:
    plain, more = generate(20, 10, 10), generate(20, 10, 10, long=30)
    assert plain.long is None
    assert more.long is not None
    assert (more.train, more.dev, more.test) == (plain.train, plain.dev, plain.test)
    assert len(more.long.sources) == 30
    assert all(25 < len(source.split()) <= 50 for source in more.long.sources)
    write(more, tmp_path)
    assert (tmp_path / "long.de").read_text(encoding="utf-8").splitlines() == more.long.targets


def test_the_data_is_found_beside_the_package_and_inside_an_installed_one(tmp_path: Path) -> None:
    copy = tmp_path / "core_models" / "resources.py"
    copy.parent.mkdir()
    copy.write_text(Path(resources.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("installed_resources", copy)
    assert spec is not None
    assert spec.loader is not None
    installed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(installed)
    with pytest.raises(FileNotFoundError, match="controlled"):
        installed.data_folder()
    (copy.parent / "_data" / "controlled").mkdir(parents=True)
    assert installed.data_folder() == copy.parent / "_data"
    (tmp_path / "data" / "controlled").mkdir(parents=True)
    assert installed.data_folder() == tmp_path / "data"


def test_own_settings_replace_some_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("question: 1.0\n", encoding="utf-8")
    asked = [line.endswith("?") for line in generate(200, 10, 10, config=own).train.sources]
    assert sum(asked) > 120
    assert generate(200, 10, 10, config={"question": 1.0}) == generate(200, 10, 10, config=own)
    own.write_text("questoin: 1.0\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"questoin.*did you mean 'question'"):
        generate(10, 10, 10, config=own)
    own.write_text("it_distance: [1, 4]\n", encoding="utf-8")
    with pytest.raises(ValueError, match="less than or equal to 3"):
        generate(10, 10, 10, config=own)
    with pytest.raises(ConfigError, match="at least"):
        generate(-1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cue_reac": 2}, "the controlled corpus: unknown key 'cue_reac'; did you mean 'cue_reach'"),
        ({"cue_reach": "x"}, "the controlled corpus: cue_reach: .*integer"),
        ({"document_sentences": 4}, "document_sentences: .*list"),
        ({"clauses": {"tranistive": 1}}, "clauses"),
        ({"growth": {"time": 1}}, "growth"),
        ({"it": 1.5}, "it: .*less than or equal to 1"),
        ({"shortest": 500}, "none of 1000 sentences"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_a_sentence(given, message) -> None:
    with pytest.raises(ConfigError, match=message):
        generate(10, 10, 10, config=given)


def test_marked_antecedents_say_the_gender_of_their_pronoun_and_nothing_else_changes() -> None:
    plain, marked = (generate(10, 10, 200, config={"mark_antecedents": wanted}).test for wanted in (False, True))
    assert (marked.targets, marked.truth) == (plain.targets, plain.truth)
    seen = 0
    for row, record in enumerate(marked.truth):
        for pronoun in record["pronouns"]:
            back, word = row + pronoun["antecedent"]["sentence"], pronoun["antecedent"]["word"]
            before, after = (split.sources[back].split()[word] for split in (plain, marked))
            assert after == f"{before}-{pronoun['gender']}"
            seen += 1
    assert seen > 20
    assert sum("-" in word for source in marked.sources for word in source.split()) == seen


def test_lengths_that_no_sentence_may_have_are_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("lengths: [{words: [20, 30], share: 1}]\nlongest: 5\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"of the lengths \[\[20, 30\]\], had 3 to 5 words; mend lengths, shortest or"):
        generate(10, 10, 10, config=own)
