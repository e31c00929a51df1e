"""Contrastive test sets: runs score them as the translator does, page and figure show it."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import core_models
from analyses.contrastive import Item, with_contexts
from analyses.contrastive import majority as contrastive_majority
from analyses.wilson import wilson
from tests.bad_input.test_fuzzing import bounded, sentences
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, texts, traces
from workbench import cli
from workbench.evaluation import translate
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, open_run
from workbench.views.contrastive import measure as contrastive
from workbench.views.contrastive.items import controlled_items
from workbench.views.contrastive.plots import contrastive_accuracy

_ROW = {"item": {"source": "x", "right": "y", "wrong": ["z"], "tags": {}, "context": []},
        "scored": {"right": -1.0, "wrong": [-2.0], "right_tokens": 2, "wrong_tokens": [2]}}  # fmt: skip
_VALUES = st.sampled_from([None, True, 0, 1, 1e999, "x", [], {}, ["x"], [-1.0, -2.0]])
_DAMAGED = st.builds(
    lambda part, name, value: {**_ROW, part: {**_ROW[part], name: value}},
    st.sampled_from(["item", "scored"]),
    st.sampled_from(["source", "right", "wrong", "tags", "context", "context_after", "right_tokens", "wrong_tokens"]),
    _VALUES,
)
JSON = st.one_of(_VALUES, st.lists(st.one_of(_VALUES, _DAMAGED), max_size=3))


@bounded(100)
@given(change=st.dictionaries(st.sampled_from(["name", "origin", "read", "rows"]), JSON, min_size=1))
def test_a_damaged_result_is_read_or_refused(scored, tmp_path, change):
    runs, _ = scored
    whole = json.loads((runs[0].folder / "contrast" / "controlled-test.json").read_bytes())
    (tmp_path / "contrast").mkdir(exist_ok=True)
    damaged = {**whole, "rows": whole["rows"][:2], **change}
    (tmp_path / "contrast" / "x.json").write_text(json.dumps(damaged), encoding="utf-8")
    with sentences():
        found = contrastive.read(Run(tmp_path, "one"), "x")
        assert len(contrastive.judged(found)) == len(found.items) > 0


@pytest.fixture(scope="module")
def scored(demo_runs, tmp_path_factory):
    """Two runs that scored the pronouns of their controlled test set, by the command line, and what it printed."""
    root = tmp_path_factory.mktemp("runs")
    shutil.copytree(demo_runs / "demo", root / "demo")
    runs = [open_run(f"demo/{name}", root) for name in ("transformer", "future-cost-1")]
    words = ["contrastive-eval", "--controlled", "test", "--tag", "distance"]
    found = CliRunner().invoke(cli.app, [*words, *(part for run in runs for part in ("--run", str(run.folder)))])
    assert found.exit_code == 0, found.output
    return runs, found.stdout


def test_every_translation_has_the_translators_log_prob(scored):
    runs, _ = scored
    for run in runs:
        translator, found = core_models.load(run.folder), contrastive.read(run, "controlled-test")
        assert found.items == controlled_items(run)
        for item, one in zip(found.items, found.scored, strict=True):
            expected = translator.score([item.source] * 3, [item.right, *item.wrong])
            np.testing.assert_allclose([one.right, *one.wrong], [each.log_prob for each in expected], atol=1e-3)
            assert [one.right_tokens, *one.wrong_tokens] == [len(each.tokens) for each in expected]


def test_chance_stands_at_each_tag_where_tags_differ():
    rows = {"system": "a", "n": 4, "right": 2, "ties": 0, "share": 0.5, "low": 0.2, "high": 0.8, "margin": 0.1}
    table = pd.DataFrame([{**rows, "tag": "two", "chance": 0.5}, {**rows, "tag": "four", "chance": 0.25}])
    table = table.assign(margin_per_token=0.1)
    drawn = contrastive_accuracy(table).table
    chance = drawn[drawn["series"] == "chance"]
    assert chance[["tag", "chance_percent"]].values.tolist() == [["two", 50.0], ["four", 25.0]]
    (line,) = contrastive_accuracy(table.assign(chance=0.5)).table.query("series == 'chance'")["value"]
    assert line == 50.0


def test_the_first_process_alone_scores(scored, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    run = scored[0][0]
    file = run.folder / "contrast" / "controlled-test.json"
    before = file.stat().st_mtime_ns
    folder = str(run.folder)
    for words in (
        ["contrastive-eval", "--controlled", "test", "--run", folder],
        ["compare", folder, str(scored[0][1].folder)],
        ["score", folder, "--source", folder, "--target", folder],
        ["beam-sweep", folder, "--sizes", "1", "--exact-max-sentences", "0"],
    ):
        found = CliRunner().invoke(cli.app, words)
        assert (found.exit_code, found.stdout) == (0, "")
    assert file.stat().st_mtime_ns == before
    assert not (run.folder / "beam_sizes").exists()


def test_scores_of_other_weights_are_none_of_the_run(scored, tmp_path):
    run = open_run(shutil.copytree(scored[0][0].folder, tmp_path / "run"))
    assert contrastive.read(run, "controlled-test").scored == contrastive.read(scored[0][0], "controlled-test").scored
    shutil.copy(scored[0][1].weights, run.weights)
    with pytest.raises(RunError, match="with other weights than it has now; score it again: workbench contrastive"):
        contrastive.read(run, "controlled-test")


def test_the_command_prints_the_accuracy_by_tag(scored):
    runs, printed = scored
    header, *rows = [line.split("\t") for line in printed.splitlines()]
    assert header[:6] == ["system", "tag", "n", "right", "ties", "share"]
    for run in runs:
        own = [dict(zip(header, row, strict=True)) for row in rows if row[0] == run.folder.name]
        found = contrastive.read(run, "controlled-test")
        right = sum(one.right > max(one.wrong) for one in found.scored)
        assert sum(int(row["right"]) for row in own) == right
        assert sum(int(row["n"]) for row in own) == len(found.items)
        for row in own:
            low, high = wilson(int(row["right"]), int(row["n"]))
            assert (float(row["low"]), float(row["high"])) == pytest.approx((low, high), abs=1e-4)


def test_figure_and_page_show_the_same_shares(scored, monkeypatch):
    runs, _ = scored
    monkeypatch.setenv("WORKBENCH_RUNS", str(runs[0].folder.parents[1]))
    figure = draw("contrastive", Request(tuple(runs), options={"tag": "gender"}))
    assert "a tie counts as wrong" in figure.caption
    assert "items have a context, which systems of single sentences do not see" in figure.caption
    at = open_page("contrast", runs=[run.name for run in runs], tag="gender")
    (chart,) = charts(at)
    assert {"right (%)", "gender"} <= axis_titles(chart)
    table = contrastive.accuracy_table(contrastive.read_all(runs, "controlled-test"), "gender")
    for run in runs:
        rows = table[table["system"] == run.name]
        drawn = figure.table[(figure.table["series"] == run.folder.name) & (figure.table["mark"] == "points")]
        for shown in (traces(chart, run.folder.name)[0]["y"], drawn["share_percent"]):
            np.testing.assert_allclose(np.asarray(shown, dtype=float), 100 * rows["share"])
    assert traces(chart, "chance")
    with_margins = [frame.value for frame in at.dataframe if "margin_per_token" in frame.value]
    accuracy = next(table for table in with_margins if "panel" not in table)  # the other one is the figure's
    np.testing.assert_allclose(accuracy["margin"], table["margin"])
    np.testing.assert_allclose(accuracy[["share", "low", "high"]], 100 * table[["share", "low", "high"]])
    listed = at.dataframe[-1].value
    margins = contrastive.items_table(contrastive.read_all(runs, "controlled-test"))[[run.name for run in runs]]
    assert len(listed) == (margins <= 0).any(axis=1).sum()
    assert any(code.startswith("workbench contrastive-eval --controlled test") for code in codes(at))


def test_tags_of_a_file_may_be_called_as_the_columns_of_the_table(scored):
    runs, _ = scored
    tags = {"item": "17", "source": "it", runs[0].name: "x", "gender": "f"}
    found = {
        name: replace(one, items=[replace(item, tags=tags) for item in one.items])
        for name, one in contrastive.read_all(runs, "controlled-test").items()
    }
    table = contrastive.items_table(found)
    own = ["item", "source", "right", "wrong", *(run.name for run in runs)]
    assert list(table) == [*own, "tag item", "tag source", f"tag {runs[0].name}", "gender"]
    assert table["item"].tolist() == list(range(len(table)))
    assert set(table["tag item"]) == {"17"}


def test_without_a_scored_set_the_page_gives_the_commands(with_demo):
    at = open_page("contrast", runs=["demo/transformer"])
    assert any("workbench contrastive-eval --controlled test --run" in code for code in codes(at))
    assert any("No contrastive test set" in text for text in texts(at))


def test_different_versions_damage_and_absence_are_said(scored, tmp_path):
    runs, _ = scored
    copies = [open_run(shutil.copytree(run.folder, tmp_path / run.folder.name)) for run in runs]
    items = with_contexts(contrastive.read(copies[1], "controlled-test").items, "none")
    contrastive.score_items(copies[0], items, "controlled-test", "elsewhere")
    with pytest.raises(RunError, match="scored different versions of 'controlled-test'"):
        contrastive.read_all(copies, "controlled-test")
    (copies[1].folder / "contrast" / "controlled-test.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="score it again: workbench contrastive-eval --controlled test --run"):
        contrastive.read(copies[1], "controlled-test")
    with pytest.raises(
        RunError, match="has not scored the contrastive test set 'pro'; run: workbench contrastive-eval"
    ):
        contrastive.read(copies[0], "pro")
    with pytest.raises(RunError, match="no items, so nothing was scored"):
        contrastive.score_items(copies[0], [], "empty", "empty.tsv")


def test_versions_are_told_apart_by_all_that_is_scored_and_all_around_it():
    one = Item("s", "r", ("w", "v"), {}, ("a",), ("A",), ("b",))
    two = replace(one, wrong=("u",))
    changes = ({"source": "S"}, {"right": "R"}, {"wrong": ("w",)}, {"context": ("b",)}, {"context_outputs": ("B",)},
               {"context": ("a b",), "context_after": ()}, {"context_after": ()})  # fmt: skip
    versions = [[one, two], *([replace(one, **change), two] for change in changes),
                [replace(one, wrong=("w",)), replace(two, wrong=("v", "u"))]]  # fmt: skip
    assert len({contrastive.digest_of(items) for items in versions}) == len(versions)
    assert contrastive.digest_of([replace(one, tags={"distance": "1"}), two]) == contrastive.digest_of([one, two])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give either a FILE of items or --controlled TEST"),
        (("--controlled", "test"), "name at least one run"),
        (
            ("--controlled", "test", "--run", "RUN", "--tag", "size"),
            "no item has the tag 'size'; there is distance, gender",
        ),
        (("FILE", "--run", "RUN", "--contexts", "other-item"), "--contexts other-item: one item has no other"),
    ],
)
def test_a_command_that_lacks_something_is_refused(demo_runs, tmp_path, words, message):
    file = tmp_path / "one.jsonl"
    file.write_text(json.dumps({"source": "x", "right": "y", "wrong": "z", "context": "a"}), encoding="utf-8")
    named = {"RUN": str(demo_runs / "demo" / "transformer"), "FILE": str(file)}
    found = CliRunner().invoke(cli.app, ["contrastive-eval", *(named.get(word, word) for word in words)])
    assert found.exit_code == 2
    assert message in found.output


def test_other_sentences_around_the_items_are_a_set_of_their_own(context_runs, tmp_path):
    given = context_runs[0].config
    config = shutil.copytree(context_runs[0].folder, tmp_path / "reader") / "config.yaml"
    data = given.data_folder(context_runs[0].folder).resolve()
    config.write_text(config.read_text(encoding="utf-8").replace(f"data: {given.data}", f"data: {data}"), "utf-8")
    run = open_run(tmp_path / "reader")
    words = ["contrastive-eval", "--controlled", "test", "--run", str(run.folder)]
    for which in ("none", "another"):
        found = CliRunner().invoke(cli.app, [*words, "--contexts", which], catch_exceptions=False)
        assert found.exit_code == 0, found.output
    items = controlled_items(run)
    alone = core_models.load(run.folder).score([item.source for item in items], [item.right for item in items])
    without = contrastive.read(run, "controlled-test+none")
    assert [one.right for one in without.scored] == pytest.approx([one.log_prob for one in alone], abs=1e-3)
    other = contrastive.read(run, "controlled-test+another")
    assert other.origin == "the truth of test; around the items the sentences around another item, half the list away"
    assert sorted(item.context for item in other.items) == sorted(item.context for item in items)
    assert not any(mine.context and mine.context == item.context for mine, item in zip(other.items, items, strict=True))
    assert contrastive.command_arguments("controlled-test+another") == [
        "--controlled",
        "test",
        "--contexts",
        "other-item",
    ]
    assert contrastive.command_arguments("a+b") == ["FILE"]
    refused = CliRunner().invoke(cli.app, [*words, "--contexts", "other-itm"])
    assert refused.exit_code == 2
    assert "did you mean 'other-item'?" in refused.output


def test_offline_an_item_is_scored_as_in_its_document(offline_run, tmp_path):
    """With the sentences after it, too; a result from before these were read is none."""
    run = open_run(shutil.copytree(offline_run.folder, tmp_path / "san"))
    items = [item for item in controlled_items(offline_run) if item.context_after][:3]
    contrastive.score_items(run, items, "some", "chosen")
    (text, _), translator = translate.test_set(offline_run, "test"), core_models.load(run.folder)
    inside = translator.score(text.sources, text.references, text.documents)
    for item, one in zip(items, contrastive.read(run, "some").scored, strict=True):
        (alone,) = translator.score([item.source], [item.right], contexts=[list(item.context[:-3:-1])])
        follows = len(item.context_after)
        (row,) = [
            row
            for row, source in enumerate(text.sources)
            if source == item.source and tuple(text.sources[row + 1 : row + 1 + follows]) == item.context_after
        ]
        assert one.right == pytest.approx(inside[row].log_prob, abs=1e-4)
        assert abs(one.right - alone.log_prob) > 1e-4
    figure = draw("contrastive", Request((run,), options={"name": "some"}))
    assert " 3 items have a context, which systems of single sentences do not see; san reads 2 before and 2 after." in (
        figure.caption
    )
    path = run.folder / "contrast" / "some.json"
    kept = json.loads(path.read_bytes())
    path.write_text(json.dumps({name: value for name, value in kept.items() if name != "after"}), encoding="utf-8")
    with pytest.raises(RunError, match="scored 'some' without the sentences after an item, which it reads"):
        contrastive.read(run, "some")


def test_what_stands_after_the_items_alone_is_a_context_too(offline_run, tmp_path):
    run, file = open_run(shutil.copytree(offline_run.folder, tmp_path / "san")), tmp_path / "ahead.jsonl"
    item = {"source": "it sleeps .", "right": "er schläft .", "wrong": "sie schläft .", "context_after": "it eats ."}
    file.write_text(json.dumps(item), encoding="utf-8")
    words = ["contrastive-eval", str(file), "--run", str(run.folder)]
    for more in ([], ["--contexts", "none"]):
        found = CliRunner().invoke(cli.app, [*words, *more], catch_exceptions=False)
        assert found.exit_code == 0, found.output
    own, without = (contrastive.read(run, name) for name in ("ahead", "ahead+none"))
    assert (own.items_with_context, without.items_with_context) == (1, 0)
    assert without.origin == "ahead.jsonl; around the items nothing"
    (alone,) = core_models.load(run.folder).score(["it sleeps ."], ["er schläft ."])
    assert without.scored[0].right == pytest.approx(alone.log_prob, abs=1e-4)
    assert abs(own.scored[0].right - alone.log_prob) > 1e-4


def test_systems_that_read_the_sentences_before_are_given_them(context_runs, tmp_path):
    """As much of an item's context as they read, the nearest first; translations of it where the item has them."""
    runs = [open_run(shutil.copytree(run.folder, tmp_path / run.name)) for run in context_runs[:2]]
    items = [item for item in controlled_items(context_runs[0]) if len(item.context) > 3][:3]
    for run in runs:
        contrastive.score_items(run, items, "some", "chosen")
        found, translator = contrastive.read(run, "some"), core_models.load(run.folder)
        assert found.before == 3
        for item, one in zip(items, found.scored, strict=True):
            contexts = {"contexts": [list(item.context[:-4:-1])]}
            if translator.context.outputs:
                contexts["context_outputs"] = [list(item.context_outputs[:-4:-1])]
            (right,) = translator.score([item.source], [item.right], **contexts)
            (alone,) = translator.score([item.source], [item.right])
            assert one.right == pytest.approx(right.log_prob, abs=1e-3)
            assert abs(one.right - alone.log_prob) > 1e-4
    bare = [Item(item.source, item.right, item.wrong, item.tags, item.context) for item in items[:1]]
    contrastive.score_items(runs[1], bare, "bare", "chosen")
    (one,), translator = contrastive.read(runs[1], "bare").scored, core_models.load(runs[1].folder)
    lines = list(items[0].context[-3:])
    written = [found.text for found in translator.translate(lines, ["d"] * 3)]
    beside = {"contexts": [lines[::-1]], "context_outputs": [written[::-1]]}
    (right,) = translator.score([items[0].source], [items[0].right], **beside)
    assert one.right == pytest.approx(right.log_prob, abs=1e-3)
    figure = draw("contrastive", Request((runs[0],), options={"name": "some", "tag": "distance"}))
    assert "qcn-reg reads 3 before." in figure.caption
    shares = contrastive_majority([item.tags for item in items], "distance")
    drawn = figure.table[figure.table.series == "majority form"].set_index("tag")["majority_percent"]
    assert drawn.to_dict() == pytest.approx({tag: 100 * share for tag, share in shares.items()})
    path = runs[0].folder / "contrast" / "some.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "read": 0}), encoding="utf-8")
    with pytest.raises(RunError, match="scored 'some' without the sentences before an item, which it reads"):
        contrastive.read(runs[0], "some")
