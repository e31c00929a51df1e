"""A run's search by CTranslate2: our translations with our log-probabilities, and refusals with the reason."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core_models import load
from core_models.config import SearchConfig
from core_models.settings import read_yaml, write_yaml
from workbench import cli
from workbench.export.ctranslate2_search import CTranslate2Search, ctranslate2_engine
from workbench.store.runs import Run, RunError, open_run

pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

POWER = {"penalty": "power", "beam": 5, "max_length": 40}


@pytest.fixture
def run(taught_run, prepared, tmp_path) -> Run:
    folder = Path(shutil.copytree(taught_run.folder, tmp_path / "taught"))
    write_yaml(folder / "config.yaml", {**read_yaml(folder / "config.yaml"), "data": str(prepared.folder)})
    return open_run(folder)


@pytest.mark.parametrize("changes", [{}, {"n_best": 3}, {"length_penalty": 0.0}, {"beam": 1}])
def test_it_finds_what_the_workbench_finds(run, prepared, changes):
    translator, sources = load(run.reference), prepared.test("test").sources
    search = run.config.search.changed({**POWER, **changes})
    done: list[tuple[int, int]] = []
    found = CTranslate2Search(run, search).translate(translator, sources, lambda *progress: done.append(progress))
    ours = translator.translate(sources, **{**POWER, **changes})
    same = [mine.text == theirs.text for mine, theirs in zip(ours, found, strict=True)]
    assert sum(same) >= 0.95 * len(same), "a search that ends by another rule may find another"
    assert done[-1] == (len(sources), len(sources))
    for mine, theirs, equal in zip(ours, found, same, strict=True):
        assert len(theirs.n_best) == search.n_best - 1
        if equal and mine.tokens == theirs.tokens:
            assert theirs.token_log_probs == pytest.approx(mine.token_log_probs, abs=1e-4)
            assert (theirs.score, theirs.log_prob) == pytest.approx((mine.score, mine.log_prob), abs=1e-4)
            assert (theirs.ids, theirs.source_tokens, theirs.finished) == (mine.ids, mine.source_tokens, mine.finished)


def test_log_probabilities_are_those_of_the_run_whatever_searches(run, prepared):
    translator, sources = load(run.reference), prepared.test("test").sources
    found = CTranslate2Search(run, run.config.search.changed({**POWER, "precision": "int8"})).translate(
        translator, sources
    )
    traces = translator.trace(sources, [one.tokens for one in found], ["log_prob"])
    for one, trace in zip(found, traces, strict=True):
        assert one.token_log_probs == pytest.approx(trace["log_prob"].values.tolist(), abs=1e-6)
        assert one.log_prob == pytest.approx(sum(one.token_log_probs))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"penalty": "gnmt"},
            r"divides by length\^length_penalty, this search has penalty gnmt; give --search penalty",
        ),
        ({"penalty": "power", "precision": "bfloat16"}, "searches in full or int8, not bfloat16"),
        ({"penalty": "power", "finished_hypotheses": "keep"}, "finished hypotheses leave the beam"),
    ],
)
def test_a_search_it_does_not_know_is_refused_with_the_reason(run, changes, reason):
    with pytest.raises(RunError, match=reason):
        CTranslate2Search(run, SearchConfig().changed(changes))


def test_a_sentence_beyond_the_model_s_positions_is_refused_by_its_number(run):
    search, translator = run.config.search.changed(POWER), load(run.reference)
    opened = CTranslate2Search(run, search)
    with pytest.raises(RunError, match=r"sentence 1 has \d+ pieces, and in CTranslate2 this model has \d+ positions"):
        opened.translate(translator, ["the dog sleeps .", "dog " * opened.positions])


def test_other_systems_devices_and_trees_are_refused_with_the_reason(demo_runs, run):
    other = open_run(demo_runs / "demo" / "future-cost-2")
    with pytest.raises(RunError, match="CTranslate2 has no future_cost; take a transformer without mechanisms"):
        CTranslate2Search(other, SearchConfig())
    with pytest.raises(RunError, match="translates on the CPU, not on cuda:1"):
        ctranslate2_engine(run, "cuda:1")
    with pytest.raises(RunError, match="keeps no beam-search tree; leave --save-beams or --engine out"):
        ctranslate2_engine(run).translate(load(run.reference), ["a dog"], record=True)


def test_the_commands_take_the_engine_and_store_its_name(run, tmp_path):
    def call(*arguments: str):
        return CliRunner().invoke(cli.app, [*arguments, "--engine", "ctranslate2", "--search", "penalty=power"])

    found = call("translate", str(run.folder), "--test", "test")
    assert found.exit_code == 0, found.output
    assert run.translations("test").meta["engine"] == "ctranslate2"
    stored = run.translations("test").hypotheses
    source = run.folder / "translations" / "test" / "sources.txt"
    found = call("translate", str(run.folder), "--input", str(source), "--output", str(tmp_path / "out"))
    assert found.exit_code == 0, found.output
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == stored
    shutil.rmtree(run.folder / "translations")
    found = call("evaluate", str(run.folder), "--test", "test", "--metrics", "bleu")
    assert found.exit_code == 0, found.output
    assert json.loads((run.folder / "translations" / "test" / "meta.json").read_text())["engine"] == "ctranslate2"
    evaluate = ["evaluate", str(run.folder), "--test", "test", "--metrics", "bleu", "--search", "penalty=power"]
    for arguments, engine in (([], "ctranslate2"), (["--engine", "workbench"], None), ([], None)):
        found = CliRunner().invoke(cli.app, [*evaluate, *arguments])
        assert found.exit_code == 0, found.output
        assert run.translations("test").meta.get("engine") == engine
    found = call("translate", str(run.folder), "--input", str(source), "--prefix", "der")
    assert "--prefix would change nothing beside --engine ctranslate2" in " ".join(found.output.split())
    found = CliRunner().invoke(cli.app, ["translate", str(run.folder), "--test", "test", "--engine", "marian"])
    assert "choose workbench or ctranslate2" in found.output
