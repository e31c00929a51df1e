"""Schemas of the records of a translated test set, and checks of records against the texts.

Knows records as they come from JSON, and texts; no files. All errors are ValueErrors of one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Count = Annotated[int, Field(ge=0, le=1 << 53)]
Pair = Annotated[list[Count], Field(min_length=2, max_length=2)]
Setting = str | int | float | bool | None
LogProb = Annotated[float, Field(le=1e300, allow_inf_nan=True)]  # what is impossible has minus infinity


class _Record(BaseModel):
    """Base of all records; unknown fields are allowed and ignored."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class Meta(_Record):
    """The content of meta.json: test set, weights, search settings and time."""

    sentences: Count
    test: str = ""
    search: dict[str, Setting] = {}
    seconds: float = Field(0.0, ge=0)
    output_tokens: Count = 0
    weights: str = ""
    weights_file: list[int] = []


class _Other(_Record):
    text: str
    tokens: list[str]
    score: float
    log_prob: float


class Detail(_Record):
    """A line of details.jsonl: tokens, scores and n-best list of one translation."""

    tokens: list[str]
    source_tokens: list[str]
    score: float
    log_prob: float
    token_log_probs: list[float]
    finished: bool
    n_best: list[_Other]


class Tree(_Record):
    """A line of trees.jsonl; `analyses.beam` documents its lists."""

    step: list[Count] = Field(min_length=1)
    parent: list[int]
    word: list[str]
    log_prob: list[LogProb]
    score: list[LogProb]
    normalised: list[LogProb]
    rank: list[Count]
    fate: list[Literal["kept", "pruned", "finished"]]
    best: Count


class _Antecedent(_Record):
    sentence: int


class _Pronoun(_Record):
    target: Count
    antecedent: _Antecedent
    gender: str
    alternatives: list[str]


class _Commitment(_Record):
    target: Count
    chosen: str
    alternatives: list[str]
    forces: list[Count] = Field(min_length=1)
    continuations: dict[str, list[str]] = {}


class TruthRecord(_Record):
    """A line of truth.jsonl: the controlled corpus's truth of a sentence; positions count words between blanks."""

    alignment: list[Pair] = []
    unaligned_source: list[Count] = []
    unaligned_target: list[Count] = []
    pronouns: list[_Pronoun] = []
    commitments: list[_Commitment] = []
    phenomena: list[str] = []


def check(kind: type[BaseModel], record: Mapping[str, Any]) -> None:
    """Raise ValueError with the first error of a record."""
    try:
        kind.model_validate(record)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"]))
        raise ValueError(f"{location}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def check_truth(record: Mapping[str, Any], source: str, reference: str | None) -> None:
    """Raise ValueError if a truth record names words that these texts do not have."""
    check(TruthRecord, record)
    known = TruthRecord.model_validate(record)
    targets = [word for _, word in known.alignment] + known.unaligned_target
    targets += [pronoun.target for pronoun in known.pronouns]
    targets += [word for commitment in known.commitments for word in (commitment.target, *commitment.forces)]
    sides: Sequence[tuple[str, str | None, list[int]]] = (
        ("source", source, [word for word, _ in known.alignment] + known.unaligned_source),
        ("reference", reference, targets),
    )
    for side, text, places in sides:
        if text is not None and max(places, default=-1) >= len(text.split()):
            raise ValueError(f"it knows word {max(places)}, from 0, of a {side} of {len(text.split())} words")
