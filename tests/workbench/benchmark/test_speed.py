"""What is measured: the batches, and multiply-adds against counting them by hand."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from core_models.checkpoint import write_weights
from core_models.settings import read_yaml, write_yaml
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.parallel import ParallelText
from core_models.text.prepared import prepare
from workbench.benchmark import other_toolkits, profiling
from workbench.benchmark.end_to_end import measure_trained
from workbench.benchmark.profiling import profile
from workbench.benchmark.speed import measure, multiply_adds
from workbench.benchmark.workload import FIRST_WORD, SHAPES, Conditions, Shape, decoding_batches, training_pairs
from workbench.store.runs import RunError, open_run

SHAPE = Shape(vocabulary=50, steps=2, warmup=1, sentences=6, batch_sentences=3, forced_length=4, repeats=1)


def test_batches_are_alike_in_length_and_within_the_budget():
    for sources, targets in training_pairs(Shape()):
        assert max(map(len, targets)) - min(map(len, targets)) <= 4
        assert len(targets) * (max(map(len, targets)) + 1) <= Shape().batch_tokens
        assert min(map(min, [*sources, *targets])) >= FIRST_WORD


def test_decoding_takes_every_sentence_once():
    assert sum(map(len, decoding_batches(Shape()))) == Shape().sentences


@pytest.mark.slow
def test_multiply_adds_of_decoding_are_those_counted_by_hand():
    """A Transformer of width d, feed-forward f, L layers each side: products of one output word, attention included."""
    name = "transformer:preset=tiny"
    config = describe(name)
    d, f, encoder, decoder = config.d_model, config.ffn_dim, config.encoder_layers, config.decoder_layers
    sources = decoding_batches(Shape())[2]
    width, beam, longest = max(map(len, sources)) + 1, Shape().beam, Shape().forced_length
    attention = 2 * width * d
    read = width * (encoder * (4 * d * d + 2 * d * f + attention) + decoder * 2 * d * d)
    written = sum(
        beam * (decoder * (6 * d * d + 2 * d * f + 2 * d * beam * (step + 1) + attention) + d * Shape().vocabulary)
        for step in range(longest)
    )
    found = multiply_adds(name, Shape())["decode_multiply_adds"]
    assert found == pytest.approx((read + written) / longest, rel=0.01)


@pytest.mark.slow
def test_a_profile_shares_all_of_the_time_and_counts_the_calls():
    """The decoder's two layers and the encoder's one have three and two normalisations, and each side a last one."""
    config = describe("transformer:preset=tiny")
    rows, recurrence = profile("transformer:preset=tiny", SHAPE, threads=1, fewest=0.0)
    assert recurrence == 0
    for work in ("training", "decoding"):
        assert sum(row["share"] for row in rows if row["work"] == work) == pytest.approx(1)
    trained = {row["operator"]: row["calls"] for row in rows if row["work"] == "training"}
    norms = 2 * config.encoder_layers + 3 * config.decoder_layers + 2
    assert trained["aten::native_layer_norm"] == norms * (SHAPE.warmup + SHAPE.steps)
    few = profile("transformer:preset=tiny", SHAPE, threads=1, fewest=0.2).operators
    assert {row["work"] for row in few if row["operator"] == "others"} == {"training", "decoding"}
    assert len(few) <= 2 * (5 + 1)


@pytest.mark.slow
def test_a_profile_knows_what_waits_for_each_other():
    """Of a decoder that steps through time; how much of the time that is, the machine decides."""
    recurrence = profile("rnnsearch:preset=tiny", replace(SHAPE, steps=1, warmup=0), threads=1).recurrence
    assert 0 < recurrence < 1


def test_a_call_counts_with_its_backward_call_and_all_within_both():
    def event(name: str, time: float, *around: int, sequence: int = -1) -> profiling._Event:
        return profiling._Event(name, time, around, sequence)

    found = [
        event("recurrence", 1),
        event("aten::mm", 2, 0, sequence=7),
        event("aten::add", 4, 1, 0),
        event("aten::mm", 8, sequence=8),
        event("autograd::engine::evaluate_function: MmBackward0", 16, sequence=7),
        event("aten::mm", 32, 4),
        event("autograd::engine::evaluate_function: MmBackward0", 64, sequence=8),
        event("_Seeds", 128, 0, sequence=9),
        event("autograd::engine::evaluate_function: _SeedsBackward", 256, sequence=9),
    ]
    assert profiling._recurrent(found) == (1 + 2 + 4 + 16 + 32 + 128) / 511


@pytest.mark.parametrize("safe", ["", "1"])
@pytest.mark.slow
def test_the_program_for_other_engines_hides_no_module_of_theirs(tmp_path, safe):
    """Python puts a program's folder first: what is named as a module of its own would be taken for it."""
    said = "import json, sys; print(json.dumps([sys.path[0], __name__]))"
    script = tmp_path / "transformers.py"  # stands for the engine: the program loads it, from PYTHONPATH
    script.write_text(said, encoding="utf-8")
    command = [sys.executable, other_toolkits.__file__, "marian", "train", "1", "cpu", "small"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": safe}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert json.loads(done.stdout) == [str(Path(other_toolkits.__file__).parents[2]), "transformers"]


def test_a_measurement_has_every_number():
    found = measure("transformer:preset=tiny", SHAPE, Conditions(threads=1))
    assert min(found["train_tokens_per_second"], found["decode_sentences_per_second"]) > 0
    assert found["train_memory_bytes"] > found["parameters"] * 4
    assert 0 < found["train_matrix_share"] < 1


def test_decoding_alone_is_measured_without_a_training_step():
    found = measure("transformer:preset=tiny", SHAPE, Conditions(threads=1, decoding_only=True))
    assert found["decode_sentences_per_second"] > 0
    assert not {name for name in found if name.startswith("train_")} - {"train_multiply_adds"}


@pytest.mark.parametrize("preset", list(SHAPES))
def test_other_engines_have_the_sizes_of_the_preset(preset):
    model, shape = describe(f"transformer:preset={preset}"), SHAPES[preset]
    ours = (model.d_model, model.ffn_dim, model.encoder_layers, model.decoder_layers, model.heads, model.dropout)
    assert ours == (shape.width, shape.feed_forward, shape.layers, shape.layers, shape.heads, shape.dropout)


def test_a_checkpoint_is_measured_beside_its_own_weights_in_ctranslate2(taught_run, prepared, tmp_path):
    """The run's last weights are random ones: a translation of theirs would be nobody's but the workbench's."""
    pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")
    run = Path(shutil.copytree(taught_run.folder, tmp_path / "run"))
    config = read_yaml(run / "config.yaml")
    write_yaml(run / "config.yaml", {**config, "data": str(prepared.folder)})
    (run / "checkpoints" / "step-000007.safetensors").write_bytes((run / "weights.safetensors").read_bytes())
    other = build(taught_run.config.model, len(prepared.source_vocabulary), len(prepared.target_vocabulary))
    write_weights(run / "weights.safetensors", other)
    threads = torch.get_num_threads()
    ours, theirs = measure_trained(open_run(f"{run}@7"), "test", 0, ("float32",), rounds=1)
    assert torch.get_num_threads() == threads, "0 leaves PyTorch its own choice"
    assert (ours["engine"], theirs["engine"]) == ("workbench", "ctranslate2-float32")
    assert theirs["same"] == len(prepared.test("test").sources)
    assert theirs["bleu"] == ours["bleu"] > 20


def test_what_cannot_be_scored_is_refused_before_anything_is_translated(taught_run, tmp_path):
    """Without weights, so that whoever began would say that these are missing."""
    run = Path(shutil.copytree(taught_run.folder, tmp_path / "run"))
    text = ParallelText("test", ["the dog sees the man"], ["der Hund sieht den Mann"])
    data = prepare(tmp_path / "data", text, text, {"bare": replace(text, targets=None)}, pieces=40, kind="bpe")
    write_yaml(run / "config.yaml", {**read_yaml(run / "config.yaml"), "data": str(data.folder)})
    opened = open_run(run)
    opened.weights.unlink()
    with pytest.raises(RunError, match="the test set 'bare' has no references; BLEU needs them"):
        measure_trained(opened, "bare", 0, (), rounds=1)
