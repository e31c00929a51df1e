"""A command that is killed at any operation on a file leaves the old or the new result, whole, and can be repeated.

A few operations of each command are tried, those that put results into their places among them. With WORKBENCH_KILLS
"distinct" the first and the last of each kind are tried (the same call on files of one folder and ending), with "all"
all.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from core_models.checkpoint import write_weights
from core_models.files.atomic_folders import folders_in, mend
from core_models.files.file_marks import mended
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.parallel import write_lines
from tests.bad_input.conftest import SOURCES, TARGETS
from tests.core_models.conftest import lay_out_run
from tests.fairseq_models import random_tensors, settings, write_checkpoint, write_dictionaries
from tests.kinds import sampled
from tests.workbench.killing import Ended, Server, server
from workbench.experiments.train import finished
from workbench.store.rating_studies import marks, open_study
from workbench.store.runs import open_run

KILLS = os.environ.get("WORKBENCH_KILLS", "few")
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux"),
    pytest.mark.timeout(300 if KILLS == "few" else 3600),
    *([] if KILLS == "few" else [pytest.mark.exhaustive]),
]

PREPARE = (
    *("data", "prepare", "--train", "x.en,x.de", "--dev", "x.en,x.de"),
    *("--out", "text", "--vocab-size", 38, "--replace"),
)
CONTROLLED = ("data", "controlled", "--out", "corpus", "--sentences", 12, "--dev", 4, "--test", 4)
OUTSIDE = ("runs", "import-translations", "--test", "news", "--source", "x.en", "--reference", "x.de", "--out", "out")
SCORES = ("figure", "scores", "--run", "runs/one", "--option")
BUNDLE = ("--collection", "basket.json", "--runs", "runs", "--venue")
TRAIN = ("train", "transformer:preset=tiny", "--data", "data", "--out", "runs/new", "--config", "max_steps=2")
KEEP = (
    "--config",
    "keep_last=2",
    "--config",
    "validate_every=1",
    "--config",
    "precision=float32",
    "--config",
    "batch_tokens=256",
)
PAUSED = (*TRAIN, *KEEP, "--max-minutes", 0.00001)
N_BEST = ("translate", "runs/taught", "--test", "test", "--beam", 4, "--n-best")
TRACE = ("trace", "runs/one", "--test", "test")
TRANSLATE_FILE = ("translate", "runs/one", "--output", "t.txt", "--input")
STUDY = ("rating", "new", "mine", "--run", "runs/one", "--sentences", 15, "--runs", "runs")
RATED = ("rating", "import", "mine", "ratings.csv", "--runs", "runs")
RATINGS = ("rating", "export", "mine", "--runs", "runs", "--out", "r.csv")
IMPORT = ("data", "import", "saved", "--pair", "en-de", "--out", "text", "--split")
RUN_GRID = ("experiment", "run", "grid.yaml", "--runs", "runs", "--device", "cpu")
TABLE = ("experiment", "table", "grid.yaml", "--runs", "runs", "--csv", "tables", "--n-resamples", 40, "--metrics")
TABLES = ("tables/grid.cells.csv", "tables/grid.scores.csv", "tables/grid.comparisons.csv", "tables/grid.lengths.csv")
RATES = (
    "benchmark",
    "scale-null-rates",
    "x.de",
    "x.en",
    "x.de",
    "--segments",
    4,
    "--n-resamples",
    40,
    "--csv",
    "r.csv",
    "--n-datasets",
)
SEEDS = ("benchmark", "scale-seed-intervals", "--deviations", "0", "--csv", "s.csv", "--n-simulations")
OPEN_FAIRSEQ = (
    "open", "fairseq", "model.pt", "--source-dict", "dict.xx.txt", "--target-dict", "dict.yy.txt", "--as", "theirs",
    "--runs", "runs",
)  # fmt: skip
GRID = {
    "name": "grid",
    "data": {"pieces": 100, "kind": "bpe", "controlled": {"sentences": 60, "dev": 4, "test": 4}},
    "systems": {"plain": "transformer:preset=tiny"},
    "seeds": [1],
    "training": {"max_steps": 1, "validate_every": 1, "batch_tokens": 256, "precision": "float32"},
    "search": {"beam": 1, "max_length": 4},
    "inspect": "test",
}


def read(path: Path) -> Any:
    """What a reader of a file or a folder finds, without times; None where there is nothing."""
    path = mended(path)
    path = mend(path)
    if path.is_dir():
        return {name: read(one) for name, one in folders_in(path).items() if one.exists()}
    if not path.is_file():
        return None
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name].tobytes() for name in arrays.files}
    if path.suffix == ".json":
        return timeless(json.loads(path.read_bytes()))
    return path.read_bytes()


def timeless(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: timeless(value) for key, value in found.items() if key not in ("seconds", "weights_file", "files")}
    return [timeless(value) for value in found] if isinstance(found, list) else found


def translated(root: Path) -> dict[str, Any]:
    """Translations, and if there are traces of them: one cannot be had without the other."""
    run = open_run(root / "runs" / "one")
    return {"test": (read(run.translations("test").folder), run.traced("test"))}


def paths(*names: str) -> Callable[[Path], dict[str, Any]]:
    return lambda root: {name: read(root / name) for name in names}


def together(*names: str) -> Callable[[Path], dict[str, Any]]:
    """Files of which none is new while another is old."""
    return lambda root: {"all": tuple(read(root / name) for name in names)}


def trained(root: Path) -> dict[str, Any]:
    """The weights of a training that has ended: however often it was killed, they are the same."""
    run = root / "runs" / "new"
    return {
        "config": read(run / "config.yaml"),
        "weights": read(run / "weights.safetensors") if finished(run) else None,
    }


def pointing(root: Path) -> dict[str, Any]:
    """A run that points at a model beside the runs, whose whole path it has."""
    config = read(root / "runs" / "theirs" / "config.yaml")
    return {"config": config and config.replace(str(root.resolve()).encode(), b"")}


def rated(root: Path) -> dict[str, Any]:
    """The ratings of each rater."""
    study = open_study(root / "runs", "mine")
    return {rater: marks(study, rater) for rater in ("anna", "ben")}


@dataclass(frozen=True)
class Case:
    """A command, what is run before it, what it may leave in its two states, and how it is gone on with."""

    command: tuple[object, ...]
    found: Callable[[Path], dict[str, Any]]
    before: tuple[tuple[object, ...], ...] = ()
    again: Callable[[Path], tuple[object, ...] | None] = field(default=lambda root: None)
    needs: str = ""


def resumed(root: Path) -> tuple[object, ...] | None:
    return ("resume", "runs/new") if (root / "runs" / "new" / "config.yaml").is_file() else None


# Of several results those that came before the one for which there was no room are there.
STEPWISE = ("train", "average", "experiment run")


def listed(result: str) -> Callable[[Path], tuple[object, ...] | None]:
    """For commands that refuse to make again what is there: another, which only reads."""
    return lambda root: ("rating", "list", "--runs", "runs") if read(root / result) else None


CASES = {  # the longest first, so that no process is left alone with it at the end
    "experiment run": Case(
        RUN_GRID,
        paths("runs/grid/corpus", "runs/grid/data", "runs/grid/plain/translations/test", "runs/grid/plain/traces/test"),
    ),
    "data controlled": Case((*CONTROLLED, "--seed", 2), paths("corpus"), ((*CONTROLLED, "--long", 3),)),
    "data prepare": Case((*PREPARE, "--max-length", 99), paths("text"), (PREPARE,)),
    "data import": Case(
        (*IMPORT, "b"),
        together("text.en", "text.de", "text.docids"),
        ((*IMPORT, "a", "--documents", "talk"),),
        needs="datasets",
    ),
    "train": Case(TRAIN + KEEP, trained, again=resumed),
    "resume": Case(("resume", "runs/new"), trained, (PAUSED,)),
    "average": Case(
        ("runs", "average", "runs/new", "--last", 2, "--use"), paths("runs/new/weights.safetensors"), (TRAIN + KEEP,)
    ),
    "translate": Case(("translate", "runs/one", "--test", "test", "--beam", 1, "--save-beams"), translated, (TRACE,)),
    "translate a file": Case((*TRANSLATE_FILE, "x.en"), paths("t.txt"), ((*TRANSLATE_FILE, "items.tsv"),)),
    "evaluate": Case(
        ("evaluate", "runs/one", "--test", "dev", "--metrics", "bleu"), paths("runs/one/translations/dev")
    ),
    "trace": Case((*TRACE, "--sentences", "0-3"), paths("runs/one/traces/test"), (TRACE,)),
    "outside": Case((*OUTSIDE, "one=x.de"), paths("out/one"), ()),
    "outside again": Case((*OUTSIDE, "one=x.en"), paths("out/one"), ((*OUTSIDE, "one=x.de"),)),
    "figure": Case(
        (*SCORES, "metrics=ter", "--out", "figures"), paths("figures"), ((*SCORES, "metrics=bleu", "--out", "figures"),)
    ),
    "a file of a figure": Case(
        (*SCORES, "metrics=ter", "--out", "f.pdf"), paths("f.pdf"), ((*SCORES, "metrics=bleu", "--out", "f.pdf"),)
    ),
    "bundle": Case(
        ("export", "bundle", "paper", *BUNDLE, "AAAI"),
        paths("paper"),
        (("export", "bundle", "paper", *BUNDLE, "ACL"),),
    ),
    "a bundle in a zip": Case(("export", "bundle", "paper.zip", *BUNDLE, "AAAI"), paths("paper.zip")),
    "report": Case(("export", "report", "r.html", "--run", "runs/one", "--title", "new"), paths("r.html")),
    "analyze": Case(
        ("analyze", "sentences", "--run", "runs/one", "--out", "a.csv"), paths("a.csv")
    ),
    "aligner": Case(
        ("data", "train-aligner", "--source", "x.en", "--target", "x.de", "--out", "a.npz", "--iterations", 2),
        paths("a.npz"),
        (("data", "train-aligner", "--source", "x.en", "--target", "x.de", "--out", "a.npz", "--iterations", 1),),
    ),
    "adequacy": Case(("adequacy", "runs/one", "--test", "test"), paths("runs/one/adequacy/test.json")),
    "beam-sweep": Case(
        ("beam-sweep", "runs/one", "--sizes", "1,2", "--exact-max-sentences", 1),
        paths("runs/one/beam_sizes/test.json"),
        (("beam-sweep", "runs/one", "--sizes", "1", "--exact-max-sentences", 1),),
    ),
    "contrast": Case(("contrastive-eval", "items.tsv", "--run", "runs/one"), paths("runs/one/contrast/items.json")),
    "rerank": Case(
        ("rerank", "runs/taught"),
        paths("runs/taught/rescoring/test.npz"),
        ((*N_BEST, 3), ("rerank", "runs/taught"), (*N_BEST, 2)),
    ),
    "rating new": Case(
        STUDY, paths("runs/.ratings/mine/study.json"), again=listed("runs/.ratings/mine/study.json")
    ),
    "rating import": Case(RATED, rated, (STUDY,)),
    "rating export": Case(RATINGS, paths("r.csv"), (STUDY, RATINGS, RATED)),
    "rating export a form": Case((*RATINGS, "--form", "anna"), paths("r.csv"), (STUDY, RATINGS)),
    "export ctranslate2": Case(
        ("export", "ctranslate2", "runs/plain", "--out", "exported"),
        paths("exported"),
        again=listed("exported"),
        needs="ctranslate2",
    ),
    "export huggingface": Case(
        ("export", "huggingface", "runs/plain", "--out", "exported"),
        paths("exported"),
        again=listed("exported"),
        needs="transformers",
    ),
    "experiment table": Case((*TABLE, "chrf"), together(*TABLES), (RUN_GRID, (*TABLE, "bleu"))),
    "scale null-rates": Case((*RATES, 3), paths("r.csv"), ((*RATES, 2),)),
    "scale seed-intervals": Case((*SEEDS, 3), paths("s.csv"), ((*SEEDS, 2),)),
    "open fairseq": Case(OPEN_FAIRSEQ, paths("runs/theirs"), again=listed("runs/theirs")),
    "open hf": Case(
        ("open", "hf", "exported", "--as", "theirs", "--runs", "runs"),
        pointing,
        (("export", "huggingface", "runs/plain", "--out", "exported"),),
        again=listed("runs/theirs"),
        needs="transformers",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def warm() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture(scope="module")
def world(prepared, taught_run, tmp_path_factory, warm) -> Path:
    """Texts, two untrained runs with translations, one that ends its sentences, and what commands read of files."""
    root = tmp_path_factory.mktemp("world")
    write_lines(root / "x.en", SOURCES)
    write_lines(root / "x.de", TARGETS)
    write_lines(root / "items.tsv", ["source\tright\twrong", "the dog\tder Hund\tder Baum"])
    shutil.copytree(prepared.folder, root / "data")
    shutil.copytree(taught_run.folder, root / "runs" / "taught")
    (root / "prepared").symlink_to("data")  # where the last one's configuration has it
    for name, system in (("one", "future-cost-2"), ("plain", "transformer")):
        folder = lay_out_run(
            root / "runs" / name, prepared, system, {"beam": 2, "max_length": 6}, precision="float32"
        )  # fmt: skip
        torch.manual_seed(1)
        write_weights(
            folder / "weights.safetensors", build(describe(f"{system}:preset=tiny"), len(prepared.source_vocabulary))
        )
    write_checkpoint(root / "model.pt", settings(), random_tensors(settings()))
    write_dictionaries(root)
    recipe = {"drawing": "scores", "runs": ["one"], "options": {"metrics": "bleu"}}
    (root / "basket.json").write_text(json.dumps({"version": 1, "figures": [{"recipe": recipe}]}))
    ratings = [f"{rater},{sentence},one,3,0," for rater in ("anna", "ben") for sentence in (0, 1)]
    write_lines(root / "ratings.csv", ["rater,sentence,system,quality,over,under", *ratings])
    if importlib.util.find_spec("datasets"):
        import datasets

        columns = {"en": SOURCES, "de": TARGETS, "talk": [0] * len(SOURCES)}
        every = datasets.Dataset.from_dict(columns)
        datasets.DatasetDict({"a": every, "b": every.select(range(3))}).save_to_disk(str(root / "saved"))
    (root / "grid.yaml").write_text(yaml.safe_dump(GRID, sort_keys=False))
    ended = warm.run(root, ("evaluate", "runs/one", "--test", "test"))
    assert ended.code == 0, ended.output
    return root


def left_over(root: Path) -> list[str]:
    """What nobody needs any more; a lock that nobody holds is no more than a name."""
    marks = (".part", ".old-", ".new-", ".unfinished")
    return [str(path.relative_to(root)) for path in root.rglob("*") if any(mark in path.name for mark in marks)]


def kind_of(operation: str) -> tuple[str, str, str]:
    """The call, the folder without numbers and random parts of names, and the ending of a file's name."""
    call, name = re.sub(r"\d+", "0", re.sub(r"part-\w+", "part", operation)).split(" ", 1)
    path = PurePosixPath(name.strip("'"))
    return call, str(path.parent), path.suffix


def chosen(operations: tuple[str, ...], kills: str = KILLS) -> list[int]:
    """Operations to be killed at, from 1: all, the first and the last of each kind, or one in between and those that
    put the last result into its place."""
    count = len(operations)
    if kills == "all":
        return list(range(1, count + 1))
    if kills == "distinct":
        first, last = {}, {}
        for number, kind in enumerate(map(kind_of, operations), start=1):
            first.setdefault(kind, number)
            last[kind] = number
        return sorted({*first.values(), *last.values()})
    renamed = [number for number, operation in enumerate(operations, start=1) if operation.startswith("os.rename")]
    last_ones = {number + after for number in renamed[-1:] for after in (0, 1)}
    return sorted({count // 2 + 1, *last_ones} & set(range(1, count + 1)))


@pytest.mark.parametrize("name", sampled(CASES, every=5))
@pytest.mark.slow
def test_a_command_that_is_killed_leaves_the_old_or_the_new_result(world, warm, tmp_path, name):
    case = CASES[name]
    if case.needs:
        pytest.importorskip(case.needs)
    before = tmp_path / "before"
    shutil.copytree(world, before, symlinks=True)
    for command in case.before:
        ended = warm.run(before, command)
        assert ended.code == 0, ended.output
    old = case.found(before)
    assert left_over(before) == []
    after = tmp_path / "after"
    shutil.copytree(before, after, symlinks=True)
    ended = warm.run(after, case.command)
    assert ended.code == 0, ended.output
    new = case.found(after)
    assert new != old, "else nothing can be told apart"
    assert left_over(after) == []
    for at in chosen(ended.operations):
        root = tmp_path / "killed"
        shutil.copytree(before, root, symlinks=True)
        killed = warm.run(root, case.command, at)
        where = f"killed before operation {at} of {len(ended.operations)}, {(*killed.operations, '?')[-2]}"
        assert killed.code == -signal.SIGKILL, f"{where}: {killed.output}"
        found = case.found(root)
        for part in new:
            assert found[part] in (old[part], new[part]), f"{where}: {part} is neither the old result nor the new"
        again = warm.run(root, case.again(root) or case.command)
        assert again.code == 0, f"{where}: {again.output}"
        assert case.found(root) == new, where
        assert left_over(root) == [], where
        shutil.rmtree(root)


# Without room, adequacy is measured all the same, and again the next time.
@pytest.mark.parametrize("name", sampled([name for name in CASES if name != "adequacy"], every=3))
def test_a_command_that_finds_no_room_says_so_and_leaves_the_old_result(world, warm, tmp_path, name):
    """No file may be larger than so many bytes, as with a quota: the kernel itself refuses the write."""
    case = CASES[name]
    if case.needs:
        pytest.importorskip(case.needs)
    root = tmp_path / "before"
    shutil.copytree(world, root, symlinks=True)
    for command in case.before:
        assert warm.run(root, command).code == 0
    old = case.found(root)
    check_refusal(warm.run(root, case.command, RLIMIT_FSIZE=50), "file too large")
    assert case.found(root) == old or name in STEPWISE
    assert left_over(root) == []


def check_refusal(ended: Ended, message: str) -> None:
    """One sentence, which says so, and no traceback."""
    assert ended.code == 2, ended.output
    assert "Traceback" not in ended.output, ended.output
    (sentence,) = [line for line in ended.output.splitlines() if line.startswith("workbench: ")]
    assert message in sentence.lower(), ended.output


@pytest.mark.parametrize("name", ["translate", "beam-sweep", "figure", "report", "contrast"])
def test_a_command_that_finds_no_memory_says_so_and_leaves_the_old_result(world, warm, tmp_path, name):
    """As little more as this than what is taken when it begins."""
    case = CASES[name]
    root = tmp_path / "before"
    shutil.copytree(world, root, symlinks=True)
    for command in case.before:
        assert warm.run(root, command).code == 0
    old = case.found(root)
    ended = warm.run(root, case.command, RLIMIT_AS=1 << 20)
    check_refusal(ended, "not enough memory")
    assert case.found(root) == old
    assert left_over(root) == []
