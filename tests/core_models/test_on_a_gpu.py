"""Every system on a pretended GPU (`tests/fake_cuda.py`): no operation mixes devices, and results are the CPU's.

The host waits for nothing in training, and once in eight steps of a beam search.
"""

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding import beam_search
from core_models.decoding.beam_search import READ_EVERY
from core_models.decoding.inference import Inference
from core_models.system_catalogue import catalogue
from tests.core_models import laws
from tests.core_models.laws import backward, batch_of, random_sentences, random_system
from tests.fake_cuda import CUDA, FakeCuda
from tests.kinds import sampled

pytestmark = pytest.mark.long
KEEPING = SearchConfig(beam=3, finished_hypotheses="keep", max_length=6)


SEARCHING = "core_models.decoding.beam_search"
ENDS_OF_A_SEARCH = {
    f"{SEARCHING}._Beam.__init__ reads a number": 1,
    f"{SEARCHING}._Beam.results copies to the host": 8,
}
STEPS = 5  # of the beam search below: no sentence may be longer


def trained_and_searched(name: str, device: str, monkeypatch) -> tuple[torch.Tensor, list]:
    """The gradient of a system's losses, and what its searches, samples and forced passes found."""
    monkeypatch.setattr(laws, "DEVICE", device)
    system = random_system(name)
    batch = batch_of(system, random_sentences([5, 2, 3], 1), random_sentences([2, 6, 0], 2))
    assert system.device == batch.source.device == torch.device(device)
    backward(system, batch)
    gradients = [parameter.grad.flatten() for parameter in system.parameters() if parameter.grad is not None]
    gradient = torch.cat(gradients).cpu()
    limits = torch.tensor([3, 4, STEPS], device=device)
    inference = Inference([system])
    with torch.inference_mode():
        searches = beam_search(system, system.encode(batch), limits, SearchConfig(beam=3), record=True)
    kept = inference.search(batch, [[4], [], []], KEEPING, False)
    log_probs, traces = inference.force(batch, [None] * 3, ["*"])
    assert len(traces) == 3
    exact = inference.exact(batch_of(system, [[5, 6]]), SearchConfig(max_length=3), -20.0, 5)
    inference.sample(batch, SearchConfig(max_length=2), 2, 1.0, 3, None)
    found = [[hypothesis.words for hypothesis in result.hypotheses] for result in (*searches, *kept)]
    return gradient, [found, exact.words, torch.tensor(log_probs[1])]


@pytest.mark.parametrize("name", sampled(catalogue()))
def test_no_operation_mixes_devices_and_results_are_those_of_the_cpu(name, monkeypatch):
    gradient, (found, best, log_probs) = trained_and_searched(name, "cpu", monkeypatch)
    with FakeCuda():
        other_gradient, (*other_found, other_log_probs) = trained_and_searched(name, str(CUDA), monkeypatch)
    torch.testing.assert_close(other_gradient, gradient, atol=1e-9, rtol=0)
    torch.testing.assert_close(other_log_probs, log_probs, atol=1e-9, rtol=0)
    assert other_found == [found, best]


def waits_and_uploads(gpu: FakeCuda) -> tuple[dict[str, int], dict[str, int]]:
    """What was counted since the last call."""
    counted = dict(gpu.waits), dict(gpu.uploads)
    gpu.waits.clear()
    gpu.uploads.clear()
    return counted


@pytest.mark.parametrize("name", sampled(catalogue()))
def test_the_host_waits_for_nothing_in_training_and_in_the_steps_of_a_short_search(name, monkeypatch):
    """But for the end of a search, where its results are read."""
    monkeypatch.setattr(laws, "DEVICE", str(CUDA))
    with FakeCuda() as gpu:
        system = random_system(name, torch.float32)
        batch = batch_of(system, random_sentences([5, 2, 3], 1), random_sentences([2, 6, 0], 2))
        limits = torch.tensor([3, 4, STEPS], device=CUDA)
        waits_and_uploads(gpu)
        backward(system, batch)
        assert waits_and_uploads(gpu) == ({}, {})
        with torch.inference_mode():
            beam_search(system, system.encode(batch), limits, SearchConfig(beam=3))
        waits, uploads = waits_and_uploads(gpu)
    assert waits == ENDS_OF_A_SEARCH
    assert uploads == {}


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("name", ["transformer", "pfrnn-loss", "gdr-bow-bca", "qcn-reg"])
def test_a_search_on_a_gpu_asks_every_eighth_step_who_is_done_and_finds_the_same(name, record, monkeypatch):
    """Four sentences, one of 3 words at most, which is still in the batch at step 9, and taken out then."""

    def found(device: str) -> list:
        monkeypatch.setattr(laws, "DEVICE", device)
        system = random_system(name)
        batch = batch_of(system, random_sentences([5, 2, 3, 4], 1), random_sentences([2, 6, 0, 1], 2))
        limits = torch.tensor([3, 20, 9, 26], device=device)
        with torch.inference_mode():
            return beam_search(system, system.encode(batch), limits, SearchConfig(beam=3, n_best=3), record=record)

    on_cpu = found("cpu")
    with FakeCuda() as gpu:
        on_gpu = found(str(CUDA))
    for result, other in zip(on_cpu, on_gpu, strict=True):
        assert [hypothesis.words for hypothesis in other.hypotheses] == [h.words for h in result.hypotheses]
        assert [h.score for h in other.hypotheses] == pytest.approx([h.score for h in result.hypotheses], abs=1e-9)
        if record:
            assert (other.tree.word, other.tree.fate) == (result.tree.word, result.tree.fate)
    asked = gpu.waits[f"{SEARCHING}._DoneReader.rows waits for an event"]
    assert 1 <= asked <= 26 // READ_EVERY
    assert f"{SEARCHING}.beam_search reads a list" not in gpu.waits
    if name == "transformer":
        assert gpu.uploads[f"{SEARCHING}.beam_search torch.tensor"] >= 1, "sentences that are done are taken out"
