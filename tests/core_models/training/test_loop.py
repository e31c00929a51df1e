"""Training on a tiny text: accumulation, resuming, stopping, checkpoints on disk."""

import shutil
from pathlib import Path

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from core_models.checkpoint import CheckpointError, SharedWeights, read_tensors, weights_of
from core_models.config import read_config
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batch_loader import BatchLoader
from core_models.text.batches import collate
from core_models.training import fit as fitting
from core_models.training import loop
from core_models.training.events import read_events
from core_models.training.fit import fit
from core_models.training.gradient_check import UnreadUpdate
from core_models.training.loop import TrainingError
from core_models.training.loss_module import Objective
from core_models.training.progress import Progress, latest_state, read_progress
from core_models.training.state import save_state

EXACT = "dropout=0,attention_dropout=0"


def steps_on_disk(run: Path) -> list[int]:
    return [int(path.stem.removeprefix("step-")) for path in sorted((run / "checkpoints").glob("*.safetensors"))]


def events(run: Path, kind: str) -> list[dict]:
    return [event for event in read_events(run / "training.jsonl") if event["event"] == kind]


def assert_same_weights(one: Path, other: Path, tolerance: float = 0.0) -> None:
    first, second = read_tensors(one), read_tensors(other)
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=tolerance, rtol=0, msg=lambda m, n=name: f"{n}: {m}")


def weights_after_one_step(run: Path, groups, monkeypatch) -> torch.Tensor:
    """One update on the given batches, by the loop itself."""

    class Given(BatchLoader):
        def epoch(self, epoch, start=0):
            return iter(groups)

    monkeypatch.setattr(fitting, "BatchLoader", Given)
    monkeypatch.setattr(loop.Loop, "validate", lambda self: {"main_loss": 1.0})
    fit(run, device="cpu")
    return parameters_to_vector(read_tensors(run / "weights.safetensors").values())


@pytest.mark.parametrize("normalise", ["tokens", "sentences"])
@pytest.mark.parametrize("system", ["transformer", "future-cost-2"])
def test_two_accumulated_halves_are_one_whole_batch(prepared, new_run, monkeypatch, system, normalise):
    """The halves differ in size; one number divides both. SGD shows the gradient, AdamW would hide its scale."""
    monkeypatch.setattr(torch.optim, "AdamW", lambda parameters, lr, **_: torch.optim.SGD(parameters, lr, fused=True))
    text = prepared.split("train")
    rows = sorted(range(30), key=lambda row: int(text.target_lengths[row]))

    def batch(some):
        return collate([text.source(row) for row in some], [text.target(row) for row in some])

    settings = {"max_steps": 1, "clip": 0, "warmup": 0, "learning_rate": 0.5, "normalise": normalise}
    whole = weights_after_one_step(new_run("whole", f"{system}:{EXACT}", **settings), [batch(rows)], monkeypatch)
    halves = weights_after_one_step(
        new_run("halves", f"{system}:{EXACT}", accumulate=2, **settings),
        [batch(rows[:22]), batch(rows[22:])],
        monkeypatch,
    )
    torch.testing.assert_close(halves, whole, atol=1e-6, rtol=0)


def test_a_step_of_a_clipped_gradient_is_as_long_as_the_clip_allows(prepared, new_run, monkeypatch):
    """SGD without momentum moves the weights by rate x clip; what is logged is the norm before clipping."""
    monkeypatch.setattr(torch.optim, "AdamW", lambda parameters, lr, **_: torch.optim.SGD(parameters, lr, fused=True))
    text = prepared.split("train")
    batch = collate([text.source(row) for row in range(20)], [text.target(row) for row in range(20)])

    def after(name: str, **settings) -> tuple[torch.Tensor, float]:
        run = new_run(name, f"transformer:{EXACT}", max_steps=1, warmup=0, **settings)
        weights = weights_after_one_step(run, [batch], monkeypatch)
        return weights, events(run, "train")[0]["gradient_norm"]

    first, _ = after("still", learning_rate=1e-15)
    (free, norm), (clipped, told) = (after(f"clip-{clip}", learning_rate=0.5, clip=clip) for clip in (0, 0.01))
    assert told == pytest.approx(norm)
    assert norm > 0.1
    assert float((free - first).norm()) == pytest.approx(0.5 * norm)
    assert float((clipped - first).norm()) == pytest.approx(0.5 * 0.01, rel=1e-3)


@pytest.mark.parametrize(
    "system", ["transformer", "future-cost-2", "gdr-bow-bca", "clf-bow-bca:bag_head=tanh", "pfrnn-loss"]
)
def test_the_objective_has_the_sums_and_gradients_of_the_losses_of_sentences(prepared, system):
    """Training takes sums of all sentences; an accumulated batch of sentences one by one has the same gradients."""
    text = prepared.split("train")
    sizes = len(prepared.source_vocabulary), len(prepared.target_vocabulary)
    name = f"{system}{',' if ':' in system else ':'}{EXACT},preset=tiny"
    built = build(name, *sizes).double().train()
    batch = collate([text.source(row) for row in range(9)], [text.target(row) for row in range(9)])
    forced = built(built.encode(batch), batch.target_in, batch.target_mask)
    of_sentences = built.losses(forced, batch, 0.1)
    summed = Objective(built, 0.1)(batch)
    assert summed.keys() == of_sentences.keys()
    gradients = []
    for terms in (of_sentences, summed):
        for other, term in enumerate(terms.values()):
            torch.testing.assert_close(term.sum(), [*of_sentences.values()][other].sum(), atol=1e-9, rtol=1e-12)
        built.zero_grad()
        sum(term.sum() for term in terms.values()).backward()
        gradients.append({name: one.grad for name, one in built.named_parameters() if one.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for parameter, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][parameter], gradient, atol=1e-9, rtol=1e-9)


class Interrupted(Exception):
    pass


def interrupt_at(step: int):
    def report(progress, total, latest):
        if progress.step == step:
            raise Interrupted

    return report


@pytest.mark.slow
def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(new_run):
    """Dropout, subword sampling, an epoch's end and an accumulated rest in between; killed after validations, twice."""
    settings = {"max_steps": 9, "validate_every": 3, "subword_alpha": 0.2, "batch_tokens": 350, "accumulate": 2}
    straight, broken = (new_run(name, "future-cost-2", **settings) for name in ("straight", "broken"))
    fit(straight, device="cpu")
    for step in (4, 8):
        with pytest.raises(Interrupted):
            fit(broken, report=interrupt_at(step), device="cpu")
        assert read_progress(broken / "state").step == step // 3 * 3
    done = fit(broken, device="cpu")
    assert (done.step, done.finished, done.epoch) == (9, True, read_progress(straight / "state").epoch)
    assert done.epoch >= 1
    for name in ("weights.safetensors", "checkpoints/step-000009.safetensors"):
        assert_same_weights(straight / name, broken / name)
    for kind in ("train", "valid"):
        logs = [{event["step"]: event["main_loss"] for event in events(run, kind)} for run in (straight, broken)]
        assert logs[0] == logs[1]
        assert [event["step"] for event in events(broken, kind)] == sorted(logs[0])
    assert [event["step"] for event in events(broken, "train")] == list(range(1, 10))


def test_a_run_stops_when_its_time_is_up_and_goes_on_later(new_run):
    run = new_run("run", max_steps=3)
    for step in (1, 2):
        progress = fit(run, minutes=1e-9, device="cpu")
        assert (progress.step, progress.finished) == (step, False)
    assert fit(run, device="cpu").finished


def test_a_finished_run_is_left_alone(new_run):
    run = new_run("run", max_steps=2)
    first = fit(run, device="cpu")
    before = (run / "training.jsonl").read_bytes(), (run / "weights.safetensors").stat().st_mtime_ns
    assert fit(run, device="cpu") == first
    assert before == ((run / "training.jsonl").read_bytes(), (run / "weights.safetensors").stat().st_mtime_ns)


def test_a_finished_run_without_its_states_is_not_trained_anew(new_run):
    run = new_run("run", max_steps=2)
    fit(run, device="cpu")
    shutil.rmtree(run / "state")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointError, match=r"no state of it is left to go on from.* --init-from"):
        fit(run, device="cpu")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_training_learns(trained_run):
    losses = [event["main_loss"] for event in events(trained_run, "valid")]
    assert losses[-1] < 1.0  # nats a token; the untrained model is at about ln 100 = 4.6
    train = events(trained_run, "train")
    assert train[-1]["main_loss"] < train[0]["main_loss"]
    assert train[-1]["future_cost_loss"] < train[0]["future_cost_loss"]


def test_a_validation_leaves_the_loss_per_token_without_smoothing(prepared, new_run):
    run = new_run("run", max_steps=1)
    fit(run, device="cpu")
    system = build(read_config(run).model, len(prepared.source_vocabulary)).double().eval()
    with torch.no_grad():
        for name, parameter in system.named_parameters():
            parameter.copy_(read_tensors(run / "weights.safetensors")[name])
        text = prepared.split("dev")
        total = tokens = 0.0
        for row in range(len(text)):
            batch = collate([text.source(row)], [text.target(row)])
            forced = system(system.encode(batch), batch.target_in, batch.target_mask)
            values = torch.log_softmax(system.scores(forced).values, -1).gather(2, batch.target[..., None])
            total, tokens = total - float(values.sum()), tokens + batch.target_tokens
    assert events(run, "valid")[-1]["main_loss"] == pytest.approx(total / tokens, abs=1e-9)


def test_early_stopping_keeps_the_best_of_a_score_it_is_handed(new_run):
    scores, seen = iter([5.0, 9.0, 8.0, 9.0, 99.0]), []

    def score(hypotheses, references):
        seen.append((len(hypotheses), len(references)))
        return next(scores)

    run = new_run(
        "run",
        max_steps=50,
        validate_every=2,
        keep_last=9,
        early_stopping={"metric": "bleu", "patience": 2},
        search={"beam": 1, "max_length": 8},
    )
    progress = fit(run, score, device="cpu")
    assert (progress.step, progress.best, progress.best_step, progress.reason) == (8, 9.0, 4, "early stopping")
    assert seen == [(20, 20)] * 4
    assert_same_weights(run / "weights.safetensors", run / "checkpoints" / "step-000004.safetensors")
    assert [event["bleu"] for event in events(run, "valid")] == [5.0, 9.0, 8.0, 9.0]


def test_a_score_that_was_not_handed_in_is_asked_for(new_run):
    run = new_run("run", max_steps=1, early_stopping={"metric": "chrf"})
    with pytest.raises(ConfigError, match=r"early_stopping.metric: chrf needs a score function handed to fit"):
        fit(run, device="cpu")
    assert not events(run, "train")


def test_a_search_that_no_validation_could_do_is_refused_before_the_first_step(new_run):
    settings = {"max_steps": 1, "precision": "float64", "early_stopping": {"metric": "bleu"}}
    run = new_run("run", search={"precision": "int8"}, **settings)
    with pytest.raises(ConfigError, match=r"int8 is for float32 weights on a CPU, these are torch.float64"):
        fit(run, score=lambda hypotheses, references: 1.0, device="cpu")
    assert not events(run, "train")


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ({"keep_last": 2}, [10, 12]),
        ({"keep_last": 5}, [4, 6, 8, 10, 12]),
        ({"keep_last": 9}, [2, 4, 6, 8, 10, 12]),
        ({"keep_last": 0}, []),
        ({"keep_last": 1, "keep_every": 4}, [4, 8, 12]),
        ({"keep_last": 0, "keep_every": 6}, [6, 12]),
    ],
)
def test_the_last_and_the_regular_checkpoints_are_kept(new_run, monkeypatch, keep, kept):
    one = torch.ones(1, 1)
    update = UnreadUpdate(1, ["main"], one, tokens=one[0, 0], norm=one[0, 0], learning_rate=1.0, rewards={})
    monkeypatch.setattr(loop.Loop, "step", lambda self, group: update)
    monkeypatch.setattr(loop.Loop, "validate", lambda self: {"main_loss": 1.0})
    run = new_run("run", max_steps=12, validate_every=2, **keep)
    fit(run, device="cpu")
    assert steps_on_disk(run) == kept


def test_a_plateau_lowers_the_rate(new_run, monkeypatch):
    monkeypatch.setattr(loop.Loop, "validate", lambda self: {"main_loss": 1.0})
    run = new_run(
        "run", max_steps=8, validate_every=1, warmup=0, schedule="plateau", plateau_patience=1, learning_rate=0.008
    )
    fit(run, device="cpu")
    rates = [event["learning_rate"] for event in events(run, "train")]
    # The first validation is the best; two that are not, and the rate is halved.
    assert rates == pytest.approx([0.008] * 3 + [0.004] * 2 + [0.002] * 2 + [0.001])


def test_gradients_that_are_not_finite_are_skipped_and_then_refused(new_run):
    run = new_run("run", "transformer", max_steps=50, precision="float32")
    original = fitting.build

    def broken(*given):
        system = original(*given)
        with torch.no_grad():
            system.backbone.decoder_norm.weight.fill_(float("nan"))
        return system

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "build", broken)
        with pytest.raises(
            TrainingError, match=r"10 steps in a row were skipped.*at step 10: the loss of process 0 is not finite"
        ):
            fit(run, device="cpu")
    assert len(events(run, "skipped")) == 10


def test_init_from_takes_the_reference_and_logs_what_is_new(new_run):
    baseline = new_run("baseline", max_steps=2)
    fit(baseline, device="cpu")
    run = new_run("run", "future-cost-1", max_steps=1, learning_rate=1e-12, warmup=0, init_from=str(baseline))
    progress = fit(run, device="cpu")
    assert {name.rpartition(".")[0] for name in progress.unmatched} == {
        f"mechanisms.future_cost.{part}" for part in ("from_word", "from_state", "from_reset", "future_head")
    }
    assert events(run, "start")[0]["unmatched"] == progress.unmatched
    tensors = read_tensors(run / "weights.safetensors")
    for name, value in read_tensors(baseline / "weights.safetensors").items():
        torch.testing.assert_close(tensors[name], value, atol=1e-9, rtol=0)


def test_states_are_ordered_by_step_and_unfinished_ones_do_not_count(tmp_path):
    system = build("transformer:preset=tiny", 8)
    optimizer = torch.optim.AdamW(system.parameters())
    for step in (999_998, 999_999, 1_000_000):
        save_state(tmp_path, SharedWeights(weights_of(system)), optimizer.state_dict(), Progress(step=step), random={})
    (tmp_path / "step-1000001.part").mkdir()
    (tmp_path / "step-1000002").mkdir()
    assert latest_state(tmp_path).name == "step-1000000"
    assert read_progress(tmp_path).step == 1_000_000
    assert not (tmp_path / "step-999998").exists()
    assert read_progress(tmp_path / "nowhere") is None


def test_a_log_cut_off_in_a_line_is_read_up_to_there(tmp_path):
    path = tmp_path / "training.jsonl"
    path.write_text('{"event": "train", "step": 1}\n{"event": "tra', encoding="utf-8")
    assert [event["step"] for event in read_events(path)] == [1]
