"""The pretended GPU refuses what a GPU refuses, and counts what the host waits for."""

import pytest
import torch

from tests.fake_cuda import CUDA, FakeCuda, MeetingOfDevices


@pytest.fixture
def gpu():
    with FakeCuda() as gpu:
        yield gpu


def on_gpu(*values):
    return torch.tensor(values, dtype=torch.float64, device=CUDA)


def test_results_stay_where_they_are_computed(gpu):
    x = on_gpu(1, 2).requires_grad_()
    (x.exp() * 2 + x.new_ones(2)).sum().backward()
    module = torch.nn.Linear(2, 2).to("cuda:0")
    assert {value.device for value in (x.grad, x[:1], torch.zeros_like(x), module.weight, x.float())} == {CUDA}
    torch.testing.assert_close(x.grad.cpu(), 2 * torch.tensor([1.0, 2.0], dtype=torch.float64).exp())


@pytest.mark.parametrize("inference", [False, True])
def test_a_tensor_of_the_cpu_is_refused(gpu, inference):
    x, host = on_gpu(1, 2), torch.ones(2, dtype=torch.float64)
    refused = [
        lambda: x + host,
        lambda: torch.cat([x, host]),
        lambda: x.index_select(0, torch.tensor([0])),
        lambda: x.view(1, 2) @ host,
        lambda: host[on_gpu(1).long()],
        lambda: torch.multinomial(x, 1, generator=torch.Generator()),
    ]
    with torch.inference_mode(inference):
        for operation in refused:
            with pytest.raises(MeetingOfDevices):
                operation()
        with pytest.raises(TypeError, match="numpy"):
            x.numpy()
        assert (x + torch.tensor(1.0)).tolist() == [2, 3]  # a number of the CPU is taken along


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize(
    ("operation", "reasons"),
    [
        (lambda x: x.sum().item(), ["reads a number"]),
        (lambda x: bool((x > 1).any()), ["reads a number"]),
        (lambda x: x.tolist(), ["reads a list"]),
        (lambda x: x.cpu(), ["copies to the host"]),
        (lambda x: torch.zeros(2).copy_(x), ["copies to the host"]),
        (lambda x: x.to("cpu", non_blocking=True), []),
        (lambda x: x.nonzero(), ["nonzero"]),
        (lambda x: x[x > 1], ["index by a mask"]),
        (lambda x: x.__setitem__(x > 1, x[:1]), ["index by a mask"]),
        (lambda x: x.__setitem__(x > 1, 0.0), []),
        (lambda x: x.masked_select(x > 1), ["masked_select"]),
        (lambda x: torch.equal(x, x), ["equal"]),
        (lambda x: x.repeat_interleave(x.long()), ["repeat_interleave"]),
        (lambda x: x.repeat_interleave(x.long(), output_size=3), []),
        (lambda x: torch.where(x > 1, x, 0.0).cumsum(0).topk(1), []),
        (lambda x: torch.nonzero_static(x, size=2), []),
    ],
)
def test_what_the_host_waits_for_is_counted(gpu, operation, reasons, inference):
    x = on_gpu(1, 2)
    with torch.inference_mode(inference):
        operation(x)
    assert [waited.partition(" ")[2] for waited in gpu.waits.elements()] == reasons


def test_uploads_are_counted(gpu):
    x = on_gpu(1, 2)
    x[[0, 1]] = 3.0
    torch.ones(2).to(x.device)
    x.copy_(torch.ones(2))
    torch.full((2,), 7.0, device=x.device)  # is made where it lies
    assert [upload.partition(" ")[2] for upload in gpu.uploads.elements()] == ["torch.tensor", "index", "to", "copy_"]
