"""The vocabulary head and the loss terms against PyTorch's own dense formulas."""

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from core_models.interface.mechanism import Prediction
from core_models.layers import vocabulary_head
from core_models.layers.vocabulary_head import log_partition, logits, one_logit, summed_log_partitions, word_logits
from core_models.losses.prediction_losses import prediction_losses

CHUNKED = pytest.mark.parametrize("kept", [1 << 27, 30], ids=["whole", "chunked"])
BIASED = pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])


def tensors(rows: int, biased: bool, dtype=torch.float64, width: int = 5, words: int = 11):
    generator = torch.Generator().manual_seed(rows)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()

    return draw(rows, width), draw(words, width), draw(words) if biased else None


@CHUNKED
@BIASED
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_log_partition_and_its_gradient_are_those_of_the_dense_formula(monkeypatch, kept, biased, rows):
    monkeypatch.setattr(vocabulary_head, "KEPT_LOGITS", kept)
    given = [tensor for tensor in tensors(rows, biased) if tensor is not None]
    upstream = torch.randn(rows, dtype=torch.float64)
    dense = torch.logsumexp(functional.linear(*given), dim=-1)
    fused = log_partition(*given)
    torch.testing.assert_close(fused, dense, atol=1e-12, rtol=0)
    expected = torch.autograd.grad(dense, given, upstream)
    for found, wanted in zip(torch.autograd.grad(fused, given, upstream), expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-12, rtol=0)


@BIASED
@pytest.mark.parametrize("kept", [22, 1 << 27], ids=["in chunks", "kept"])
def test_gradcheck(monkeypatch, biased, kept):
    monkeypatch.setattr(vocabulary_head, "KEPT_LOGITS", kept)
    monkeypatch.setattr(vocabulary_head, "CACHED_LOGITS", 22)
    vectors, matrix, bias = tensors(4, biased)
    assert torch.autograd.gradcheck(log_partition, (vectors, matrix, bias))


def test_a_second_backward_pass_gives_the_gradients_of_the_first():
    vectors, matrix, _ = tensors(4, False)
    partition = log_partition(vectors, matrix).sum()
    first = torch.autograd.grad(partition, (vectors, matrix), retain_graph=True)
    second = torch.autograd.grad(partition, (vectors, matrix))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


COUNTS = (3, 0, 4)


def dense_sums(vectors, matrix, bias, weights) -> torch.Tensor:
    log_z = torch.logsumexp(functional.linear(vectors, matrix, bias), dim=-1)
    return torch.stack([part.sum() for part in (weights * log_z).split(COUNTS)])


@pytest.mark.parametrize("rows", [1, 2, 512])
@BIASED
def test_weighted_sums_and_their_gradients_are_those_of_the_dense_formula(monkeypatch, rows, biased):
    """Whatever is done with the sums, and for every set of tensors that are trained."""
    monkeypatch.setattr(vocabulary_head, "ROWS_WITH_GRADIENTS", rows)
    monkeypatch.setattr(vocabulary_head, "CACHED_LOGITS", 11)
    given = tensors(7, biased)
    weights = torch.linspace(-1, 2, 7, dtype=torch.float64)
    assert torch.autograd.gradcheck(summed_log_partitions, (*given, weights, COUNTS))
    upstream = torch.tensor([0.5, 9.0, -2.0], dtype=torch.float64)
    dense, fused = dense_sums(*given, weights), summed_log_partitions(*given, weights, COUNTS)
    torch.testing.assert_close(fused, dense, atol=1e-12, rtol=0)
    trained = [tensor for tensor in given if tensor is not None]
    expected = torch.autograd.grad(dense, trained, upstream)
    for again in (True, False):
        for found, wanted in zip(torch.autograd.grad(fused, trained, upstream, again), expected, strict=True):
            torch.testing.assert_close(found, wanted, atol=1e-12, rtol=0)
    for number, tensor in enumerate(trained):
        alone = [None if one is None else one if one is tensor else one.detach() for one in given]
        (found,) = torch.autograd.grad(summed_log_partitions(*alone, weights, COUNTS), [tensor], upstream)
        torch.testing.assert_close(found, expected[number], atol=1e-12, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(summed_log_partitions(*given, weights, COUNTS), dense, atol=1e-12, rtol=0)


@pytest.mark.long
def test_sums_take_three_products_and_no_tensor_larger_than_a_chunk(monkeypatch):
    """What keeps the powers takes three too, and holds them all; what computes them again takes four."""
    monkeypatch.setattr(vocabulary_head, "ROWS_WITH_GRADIENTS", 3)
    monkeypatch.setattr(vocabulary_head, "CACHED_LOGITS", 3 * 64)
    rows, width, words = 100, 2, 64
    vectors, matrix, _ = tensors(rows, False, width=width, words=words)

    def used(partition) -> tuple[float, int]:
        with FlopCounterMode(display=False) as counted, Largest() as made:
            partition().sum().backward()
        return counted.get_total_flops() / (2 * rows * words * width), made.numbers

    def summed(matrix: torch.Tensor = matrix) -> torch.Tensor:
        return summed_log_partitions(vectors, matrix, None, torch.ones(rows, dtype=torch.float64), (60, 40))

    assert used(summed) == (3, max(3 * words, rows * width, words * width))
    assert used(lambda: summed(matrix.detach()))[0] == 2, "a frozen matrix takes none of its own"
    assert used(lambda: log_partition(vectors, matrix)) == (3, rows * words)
    monkeypatch.setattr(vocabulary_head, "KEPT_LOGITS", 3 * 64)
    assert used(lambda: log_partition(vectors, matrix))[0] == 4


def test_sums_in_bfloat16_have_the_gradients_of_float32_but_for_rounding():
    vectors, matrix, bias = tensors(300, True, torch.float32, width=64, words=200)
    given, weights = (vectors, matrix, bias), torch.rand(300)
    wanted = torch.autograd.grad(summed_log_partitions(*given, weights, (300,)), given)
    with torch.autocast("cpu", torch.bfloat16):
        sums = summed_log_partitions(*given, weights, (300,))
    assert sums.dtype == torch.float32
    for found, expected in zip(torch.autograd.grad(sums, given), wanted, strict=True):
        assert found.dtype == torch.float32
        assert (found - expected).norm() < 0.05 * expected.norm()


def test_sums_over_the_vocabulary_stay_wide_under_autocast():
    vectors, matrix, bias = tensors(4, True, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        partition = log_partition(vectors, matrix, bias)
    assert partition.dtype == torch.float32
    torch.testing.assert_close(partition, torch.logsumexp(logits(vectors, matrix, bias), -1), atol=0.05, rtol=0)
    partition.sum().backward()
    assert vectors.grad.dtype == matrix.grad.dtype == torch.float32


def test_in_bfloat16_a_log_probability_is_off_by_about_a_256th_of_its_logit():
    torch.manual_seed(1)
    matrix = functional.normalize(torch.randn(300, 64), dim=1)
    words = torch.arange(300)
    for logit in (4.0, 16.0):
        vectors = logit * matrix
        with torch.autocast("cpu", torch.bfloat16):
            found = word_logits(vectors, matrix, words) - log_partition(vectors, matrix)
        wanted = torch.log_softmax(vectors @ matrix.t(), -1)[words, words]
        assert (found - wanted).abs().max() < 1.5 * logit / 256


class Largest(TorchDispatchMode):
    """The most numbers that one tensor of those made inside held."""

    numbers = 0

    def __torch_dispatch__(self, function, types, given=(), named=None):
        made = function(*given, **(named or {}))
        if isinstance(made, torch.Tensor):
            self.numbers = max(self.numbers, made.numel())
        return made


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_without_gradients_no_more_logits_are_held_than_a_chunk(monkeypatch, without):
    monkeypatch.setattr(vocabulary_head, "CACHED_LOGITS", 22)
    vectors, matrix, _ = tensors(20, False)
    with without(), Largest() as made:
        log_partition(vectors, matrix)
    assert made.numbers == matrix.numel() == 55
    with Largest() as made:
        log_partition(vectors, matrix)
    assert made.numbers == 20 * 11


def test_a_words_logit_is_its_entry_in_the_logits():
    vectors, matrix, bias = tensors(6, True)
    words = torch.tensor([0, 3, 3, 10, 1, 7])
    expected = logits(vectors, matrix, bias).gather(1, words[:, None])[:, 0]
    torch.testing.assert_close(word_logits(vectors, matrix, words, bias), expected)


WORDS = torch.tensor([[1, 4, 2], [3, 0, 0], [0, 0, 0]])
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])


def predictions(biased: bool) -> tuple[list[Prediction], torch.Tensor, torch.Tensor | None]:
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    tied, bias = draw(6, 4), draw(6) if biased else None
    late = torch.tensor([False, True, True]).expand(3, 3)
    own, own_bias = draw(6, 2), draw(6)
    return (
        [
            Prediction("main", draw(3, 3, 4)),
            Prediction("late", draw(3, 3, 4), mask=late),
            Prediction("own", draw(3, 3, 2), matrix=own, bias=own_bias),
        ],
        tied,
        bias,
    )


@BIASED
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_losses_are_pytorchs_smoothed_cross_entropy_summed_per_sentence(biased, smoothing):
    given, tied, bias = predictions(biased)
    found = prediction_losses(given, tied, bias, WORDS, MASK, smoothing)
    for prediction in given:
        matrix, offset = (tied, bias) if prediction.matrix is None else (prediction.matrix, prediction.bias)
        dense = functional.linear(prediction.vectors, matrix, offset)
        terms = functional.cross_entropy(
            dense.flatten(0, 1), WORDS.flatten(), label_smoothing=smoothing, reduction="none"
        )
        mask = MASK if prediction.mask is None else MASK & prediction.mask
        torch.testing.assert_close(found[prediction.name], (terms.view(3, 3) * mask).sum(1), atol=1e-12, rtol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_predictions_in_one_pass_equal_each_alone(smoothing):
    given, tied, bias = predictions(True)
    together = prediction_losses(given, tied, bias, WORDS, MASK, smoothing)
    for prediction in given:
        alone = prediction_losses([prediction], tied, bias, WORDS, MASK, smoothing)
        torch.testing.assert_close(together[prediction.name], alone[prediction.name], atol=1e-12, rtol=0)


def test_losses_of_low_precision_vectors_are_summed_in_float32():
    vectors = torch.randn(3, 3, 4).to(torch.bfloat16)
    loss = prediction_losses([Prediction("main", vectors)], torch.randn(6, 4), None, WORDS, MASK)["main"]
    assert loss.dtype == torch.float32


def test_one_row_for_all_positions_is_float32_under_autocast():
    vectors, row = torch.randn(5, 64), torch.randn(64)
    with torch.autocast("cpu", torch.bfloat16):
        found = one_logit(vectors, row)
    torch.testing.assert_close(found, (vectors.double() @ row.double()).float(), rtol=1e-5, atol=1e-5)
