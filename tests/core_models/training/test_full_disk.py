"""A disk without room: the kernel itself refuses the write. Nothing that was whole is lost, and training goes on."""

import errno
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from core_models.checkpoint import read_tensors, write_tensors
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.log import TrainingLog
from core_models.training.loop import TrainingError
from core_models.training.progress import latest_state, read_progress
from tests.core_models.conftest import lay_out_run
from tests.core_models.training.processes import start_ranks
from tests.core_models.training.test_resume import assert_same_run
from tests.fake_cuda import CUDA, FakeCuda

SETTINGS = {"max_steps": 6, "validate_every": 2, "subword_alpha": 0.2, "keep_last": 1, "keep_every": 4}
SYSTEM = "transformer:heads=1,ffn_dim=32,decoder_layers=1"


@pytest.fixture(scope="module")
def straight(prepared, tmp_path_factory) -> Path:
    run = lay_out_run(tmp_path_factory.mktemp("straight") / "run", prepared, SYSTEM, **SETTINGS)
    fit(run, device="cpu")
    return run


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A real file system of sixteen MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def at_step(step: int, act: Callable[[], None]):
    def report(progress, total, latest):
        if progress.step == step:
            act()

    return report


def fill(disk: Path, room: int = 0) -> None:
    """Leave at most `room` bytes on the disk."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "ballast").write_bytes(bytes(max(0, free - room)))


def weights_size(run: Path) -> int:
    """Bytes of the weights; the optimiser's tensors are twice as many."""
    return (run / "weights.safetensors").stat().st_size


def assert_stopped(run: Path, error: pytest.ExceptionInfo, file: str) -> None:
    """What the sentence says is so: the file, the last state, which is whole, and nothing half-written beside it."""
    state = latest_state(run / "state")
    assert read_progress(run / "state").step == 2
    assert f"{file}: " in str(error.value)
    assert f"Training stopped at step 4; {state} is whole and nothing before it is lost" in str(error.value)
    assert str(error.value).endswith(f"Make room, then go on: workbench resume {run}")
    assert not list(run.rglob("*.part"))
    assert read_tensors(run / "weights.safetensors").keys() == read_tensors(state / "weights.safetensors").keys()


@pytest.mark.parametrize(("times", "file"), [(0.5, "run/weights.safetensors"), (1.5, "optimizer.pt")])
def test_a_full_disk_loses_nothing(straight, prepared, small_disk, times, file):
    """After the third step there is room for so many times the weights, and the fourth makes three files of them."""
    run = lay_out_run(small_disk / "run", prepared, SYSTEM, **SETTINGS)
    with pytest.raises(TrainingError, match=os.strerror(errno.ENOSPC)) as error:
        fit(run, report=at_step(3, lambda: fill(small_disk, int(times * weights_size(run)))), device="cpu")
    assert_stopped(run, error, file)
    (small_disk / "ballast").unlink()
    assert fit(run, device="cpu").finished
    assert_same_run(straight, run)


@pytest.mark.parametrize(
    ("times", "file"), [(0, "training.jsonl"), (0.5, "run/weights.safetensors"), (1.5, "optimizer.pt")]
)
def test_a_file_that_may_not_grow_loses_nothing(straight, new_run, times, file):
    """As with a quota: no file may be larger than so many times the weights, or than the log is already."""
    run, soft = new_run("run", SYSTEM, **SETTINGS), resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit() -> None:
        log = (run / "training.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(log + 9, int(times * weights_size(run))), soft[1]))

    try:
        with pytest.raises(TrainingError, match=os.strerror(errno.EFBIG)) as error:
            fit(run, report=at_step(3, limit), device="cpu")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    assert_stopped(run, error, file)
    assert fit(run, device="cpu").finished
    assert_same_run(straight, run)


@pytest.mark.slow
def test_on_a_gpu_the_next_save_says_that_a_file_could_not_be_written(new_run, monkeypatch, caplog):
    """The state of step 4 is written in the background: step 6 ends the training, or what ends it says so beside."""
    monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", str(CUDA))
    one, run = (new_run(name, SYSTEM, **SETTINGS) for name in ("one", "run"))
    soft = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(1.5 * weights_size(run)), soft[1]))

    def interrupt() -> None:
        raise ZeroDivisionError

    steps = {3: limit, 5: interrupt}
    sentence = f"optimizer.pt: {os.strerror(errno.EFBIG)}. Training stopped at step "
    with FakeCuda():
        fit(one, device="cuda")
        try:
            with pytest.raises(ZeroDivisionError):
                fit(run, report=lambda progress, *_: steps.get(progress.step, int)(), device="cuda")
            assert f"{sentence}5; {latest_state(run / 'state')} is whole" in caplog.text
            with pytest.raises(TrainingError, match=os.strerror(errno.EFBIG)) as error:
                fit(run, device="cuda")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, soft)
        assert f"{sentence}6; {latest_state(run / 'state')} is whole and nothing before it is lost" in str(error.value)
        assert read_progress(run / "state").step == 2
        assert not list(run.rglob("*.part"))
        assert fit(run, device="cuda").finished
    assert_same_run(one, run)


def only_small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.mark.slow
def test_where_the_first_process_cannot_save_the_second_stops_too(new_run):
    run = new_run("run", SYSTEM, **SETTINGS)
    assert [rank.ended() for rank in start_ranks(run, (only_small_files, None))] == [3, 3]
    messages = [(run / f"error-{rank}.txt").read_text() for rank in (0, 1)]
    assert messages[0].startswith(f"{run / 'weights.safetensors'}: {os.strerror(errno.EFBIG)}. ")
    assert messages[1].startswith("the first process could not save. ")
    for message in messages:
        assert "Training stopped at step 2; no state was saved before. Make room, then go on" in message


def test_the_error_names_the_file_whoever_wrote_it(small_disk):
    fill(small_disk, 8192)
    path = small_disk / "weights.safetensors"
    with pytest.raises(OSError, match="No space left on device") as error:
        write_tensors(path, {"a": torch.zeros(100_000)})
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(path))
    assert [one.name for one in small_disk.iterdir()] == ["ballast"]


def test_a_line_that_found_no_room_is_dropped_when_the_log_is_opened_again(small_disk):
    log = TrainingLog(small_disk, 0)
    log.write("train", 1)
    fill(small_disk)
    with pytest.raises(OSError, match="No space left on device"):
        log.write("train", 2, note="x" * 8192)
    log.close()
    (small_disk / "ballast").unlink()
    again = TrainingLog(small_disk, 2)
    again.write("train", 3)
    again.close()
    assert [event["step"] for event in read_events(small_disk / "training.jsonl")] == [1, 3]
    assert (small_disk / "training.jsonl").read_bytes().count(b"\n") == 2
