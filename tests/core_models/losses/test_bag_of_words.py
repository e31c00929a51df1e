"""Bags of words and mean contents: hand-worked cases, and the direct formulas with every [S, T, V] written out."""

import pytest
import torch

from core_models.interface.mechanism import Bag, Prediction
from core_models.layers import vocabulary_head
from core_models.losses.bag_of_words import BagOfWords, content_agreement, running_means
from core_models.losses.positions import Positions
from core_models.losses.prediction_losses import prediction_losses
from core_models.text.vocabulary import BOS, PAD
from tests.core_models.layers.test_vocabulary_head import Largest

FLOAT = torch.float64


def tensor(*values):
    return torch.tensor(values, dtype=FLOAT)


def close(found, wanted, tolerance=1e-6):
    torch.testing.assert_close(found, torch.as_tensor(wanted, dtype=found.dtype), rtol=0, atol=tolerance)


WORDS = torch.tensor([[1, 2, 1]])
REAL = torch.ones(1, 3, dtype=torch.bool)
BEFORE = tensor([1, 2, 1, 4], [1, 1, 2, 4], [2, 3, 2, 1])  # unnormalised, a position a row
AFTER = tensor([1, 1, 1, 1], [4, 2, 1, 1], [1, 4, 2, 1])


@pytest.mark.parametrize(
    ("span", "mean", "wanted"),
    [
        ("inclusive", False, (2.733328, 2.772589)),
        ("inclusive", True, (1.411716, 1.270770)),
        ("strict", True, (1.631502, 1.386294)),
        ("analysis", True, (1.411716, 1.386294)),
    ],
)
def test_bags_by_hand(span, mean, wanted):
    """Distributions are given outright: the output matrix is one."""
    one = torch.eye(4, dtype=FLOAT)
    bag = Bag(span, mean)
    given = [
        Prediction("past", BEFORE.log()[None], target="past_bag", bag=bag),
        Prediction("future", AFTER.log()[None], target="future_bag", bag=bag),
    ]
    found = prediction_losses(given, one, None, WORDS, REAL)
    close(torch.cat([found["past"], found["future"]]), wanted)


def mean_parts(bag: BagOfWords, vectors, log_z, matrix, real: Positions) -> torch.Tensor:
    """What each position adds to its sentence's mean."""
    weights, scores = bag.terms(vectors, matrix, None, real)
    return weights * bag.partition(log_z, vectors, matrix, None) - scores


def test_cumulative_sums_by_hand():
    """Three positions' sums over y_<=t: 2.44, 3.01 and 5.88."""
    matrix, vectors = tensor([0, 0], [1, 0], [0, 1], [1, 1]), tensor([1, 2], [0, 1], [-1, 1])[None]
    prediction = Prediction("past", vectors, target="past_bag", bag=Bag(mean=False))
    log_z = torch.logsumexp(vectors[0] @ matrix.T, -1)
    found = mean_parts(BagOfWords(prediction, WORDS, REAL), vectors[0], log_z, matrix, Positions.of(REAL)) * 3
    close(found, [2.440190, 3.012818, 5.879570])
    close(prediction_losses([prediction], matrix, None, WORDS, REAL)["past"], [3.777526])


def test_the_released_smoothing_by_hand():
    """PAD outside the softmax; every word that is not in the bag has 0.1 / (V - 2)."""
    matrix = tensor([5, -3], [1, 0], [0, 1], [1, 1])
    vectors = tensor([1, 2], [0, 1], [-1, 1])
    prediction = Prediction("past", vectors[None], target="past_bag", bag=Bag(label_smoothing=0.1, without_pad=True))
    log_z = torch.logsumexp(vectors @ matrix.T, -1)
    found = mean_parts(BagOfWords(prediction, WORDS, REAL), vectors, log_z, matrix, Positions.of(REAL)) * 3
    close(found, [2.257606, 1.268895, 1.637226])


def directly(prediction, matrix, bias, words, length):
    """One sentence's loss by loops over positions and words: a target distribution over the whole vocabulary each."""
    bag, losses = prediction.bag, []
    for t in range(length):
        logits = matrix @ prediction.vectors[t] + (0 if bias is None else bias)
        if bag.without_pad:
            logits = torch.cat([tensor(-torch.inf), logits[1:]])
        log_probs = torch.log_softmax(logits, 0)
        if prediction.target == "past_bag":
            last = t if bag.span == "strict" else t + 1
            inside = [BOS, *words[:t]] if bag.begins and bag.span == "strict" else words[:last]
        else:
            inside = words[t if bag.span == "inclusive" else t + 1 : length]
        if not inside:
            continue
        wanted = torch.zeros(len(matrix), dtype=FLOAT)
        for word in inside:
            wanted[word] += (1 - bag.label_smoothing) / len(inside)
        for word in range(len(matrix)):
            if word != PAD and word not in inside:
                wanted[word] += bag.label_smoothing / (len(matrix) - 2)
        loss = -(wanted[wanted > 0] * log_probs[wanted > 0]).sum()
        losses.append(loss if bag.mean else loss * len(inside))
    return sum(losses, tensor(0.0)[0]) / max(1, len(losses))


SENTENCES = [[4, 5, 4, 3], [6, 3], [3], []]


@pytest.mark.parametrize("span", ["inclusive", "strict", "analysis"])
@pytest.mark.parametrize("options", [{}, {"mean": False}, {"label_smoothing": 0.1, "without_pad": True}])
@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
def test_cumulative_forms_equal_the_direct_ones_with_their_gradients(span, options, begins, biased):
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=FLOAT).requires_grad_()

    matrix, bias, vectors = draw(8, 3), draw(8) if biased else None, draw(4, 4, 3)
    words = torch.tensor([[*sentence, *[PAD] * (4 - len(sentence))] for sentence in SENTENCES])
    mask = torch.arange(4) < torch.tensor([len(sentence) for sentence in SENTENCES])[:, None]
    bag = Bag(span, begins=begins, **options)
    for target in ("past_bag", "future_bag"):
        found = prediction_losses([Prediction("bag", vectors, target=target, bag=bag)], matrix, bias, words, mask)[
            "bag"
        ]
        wanted = torch.stack(
            [
                directly(Prediction("bag", vectors[row], target=target, bag=bag), matrix, bias, sentence, len(sentence))
                for row, sentence in enumerate(SENTENCES)
            ]
        )
        close(found, wanted, 1e-11)
        given = [one for one in (vectors, matrix, bias) if one is not None]
        pairs = zip(torch.autograd.grad(found.sum(), given), torch.autograd.grad(wanted.sum(), given), strict=True)
        for one, other in pairs:
            close(one, other, 1e-11)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_nothing_over_the_vocabulary_or_over_pairs_of_positions_is_made(smoothing):
    """Neither a target of every word, [S, T, V], nor a sum over pairs, [S, T, T], forwards or backwards."""
    sentences, positions, size, width = 3, 24, 60, 2
    generator = torch.Generator().manual_seed(1)
    matrix, vectors = (
        torch.randn(*shape, generator=generator, dtype=FLOAT).requires_grad_()
        for shape in ((size, width), (sentences, positions, width))
    )
    words = torch.randint(4, size, (sentences, positions), generator=generator)
    mask = torch.ones(sentences, positions, dtype=torch.bool)
    log_z = torch.logsumexp(vectors.detach()[mask] @ matrix.detach().T, -1)
    with Largest() as made:
        for target in ("past_bag", "future_bag"):
            prediction = Prediction("bag", vectors, target=target, bag=Bag(label_smoothing=smoothing))
            bag, real = BagOfWords(prediction, words, mask), Positions.of(mask)
            losses = mean_parts(bag, vectors[mask], log_z, matrix, real)
            losses.sum().backward()
    assert made.numbers == sentences * positions * width < sentences * positions**2 < sentences * positions * size


def test_a_bag_and_a_word_share_one_pass_over_the_vocabulary():
    generator = torch.Generator().manual_seed(1)
    matrix, vectors = (torch.randn(*shape, generator=generator, dtype=FLOAT) for shape in ((8, 3), (3, 4, 3)))
    words, mask = torch.tensor([[4, 5, 4, 3]] * 3), torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [False] * 4])
    given = [
        Prediction("word", vectors),
        Prediction("past", vectors, target="past_bag", bag=Bag("strict")),
        Prediction("future", vectors, target="future_bag", mask=mask[:, :1].expand(3, 4)),
    ]
    together = prediction_losses(given, matrix, None, words, mask, 0.1)
    for one in given:
        close(together[one.name], prediction_losses([one], matrix, None, words, mask, 0.1)[one.name])


@pytest.mark.parametrize("span", ["inclusive", "strict", "analysis"])
@pytest.mark.parametrize("options", [{}, {"mean": False}, {"label_smoothing": 0.1}, {"without_pad": True}])
def test_the_sum_of_all_sentences_has_the_gradients_of_their_sums(monkeypatch, span, options):
    """Words and bags in one pass, and a bag whose softmax leaves PAD out, each with a factor of its own."""
    monkeypatch.setattr(vocabulary_head, "ROWS_WITH_GRADIENTS", 2)
    monkeypatch.setattr(vocabulary_head, "CACHED_LOGITS", 8)
    generator = torch.Generator().manual_seed(1)
    shapes = (8, 3), (8,), (3, 4, 3), (3, 4, 3), (3, 4, 3)
    tensors = [torch.randn(*shape, generator=generator, dtype=FLOAT).requires_grad_() for shape in shapes]
    matrix, bias, *vectors = tensors
    words, mask = torch.tensor([[4, 5, 4, 3]] * 3), torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [False] * 4])
    bag = Bag(span, **options)
    given = [
        Prediction("word", vectors[0]),
        Prediction("past", vectors[1], target="past_bag", bag=bag),
        Prediction("future", vectors[2], target="future_bag", bag=bag, mask=mask[:, :1].expand(3, 4)),
    ]
    factors, found = torch.tensor([1.0, -0.3, 7.0], dtype=FLOAT), []
    for summed in (False, True):
        terms = prediction_losses(given, matrix, bias, words, mask, 0.1, summed=summed)
        sums = torch.stack([terms[one.name].sum() for one in given])
        found.append((sums, *torch.autograd.grad(sums @ factors, tensors)))
    for one, other in zip(*found, strict=True):
        close(one, other, 1e-11)


STATES = tensor([1, 0], [3, 2], [2, 4], [9, 9])[None]  # the last is padding
KNOWN = torch.tensor([[True, True, True, False]])


def test_mean_contents_by_hand():
    close(running_means(STATES, KNOWN, "past")[0, :3], [[1, 0], [2, 1], [2, 2]])
    close(running_means(STATES, KNOWN, "future")[0, :3], [[2, 2], [2.5, 3], [2, 4]])
    close(running_means(STATES, KNOWN, "past", inclusive=False)[0, :3], [[0, 0], [1, 0], [2, 1]])


def test_content_agreement_by_hand():
    past, future = tensor([1, 0], [1, 1], [0, 2], [7, 7])[None], tensor([2, 2], [2, 3], [2, 4], [7, 7])[None]
    pairs = [(past, running_means(STATES, KNOWN, "past")), (future, running_means(STATES, KNOWN, "future"))]
    close(torch.cat([content_agreement(*pair, KNOWN) for pair in pairs]), [1.666667, 0.083333])
    close(torch.cat([content_agreement(*pair, KNOWN, True) for pair in pairs]), [0.833333, 0.041667])


def test_means_of_low_precision_states_are_float32():
    states = torch.randn(1, 4, 2).to(torch.bfloat16)
    found = running_means(states, KNOWN, "future")
    close(found[0, 0], states.float()[0, :3].mean(0))
