"""Beam search (greedy with beam 1), sampling, ensembles and exact search over anything that can be stepped."""

from core_models.decoding.beam_search import beam_search
from core_models.decoding.ensemble import Ensemble
from core_models.decoding.exact_search import Exact, exact_search
from core_models.decoding.sampling import sample, sampling_logits
from core_models.interface.search_state import (
    Hypothesis,
    Scores,
    SearchResult,
    Steppable,
    Tree,
    candidates,
    mixture,
    penalty,
)

__all__ = [
    "Ensemble", "Exact", "Hypothesis", "Scores", "SearchResult", "Steppable", "Tree", "beam_search", "candidates",
    "exact_search", "mixture", "penalty", "sample", "sampling_logits",
]  # fmt: skip
