"""Training with context: the data's documents are read, parts can be frozen, and what does not fit is refused first."""

import pytest
import torch

from core_models import load
from core_models.checkpoint import read_tensors
from core_models.config import TrainingConfig
from core_models.settings import ConfigError, parse
from core_models.system_builder import build
from core_models.text.parallel import ParallelText, TextError
from core_models.text.prepared import prepare
from core_models.training.fit import fit, freeze
from tests.core_models.conftest import lay_out_run
from tests.core_models.training.test_beyond_the_end import ask_for


@pytest.mark.parametrize(
    "system", ["qcn-reg", "document-transformer", "han", "san-encoder", "san-encoder:memory=offline", "concatenation"]
)
def test_a_run_trains_and_translates_documents(new_run, prepared, system):
    run = new_run("run", system, max_steps=3)
    progress = fit(run, device="cpu")
    assert (progress.step, progress.skipped) == (3, 0)
    test_set = prepared.test("test")
    translations = load(run).translate(test_set.sources, test_set.documents)
    assert len(translations) == len(test_set.sources)


def test_context_changes_what_is_trained(new_run):
    """The same seed with one sentence before and with three gives other weights."""
    weights = []
    for reach in (1, 3):
        run = new_run(f"run-{reach}", f"han-encoder:context_sentences={reach}", max_steps=2)
        fit(run, device="cpu")
        weights.append(read_tensors(run / "weights.safetensors"))
    name = "mechanisms.hierarchical_attention.gate.encoder.weight"
    assert not torch.equal(weights[0][name], weights[1][name])


@pytest.mark.slow
def test_where_context_does_not_count_all_systems_take_as_many_updates(new_run):
    def updates(system: str, count_context: bool) -> int:
        settings = {"max_steps": None, "max_epochs": 1, "count_context": count_context}
        return fit(new_run(f"{system}-{count_context}", system, **settings), device="cpu").step

    plain = updates("transformer", True)
    assert updates("transformer", False) == updates("qcn", False) == updates("concatenation", False) == plain
    assert updates("qcn", True) > plain


def test_a_second_stage_trains_the_new_part_alone(new_run):
    """What the first stage left stays bit by bit, and goes on from where it stopped when it is resumed."""
    first = new_run("first", "transformer", max_steps=2)
    fit(first, device="cpu")
    settings = {"init_from": str(first), "train": ["mechanisms.*"]}
    second = new_run("second", "document-transformer", max_steps=4, **settings)
    assert all(name.startswith("mechanisms.") for name in fit(second, device="cpu").unmatched)
    before, after = (read_tensors(run / "weights.safetensors") for run in (first, second))
    assert all(torch.equal(after[name], value) for name, value in before.items())
    resumed = new_run("resumed", "document-transformer", max_steps=2, **settings)
    fit(resumed, device="cpu")
    ask_for(resumed, max_steps=4)
    fit(resumed, device="cpu")
    again = read_tensors(resumed / "weights.safetensors")
    assert all(torch.equal(again[name], value) for name, value in after.items())


def test_patterns_name_what_trains():
    system = build("han:preset=tiny", 30)
    freeze(system, ["mechanisms.*.gate.*", "*.look.encoder.*"])
    trained = {name for name, parameter in system.named_parameters() if parameter.requires_grad}
    assert trained
    assert all(".gate." in name or ".look.encoder." in name for name in trained)
    system = build("han:preset=tiny", 30)
    freeze(system, [])
    assert all(parameter.requires_grad for parameter in system.parameters())
    with pytest.raises(
        ConfigError, match=r"no parameter is named like 'mechanism\.\*'; there are: backbone\.decoder, "
    ):
        freeze(system, ["mechanism.*"])


def test_parts_that_do_not_train_come_from_somewhere():
    with pytest.raises(ConfigError, match="what does not train would stay as it was drawn; name the run it is from"):
        parse(TrainingConfig, {"max_steps": 1, "train": ["mechanisms.*"]})


def test_a_context_that_is_not_read_is_refused(new_run):
    with pytest.raises(ConfigError, match="context_sentences: 2 are asked for and this system reads none"):
        fit(new_run("plain", "transformer", context_sentences=2), device="cpu")
    with pytest.raises(ConfigError, match="this system reads 3: set the system's own context_sentences"):
        fit(new_run("other", "qcn", context_sentences=2), device="cpu")
    assert fit(new_run("same", "qcn", context_sentences=3, max_steps=1), device="cpu").step == 1


def test_texts_that_cannot_give_it_are_refused_before_training(new_run, prepared, tmp_path):
    dev = prepared.test("dev")
    known = ParallelText("known", dev.sources, dev.targets, dev.documents)
    plain = ParallelText("plain", dev.sources, dev.targets)
    for name, pair in (("train", (plain, known)), ("dev", (known, plain))):
        data = prepare(tmp_path / f"data-{name}", *pair, pieces=60, kind="bpe")
        with pytest.raises(TextError, match="need document ids"):
            fit(lay_out_run(tmp_path / f"run-{name}", data, "qcn"), device="cpu")
    with pytest.raises(TextError, match="reads at most 2 of a context sentence"):
        fit(new_run("short", "qcn:context_length=2"), device="cpu")


@pytest.fixture
def long_dev(prepared, tmp_path):
    """Text of at most 100 pieces a sentence, but for one of dev, which is left out of the loss."""
    train, dev = prepared.test("test"), prepared.test("dev")
    longer = ParallelText("dev", ["the dog " * 150, dev.sources[0]], dev.targets[:2], ["a", "a"])
    text = ParallelText("train", train.sources, train.targets, train.documents)
    return prepare(tmp_path / "data", text, longer, pieces=60, kind="bpe", max_length=100)


@pytest.mark.parametrize("system", ["qcn", "han", "concatenation"])
def test_text_of_short_sentences_is_read_with_its_context(long_dev, tmp_path, system):
    """Its lengths are kept in bytes, which do not reach to the 256 pieces that are read of a sentence before."""
    assert fit(lay_out_run(tmp_path / "run", long_dev, system, max_steps=1), device="cpu").step == 1


def test_a_dev_text_that_could_not_be_translated_is_refused_before_training(long_dev, tmp_path):
    watched = {"early_stopping": {"metric": "bleu"}, "max_steps": 2, "validate_every": 1}
    run = lay_out_run(tmp_path / "qcn", long_dev, "qcn", **watched)
    with pytest.raises(TextError, match=r"dev, whose translations early stopping watches: .* at most 256"):
        fit(run, device="cpu", score=lambda *_: 0.0)
    run = lay_out_run(
        tmp_path / "learned", long_dev, "transformer:position_embedding=learned,max_positions=110", **watched
    )
    with pytest.raises(ConfigError, match=r"watches: a sentence needs \d+ positions, .* learns 110;"):
        fit(run, device="cpu", score=lambda *_: 0.0)
    assert not (run / "training.jsonl").exists()


def test_sentences_longer_than_the_learned_positions_are_refused_before_training(new_run):
    with pytest.raises(ConfigError, match=r"train: a sentence needs \d+ positions, .* learns 3;"):
        fit(new_run("short", "transformer:position_embedding=learned,max_positions=3"), device="cpu")
