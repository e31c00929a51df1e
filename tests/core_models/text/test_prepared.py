"""Laws of prepared text: it is what was read, unfinished is refused, distances in a document are true."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from core_models.files.atomic_folders import FolderError
from core_models.text import prepared as prepared_text
from core_models.text.parallel import ParallelText, TextError, write_lines
from core_models.text.prepared import Prepared, prepare

WORDS = ["Haus", "Baum", "Straße", "Katze", "läuft", "sieht", "grüne", "alte", "der", "die"]


def _text(name: str, number: int, seed: int) -> ParallelText:
    generator = np.random.default_rng(seed)
    sources = [" ".join(generator.choice(WORDS, size=generator.integers(1, 9))) for _ in range(number)]
    targets = [" ".join(reversed(line.lower().split(" "))) for line in sources]
    return ParallelText(name, sources, targets, [f"{name}-{i // 7}" for i in range(number)])


TRAIN, DEV, TEST = _text("train", 200, 1), _text("dev", 20, 2), _text("test", 10, 3)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_lines(folder / "truth.jsonl", ["{}"] * 10)
    tests = {"test": TEST, "plain": replace(TEST, targets=None, documents=None)}
    return prepare(folder / "prepared", TRAIN, DEV, tests, pieces=40, truths={"test": folder / "truth.jsonl"})


@pytest.mark.parametrize(("name", "text"), [("train", TRAIN), ("dev", DEV)])
def test_what_is_binarised_is_what_was_read(prepared, name, text):
    split = Prepared.open(prepared.folder).split(name)
    assert len(split) == len(text)
    assert [split.source_text(i) for i in range(len(split))] == text.sources
    assert [split.target_text(i) for i in range(len(split))] == text.targets
    assert [split.source(i).tolist() for i in range(len(split))] == prepared.source_vocabulary.encode(text.sources)
    assert [split.target(i).tolist() for i in range(len(split))] == prepared.target_vocabulary.encode(text.targets)
    assert split.source(0).dtype == np.uint16
    assert split.source_lengths.tolist() == [len(split.source(i)) for i in range(len(split))]
    assert split.target_lengths.sum() == prepared.manifest["splits"][name]["target_tokens"]
    assert split.documents.tolist() == [i // 7 for i in range(len(split))]


def test_test_sets_are_text(prepared):
    assert prepared.test_names == ["dev", "test", "plain"]
    assert prepared.test("dev") == DEV
    assert prepared.test("test") == TEST
    assert prepared.test("plain") == ParallelText("plain", TEST.sources)
    assert prepared.truth("test").read_text() == "{}\n" * 10
    assert prepared.truth("dev") is None
    with pytest.raises(TextError, match="no test set 'absent'; there is dev, test, plain"):
        prepared.test("absent")


def test_equal_data_has_equal_digests(prepared, tmp_path):
    tests = {"test": TEST, "plain": replace(TEST, targets=None, documents=None)}
    truths = {"test": prepared.truth("test")}
    assert prepare(tmp_path / "a", TRAIN, DEV, tests, pieces=40, truths=truths).digest == prepared.digest
    changed = replace(TRAIN, targets=["anders", *TRAIN.targets[1:]])
    assert prepare(tmp_path / "b", changed, DEV, tests, pieces=40, truths=truths).digest != prepared.digest


def test_one_vocabulary_a_side(tmp_path):
    prepared = prepare(tmp_path, TRAIN, DEV, pieces=36, kind="bpe", joint=False)
    assert not prepared.joint
    assert prepared.source_vocabulary.digest != prepared.target_vocabulary.digest
    assert prepared.target_vocabulary.decode([prepared.split("train").target(3)]) == [TRAIN.targets[3]]
    assert sorted(file.name for file in (tmp_path / "vocabulary").iterdir()) == ["source.model", "target.model"]


def test_long_and_empty_pairs_are_left_out_and_counted_and_distances_stay_true(tmp_path):
    # Ten sentences of two documents of five; row 1 is too long and row 7 has an empty target.
    sources = ["Haus"] * 10
    sources[1] = "Haus " * 50
    targets = ["haus"] * 7 + [""] + ["haus"] * 2
    text = ParallelText("odd", sources, targets, ["a"] * 5 + ["b"] * 5)
    prepared = prepare(tmp_path, TRAIN, text, pieces=40, max_length=20)
    entry = prepared.manifest["splits"]["dev"]
    assert (entry["sentences"], entry["left_out"]) == (8, {"too_long": 1, "empty": 1})
    assert entry["left_out_lines"] == {"too_long": [2], "empty": [8]}
    assert len(prepared.test("dev")) == 10
    split = prepared.split("dev")  # rows 0 2 3 4 | 5 6 8 9
    assert split.before(0, 3) == [None, None, None]
    assert split.before(1, 3) == [None, 0, None]  # row 1 is gone, row 0 is two before
    assert split.before(3, 3) == [2, 1, None]
    assert split.before(4, 3) == [None, None, None]  # a new document
    assert split.before(7, 4) == [6, None, 5, 4]


def _files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_preparation_that_fails_loses_nothing_and_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    def fail():
        with monkeypatch.context() as patch:
            patch.setattr(prepared_text, "_write_test", interrupt)
            with pytest.raises(KeyboardInterrupt):
                prepare(tmp_path / "data", TRAIN, TEST, pieces=40)
        with pytest.raises(TextError, match="the text holds only"):
            prepare(tmp_path / "data", TRAIN, TEST, pieces=4000)
        with pytest.raises(TextError, match="none of its 200 pairs is left"):
            prepare(tmp_path / "data", TRAIN, TEST, pieces=40, max_length=0)

    fail()
    assert not (tmp_path / "data").exists()
    assert prepare(tmp_path / "data", TRAIN, DEV, pieces=40).test("dev") == DEV
    before = _files(tmp_path / "data")
    fail()
    assert _files(tmp_path / "data") == before
    assert prepare(tmp_path / "data", TRAIN, TEST, pieces=40).test("dev").sources == TEST.sources


def test_a_process_that_was_killed_leaves_what_is_refused_and_can_be_repeated(tmp_path):
    prepare(tmp_path / "data", TRAIN, DEV, pieces=40)
    (tmp_path / "data" / ".unfinished").mkdir()
    (tmp_path / "data" / "data.yaml").rename(
        tmp_path / "data" / ".unfinished" / "data.yaml"
    )  # the last step is missing
    with pytest.raises(TextError, match=r"data\.yaml is missing, so it was not finished"):
        Prepared.open(tmp_path / "data")
    assert prepare(tmp_path / "data", TRAIN, TEST, pieces=40).test("dev").sources == TEST.sources
    assert not (tmp_path / "data" / ".unfinished").exists()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text[:90], r"data\.yaml: .*prepare the text again"),
        (lambda text: text.replace("format: 1", "format: 2"), "not a manifest of format 1; prepare the text again"),
        (lambda text: text.replace("joint: true", "joint: perhaps"), r"data\.yaml: vocabulary\.joint: .*boolean"),
        (lambda text: text.replace("  dev:", "  ../dev:"), "test set '../dev': the name is used as a file name"),
    ],
)
def test_a_spoiled_manifest_is_refused(prepared, tmp_path, spoil, message):
    (tmp_path / "data.yaml").write_text(spoil((prepared.folder / "data.yaml").read_text()))
    with pytest.raises(TextError, match=message):
        Prepared.open(tmp_path)


def test_a_cut_or_missing_array_is_named(tmp_path):
    split = prepare(tmp_path, TRAIN, DEV, pieces=40).split("train")
    path = tmp_path / "train" / "source.tokens.npy"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(
        TextError, match=r"source\.tokens\.npy: missing, cut short or no array .*prepare the text again"
    ):
        split.source(1)
    path.unlink()
    with pytest.raises(TextError, match=r"source\.tokens\.npy: missing"):
        split.source(1)


def test_somebody_elses_folder_is_left_alone(tmp_path):
    (tmp_path / "train").mkdir()
    write_lines(tmp_path / "train" / "precious", ["text"])
    with pytest.raises(FolderError, match="holds train/precious, which `workbench data prepare` did not make"):
        prepare(tmp_path, TRAIN, DEV, pieces=40)
    assert (tmp_path / "train" / "precious").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tests": {"dev": TEST}}, "may not be called 'dev'"),
        ({"tests": {"../x": TEST}}, "is used as a file name"),
        ({"truths": {"other": "file"}}, "truths for other"),
        ({"dev": replace(DEV, targets=None)}, "dev: training and dev text need translations"),
        ({"dev": replace(DEV, documents=["a", "b"] * 10)}, "dev:3: document 'a' begins again"),
        ({"max_length": 0}, r"none of its 200 pairs is left: 200 are too long \(max_length 0\) and 0 empty"),
    ],
)
def test_what_cannot_be_prepared_is_named(tmp_path, arguments, message):
    with pytest.raises(TextError, match=message):
        prepare(tmp_path / "data", **{"train": TRAIN, "dev": DEV, "pieces": 40, **arguments})


def test_opening_reads_the_manifest_only(tmp_path):
    """A split of 60 MB: opening it and reading one sentence takes less than a megabyte of memory."""
    folder = prepare(tmp_path, TRAIN, DEV, pieces=40).folder
    np.save(folder / "train" / "source.tokens.npy", np.ones(30_000_000, dtype=np.uint16))
    program = (
        "import resource, sys; from core_models.text.prepared import Prepared\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"Prepared.open({str(folder)!r}).split('dev').source(1); before = peak()\n"
        f"Prepared.open({str(folder)!r}).split('train').source(1); print(peak() - before)"
    )
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)
    kilobytes = grown if sys.platform == "linux" else grown / 1024
    assert kilobytes < 1024


def test_a_preparation_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(prepared_text, "_CHUNK", 64)
    told = []
    prepare(tmp_path / "prepared", TRAIN, DEV, pieces=40, report=lambda *far: told.append(far))
    assert told == [
        (0, 200, "vocabulary"),
        *((done, 200, "train") for done in (64, 128, 192, 200)),
        (20, 20, "dev"),
    ]
