"""A training that is killed and started again ends where one that never was does, to the last bit and line."""

import json
import pickle
import random
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest
import torch

from core_models.checkpoint import CheckpointError, SharedWeights, weights_of
from core_models.settings import read_yaml, write_yaml
from core_models.system import System
from core_models.system_builder import build
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.progress import Progress, latest_state, read_progress
from core_models.training.state import load_state, save_state
from tests.core_models.conftest import lay_out_run
from tests.core_models.training.processes import CountCalls, Moment, start_ranks, train

# Dropout is on; epochs end in between, so do steps whose accumulation is cut short.
SETTINGS = {
    "max_steps": 16,
    "batch_tokens": 150,
    "accumulate": 2,
    "subword_alpha": 0.2,
    "validate_every": 4,
    "save_every": 3,
    "log_every": 2,
    "keep_last": 1,
    "keep_every": 8,
}
SYSTEM = "future-cost-2"


@pytest.fixture(scope="module")
def straight(prepared, tmp_path_factory) -> tuple[Path, list[int]]:
    """A run that nothing befell, and how many Python functions each of its steps called."""
    folder = tmp_path_factory.mktemp("straight")
    run = lay_out_run(folder / "run", prepared, SYSTEM, **SETTINGS)
    assert train(run, CountCalls(folder / "calls.json")) == 0
    return run, json.loads((folder / "calls.json").read_text())


def logged(run: Path) -> list[dict]:
    """The log but for clocks and beginnings, of which an interrupted run has more."""
    clocks = {"time", "seconds", "tokens_per_second"}
    return [
        {name: value for name, value in event.items() if name not in clocks}
        for event in read_events(run / "training.jsonl")
        if event["event"] != "start"
    ]


def assert_same_run(run: Path, other: Path) -> None:
    """The same files with the same bytes, and the same log but for its clocks; earlier states may be others."""
    files = [{path.relative_to(one) for path in one.rglob("*") if path.is_file()} for one in (run, other)]
    last = latest_state(run / "state").name
    for names in files:
        assert not [name for name in names if ".part" in str(name)]
        names -= {name for name in names if name.parts[0] == "state" and name.parts[1] != last}
    assert files[0] == files[1]
    for name in files[0]:
        if name.suffix in (".safetensors", ".pt"):
            assert (run / name).read_bytes() == (other / name).read_bytes(), name
    ends = [read_progress(one / "state").__dict__ | {"seconds": 0.0} for one in (run, other)]
    assert ends[0] == ends[1]
    assert logged(run) == logged(other)
    steps = [event["step"] for event in logged(run) if event["event"] == "train"]
    assert steps == sorted(set(steps))


@pytest.mark.exhaustive
def test_ten_kills_change_nothing(straight, new_run):
    """Six at random moments, one with accumulation half done, one in a validation, two inside what is being written."""
    run, calls = straight
    named = {2: "accumulation", 4: "checkpoints", 8: "validation", 12: "optimizer.pt"}
    moments = [Moment(step, place) for step, place in named.items()]
    drawn = random.Random(1)
    for step in drawn.sample(sorted(set(range(1, len(calls))) - set(named)), 6):
        moments.append(Moment(step, call=drawn.randint(1, calls[step - 1])))
    broken = new_run("run", SYSTEM, **SETTINGS)
    for moment in sorted(moments, key=lambda moment: moment.step):
        assert train(broken, moment) == -signal.SIGKILL, moment
    assert train(broken) == 0
    assert_same_run(run, broken)


@pytest.mark.slow
def test_kills_where_a_state_and_what_goes_with_it_are_made_change_nothing(straight, new_run):
    """Before and after the rename, in half a line of the log, in the best weights, behind the very last state."""
    run, _ = straight
    places = [(3, "replace"), (3, "replaced"), (4, "weights.safetensors"), (10, "log"), (16, "replaced")]
    broken = new_run("run", SYSTEM, **SETTINGS)
    for step, place in places:
        assert train(broken, Moment(step, place)) == -signal.SIGKILL, (step, place)
    assert read_progress(broken / "state").finished
    assert [event["event"] for event in logged(broken)][-1] == "valid"
    assert train(broken) == 0
    assert_same_run(run, broken)


@pytest.mark.exhaustive
def test_on_a_gpu_kills_of_what_writes_in_the_background_change_nothing(new_run):
    """Also where training has gone on, and has logged later steps, while a state was half-written."""
    places = [(4, "checkpoints", 0), (6, "optimizer.pt", 2), (9, "replace", 0)]
    one, broken = (new_run(name, SYSTEM, **SETTINGS) for name in ("one", "broken"))
    assert train(one, gpu=True) == 0
    for step, place, behind in places:
        assert train(broken, Moment(step, place, behind=behind), gpu=True) == -signal.SIGKILL, (step, place)
        if behind:
            assert latest_state(broken / "state").name == "step-000004"
            assert [event["step"] for event in read_events(broken / "training.jsonl")][-1] == 8
    assert train(broken, gpu=True) == 0
    assert_same_run(one, broken)


def test_an_early_stop_stands_in_its_own_state(new_run):
    """A kill right behind the state of the validation that ends training: no step may follow when it goes on."""
    settings = {"max_steps": 30, "validate_every": 1, "learning_rate": 0.5, "warmup": 0, "keep_last": 0}
    stopping = {"early_stopping": {"patience": 1}, **settings, "log_every": 1}
    one, other = (new_run(name, "transformer", **stopping) for name in ("one", "other"))
    assert train(one) == 0
    last = read_progress(one / "state")
    assert (last.finished, last.reason) == (True, "early stopping")
    assert train(other, Moment(last.step, "replaced")) == -signal.SIGKILL
    assert train(other) == 0
    assert_same_run(one, other)


@pytest.mark.slow
def test_what_minutes_cut_off_is_trained_as_if_they_had_not(new_run):
    """A clock ends the call, not more: no validation, no weights counted as best, no epoch's end moves."""
    settings = {"max_steps": None, "max_epochs": 1, "validate_every": 3, "keep_last": 9}
    one, other = (new_run(name, "transformer", **settings) for name in ("one", "other"))
    fit(one, device="cpu")
    while not fit(other, device="cpu", minutes=1e-9).finished:
        assert (other / "weights.safetensors").is_file()
    assert_same_run(one, other)


@pytest.mark.slow
def test_two_ranks_killed_go_on_to_the_last_bit(new_run):
    """Each rank draws its own dropout: each one's random state comes back. A kill of one rank ends the other."""
    settings = {**SETTINGS, "max_steps": 9, "accumulate": 1, "save_every": 2}
    one, other = (new_run(name, SYSTEM, **settings) for name in ("one", "other"))
    assert [rank.ended() for rank in start_ranks(one)] == [0, 0]
    for faults in ((None, Moment(4, call=1500)), (Moment(8, "optimizer.pt"), None)):
        dying = 1 if faults[1] else 0
        ranks = start_ranks(other, faults)
        assert ranks[dying].ended() == -signal.SIGKILL
        ranks[1 - dying].kill()  # as a launcher does
    assert read_progress(other / "state").step == 6
    assert [rank.ended() for rank in start_ranks(other)] == [0, 0]
    assert_same_run(one, other)


@pytest.mark.slow
def test_another_number_of_processes_goes_on_at_the_same_place(new_run):
    settings = {"max_steps": None, "max_epochs": 1, "validate_every": 4, "batch_tokens": 150, "log_every": 1}
    run = new_run("run", "transformer", **settings)
    ranks = start_ranks(run, (Moment(6), None))
    assert ranks[0].ended() == -signal.SIGKILL
    ranks[1].kill()
    assert (read_progress(run / "state").batch, read_progress(run / "state").processes) == (4, 2)
    progress = fit(run, device="cpu")
    whole = fit(new_run("whole", "transformer", **settings), device="cpu")
    assert progress.tokens == whole.tokens  # an epoch has every sentence once
    events = [event["processes"] for event in read_events(run / "training.jsonl") if event["event"] == "start"]
    assert events == [2, 1]


def test_a_run_goes_on_with_the_text_that_it_was_trained_on_alone(new_run, prepared, tmp_path):
    """The same text in another folder will do; one of the same vocabularies and other sentences will not."""
    run = new_run("run", max_steps=1)
    fit(run, device="cpu")
    other = shutil.copytree(prepared.folder, tmp_path / "other")
    config = read_yaml(run / "config.yaml")
    config |= {"data": str(other), "training": {**config["training"], "max_steps": 2}}
    write_yaml(run / "config.yaml", config)
    assert fit(run, device="cpu").step == 2
    write_yaml(run / "config.yaml", {**config, "training": {**config["training"], "max_steps": 3}})
    manifest = read_yaml(other / "data.yaml")
    manifest["splits"]["train"]["digests"]["target"] = "0" * 64
    write_yaml(other / "data.yaml", manifest)
    with pytest.raises(CheckpointError, match=r"trained on another text than .*other has"):
        fit(run, device="cpu")
    assert read_progress(run / "state").step == 2


def save(folder: Path, system: System, optimizer: torch.optim.Optimizer, progress: Progress, random: dict) -> None:
    save_state(folder, SharedWeights(weights_of(system)), optimizer.state_dict(), progress, random)


def small() -> tuple:
    system = build("transformer:preset=tiny", 8)
    return system, torch.optim.AdamW(system.parameters())


def test_a_state_that_was_half_removed_is_never_taken_for_one(tmp_path):
    """What a kill inside the removal of old states leaves; the next save clears it away."""
    given = {"random": {"cpu": torch.get_rng_state()[None]}}
    for step in (1, 2, 3):
        save(tmp_path, *small(), Progress(step=step), **given)
    (tmp_path / "step-000004.part").mkdir()
    (tmp_path / "step-000005").mkdir()
    assert latest_state(tmp_path).name == "step-000003"
    save(tmp_path, *small(), Progress(step=5), **given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000003", "step-000005"]
    assert load_state(latest_state(tmp_path), *small()).step == 5


def test_a_state_that_more_processes_save_again_has_a_random_state_for_each(tmp_path):
    """As one that had ended is resumed on two and ends at once."""
    for processes in (1, 2):
        own = torch.get_rng_state()[None].repeat(processes, 1)
        save(tmp_path, *small(), Progress(step=5, processes=processes), random={"cpu": own})
    assert load_state(latest_state(tmp_path), *small(), rank=1).processes == 2


def test_settings_of_the_optimiser_that_were_changed_since_hold_and_its_moments_come_back(tmp_path):
    system, optimizer = small()
    for parameter in system.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    save(tmp_path, system, optimizer, Progress(step=5), random={"cpu": torch.get_rng_state()[None]})
    system, changed = build("transformer:preset=tiny", 8), {"betas": (0.8, 0.9), "weight_decay": 0.3}
    again = torch.optim.AdamW(system.parameters(), **changed)
    load_state(latest_state(tmp_path), system, again)
    assert {name: again.param_groups[0][name] for name in changed} == changed
    for old, new in zip(optimizer.state.values(), again.state.values(), strict=True):
        assert all(torch.equal(old[name], new[name]) for name in old)


def test_a_state_of_another_number_of_trained_tensors_is_refused(tmp_path):
    """Its optimiser's numbers would go to other tensors than they are of."""
    system, optimizer = small()
    save(tmp_path, system, optimizer, Progress(step=5), random={"cpu": torch.get_rng_state()[None]})
    system, _ = small()
    count = len(list(system.parameters()))
    fewer = torch.optim.AdamW(list(system.parameters())[1:])
    with pytest.raises(CheckpointError, match=rf"step-000005: {count} tensors were trained here"):
        load_state(latest_state(tmp_path), system, fewer)


class Payload:
    """A pickle of it makes a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("write", [partial(pickle.dump, protocol=2), torch.save], ids=["pickle", "torch.save"])
def test_a_pickle_in_place_of_the_optimisers_tensors_is_refused_unopened(tmp_path, write):
    save(tmp_path, *small(), Progress(step=5), random={"cpu": torch.get_rng_state()[None]})
    with (tmp_path / "step-000005" / "optimizer.pt").open("wb") as file:
        write({"optimizer": Payload(tmp_path / "ran")}, file)
    with pytest.raises(CheckpointError, match="step-000005: this state cannot be read"):
        load_state(latest_state(tmp_path), *small())
    assert not (tmp_path / "ran").exists()


def test_a_state_that_cannot_be_read_says_how_to_go_on(tmp_path):
    save(tmp_path, *small(), Progress(step=5), random={"cpu": torch.get_rng_state()[None]})
    file = tmp_path / "step-000005" / "optimizer.pt"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(
        CheckpointError, match=r"step-000005: this state cannot be read .*move the folder away to go on"
    ):
        load_state(latest_state(tmp_path), *small())
