"""Cache of the last computed alignment error rate of a run's attention: RESULTS/alignment_error/TEST.json.

Read for the comparison with published rates. Links are by argmax, with forced references.
"""

from __future__ import annotations

from pydantic import BaseModel, FiniteFloat

from workbench.evaluation.result_cache import ResultCache


class AlignmentError(BaseModel):
    """The alignment error rate (0 to 1) and its settings.

    sentences: how many were counted. layer, head: a number from 1, mean or rollout. argmax: what is linked, words or
    pieces. links: the name of the file of gold links, or truth.
    """

    aer: FiniteFloat
    sentences: int
    layer: str
    head: str
    argmax: str
    links: str


ALIGNMENT_ERROR = ResultCache("alignment_error/{}.json", AlignmentError.model_dump, AlignmentError.model_validate)
