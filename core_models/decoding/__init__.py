"""Search over anything that can `start`, `step` and `select`: beams (greedy is one), samples, ensembles, exact."""

from core_models.decoding.beam_search import beam_search
from core_models.decoding.ensemble import Ensemble
from core_models.decoding.exact_search import Exact, exact_search
from core_models.decoding.sampling import drawable, sample
from core_models.interface.search_state import Found, Hypothesis, Scores, Steppable, Tree, candidates, mixture, penalty

__all__ = [
    "Ensemble", "Exact", "Found", "Hypothesis", "Scores", "Steppable", "Tree", "beam_search", "candidates",
    "drawable", "exact_search", "mixture", "penalty", "sample",
]  # fmt: skip
