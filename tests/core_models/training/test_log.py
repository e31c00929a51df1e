"""The log of a training: what is read back, and its mirror in TensorBoard read by TensorBoard itself."""

import sys

import pytest

from core_models.settings import ConfigError
from core_models.training.events import read_events
from core_models.training.log import TrainingLog


def test_a_log_opened_at_a_step_forgets_what_came_after_it(tmp_path):
    log = TrainingLog(tmp_path, 0)
    for step in (10, 20, 30):
        log.write("train", step, main_loss=1.0 / step)
    log.close()
    TrainingLog(tmp_path, 20).close()
    assert [event["step"] for event in read_events(tmp_path / "training.jsonl")] == [10, 20]


def test_tensorboard_reads_the_values_that_were_logged(tmp_path):
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the extra: nmt-workbench[tensorboard]"
    )
    log = TrainingLog(tmp_path, 0, tensorboard=True)
    log.write("train", 10, main_loss=2.5, note="not a number")
    log.write("valid", 10, main_loss=2.25)
    log.close()
    board = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in board.Scalars("train/main_loss")] == [(10, 2.5)]
    assert [(event.step, event.value) for event in board.Scalars("valid/main_loss")] == [(10, 2.25)]


def test_tensorboard_forgets_the_steps_after_the_state_that_a_training_goes_on_from(tmp_path):
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the extra: nmt-workbench[tensorboard]"
    )
    for state, steps, loss in ((0, (10, 20, 30), 2.0), (20, (30, 40), 1.0)):
        log = TrainingLog(tmp_path, state, tensorboard=True)
        for step in steps:
            log.write("train", step, main_loss=loss)
        log.close()
    board = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    found = [(event.step, event.value) for event in board.Scalars("train/main_loss")]
    assert found == [(10, 2.0), (20, 2.0), (30, 1.0), (40, 1.0)]


def test_without_tensorboard_it_is_said_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # what Python does with a module that is barred
    with pytest.raises(ConfigError, match=r"pip install 'nmt-workbench\[tensorboard\]'.*then go on: workbench resume"):
        TrainingLog(tmp_path, 0, tensorboard=True)
