"""Translate, Beam trees and Future cost: what is shown is what the model, the search and the traces say."""

import json
import shlex
import shutil
from dataclasses import replace

import numpy as np
import pytest

import core_models
from analyses import beam
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, runs_of, texts, traces
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.plotting.axes import token_texts
from workbench.store import external
from workbench.store.runs import RunError
from workbench.views.beam_search import figures
from workbench.views.interactive import decoding as live


def test_translate_gives_what_the_translator_gives(with_demo):
    run = runs_of(with_demo, "future-cost-2")[0]
    source = run.translations("test").test_set.sources[5]
    search = {"sentence": "5", "with": "future-cost-2", "beam": "3", "best": "3", "penalty": "1.0"}
    at = open_page("translate", **search)
    expected = core_models.load(run.folder).translate([source], beam=3, n_best=3, length_penalty=1.0, record=True)[0]
    assert source in texts(at)
    (chart,) = charts(at)
    assert traces(chart, "best path")
    assert any(code.startswith("printf ") and "--beam 3" in code for code in codes(at))
    at = open_page("translate", **search, inside="n-best and tokens")
    n_best, tokens = (table.value for table in at.dataframe[-2:])
    assert n_best["text"].tolist() == [expected.text, *(one.text for one in expected.n_best)]
    np.testing.assert_allclose(n_best["score"], [expected.score, *(one.score for one in expected.n_best)], atol=1e-5)
    assert tokens["token"].tolist() == expected.tokens
    np.testing.assert_allclose(tokens["log_prob"], expected.token_log_probs, atol=1e-5)
    assert any(code.startswith("printf ") and "--beam 3" in code for code in codes(at))


def test_a_forced_prefix_begins_the_translation(with_demo):
    source = "the cat sleeps ."
    at = open_page("translate", source=source, prefix="die Katze", inside="n-best and tokens")
    outputs, n_best = (table.value for table in at.dataframe[:2])
    assert outputs["text"].str.startswith("die Katze").all()
    assert n_best["text"].str.startswith("die Katze").all()
    assert source in texts(at)


def test_the_chosen_sentence_can_be_taken_to_edit_it(with_demo):
    source = runs_of(with_demo, "transformer")[0].translations("test").test_set.sources[5]
    at = open_page("translate", sentence="5")
    assert not at.text_area(key="source").value
    at.button(key="take").click().run()
    assert at.text_area(key="source").value == source
    assert "take" not in [button.key for button in at.button]


def test_lines_are_read_as_one_sentence_and_that_is_said(with_demo):
    at = open_page("translate", source="the cat sleeps .\nthe dog sleeps .", **{"with": "transformer"})
    assert "the cat sleeps . the dog sleeps ." in texts(at)
    assert any(caption.value == "The lines are read as one sentence." for caption in at.caption)


def test_a_source_that_is_too_long_is_refused_once_with_a_command(with_demo):
    at = open_page("translate", source="word " * 200)
    (refusal,) = at.error
    assert "200 words" in refusal.value
    assert any("workbench translate" in code for code in codes(at))
    assert not charts(at)


def test_runs_without_weights_are_named_and_not_asked(with_demo):
    folder = runs_of(with_demo, "transformer")[0].folder / "translations" / "test"
    test_set = external.read_test_set("test", folder / "sources.txt")
    external.import_translations(
        with_demo / "outside", test_set, folder / "sources.txt", {"online": folder / "hypotheses.txt"}
    )
    at = open_page("translate", runs=["demo/transformer", "outside/online"], sentence="1")
    assert at.dataframe[0].value["system"].tolist() == ["transformer"]
    assert at.selectbox(key="with").options == ["transformer"]
    assert "Without weights: online." in [caption.value.replace("\\", "") for caption in at.caption]
    assert not at.error


def test_a_long_source_without_blanks_is_too_long_too(with_demo):
    run = runs_of(with_demo, "transformer")[0]
    run = replace(run, folder=run.folder.rename(run.folder.with_name("a run")))
    with pytest.raises(RunError, match=r"3000 characters.*workbench translate '\S+/a run' --input FILE$"):
        live.translate(run, live.TranslationRequest("\u7684" * 3_000))


def test_two_trees_stand_side_by_side_the_baseline_above(with_demo, monkeypatch):
    monkeypatch.setattr(figures, "MOST_STEPS", 12)  # in one row
    first, second = runs_of(with_demo, "transformer", "future-cost-1")
    at = open_page("beam_trees", sentence="4", nodes="800", probability="0.0", pruned="true")
    (chart,) = charts(at)
    assert "step" in axis_titles(chart)
    titles = [annotation["text"] for annotation in chart["layout"]["annotations"]]
    assert titles == ["transformer", "future-cost-1"]
    for run, trace in zip((first, second), traces(chart, "best path")[-2:], strict=True):
        nodes = beam.tree(run.translations("test").tree(4))
        best = nodes[nodes["on_best"] & (nodes["step"] <= 12)]
        assert len(trace["x"]) == len(best)


@pytest.mark.parametrize(
    ("show", "name"), [("", "beam-trees"), ("Difference", "beam-diff"), ("One system", "beam-tree")]
)
def test_page_and_command_draw_the_same_tree_unless_told(with_demo, monkeypatch, show, name):
    """Of searches longer than what is drawn of them, with and without what was pruned."""
    monkeypatch.setattr(figures, "MOST_STEPS", 12)
    runs = tuple(runs_of(with_demo, "transformer", "future-cost-1"))[: 1 if name == "beam-tree" else 2]
    at = open_page("beam_trees", sentence="4", **({"show": show} if show else {}))
    (command,) = [code for code in codes(at) if code.startswith(f"workbench figure {name} ")]
    words = shlex.split(command)
    told = [words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "--option"]
    on_page = draw(name, Request(runs, "test", 4, options={key: json.loads(value) for key, value in told}))
    unless_told = draw(name, Request(runs, "test", 4))
    assert on_page.table.equals(unless_told.table)
    assert len(draw(name, Request(runs, "test", 4, options={"steps": "all"})).table) > len(on_page.table)
    assert len(draw(name, Request(runs, "test", 4, options={"pruned": True})).table) > len(on_page.table)


def test_the_difference_lists_what_only_one_search_reached(with_demo):
    runs = runs_of(with_demo, "transformer", "future-cost-2")
    at = open_page("beam_trees", sentence="4", show="Difference", beside="future-cost-2")
    expected = beam.diff(*(run.translations("test").tree(4) for run in runs))
    parted = f"The best paths part at step {expected.divergence_step}."
    assert (parted if expected.divergence_step else "Both searches end in the same translation.") in texts(at)
    for shown, only in zip(at.dataframe[-2:], (expected.only_a, expected.only_b), strict=True):
        assert shown.value["word"].tolist() == list(token_texts(only["word"]))
        np.testing.assert_allclose(shown.value["score"], only["score"])
    (chart,) = charts(at)
    assert traces(chart, "both")


def test_one_run_has_one_tree(with_demo):
    at = open_page("beam_trees", runs=["demo/transformer"])
    assert len(charts(at)) == 1
    assert "beam-tree " in next(code for code in codes(at) if "figure" in code)


def test_future_cost_draws_the_traces(with_demo):
    at = open_page("future_cost", sentence="2")
    first, second, calibration = charts(at)
    for run, chart in zip(runs_of(with_demo, "future-cost-1", "future-cost-2"), (first, second), strict=True):
        trace = run.traces("test")[2]
        np.testing.assert_allclose(traces(chart, "log P of the word")[0]["y"], trace["log_prob"].values, atol=1e-6)
        np.testing.assert_allclose(
            traces(chart, "estimated one step before")[0]["y"], trace["future_cost.log_prob"].values, atol=1e-6
        )
    assert not traces(first, "gate")
    assert traces(second, "gate")
    assert {"estimated cost of the next word (nats)", "realised cost (nats)"} <= axis_titles(calibration)
    agreement = next(frame.value for frame in at.dataframe if "pearson" in frame.value)
    assert agreement["system"].tolist() == ["future-cost-1", "future-cost-2"]
    assert (agreement["n"] > 0).all()


def test_without_a_future_cost_run_the_page_says_which_has_one(with_demo):
    at = open_page("future_cost", runs=["demo/transformer"])
    assert any("Shown instead: demo/future-cost-1, demo/future-cost-2." in text for text in texts(at))
    assert charts(at)


@pytest.mark.parametrize("page", ["beam_trees", "future_cost"])
def test_what_was_not_recorded_is_asked_for(page, with_demo):
    for name in ("future-cost-1", "future-cost-2"):
        shutil.copytree(
            with_demo / "demo" / name, with_demo / "new" / name, ignore=shutil.ignore_patterns("trees.*", "traces")
        )
    at = open_page(page, runs=["new/future-cost-1", "new/future-cost-2"])
    wanted = "--save-beams" if page == "beam_trees" else "workbench trace"
    assert any(wanted in code for code in codes(at))
    if page == "beam_trees":
        assert any("Shown instead: demo/" in text for text in texts(at))
    else:
        assert not charts(at)
