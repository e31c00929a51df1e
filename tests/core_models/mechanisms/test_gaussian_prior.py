"""The Gaussian prior: a twin in NumPy with every word's distribution written out, the cut of far ranks, and the order
of words that is kept."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from core_models.checkpoint import open_trained, read_tensors
from core_models.interface.mechanism import Prediction, WordPrior
from core_models.layers import vocabulary_head
from core_models.losses import prediction_losses as losses_module
from core_models.losses.prediction_losses import prediction_losses
from core_models.losses.word_prior import prior_terms
from core_models.mechanisms import gaussian_prior
from core_models.mechanisms.gaussian_prior import FIRST_WORD, GaussianPriorOptions, Shares, nearest_words
from core_models.system_builder import build, parameters
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS, PAD, UNK
from core_models.training.fit import fit
from tests.core_models.laws import WORDS, exact, log_probs, random_sentences, random_system, training_terms
from tests.core_models.layers.test_vocabulary_head import Largest
from tests.core_models.training.test_beyond_the_end import ask_for
from tests.core_models.training.test_resume import assert_same_run

EPS = np.finfo(np.float64).eps


def ranked(table: np.ndarray, word: int) -> list[int]:
    """All words, the one with the largest cosine to `word` first and it before all: the twin of `nearest_words`."""
    units = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosines = units @ units[word]
    return sorted(range(4, len(table)), key=lambda other: (other != word, -cosines[other]))


def by_rank(words: int, deviation=1.0, temperature=2.0, form="softmax") -> np.ndarray:
    """q of each rank, dense: the Gaussian's densities, and their softmax by the temperature or they themselves."""
    rank = np.arange(words)
    density = np.exp(-(rank**2) / (2 * deviation**2)) / (deviation * np.sqrt(2 * np.pi))
    q = np.exp(density / temperature) if form == "softmax" else density
    return q / q.sum()


def prior_of(table: np.ndarray, word: int, **options) -> np.ndarray:
    """q(. | word) over the whole vocabulary [V]; nothing for PAD, UNK, BOS and EOS."""
    q = np.zeros(len(table))
    q[ranked(table, word)] = by_rank(len(table) - 4, **options)
    return q


def divergence(q: np.ndarray, logits: np.ndarray) -> float:
    """KL(q || softmax(logits)), a term for each word that q knows."""
    log_p = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    known = q > 0
    return float((q[known] * (np.log(q[known]) - log_p[known])).sum())


def given(sigma: float, form: str, table: torch.Tensor, temperature: float = 2.0) -> WordPrior:
    """The prior of options over a table, as the mechanism makes it."""
    options = GaussianPriorOptions(
        deviation=sigma, form=form, temperature=temperature, objective="paper" if form == "softmax" else "released"
    )
    shares = Shares.of(options, len(table) - 4)

    def nearest(words: torch.Tensor) -> torch.Tensor:
        return nearest_words(table, words, len(shares.near))

    return WordPrior(nearest, shares.near, shares.floor, shares.entropy, 4)


def test_the_densities_and_their_softmax_by_hand():
    """Three words. Densities of N(0, 1) at 0, 1, 2: 0.398942, 0.241971, 0.053991; with T = 2 their powers are
    1.220757, 1.128608 and 1.027363, of sum 3.376729."""
    softmax = Shares.of(GaussianPriorOptions(), 3)
    found = softmax.near + softmax.floor
    torch.testing.assert_close(found, torch.tensor([0.361521, 0.334231, 0.304248]).double(), atol=2e-6, rtol=0)
    density = Shares.of(GaussianPriorOptions(form="density"), 3)
    torch.testing.assert_close(density.near, torch.tensor([0.574097, 0.348207, 0.077696]).double(), atol=2e-6, rtol=0)
    assert density.floor == 0
    assert density.entropy == pytest.approx(0.884452, abs=2e-6)


def test_the_term_by_hand():
    """Words 4, 5, 6 at the angles 0, 60 and 90 degrees: from 6, 5 is the nearer. P is 1/7 each, so KL = ln 7 - H."""
    table = torch.zeros(7, 2).double()
    table[4:] = torch.tensor([[1.0, 0.0], [0.5, 0.75**0.5], [0.0, 3.0]])
    table[:4] = 1.0
    assert nearest_words(table, torch.tensor([4, 5, 6]), 3).tolist() == [[4, 5, 6], [5, 6, 4], [6, 5, 4]]
    words = torch.tensor([[6, EOS]])
    flat = Prediction("prior", torch.zeros(1, 2, 2).double(), target="prior", prior=given(1.0, "density", table))
    found = prediction_losses([flat], table, None, words, torch.ones(1, 2, dtype=torch.bool))["prior"]
    torch.testing.assert_close(found, torch.tensor([1.945910 - 0.884452]).double(), atol=3e-6, rtol=0)


@pytest.mark.parametrize(
    ("options", "twin", "weight"),
    [
        ("weight=0.3", {}, 0.3),
        ("deviation=3,temperature=0.5", {"deviation": 3.0, "temperature": 0.5}, 0.1),
        ("form=density,deviation=1.5,backbone=rnnsearch", {"deviation": 1.5, "form": "density"}, 0.1),
        ("backbone=rnnsearch,embedding=32", {}, 0.1),
        ("tie_embeddings=none", {}, 0.1),
        ("objective=released,weight=0.25,temperature=3", {"temperature": 3.0}, 0.25 * 9),
    ],
)
def test_the_term_is_the_dense_twins(options, twin, weight):
    system = random_system(f"d2gpo:{options}")
    batch = collate(random_sentences([4, 3], 1), random_sentences([5, 2], 2))
    matrix, bias = system.backbone.output_matrix
    forced = system(system.encode(batch), batch.target_in, batch.target_mask)
    logits = forced.main.vectors @ matrix.T + (0 if bias is None else bias)
    table = system.backbone.target_table.weight.detach().numpy()
    wanted = [
        weight
        * sum(
            divergence(prior_of(table, word, **twin), place.detach().numpy())
            for word, place in zip(words, places, strict=False)
            if word not in (PAD, UNK, BOS, EOS)
        )
        for words, places in zip(batch.target.tolist(), logits, strict=True)
    ]
    found = training_terms(system, batch, 0.1)
    np.testing.assert_allclose(found["gaussian_prior"].detach().numpy(), wanted, atol=1e-9, rtol=0)


def test_released_weighs_the_cross_entropy_too():
    batch = collate(random_sentences([4, 3], 1), random_sentences([5, 2], 2))
    paper, released = (
        training_terms(random_system(f"d2gpo:weight=0.25,objective={objective}"), batch)
        for objective in ("paper", "released")
    )
    torch.testing.assert_close(released["main"], 0.75 * paper["main"])
    torch.testing.assert_close(released["gaussian_prior"], 4 * paper["gaussian_prior"])


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("form", ["softmax", "density"])
def test_gradients_are_those_of_the_dense_formula(form, biased):
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()

    matrix, bias, vectors, table = draw(12, 3), draw(12) if biased else None, draw(2, 3, 3), draw(12, 5).detach()
    words = torch.tensor([[5, 11, EOS], [4, UNK, 7]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    prediction = Prediction("prior", vectors, target="prior", prior=given(1.5, form, table))
    found = prediction_losses([prediction], matrix, bias, words, mask, label_smoothing=0.1)["prior"]
    dense = torch.log_softmax(vectors @ matrix.T + (0 if bias is None else bias), -1)
    wanted = torch.zeros(2, dtype=torch.float64)
    for row, place in ((0, 0), (0, 1), (1, 0)):
        q = torch.from_numpy(prior_of(table.numpy(), int(words[row, place]), deviation=1.5, form=form))
        wanted[row] = wanted[row] + torch.nn.functional.kl_div(dense[row, place], q, reduction="sum")
    torch.testing.assert_close(found, wanted, atol=1e-11, rtol=0)
    inputs = [one for one in (vectors, matrix, bias) if one is not None]
    for one, other in zip(
        torch.autograd.grad(found.sum(), inputs), torch.autograd.grad(wanted.sum(), inputs), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-11, rtol=0)


@pytest.mark.parametrize(("form", "sigma", "kept"), [("softmax", 1.0, 9), ("density", 1.0, 10), ("density", 9.0, 80)])
def test_what_is_left_out_is_below_the_precision_of_a_number(form, sigma, kept):
    """The mass of the ranks that are left out is at most 2^-52, so the term is off by at most that times the range of
    the logits; one rank fewer would leave out more."""
    words, q = 300, by_rank(300, sigma, form=form)
    shares = Shares.of(GaussianPriorOptions(deviation=sigma, form=form), words)
    count = len(shares.near)
    more = q - q[-1] if form == "softmax" else q  # than every word has
    assert more[count:].sum() <= EPS < more[count - 1 :].sum()
    assert count <= kept
    np.testing.assert_allclose(shares.near.numpy() + shares.floor, q[:count], atol=1e-16, rtol=1e-12)
    assert float(shares.near.sum()) + words * shares.floor == pytest.approx(1, abs=1e-14)
    assert shares.entropy == pytest.approx(-(q[q > 0] * np.log(q[q > 0])).sum(), abs=1e-13)
    generator = torch.Generator().manual_seed(2)
    table, matrix, vectors = (
        torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((304, 6), (304, 8), (20, 8))
    )
    correct = torch.randint(4, 304, (20,), generator=generator)
    logits = vectors @ matrix.T
    weights, scores = prior_terms(given(sigma, form, table), vectors, matrix, None, correct)
    found = weights * logits.logsumexp(-1) - scores
    for term, row, word in zip(found, logits.numpy(), correct.tolist(), strict=True):
        wanted = divergence(prior_of(table.numpy(), word, deviation=sigma, form=form), row)
        assert abs(float(term) - wanted) <= EPS * (row.max() - row.min()) + 64 * EPS * (1 + abs(wanted))


def test_with_the_printed_settings_the_prior_is_nearly_uniform():
    """sigma = 1 and T = 2 over 32,000 words: no word has 23 % more than another, and H is ln V to a millionth."""
    q = by_rank(32_000)
    assert q.max() / q.min() < 1.23
    assert np.log(32_000) + (q * np.log(q)).sum() < 1e-6
    shares = Shares.of(GaussianPriorOptions(), 32_000)
    assert float(shares.near.sum()) < 2e-5


def test_a_word_is_first_in_its_own_order_whatever_its_vector(monkeypatch):
    """Equal vectors, one of zeros, and opposite ones; in chunks of a row each, and without autocast's rounding."""
    table = torch.randn(40, 5, generator=torch.Generator().manual_seed(3))
    table[7], table[8], table[9] = table[6], 0.0, -table[6]
    words = torch.tensor([6, 7, 8, 9, PAD, UNK, BOS, EOS, 39])
    found = nearest_words(table, words, 36)
    assert found[[0, 1, 2, 3, 8], 0].tolist() == [6, 7, 8, 9, 39]
    assert (found[4:8] == -1).all()
    assert sorted(found[0].tolist()) == list(range(4, 40))
    assert found[0, 1] == 7
    assert found[0, -1] == 9
    different = torch.randn(40, 5, generator=torch.Generator().manual_seed(4))
    assert nearest_words(different, torch.tensor([39]), 36)[0].tolist() == ranked(different.double().numpy(), 39)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(nearest_words(table, words, 36), found)
    monkeypatch.setattr(gaussian_prior, "CACHED_LOGITS", 36)
    assert torch.equal(nearest_words(table, words, 36), found)


def test_no_tensor_has_a_number_for_every_position_and_word():
    positions, size, width = 60, 2000, 16
    generator = torch.Generator().manual_seed(1)
    table, matrix = (torch.randn(size, width, generator=generator) for _ in range(2))
    vectors = torch.randn(positions, width, generator=generator).requires_grad_()
    words = torch.randint(4, size, (positions,), generator=generator)
    prior = given(1.0, "softmax", table)
    near = prior.nearest(words)
    prior = WordPrior(lambda _: near, prior.shares, prior.floor, prior.entropy, prior.first)
    log_z = torch.logsumexp(vectors.detach() @ matrix.T, -1)
    matrix.requires_grad_()
    with Largest() as made:
        weights, scores = prior_terms(prior, vectors, matrix, None, words)
        (weights * log_z - scores).sum().backward()
    assert made.numbers == matrix.numel() < positions * size


def test_the_cross_entropy_and_the_prior_share_one_pass(monkeypatch):
    """The vectors of equal places are in the product with the vocabulary once."""
    rows = []

    def watched(vectors, *rest):
        rows.append(len(vectors))
        return vocabulary_head.log_partition(vectors, *rest)

    monkeypatch.setattr(losses_module, "log_partition", watched)
    system = random_system("d2gpo+future-cost-1:gaussian_prior.weight=0.2")
    batch = collate(random_sentences([4, 3], 1), random_sentences([5, 2], 2))
    found = training_terms(system, batch)
    assert rows == [2 * int(batch.target_mask.sum())]
    assert set(found) == {"main", "future_cost", "gaussian_prior"}


def test_equal_vectors_at_other_places_have_their_own_pass():
    generator = torch.Generator().manual_seed(1)
    matrix, vectors = (torch.randn(*shape, generator=generator).double() for shape in ((12, 3), (2, 3, 3)))
    words, mask = torch.tensor([[5, 11, 6], [4, 9, 7]]), torch.tensor([[True, True, True], [True, True, False]])
    late = torch.tensor([[False, True, True]] * 2)
    both = [
        Prediction("word", vectors),
        Prediction("late", vectors, mask=late),
        Prediction("prior", vectors, target="prior", prior=given(1.0, "density", matrix), mask=late),
    ]
    together = prediction_losses(both, matrix, None, words, mask, 0.1)
    for one in both:
        alone = prediction_losses([one], matrix, None, words, mask, 0.1)
        torch.testing.assert_close(together[one.name], alone[one.name])
    assert len({tuple(term.tolist()) for term in together.values()}) == 3


def test_it_translates_as_its_baseline_does_and_has_nothing_to_learn():
    system, baseline = random_system("d2gpo"), random_system("transformer")
    batch = collate(random_sentences([4, 3], 1), random_sentences([5, 2], 2))
    assert torch.equal(log_probs(system, batch), log_probs(baseline, batch))
    assert parameters(system) == parameters(random_system("d2gpo:order=first")) == parameters(baseline)
    assert "gaussian_prior" not in system.losses(
        system(system.encode(batch), batch.target_in, batch.target_mask), batch
    )


def test_the_present_order_is_that_of_the_weights():
    system = random_system("d2gpo:form=density")
    mechanism, table = system.mechanisms["gaussian_prior"], system.backbone.target_table.weight
    words = torch.tensor([4, 18, 4, EOS])
    for _ in range(2):
        found = mechanism.near(words)
        assert found[0].tolist() == found[2].tolist() == ranked(table.detach().numpy(), 4)[: found.shape[1]]
        assert found[1].tolist() == ranked(table.detach().numpy(), 18)[: found.shape[1]]
        assert (found[3] == -1).all()
        with torch.no_grad():
            table += torch.randn(table.shape, dtype=table.dtype, generator=torch.Generator().manual_seed(7))


def test_an_order_that_is_not_known_costs_nothing():
    system = random_system("d2gpo:order=first")
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    assert training_terms(system, batch)["gaussian_prior"].tolist() == [0.0]


def test_the_building_leaves_the_backbone_alone():
    for name in ("d2gpo", "d2gpo:order=first"):
        torch.manual_seed(4)
        baseline = build(exact("transformer"), WORDS)
        torch.manual_seed(4)
        system = build(exact(name), WORDS)
        for key, value in baseline.state_dict().items():
            assert torch.equal(system.state_dict()[key], value), key


NEAREST = "mechanisms.gaussian_prior.nearest"
SETTINGS = {"batch_tokens": 150, "validate_every": 2}


def order_in(run) -> np.ndarray:
    return read_tensors(run / "weights.safetensors")[NEAREST].numpy()


@pytest.mark.slow
def test_the_first_order_is_of_the_weights_it_begins_from_and_stays(new_run):
    """It is that of the other run's table, the same at every step and after a pause; a third run can take it over."""
    baseline = new_run("baseline", **SETTINGS, max_steps=4)
    fit(baseline, device="cpu")
    table = read_tensors(baseline / "weights.safetensors")["backbone.source_table.weight"].numpy()
    system = "d2gpo:order=first,form=density"
    whole = new_run("whole", system, **SETTINGS, max_steps=6, init_from=str(baseline))
    paused = new_run("paused", system, **SETTINGS, max_steps=2, init_from=str(baseline))
    assert fit(whole, device="cpu").unmatched == [NEAREST]
    fit(paused, device="cpu")
    ask_for(paused, max_steps=6)
    fit(paused, device="cpu")
    assert_same_run(whole, paused)
    found = order_in(whole)
    assert (found[:FIRST_WORD] == -1).all()
    for word in range(FIRST_WORD, len(table)):
        assert found[word].tolist() == ranked(table, word)[: found.shape[1]]
    trained = read_tensors(whole / "weights.safetensors")["backbone.source_table.weight"].numpy()
    assert any(ranked(trained, word)[:9] != ranked(table, word)[:9] for word in range(FIRST_WORD, len(table)))
    assert np.array_equal(open_trained(whole).system.mechanisms["gaussian_prior"].nearest.numpy(), found)
    other = new_run("other", system, **SETTINGS, max_steps=2, init_from=str(whole), init_params=[f"{NEAREST}*"])
    fit(other, device="cpu")
    assert np.array_equal(order_in(other), found)


def test_the_present_order_is_the_same_after_a_pause(new_run):
    whole = new_run("whole", "d2gpo:form=density", **SETTINGS, max_steps=6)
    paused = new_run("paused", "d2gpo:form=density", **SETTINGS, max_steps=2)
    fit(whole, device="cpu")
    fit(paused, device="cpu")
    ask_for(paused, max_steps=6)
    fit(paused, device="cpu")
    assert_same_run(whole, paused)


@pytest.mark.parametrize(
    "options",
    [
        {"form": "density", "temperature": 1.0},
        {"objective": "released", "weight": 1.0},
        {"deviation": 0.0},
        {"temperature": 0.0},
        {"weight": -0.1},
    ],
)
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(ValidationError):
        GaussianPriorOptions(**options)
