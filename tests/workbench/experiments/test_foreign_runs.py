"""A model folder of Hugging Face is a run: an exported run of ours, opened again, is the run itself."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from core_models import load
from core_models.foreign import check_folder
from core_models.settings import ConfigError
from workbench import cli
from workbench.evaluation.scoring import score_table
from workbench.evaluation.translate import test_set as named_test_set
from workbench.evaluation.translate import translate_test
from workbench.experiments.foreign_runs import folder_of, open_huggingface
from workbench.export.huggingface import export_huggingface
from workbench.store.runs import Run, RunError, list_runs, open_run
from workbench.views.attribution.measure import explain

pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")


@pytest.fixture(scope="module")
def exported(taught_run, tmp_path_factory) -> Path:
    return export_huggingface(taught_run, tmp_path_factory.mktemp("exported") / "model")


@pytest.fixture(scope="module")
def opened(exported, taught_run, tmp_path_factory) -> Run:
    data = taught_run.config.data_folder(taught_run.folder)
    return open_huggingface(exported, tmp_path_factory.mktemp("runs") / "theirs", data)[0]


@pytest.fixture
def model(exported, tmp_path) -> Path:
    """A copy of the model, to be spoiled."""
    return Path(shutil.copytree(exported, tmp_path / "model"))


def test_translations_trees_scores_and_traces_are_those_of_the_run(taught_run, opened, prepared):
    ours, theirs = load(taught_run.folder), load(opened.folder)
    sources, references = prepared.test("test").sources, prepared.test("test").targets
    same = {"length_factor": 1000.0, "record": True, "trace": ["*"]}  # theirs has no limit by the source
    for one, other in zip(ours.translate(sources, **same), theirs.translate(sources, **same), strict=True):
        assert (one.source_tokens, one.tokens, one.text) == (other.source_tokens, other.tokens, other.text)
        assert one.tree["word"] == other.tree["word"]
        assert one.trace.keys() == other.trace.keys()
        for name, array in one.trace.items():
            np.testing.assert_allclose(other.trace[name].values, array.values, atol=2e-4)
    for one, other in zip(ours.score(sources, references), theirs.score(sources, references), strict=True):
        assert other.token_log_probs == pytest.approx(one.token_log_probs, abs=1e-4)
    assert theirs.sample(sources[:4], seed=2)[0][0].text == ours.sample(sources[:4], seed=2)[0][0].text
    begun = [translator.translate(sources[:4], prefix=["der"] * 4) for translator in (ours, theirs)]
    assert [one.text for one in begun[0]] == [one.text for one in begun[1]]


def test_it_is_listed_translated_scored_and_attributed_as_every_run(taught_run, opened, tmp_path):
    (listed,) = list_runs(opened.folder.parent)
    assert (listed.problem, listed.system, listed.trained) == (None, "pegasus", True)
    translate_test(opened, *named_test_set(opened, "test"), trees=True)
    assert opened.tests() == ["test"]
    assert len(score_table([opened], "test", samples=10))
    copied = open_run(shutil.copytree(taught_run.folder, tmp_path / "ours"))
    translate_test(copied, *named_test_set(taught_run, "test"))
    ours, theirs = (explain(run, "test", 0).attribution for run in (copied, opened))
    np.testing.assert_allclose(theirs.source, ours.source, atol=1e-3)


def test_another_search_in_its_configuration_leaves_its_translations_those_of_its_weights(opened, tmp_path):
    run = open_run(shutil.copytree(opened.folder, tmp_path / "theirs"))
    translate_test(run, *named_test_set(run, "test"))
    config = run.folder / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    assert open_run(run.folder).tests() == ["test"]


def test_a_model_that_was_changed_or_moved_says_so(model, tmp_path):
    run, _ = open_huggingface(model, tmp_path / "run")
    settings = json.loads((model / "generation_config.json").read_text(encoding="utf-8"))
    (model / "generation_config.json").write_text(json.dumps(settings | {"num_beams": 2}), encoding="utf-8")
    with pytest.raises(ConfigError, match="has changed since this run was made"):
        load(run.folder)
    model.rename(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is not there any more"):
        load(run.folder)


def _edit(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


HOSTILE = {
    "code of the model": ("config.json", {"auto_map": {"AutoModelForSeq2SeqLM": "evil.Model"}}, "code of its own"),
    "code of the tokenizer": ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["evil.T"]}}, "code of its own"),
    "another family": ("config.json", {"model_type": "gpt2"}, "a model of the type 'gpt2'; only these"),
    "tags where there are none": ("config.json", {"model_type": "m2m_100"}, "name its codes of two"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_may_not_be_opened_is_refused_and_nothing_runs(model, tmp_path, case):
    name, changes, message = HOSTILE[case]
    (model / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    _edit(model / name, **changes)
    with pytest.raises(ConfigError, match=message):
        open_huggingface(model, tmp_path / "run")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "run").exists()


def test_pickles_and_missing_shards_are_refused(model):
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="a pickle is never opened"):
        check_folder(model)
    (model / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="weights are missing"):
        check_folder(model)


def test_a_type_of_weights_that_is_none_is_refused(exported, tmp_path):
    with pytest.raises(ConfigError, match="dtype"):
        open_huggingface(exported, tmp_path / "run", dtype="int9")


def test_a_size_that_the_weights_do_not_have_is_a_sentence(model, tmp_path):
    _edit(model / "config.json", vocab_size=7)
    with pytest.raises(ConfigError, match="cannot be opened"):
        open_huggingface(model, tmp_path / "run")


def test_the_device_is_where_it_is_opened(exported, tmp_path):
    words = ["open", "hf", str(exported), "--as", "theirs", "--runs", str(tmp_path), "--device"]
    missing = CliRunner().invoke(cli.app, [*words, "cuda:99"])
    assert missing.exit_code
    assert not (tmp_path / "theirs").exists()
    assert "no such device" in (missing.output + str(missing.exception))
    assert CliRunner().invoke(cli.app, [*words, "auto"]).exit_code == 0


def test_the_command_opens_a_model_and_refuses_a_taken_name(exported, tmp_path):
    words = ["open", "hf", str(exported), "--as", "theirs", "--runs", str(tmp_path)]
    assert CliRunner().invoke(cli.app, words).output.startswith(f"{tmp_path / 'theirs'}: pegasus")
    with pytest.raises(RunError, match="choose another folder"):
        open_huggingface(exported, tmp_path / "theirs")


@pytest.mark.parametrize("name", ["../x", "/x", "", "a/../../x", "-x", "a b\n"])
def test_a_name_is_of_a_run_below_the_runs_folder(name, tmp_path):
    with pytest.raises(RunError, match="no name for a run"):
        folder_of(tmp_path, name)
    assert folder_of(tmp_path, "foreign/opus-mt") == tmp_path / "foreign" / "opus-mt"
    with pytest.raises(RunError, match="no page would find this run"):
        folder_of(tmp_path, "models/foreign/opus-mt")
