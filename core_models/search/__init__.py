"""Search over anything that can `start`, `step` and `select`: beams (greedy is one), samples, ensembles, exact."""

from core_models.search.beam import beam_search
from core_models.search.contract import Found, Hypothesis, Scores, Steppable, Tree, candidates, penalty
from core_models.search.ensemble import Ensemble, mixture
from core_models.search.exact import Exact, exact_search
from core_models.search.sampling import drawable, sample

__all__ = [
    "Ensemble", "Exact", "Found", "Hypothesis", "Scores", "Steppable", "Tree", "beam_search", "candidates",
    "drawable", "exact_search", "mixture", "penalty", "sample",
]  # fmt: skip
