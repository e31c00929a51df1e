"""Validated settings of the controlled corpus: shares, weights, lengths and distances."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from core_models.settings import Section, parse, read_yaml

WINDOW = 3  # maximal distance, in sentences, of an antecedent or a cue

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]
Reach = Annotated[int, Field(ge=1, le=WINDOW)]
Range = Annotated[list[Annotated[int, Field(gt=0)]], Field(min_length=2, max_length=2)]


class Bucket(Section):
    words: Range
    share: Weight


class Growth(Section):
    time: Weight
    manner: Weight
    place: Weight
    adjective: Weight
    possessor: Weight
    relative: Weight
    list: Weight


class CorpusSettings(Section):
    """The keys of `data/controlled/config.yaml`, which explains them; a configuration may have some of them only."""

    sentences: dict[Literal["train", "dev", "test"], int]
    document_sentences: Range
    lengths: Annotated[list[Bucket], Field(min_length=1)]
    long_test: Range
    shortest: int = Field(gt=0)
    longest: int = Field(gt=0)
    words_per_clause: int = Field(gt=0)
    clauses: dict[
        Literal["transitive", "collocation", "intransitive", "reflexive", "copula", "existential", "expletive"], Weight
    ]
    tenses: dict[Literal["present", "perfect", "modal"], Weight]
    question: Share
    wh_question: Share
    negation: Share
    time_first: Share
    class_verb: Share
    personal_pronoun: Share
    name: Share
    indefinite: Share
    synonym_object: Share
    growth: Growth
    list_number: Share
    list_repeat: Share
    joins: dict[Literal["subordinate", "report", "coordinate"], Weight]
    subordinate_first: Share
    it: Share
    it_distance: Annotated[list[Reach], Field(min_length=1)]
    it_subject: Share
    needs_order: Share
    mark_antecedents: bool
    dialogue: Share
    you: Share
    you_beside_cue: Share
    cue_reach: Reach


def settings_from(given: Path | Mapping[str, Any] | None, default: Path) -> dict[str, Any]:
    """Return the configuration; keys that are not given keep their defaults."""
    changes = (read_yaml(given) if isinstance(given, Path) else given) or {}
    where = str(given) if isinstance(given, Path) else "the controlled corpus"
    return parse(CorpusSettings, {**read_yaml(default), **changes}, where).model_dump()
