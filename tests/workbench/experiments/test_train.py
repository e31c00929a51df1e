"""Runs that the instrument lays out: refusals before anything is written, and when training counts as ended."""

import json

import pytest

from core_models.settings import ConfigError
from workbench.experiments.train import finished, new_run, score_function, train
from workbench.store.runs import RunError, list_runs, open_run

STEPS = {"max_steps": 4, "validate_every": 2, "log_every": 1, "batch_tokens": 128}


def test_a_run_is_laid_out_untrained_and_finds_its_data_after_both_have_moved(prepared, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "data").symlink_to(prepared.folder)
    run = new_run(
        tmp_path / "runs" / "tiny", "future-cost-2:preset=tiny,weight=0.7", prepared.folder, STEPS, {"beam": 2}
    )
    assert [one.problem for one in list_runs(tmp_path / "runs")] == [None]
    assert not run.trained
    assert not run.config.data.startswith("/")
    assert run.config.model.d_model == 64
    assert run.config.model.mechanisms[0]["future_cost"]["weight"] == 0.7
    assert (run.config.search.beam, run.config.training.max_steps) == (2, 4)
    assert run.system == "future-cost-2:preset=tiny,weight=0.7"


@pytest.mark.parametrize(
    ("system", "training", "message"),
    [
        ("tranformer", STEPS, "no system 'tranformer'; did you mean 'transformer'?"),
        ("transformer:prest=tiny", STEPS, "no part of this system has an option 'prest'; did you mean 'preset'?"),
        ("transformer:preset=tiny,heads=3", STEPS, "heads: 3 does not divide d_model 64"),
        ("transformer:preset=tiny", {"warmup": 3}, "give max_steps or max_epochs"),
        ("transformer:preset=tiny", {**STEPS, "learning_rat": 1}, "did you mean 'learning_rate'?"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(prepared, tmp_path, system, training, message):
    with pytest.raises(ConfigError) as refusal:
        new_run(tmp_path / "run", system, prepared.folder, training)
    assert message in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_a_run_is_never_overwritten(prepared, tmp_path):
    new_run(tmp_path / "run", "transformer:preset=tiny", prepared.folder, STEPS)
    with pytest.raises(RunError, match=r"a run is here already; go on with it \(workbench resume .*/run\)"):
        new_run(tmp_path / "run", "transformer:preset=tiny", prepared.folder, STEPS)


def test_an_interrupted_training_is_not_finished_until_it_has_gone_on(prepared, tmp_path):
    run = new_run(tmp_path / "run", "transformer:preset=tiny", prepared.folder, STEPS)
    assert not finished(run.folder)
    train(run, device="cpu", minutes=1e-6)
    assert run.trained
    assert not finished(run.folder)
    train(run, device="cpu")
    assert finished(run.folder)
    steps = [event["step"] for event in run.events() if event["event"] == "train"]
    assert steps == [1, 2, 3, 4]


def test_a_process_killed_between_its_last_state_and_the_end_of_its_log_has_finished(prepared, tmp_path):
    run = new_run(tmp_path / "run", "transformer:preset=tiny", prepared.folder, {**STEPS, "max_steps": 2})
    train(run, device="cpu")
    log = run.folder / "training.jsonl"
    lines = log.read_text().splitlines()
    assert json.loads(lines[-1])["event"] == "end"
    log.write_text("\n".join(lines[:-1]) + "\n")
    assert finished(run.folder)
    train(open_run(run.folder), device="cpu")
    assert finished(run.folder)


def test_a_run_that_is_asked_for_more_has_not_finished_until_it_is_trained(prepared, tmp_path):
    run = new_run(tmp_path / "run", "transformer:preset=tiny", prepared.folder, {**STEPS, "max_steps": 2})
    train(run, device="cpu")
    assert finished(run.folder)
    config = run.folder / "config.yaml"
    config.write_text(config.read_text().replace("max_steps: 2", "max_steps: 4"))
    assert not finished(run.folder)
    train(open_run(run.folder), device="cpu", minutes=1e-6)
    assert not finished(run.folder)
    train(open_run(run.folder), device="cpu")
    assert finished(run.folder)
    assert [event["step"] for event in run.events() if event["event"] == "end"] == [4]


def test_early_stopping_watches_the_score_of_sacrebleu(prepared, tmp_path):
    import sacrebleu

    score = score_function("chrf")
    assert score_function("loss") is None
    assert score(["der Hund"], ["der Mund"]) == pytest.approx(sacrebleu.corpus_chrf(["der Hund"], [["der Mund"]]).score)
    settings = {**STEPS, "early_stopping": {"metric": "bleu"}}
    run = new_run(tmp_path / "run", "transformer:preset=tiny", prepared.folder, settings, {"max_length": 5, "beam": 1})
    train(run, device="cpu")
    assert all("bleu" in event for event in run.events() if event["event"] == "valid")
