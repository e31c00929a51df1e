"""The files of a run: what opens, what is refused and why; averages; initialising from another run (law 5)."""

import errno
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch

from core_models.checkpoint import (
    CheckpointError,
    SharedWeights,
    average,
    begin_run,
    initialize_from,
    open_trained,
    read_tensors,
    weights_of,
    write_tensors,
    write_weights,
)
from core_models.config import WEIGHTS, RunConfig
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.system_catalogue import catalogue
from core_models.system_spec import describe
from core_models.text.vocabulary import Vocabulary
from core_models.translator import TranslatorError, load
from tests.core_models.conftest import lay_out_run


@pytest.fixture
def run(prepared, tmp_path):
    """A run with weights, untrained."""
    return lay_down(prepared, tmp_path / "run")


def lay_down(prepared, folder, name="future-cost-2"):
    lay_out_run(folder, prepared, name)
    torch.manual_seed(2)
    write_weights(
        folder / "weights.safetensors",
        build(describe(f"{name}{',' if ':' in name else ':'}preset=tiny"), len(prepared.source_vocabulary)),
    )
    return folder


def test_what_was_written_is_what_is_opened(prepared, run):
    torch.manual_seed(2)
    written = build("future-cost-2:preset=tiny", len(prepared.source_vocabulary))
    opened = open_trained(run)
    assert not opened.system.training
    for name, value in written.state_dict().items():
        assert torch.equal(opened.system.state_dict()[name], value), name
    assert opened.source_vocabulary.digest == prepared.source_vocabulary.digest


def test_what_older_weights_hold_and_nothing_reads_is_passed_by(prepared, tmp_path):
    run = lay_down(prepared, tmp_path / "run", "rnnsearch:decoder_init=zero")
    path, own = run / WEIGHTS, read_tensors(run / WEIGHTS)
    assert "backbone.first_state.weight" not in own
    older = {"backbone.first_state.weight": torch.zeros(64, 128), "backbone.first_state.bias": torch.zeros(64)}
    write_tensors(path, own | older)
    for name, value in open_trained(run).system.named_parameters():
        assert torch.equal(value, own[name]), name
    write_tensors(path, own | {"backbone.second_state.weight": torch.zeros(64, 128)})
    with pytest.raises(CheckpointError, match=r"second_state\.weight belongs to another system"):
        open_trained(run)


def test_tied_weights_are_written_once_and_stay_tied(run):
    assert sum("table" in name or "vocabulary" in name for name in read_tensors(run / "weights.safetensors")) == 1
    backbone = open_trained(run).system.backbone
    assert backbone.source_table.weight is backbone.target_table.weight


def test_a_run_can_be_copied_elsewhere(run, tmp_path):
    shutil.copytree(run, tmp_path / "elsewhere" / "copy")
    shutil.rmtree(run)
    assert open_trained(tmp_path / "elsewhere" / "copy").config.name == "run"


def damage(path, how):
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:1000])
    elif how == "cut in the tensors":
        path.write_bytes(path.read_bytes()[:-4])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "pickle":
        path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    elif how == "torch.save":
        torch.save({"weight": torch.zeros(2)}, path)
    else:
        tensors = read_tensors(path)
        first = sorted(tensors)[0]
        changed = {
            "foreign": {**tensors, "backbone.other.weight": torch.zeros(2)},
            "lacking": {name: value for name, value in tensors.items() if name != first},
            "wrong shape": {**tensors, first: torch.zeros(2, 7)},
        }
        write_tensors(path, changed[how])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", "there are no weights here; train the run, or copy it again"),
        ("truncated", "not a readable safetensors file .* cut short"),
        ("cut in the tensors", "not a readable safetensors file"),
        ("empty", "not a readable safetensors file"),
        ("pickle", "not a readable safetensors file .* a pickle, which this program never opens"),
        ("torch.save", "not a readable safetensors file .* a pickle, which this program never opens"),
        ("foreign", "does not fit the configuration beside it: backbone.other.weight belongs to another system"),
        ("lacking", "does not fit the configuration beside it: .* is missing"),
        ("wrong shape", r"is \[2, 7\], the configuration asks for \["),
    ],
)
def test_broken_weights_are_refused_with_the_reason(run, how, message):
    damage(run / "weights.safetensors", how)
    with pytest.raises(CheckpointError, match=message):
        open_trained(run)


def test_many_differences_are_counted(prepared, run):
    other = lay_out_run(run.with_name("other"), prepared, "transformer:encoder_layers=3")
    (other / "config.yaml").replace(run / "config.yaml")
    with pytest.raises(CheckpointError, match=r"is missing; .* is missing; .* is missing \(and \d+ more\)"):
        open_trained(run)


def test_a_wrong_configuration_is_refused(run):
    text = (run / "config.yaml").read_text(encoding="utf-8")
    (run / "config.yaml").write_text(text.replace("warmup:", "warm_up:"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config.yaml: unknown key 'training.warm_up'; did you mean 'warmup'\?"):
        open_trained(run)


def test_a_step_of_a_run_opens_and_a_missing_one_names_what_there_is(run):
    write_tensors(
        run / "checkpoints" / "step-000500.safetensors",
        {name: value * 0 for name, value in read_tensors(run / "weights.safetensors").items()},
    )
    assert all(not value.any() for value in open_trained(f"{run}@500").system.parameters())
    with pytest.raises(CheckpointError, match="has no checkpoint '700'; it has: step-000500"):
        open_trained(f"{run}@700")


def test_an_average_is_the_mean(tmp_path):
    given = [{"a": torch.randn(3), "b": torch.randn(2, 2, dtype=torch.float64)} for _ in range(3)]
    paths = [tmp_path / f"{number}.safetensors" for number in range(3)]
    for path, tensors in zip(paths, given, strict=True):
        write_tensors(path, tensors)
    average(paths, tmp_path / "mean.safetensors")
    for name, value in read_tensors(tmp_path / "mean.safetensors").items():
        torch.testing.assert_close(value, torch.stack([tensors[name] for tensors in given]).mean(0))
        assert value.dtype == given[0][name].dtype
    for other in ({"a": torch.zeros(3)}, {**given[2], "a": torch.zeros(1)}):
        write_tensors(paths[2], other)
        with pytest.raises(CheckpointError, match=r"2.safetensors holds other tensors than .*0.safetensors"):
            average(paths, tmp_path / "mean.safetensors")
    with pytest.raises(CheckpointError, match="no checkpoints to average; train with keep_last"):
        average([], tmp_path / "mean.safetensors")


def test_nothing_half_written_is_left_behind(tmp_path):
    (tmp_path / "weights.safetensors").mkdir()  # what cannot be replaced by a file
    with pytest.raises(IsADirectoryError):
        write_tensors(tmp_path / "weights.safetensors", {"a": torch.zeros(2)})
    assert [path.name for path in tmp_path.iterdir()] == ["weights.safetensors"]


@pytest.mark.parametrize("links", [True, False])
def test_weights_of_several_paths_are_one_file_and_change_apart(tmp_path, monkeypatch, links):
    """Also where a killed process has left a link behind, through which nothing may be written."""
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    paths = [
        tmp_path / name for name in ("weights.safetensors", "state/weights.safetensors", "step-000002.safetensors")
    ]
    shared = SharedWeights(weights_of(system := build("transformer:preset=tiny", 8)))
    for path in paths:
        shared.write(path)
    assert all(path.samefile(paths[0]) is links for path in paths[1:])
    whole = paths[0].read_bytes()
    rest = paths[1].with_name(f"{paths[1].name}.part")
    (os.link if links else shutil.copyfile)(paths[1], rest)
    with torch.no_grad():
        next(system.parameters()).zero_()
    changed = SharedWeights(weights_of(system))
    for path in paths[:2]:
        changed.write(path)
    assert paths[0].read_bytes() == paths[1].read_bytes() != whole
    assert paths[2].read_bytes() == whole
    assert not list(tmp_path.rglob("*.part"))


def refuse_links(old: Path, new: Path) -> None:
    raise PermissionError(errno.EPERM, "a disk without hard links")


def vocabularies(prepared):
    return prepared.source_vocabulary, prepared.target_vocabulary


def test_init_from_another_vocabulary_of_the_same_size_is_refused(prepared, run):
    text = prepared.split("train")
    lines = [text.target_text(row) for row in range(len(text))] + [text.source_text(row) for row in range(len(text))]
    other = Vocabulary.train(lines[:150], len(prepared.source_vocabulary), kind="bpe")
    system = build("future-cost-2:preset=tiny", len(other))
    with pytest.raises(ConfigError, match="another target vocabulary, so its embeddings mean other pieces"):
        initialize_from(system, run, (prepared.source_vocabulary, other))


def test_init_from_copies_what_fits_and_names_the_rest(prepared, tmp_path):
    """Law 5: equal where matched, untouched and named where not."""
    baseline = lay_down(prepared, tmp_path / "baseline", "transformer")
    torch.manual_seed(9)
    system = build("future-cost-2:preset=tiny,decoder_layers=3", len(prepared.source_vocabulary))
    before = {name: parameter.clone() for name, parameter in system.named_parameters()}
    unmatched = initialize_from(system, baseline, vocabularies(prepared))
    stored = read_tensors(baseline / "weights.safetensors")
    assert set(unmatched) == {name for name in before if name.startswith(("mechanisms.", "backbone.decoder.2."))}
    for name, parameter in system.named_parameters():
        assert torch.equal(parameter, before[name] if name in unmatched else stored[name]), name


# What the codes of the papers take of a baseline, and how the names begin of what is drawn anew in its backbone.
RELEASED = {
    "Zheng 2018": (
        "rnnsearch",
        "pfrnn-loss",
        ("*_table*", "vocabulary*", "forward_unit*", "backward_unit*", "first_state*", "read_*"),
        ("word_unit.", "context_unit.", "attention."),
    ),
    "Zheng 2019": ("transformer", "gdr", ("encoder*", "*_table*"), ("decoder",)),  # the output matrix is a table
}


@pytest.mark.parametrize("paper", RELEASED)
def test_only_what_is_asked_for_is_taken_from_another_run(prepared, tmp_path, paper):
    first, second, taken, anew = RELEASED[paper]
    baseline = lay_down(prepared, tmp_path / "baseline", first)
    system = build(f"{second}:preset=tiny", len(prepared.source_vocabulary))
    before = {name: parameter.clone() for name, parameter in system.named_parameters()}
    only = [f"backbone.{pattern}" for pattern in taken]
    unmatched, stored = (
        initialize_from(system, baseline, vocabularies(prepared), only),
        read_tensors(baseline / WEIGHTS),
    )
    expected = "mechanisms.", *(f"backbone.{part}" for part in anew)
    assert set(unmatched) == {name for name in before if name.startswith(expected)}
    for name, parameter in system.named_parameters():
        assert torch.equal(parameter, before[name] if name in unmatched else stored[name]), name
    with pytest.raises(ConfigError, match=r"init_params: no tensor of .* is called decoder\.\*"):
        initialize_from(system, baseline, vocabularies(prepared), ("decoder.*",))


@pytest.mark.long
@pytest.mark.parametrize("name", catalogue())
def test_law_5_holds_for_every_system(prepared, tmp_path, name):
    """From its bare backbone it takes all but what mechanisms add, which is named; from the other one nothing."""
    system = build(f"{name}:preset=tiny", len(prepared.source_vocabulary))
    own, other = sorted(("transformer", "rnnsearch"), key=lambda backbone: backbone != system.config.backbone)
    before = {name: parameter.clone() for name, parameter in system.named_parameters()}
    with pytest.raises(ConfigError, match=rf"another architecture: backbone \({other} there, {own} here\)"):
        initialize_from(system, lay_down(prepared, tmp_path / "other", other), vocabularies(prepared))
    assert all(torch.equal(parameter, before[name]) for name, parameter in system.named_parameters())
    bare = lay_down(prepared, tmp_path / "bare", own)
    unmatched, stored = initialize_from(system, bare, vocabularies(prepared)), read_tensors(bare / WEIGHTS)
    assert set(unmatched) == {name for name in before if name.startswith(("mechanisms.", "backbone.deep."))}
    for name, parameter in system.named_parameters():
        assert torch.equal(parameter, before[name] if name in unmatched else stored[name]), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("norm=post", r"norm \(pre there, post here\)"),
        ("backbone=rnnsearch", r"backbone \(transformer there, rnnsearch here\)"),
        ("tie_embeddings=target", r"tie_embeddings \(all there, target here\)"),
        ("heads=4", r"heads \(2 there, 4 here\)"),
        ("activation_function=gelu", r"activation_function \(relu there, gelu here\)"),
        ("position_embedding=learned", r"position_embedding \(sinusoidal there, learned here\)"),
    ],
)
def test_init_from_another_architecture_is_refused(prepared, tmp_path, change, message):
    baseline = lay_down(prepared, tmp_path / "baseline", "transformer")
    system = build(f"transformer:preset=tiny,{change}", len(prepared.source_vocabulary))
    before = [parameter.clone() for parameter in system.parameters()]
    with pytest.raises(ConfigError, match=f"another architecture: {message}"):
        initialize_from(system, baseline, vocabularies(prepared))
    assert all(torch.equal(one, other) for one, other in zip(before, system.parameters(), strict=True))


def test_an_ensemble_is_of_one_run_at_least_on_a_device_that_computes():
    with pytest.raises(TranslatorError, match="no run to load"):
        load([])
    with pytest.raises(ConfigError, match="device 'meta': PyTorch finds no such device here; use cpu"):
        load("anything", "meta")


def test_an_ensemble_needs_one_vocabulary(prepared, run, tmp_path):
    text = prepared.test("dev")
    other = Vocabulary.train(text.sources + (text.targets or []), len(prepared.source_vocabulary), kind="bpe")
    config = RunConfig.model_validate(
        {
            "name": "other",
            "data": "data",
            "model": describe("transformer:preset=tiny").model_dump(),
            "training": {"max_steps": 1},
        }
    )
    begin_run(tmp_path / "other", config, other, other)
    write_weights(tmp_path / "other" / "weights.safetensors", build(config.model, len(other)))
    with pytest.raises(TranslatorError, match="have different vocabularies; an ensemble needs one"):
        load([run, tmp_path / "other"])
