"""Commands that write into a folder, given one that holds somebody's own files: refused, and all is as it was."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from core_models.files.file_marks import MARK
from tests.bad_input.test_text import PREPARE
from workbench.store.translations import Translations

pytestmark = pytest.mark.long

IMPORT = ("runs", "import-translations")
OUTSIDE = (*IMPORT, "--test", "news", "--source", "in.txt", "--reference", "in.txt", "mine=in.txt")
CONTROLLED = ("data", "controlled", "--sentences", 9, "--dev", 3, "--test", 3)
FIGURE = ("figure", "scores", "--option", "metrics=bleu", "--run", "runs/one", "--out", "figures")

# The files that are there, the command, the first that it names.
TRAIN = ("train", "transformer", "--data", "DATA", "--out", "mine")
OF_A_RUN = {
    "a run": (["mine/training.jsonl", "mine/vocabulary/source.model"], TRAIN, "mine: holds training.jsonl"),
    "translations": (["runs/one/translations/test/a.txt"], ("translate", "runs/one", "--test", "test"), "holds a.txt"),
    "a test set": (["runs/one/translations/dev/a.txt"], ("evaluate", "runs/one", "--test", "dev"), "holds a.txt"),
    "traces": (["runs/one/traces/test/mine/a.npy"], ("trace", "runs/one", "--test", "test"), "holds mine/a.npy"),
    "an outside run": (["out/mine/a.txt"], (*OUTSIDE, "--out", "out"), "out/mine: holds a.txt"),
    "figures": (["figures/own.pdf"], FIGURE, "figures: holds own.pdf"),
    "a figure of the same name": (["figures/scores.pdf"], FIGURE, "figures: holds scores.pdf"),
}
OF_A_TEXT = {
    "a corpus": (["mine/train.en"], (*CONTROLLED, "--out", "mine"), "mine: holds train.en"),
    "a folder for a corpus": (["mine/notes/a.txt"], (*CONTROLLED, "--out", "mine"), "mine: holds notes/a.txt"),
    "a text that is unfinished": (
        ["prepared/.unfinished/a", "prepared/train/source.text.npy", "prepared/train/my own"],
        PREPARE,
        "prepared: holds .unfinished/a",
    ),
    "a test set in a text": (["prepared/tests/mine.source"], PREPARE, "prepared: holds tests/mine.source"),
    "a manifest of another kind": (
        ["mine/data.yaml", "mine/train/source.text.npy"],
        (*PREPARE, "--out", "mine"),
        "mine: holds data.yaml",
    ),
}


def _lay_down(files: list[str]) -> None:
    for name in files:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("mine: 1\n")


@pytest.mark.parametrize("case", OF_A_RUN)
def test_what_is_beside_a_result_of_a_run_is_left_alone(run, prepared, refused, case):
    files, arguments, message = OF_A_RUN[case]
    _lay_down(files)
    said = refused(*(prepared.folder if argument == "DATA" else argument for argument in arguments))
    assert f"{message}, which `workbench " in said
    assert "did not make, or which was changed since; move it away, or name another folder" in said


@pytest.mark.parametrize("case", OF_A_TEXT)
def test_what_is_beside_a_text_is_left_alone(texts, refused, case):
    files, arguments, message = OF_A_TEXT[case]
    _lay_down(files)
    assert f"{message}, which `workbench data " in refused(*arguments)


def test_a_corpus_takes_the_place_of_another_also_of_one_without_a_mark(texts, done, refused):
    def corpus(seed: int) -> bytes:
        done(*CONTROLLED, "--out", "corpus", "--seed", seed)
        return Path("corpus/train.en").read_bytes()

    first = corpus(1)
    assert corpus(2) != first
    Path("corpus", MARK).unlink()
    assert corpus(1) == first
    Path("corpus/train.en").write_text("mine\n")
    assert "corpus: holds train.en" in refused(*CONTROLLED, "--out", "corpus")
    Path("corpus", MARK).unlink()
    assert "corpus: holds train.en" in refused(*CONTROLLED, "--out", "corpus")


@pytest.mark.slow
def test_figures_are_drawn_into_one_folder_also_into_one_without_a_mark(run, done, refused):
    done(*FIGURE)
    done("figure", "length-scores", *FIGURE[4:])
    names = {path.stem for path in Path("figures").glob("[!.]*")}
    assert len(names) == 2
    Path("figures", MARK).unlink()
    done(*FIGURE)
    assert {path.stem for path in Path("figures").glob("[!.]*")} == names
    Path("figures/scores.tex").write_text("edited")
    assert "figures: holds scores.tex" in refused(*FIGURE)


@pytest.mark.slow
def test_a_bundle_takes_the_place_of_another_and_of_nothing_else(run, done, refused):
    recipe = {"drawing": "scores", "runs": ["one"], "options": {"metrics": "bleu"}}
    Path("basket.json").write_text(json.dumps({"version": 1, "figures": [{"recipe": recipe}]}))
    bundle = ("export", "bundle", "paper", "--collection", "basket.json", "--runs", "runs")
    done(*bundle)
    made = {path.name for path in Path("paper").iterdir()}
    Path("paper", MARK).unlink()
    done(*bundle)
    assert {path.name for path in Path("paper").iterdir()} == made
    _lay_down(["paper/paper.tex"])
    assert "paper: holds paper.tex, which `workbench export bundle` did not make" in refused(*bundle)
    done(*FIGURE)
    assert "figures: holds scores.csv" in refused("export", "bundle", "figures", *bundle[3:])


def test_translations_made_before_are_replaced(run, done):
    done("translate", "runs/one", "--test", "test", "--beam", 1)
    assert Translations(run / "translations" / "test").meta["search"]["beam"] == 1
    assert len(Translations(run / "translations" / "test")) == 15


def test_two_preparations_of_one_folder_do_not_mix(texts, refused):
    with open(".prepared.writing.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "prepared: another process is writing it; wait until that has ended" in refused(*PREPARE)
