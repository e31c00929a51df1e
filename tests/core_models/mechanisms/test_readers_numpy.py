"""Whole systems that read the sentences before, beside their second implementation in NumPy: what they say and learn.

Both agree to 1e-14, but for squash, which has 1e-8 under its root where the papers have nothing.
"""

import numpy as np
import pytest

from tests.core_models.context_numpy import cases, reader_of, regularisation
from tests.core_models.laws import batch_of, log_probs, random_sentences, random_system, training_terms
from tests.core_models.mechanisms.test_document_context import traced
from tests.core_models.transformer_numpy import Transformer

pytestmark = pytest.mark.long

SYSTEMS = [
    "transformer",
    "transformer:norm=post,encoder_layers=2,tie_embeddings=none",
    "concatenation",
    "qcn",
    "qcn:query_pool=mean,query_end=true",
    "qcn:query_pool=unit,squash_inputs=true",
    "qcn:scale=none",
    "qcn:transforms=per_distance,capsules=2,correlation=eq7,encoder_layers=2",
    "qcn:grouping=per_sentence,norm=post,iterations=2",
    "qcn:grouping=per_sentence,transforms=per_distance,query_pool=unit,tie_embeddings=none",
    "document-transformer",
    "document-transformer:norm=post,context_layers=2,encoder_layers=2",
    "document-transformer:side=encoder,context_layers=2",
    "document-transformer:side=decoder,context_sentences=1,tie_embeddings=none",
    "han",
    "han:norm=post,context_sentences=2",
    "han-encoder:norm=post",
    "han-decoder:tie_embeddings=none",
    "san",
    "san:norm=post,over_words=sparsemax,over_sentences=softmax,context_sentences=2",
    "san:side=decoder,context_sentences=4",
    "san-encoder:memory=offline,context_sentences=2",
]


def random_batch(system, seed):
    """Sentences and contexts of random words; some are empty, some contexts have gaps."""
    return batch_of(system, random_sentences([5, 1, 0, 4, 7], seed), random_sentences([4, 0, 3, 6, 2], seed + 1))


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("seed", [1, 2])
def test_scores(name, seed):
    """log P over the vocabulary at every position of every target."""
    system = random_system(name, seed=seed)
    backbone, batch = Transformer(system), random_batch(system, seed)
    found = log_probs(system, batch).detach().numpy()
    capsules = name.startswith("qcn")
    for row, case in enumerate(cases(batch)):
        wanted = backbone.log_probs(case.source, case.target, reader_of(system, case))
        np.testing.assert_allclose(found[row, : len(case.target)], wanted, rtol=0, atol=1e-8 if capsules else 1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "qcn",
        "qcn:query_pool=mean,query_end=true,correlation=eq7",
        "qcn:query_pool=unit,squash_inputs=true,iterations=2",
    ],
)
def test_how_the_query_guides(name):
    """Couplings and correlations of every iteration, lengths of capsules, how far each query has turned."""
    system = random_system(name)
    batch, compared = random_batch(system, 3), 0
    for case, trace in zip(cases(batch), traced(system, batch), strict=True):
        reader = reader_of(system, case)
        for told, last in reader.told:
            first, *later = [queries for _, _, queries in told] + [last]
            wanted = {
                "couplings": [couplings for couplings, _, _ in told],
                "correlations": [correlations for _, correlations, _ in told],
                "query_cosine": [[cosine(*pair) for pair in zip(first, queries, strict=True)] for queries in later],
                "lengths": [np.linalg.norm(capsule) for capsule in reader.capsules],
            }
            for array, values in wanted.items():
                found = trace[f"query_capsules.{array}"].values  # float32
                np.testing.assert_allclose(found, values, rtol=0, atol=1e-6, err_msg=array)
                compared += 1
    assert compared


def cosine(one, other):
    return one @ other / np.sqrt((one @ one) * (other @ other))


@pytest.mark.parametrize(
    "change",
    [
        "",
        "reg_pairs=flat",
        "reg_norm=sentence",
        "correlation=eq7",
        "reg_weight=0.5,capsules=3",
        "iterations=2,tie_embeddings=none",
        "reg_inputs=stream",
        "reg_inputs=stream,reg_pairs=flat,reg_norm=sentence,norm=post",
    ],
)
@pytest.mark.parametrize("name", ["transformer-reg", "qcn-reg"])
def test_the_regularisation(name, change):
    """Equation 11 of Yang 2019: its term of every sentence. The streams are long, so some couplings nearly vanish, and
    with them a capsule, whose length squash's root then changes."""
    system = random_system(f"{name}:{change}" if change else name)
    batch = random_batch(system, 4)
    found = training_terms(system, batch)["regularisation"].detach().numpy()
    wanted = [regularisation(system, case) for case in cases(batch)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 if "stream" in change else 1e-8)
