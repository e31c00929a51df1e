"""Runs on disk: what is listed, what is refused and why, and that a failure leaves the earlier files whole."""

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from core_models.translator import Translation
from workbench import cli
from workbench.store.runs import Run, RunError, list_runs, open_run, open_runs
from workbench.store.training_logs import training_table
from workbench.store.translation_writer import write_translations
from workbench.store.translations import TestSet as TestedOn  # pytest collects what is called Test…
from workbench.store.translations import Translations


def _translation(text: str, tree: object = None) -> Translation:
    tokens = [*text.split(), "</s>"]
    other = Translation(f"{text} too", [*text.split(), "too", "</s>"], [], -0.9, -1.8, [], True, [])
    return Translation(text, tokens, ["▁a", "</s>"], -0.5, -1.0, [-0.5] * len(tokens), True, [7], [other], tree=tree)  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "run").mkdir()
    return Run(tmp_path / "run", "run")


def _tree(word: str = "eins") -> dict[str, object]:
    """The record of a search that met one word."""
    numbers = {name: [-0.5] for name in ("log_prob", "score", "normalised")}
    return {"step": [1], "parent": [-1], "word": [word], **numbers, "rank": [0], "fate": ["finished"], "best": 0}


def _test_set(*sources: str) -> TestedOn:
    return TestedOn(
        "test", list(sources), [source.upper() for source in sources], [f"d{row}" for row, _ in enumerate(sources)]
    )


def test_broken_runs_are_listed_with_their_reason_and_stop_nothing(copied_runs):
    demo = copied_runs / "demo"
    for name in ("untrained", "no-yaml", "unknown-key", "no-vocabulary"):
        shutil.copytree(demo / "transformer", demo / name)
    (demo / "untrained" / "weights.safetensors").unlink()
    (demo / "no-yaml" / "config.yaml").write_text("name: [unclosed", encoding="utf-8")
    text = (demo / "unknown-key" / "config.yaml").read_text(encoding="utf-8")
    (demo / "unknown-key" / "config.yaml").write_text(
        text.replace("label_smoothing:", "label_smothing:"), encoding="utf-8"
    )
    (demo / "no-vocabulary" / "vocabulary" / "target.model").unlink()
    shutil.copytree(demo / "future-cost-1", copied_runs / "alone")

    found = {run.name: run for run in list_runs(copied_runs)}

    assert list(found) == sorted(found)
    whole = {"alone", "demo/transformer", "demo/future-cost-1", "demo/future-cost-2", "demo/untrained"}
    assert {name for name, run in found.items() if run.problem is None} == whole
    assert {name for name in whole if found[name].trained} == whole - {"demo/untrained"}
    assert "config.yaml: not readable as YAML" in found["demo/no-yaml"].problem
    assert "did you mean 'label_smoothing'?" in found["demo/unknown-key"].problem
    assert "'training.label_smothing'" in found["demo/unknown-key"].problem
    assert "target.model is missing" in found["demo/no-vocabulary"].problem
    with pytest.raises(RunError, match=r"target\.model is missing"):
        open_run("demo/no-vocabulary", copied_runs)


def test_there_are_no_runs_in_a_folder_that_is_not_there(tmp_path):
    assert list_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize("path", ["../elsewhere", "demo/../../elsewhere", "/etc"])
def test_a_path_that_leads_out_of_the_runs_folder_is_refused(tmp_path, path):
    root, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (elsewhere / "config.yaml").write_text("name: secret", encoding="utf-8")
    with pytest.raises(RunError, match="outside of the runs folder"):
        open_run(path, root)


def test_a_folder_that_is_no_run_is_refused_with_what_it_lacks(tmp_path):
    with pytest.raises(RunError, match=r"no run here: config\.yaml is missing"):
        open_run(tmp_path)


def test_all_of_a_group_are_its_runs_without_the_text_and_aligners_beside_them(copied_runs):
    group = copied_runs / "demo"
    (group / "aligners").mkdir()
    (group / "precision.json").write_text("{}")
    (group / "worker-1.log").write_text("")
    shown = CliRunner().invoke(cli.app, ["evaluate", *map(str, sorted(group.glob("[!.]*"))), "--test", "test"])
    assert shown.exit_code == 0, shown.output
    systems = {line.split("\t")[0] for line in shown.stdout.splitlines()[1:]}
    assert systems == {path.parent.name for path in group.glob("*/config.yaml")}
    alone = CliRunner().invoke(cli.app, ["evaluate", str(group / "aligners"), "--test", "test"])
    assert "no run here: config.yaml is missing" in str(alone.exception)


def test_a_run_is_named_after_its_folder_also_from_within(copied_runs, monkeypatch):
    monkeypatch.chdir(copied_runs / "demo" / "transformer")
    assert open_run(".").name == "transformer"


def test_runs_of_one_name_are_told_apart_by_the_folder_above(copied_runs):
    shutil.copytree(copied_runs / "demo", copied_runs / "again")
    paths = [copied_runs / "demo" / "transformer", copied_runs / "again" / "transformer"]
    assert [run.name for run in open_runs(paths)] == ["demo/transformer", "again/transformer"]
    assert [run.name for run in open_runs(paths[:1])] == ["transformer"]
    with pytest.raises(RunError, match="named twice"):
        open_runs([paths[0], paths[0]])


def test_translations_come_back_as_they_were_written(run):
    trees = [_tree(f"Wört{row}") for row in range(3)]
    written = [_translation(text, tree) for text, tree in zip(["eins", "zwei\nzwei", ""], trees, strict=True)]
    write_translations(run, _test_set("one", "two", "three"), written, {"beam": 3}, 1.23456)

    found = run.translations("test")
    assert run.tests() == ["test"]
    assert len(found) == 3
    assert found.hypotheses == ["eins", "zwei zwei", ""]
    assert found.test_set == _test_set("one", "two", "three")
    assert found.meta["search"] == {"beam": 3}
    assert [detail["tokens"] for detail in found.details] == [one.tokens for one in written]
    assert found.details[0]["n_best"] == [
        {"text": "eins too", "tokens": ["eins", "too", "</s>"], "score": -0.9, "log_prob": -1.8}
    ]
    assert [found.tree(row) for row in (2, 0, 1)] == [trees[2], trees[0], trees[1]]
    with pytest.raises(RunError, match="0 to 2, not 3"):
        found.tree(3)
    with pytest.raises(RunError, match="not -1"):
        found.tree(-1)


def test_opening_translations_reads_nothing_but_their_summary(run):
    """Lazy: only meta.json is needed to list and to count; what is asked for is read, the rest may even be missing."""
    write_translations(run, _test_set("one"), [_translation("eins", _tree())], {}, 0.0)
    folder = run.folder / "translations" / "test"
    for path in folder.iterdir():
        if path.name not in ("meta.json", "hypotheses.txt"):
            path.unlink()
    found = run.translations("test")
    assert len(found) == 1
    assert found.hypotheses == ["eins"]
    assert found.truth is None
    with pytest.raises(RunError, match=r"record them: workbench translate .*run --test test --save-beams"):
        found.tree(0)


def test_a_cut_file_is_named_with_its_line(run):
    write_translations(run, _test_set("one", "two"), [_translation("eins"), _translation("zwei")], {}, 0.0)
    path = run.folder / "translations" / "test" / "details.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"details\.jsonl:2: not a JSON record"):
        _ = run.translations("test").details


def test_a_cut_summary_is_an_unfinished_translation(run):
    write_translations(run, _test_set("one"), [_translation("eins")], {}, 0.0)
    meta = run.folder / "translations" / "test" / "meta.json"
    meta.write_text(meta.read_text()[:10])
    with pytest.raises(RunError, match="no finished translation here"):
        run.translations("test")


def test_what_is_missing_is_answered_with_the_command_that_makes_it(run):
    with pytest.raises(RunError, match=r"workbench translate .*/run --test wmt"):
        run.translations("wmt")
    with pytest.raises(RunError, match=r"workbench trace .*/run --test wmt"):
        run.traces("wmt")
    folder = run.folder.rename(run.folder.with_name("a run"))
    with pytest.raises(RunError, match=r"workbench translate '\S*/a run' --test 'a test'$"):
        Run(folder, "a run").translations("a test")


def test_a_failure_while_writing_leaves_the_earlier_translation_whole(run):
    write_translations(run, _test_set("one"), [_translation("eins", _tree())], {}, 0.0)
    before = {path.name: path.read_bytes() for path in (run.folder / "translations" / "test").iterdir()}
    unwritable = _translation("zwei", {"best": object()})  # fails after all other files of it are there
    with pytest.raises(TypeError):
        write_translations(run, _test_set("one"), [unwritable], {}, 0.0)
    assert run.tests() == ["test"]
    assert {path.name: path.read_bytes() for path in (run.folder / "translations" / "test").iterdir()} == before
    write_translations(run, _test_set("one"), [_translation("drei")], {}, 0.0)
    assert run.translations("test").hypotheses == ["drei"]
    assert [path.name for path in (run.folder / "translations").iterdir()] == ["test"]


def test_a_writer_that_is_killed_at_the_last_moment_leaves_no_test_set_of_its_own(run):
    """Whole but not yet in its place: what a process leaves that ends between the last file and the renaming."""
    write_translations(run, _test_set("one"), [_translation("eins")], {}, 0.0)
    shutil.copytree(run.folder / "translations" / "test", run.folder / "translations" / ".test.part")
    assert run.tests() == ["test"]


def test_new_translations_take_the_traces_of_the_old_ones_away(run):
    write_translations(run, _test_set("one"), [_translation("eins")], {}, 0.0)
    traces = run.folder / "traces" / "test"
    traces.mkdir(parents=True)
    (traces / "index.json").write_text('{"format": 1, "arrays": {}}')
    write_translations(run, _test_set("one"), [_translation("eins", _tree())], {}, 0.0)
    assert run.traces("test").names == [], "the same translations keep their traces"
    write_translations(run, _test_set("one"), [_translation("zwei")], {}, 0.0)
    with pytest.raises(RunError, match="has no traces"):
        run.traces("test")


@pytest.mark.parametrize("changed", ["weights", "pieces"])
def test_traces_go_where_other_weights_or_other_pieces_say_the_same(run, changed):
    write_translations(run, _test_set("one"), [_translation("eins")], {}, 0.0, made_by={"weights": "before"})
    traces = run.folder / "traces" / "test"
    traces.mkdir(parents=True)
    (traces / "index.json").write_text('{"format": 1, "arrays": {}}')
    again = _translation("eins") if changed == "weights" else replace(_translation("eins"), tokens=["ei", "ns"])
    made_by = {"weights": "after" if changed == "weights" else "before"}
    write_translations(run, _test_set("one"), [again], {}, 0.0, made_by=made_by)
    with pytest.raises(RunError, match="has no traces"):
        run.traces("test")


def test_two_that_write_one_test_set_at_once_never_mix_their_files(run):
    """The second comes while the first is at work: it waits, and in the end all files are its own."""
    second = threading.Thread(
        target=write_translations, args=(run, _test_set("two"), [_translation("zwei", _tree("zwei"))], {}, 0.0)
    )

    def documents():
        second.start()
        second.join(0.3)
        yield "d0"

    first = replace(_test_set("one"), documents=documents())
    write_translations(run, first, [_translation("eins", _tree())], {}, 0.0)
    second.join()
    found = run.translations("test")
    assert (found.test_set, found.hypotheses, found.tree(0)) == (_test_set("two"), ["zwei"], _tree("zwei"))


def test_a_log_whose_last_line_is_cut_keeps_the_lines_before(run):
    events = [
        {"event": "start", "step": 0},
        {"event": "train", "step": 5, "epoch": 0, "tokens": 50, "seconds": 0.5, "main_loss": 3.0},
        {"event": "valid", "step": 5, "epoch": 0, "tokens": 50, "seconds": 0.6, "main_loss": 2.0},
    ]
    lines = [json.dumps(event) for event in events]
    (run.folder / "training.jsonl").write_text(
        "\n".join([*lines, '{"event": "train", "step": 10, "main_']), encoding="utf-8"
    )
    assert run.events() == events
    table = training_table([run])
    assert table[["run", "step", "name", "value"]].values.tolist() == [
        ["run", 5, "train_main_loss", 3.0],
        ["run", 5, "dev_main_loss", 2.0],
    ]


def test_a_pickle_in_place_of_an_array_is_never_opened(run):
    write_translations(run, _test_set("one"), [_translation("eins", _tree())], {}, 0.0)
    starts = run.folder / "translations" / "test" / "trees.npy"
    np.save(starts, np.array([{"a": 1}, {"b": 2}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects in dtype"):
        Translations(starts.parent).tree(0)
