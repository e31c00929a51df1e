"""Search over anything that can `start`, `step` and `select`: beams (greedy is a beam of one), samples, ensembles."""

from core_models.search.beam import beam_search
from core_models.search.contract import Found, Hypothesis, Scores, Steppable, Tree, candidates, penalty
from core_models.search.ensemble import Ensemble
from core_models.search.sampling import sample

__all__ = [
    "Ensemble", "Found", "Hypothesis", "Scores", "Steppable", "Tree", "beam_search", "candidates", "penalty", "sample",
]  # fmt: skip
