"""The alignment error rate of a run's attention as it was computed last: RESULTS/alignment_error/TEST.json.

Written by whoever computes it, read where it stands beside printed ones. Of links by argmax, references forced.
"""

from __future__ import annotations

from pydantic import BaseModel, FiniteFloat

from workbench.evaluation.result_cache import ResultCache


class AlignmentError(BaseModel):
    """The error rate (a share) over so many sentences; layer and head: a number from 1, mean or rollout; links: the
    name of the file of gold links, or truth."""

    aer: FiniteFloat
    sentences: int
    layer: str
    head: str
    links: str


ALIGNMENT_ERROR = ResultCache("alignment_error/{}.json", AlignmentError.model_dump, AlignmentError.model_validate)
