"""Language-independent content of clauses: who does what, when, where and how.

Plain records of lexicon entries, without inflection and word order.
"""

from dataclasses import dataclass, field
from typing import Any

from core_models.text.controlled.lexicon import GermanVerb, Noun, Phrase, Verb

# Lexical entries of "is" + predicate and "there is".
COPULA = Verb("be", "is", "been", "", ())
EXIST = Verb("be", "is", "been", "", (GermanVerb("", "geben", "gibt", "gegeben"),))


@dataclass(slots=True)
class NounPhrase:
    noun: Noun
    determiner: str = "definite"  # definite, indefinite, number
    adjectives: list[Phrase] = field(default_factory=list)
    number: Phrase | None = None
    possessor: Noun | None = None
    relative: "Clause | None" = None


@dataclass(slots=True)
class Subject:
    """A subject: `person` is third, plural, we or you; a "gap" is filled by a relative pronoun."""

    person: str = "third"
    phrase: NounPhrase | None = None
    pronoun: tuple[str, str] | None = None
    it_gender: str = ""
    kind: str = "phrase"  # phrase, pronoun, you, it, weather, there, gap


@dataclass(slots=True)
class Clause:
    subject: Subject
    verb: Verb
    tense: str = "present"  # present, perfect, modal
    modal: dict[str, Any] | None = None
    objects: list[NounPhrase] = field(default_factory=list)
    it_gender: str = ""  # an object "it" of this gender
    object_gap: bool = False  # the relative pronoun is the object
    predicate: Phrase | None = None
    reflexive: bool = False
    negated: bool = False
    time: Phrase | None = None
    time_first: bool = False
    manner: Phrase | None = None
    place: Phrase | None = None
    instead: NounPhrase | None = None
    instead_first: bool = False
    question: bool = False
    question_word: dict[str, Any] | None = None
