"""The lexicon of the controlled corpus, read from `data/controlled/lexicon.yaml`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class GermanNoun:
    singular: str
    gender: str
    plural: str
    genitive: str


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun and its right translations; `thing_class` is the class that verbs and predicates select, if any.

    `plural` is empty if the noun is never counted.
    """

    singular: str
    plural: str
    translations: tuple[GermanNoun, ...]
    thing_class: str | None = None
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class GermanVerb:
    """A German verb; finite forms are without the prefix, `infinitive` without it is also the plural."""

    prefix: str
    infinitive: str
    third: str
    participle: str

    def finite(self, plural: bool) -> str:
        return self.infinitive if plural else self.third


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb and its right translations; in a collocation `objects` has the German noun of each translation."""

    base: str
    third: str
    participle: str
    particle: str
    translations: tuple[GermanVerb, ...]
    auxiliary: str = "have"
    thing_class: str | None = None
    noun: str = ""
    objects: tuple[GermanNoun, ...] = ()


@dataclass(frozen=True, slots=True)
class Phrase:
    """A fixed expression: its words, its right translations, and the links between them."""

    source: tuple[str, ...]
    translations: tuple[tuple[str, ...], ...]
    links: tuple[tuple[int, int], ...]
    tense: str = ""
    gender: str = ""


@dataclass(frozen=True)
class Lexicon:
    classes: dict[str, list[Noun]]
    class_verbs: dict[str, list[Verb]]
    predicates: dict[str, list[Phrase]]
    goods: list[Noun]
    verbs: list[Verb]
    intransitive: list[Verb]
    reflexive: list[Verb]
    weather: list[Verb]
    reporting: list[Verb]
    collocations: list[Verb]
    persons: list[Noun]
    names: list[Noun]
    places: list[Phrase]
    manners: list[Phrase]
    times: list[Phrase]
    adjectives: list[Phrase]
    numbers: list[Phrase]
    cues: dict[str, list[Phrase]]


def several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def german_noun(entry: str) -> GermanNoun:
    """Read "singular gender [plural [genitive]]"."""
    singular, gender, *rest = entry.split()
    plural = rest[0] if rest else ""
    genitive = rest[1] if len(rest) > 1 else singular if gender == "f" else f"{singular}s"
    return GermanNoun(singular, gender, plural, genitive)


def german_verb(entry: str) -> GermanVerb:
    """Read "[prefix|]infinitive third-person participle"."""
    infinitive, third, participle = entry.split()
    prefix, _, stem = infinitive.rpartition("|")
    return GermanVerb(prefix, stem, third, participle)


def noun(entry: dict[str, Any], thing_class: str | None = None, is_name: bool = False) -> Noun:
    singular, *plural = entry["en"].split()
    translations = tuple(german_noun(text) for text in several(entry["de"]))
    return Noun(singular, plural[0] if plural else "", translations, thing_class, is_name)


def verb(entry: dict[str, Any], thing_class: str | None = None) -> Verb:
    base, third, participle, *particle = entry["en"].split()
    texts = [text.partition("+") for text in several(entry["de"])]
    return Verb(
        base,
        third,
        participle,
        " ".join(particle),
        tuple(german_verb(text) for text, _, _ in texts),
        entry.get("auxiliary", "have"),
        thing_class,
        entry.get("noun", ""),
        tuple(german_noun(text) for _, _, text in texts if text),
    )


def phrase(entry: dict[str, Any]) -> Phrase:
    """Read a fixed expression; without `align` its words are linked one to one."""
    source = tuple(entry["en"].split())
    translations = tuple(tuple(text.split()) for text in several(entry["de"]))
    if "align" in entry:
        links = tuple((int(i), int(j)) for i, j in (pair.split("-") for pair in entry["align"].split()))
    elif any(len(target) != len(source) for target in translations):
        raise ValueError(f"{entry['en']!r} and {entry['de']!r} differ in length: give `align`, such as 0-0 0-1")
    else:
        links = tuple((i, i) for i in range(len(source)))
    return Phrase(source, translations, links, entry.get("tense", ""))


def place(entry: dict[str, Any], articles: dict[str, str], contractions: dict[str, str]) -> Phrase:
    """Build "in the garden" and "im Garten" from "in garden" and "in Garten m"."""
    preposition, source_noun = entry["en"].split()
    german_preposition, german, gender = entry["de"].split()
    head = f"{german_preposition} {articles[gender]}"
    head = contractions.get(head, head)
    links = ((0, 0), (1, 0), (2, 1)) if " " not in head else ((0, 0), (1, 1), (2, 2))
    return Phrase((preposition, "the", source_noun), ((*head.split(), german),), links, gender=gender)


def read_lexicon(folder: Path, grammar: dict[str, Any]) -> Lexicon:
    """Read `lexicon.yaml` in `folder`; raises ValueError that names an invalid entry."""
    path = folder / "lexicon.yaml"
    with path.open(encoding="utf-8") as file:
        raw = yaml.safe_load(file)
    try:
        return _lexicon(raw, grammar)
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: an entry does not follow the notation in the file's first lines: {error}") from error


def _lexicon(raw: dict[str, Any], grammar: dict[str, Any]) -> Lexicon:
    def entries(name: str) -> Sequence[dict[str, Any]]:
        return raw[name]

    classes = raw["classes"]
    dative, contractions = grammar["cases"]["definite"]["dative"], grammar["contractions"]
    return Lexicon(
        classes={name: [noun(entry, name) for entry in c["nouns"]] for name, c in classes.items()},
        class_verbs={name: [verb(entry, name) for entry in c["verbs"]] for name, c in classes.items()},
        predicates={name: [phrase(entry) for entry in c["predicates"]] for name, c in classes.items()},
        goods=[noun(entry) for entry in entries("goods")],
        verbs=[verb(entry) for entry in entries("verbs")],
        intransitive=[verb(entry) for entry in entries("intransitive")],
        reflexive=[verb(entry) for entry in entries("reflexive")],
        weather=[verb(entry) for entry in entries("weather")],
        reporting=[verb(entry) for entry in entries("reporting")],
        collocations=[verb(entry) for entry in entries("collocations")],
        persons=[noun(entry) for entry in entries("persons")],
        names=[noun(entry, is_name=True) for entry in entries("names")],
        places=[place(entry, dative, contractions) for entry in entries("places")],
        manners=[phrase(entry) for entry in entries("manners")],
        times=[phrase(entry) for entry in entries("times")],
        adjectives=[phrase(entry) for entry in entries("adjectives")],
        numbers=[phrase(entry) for entry in entries("numbers")],
        cues={form: [phrase(entry) for entry in cues] for form, cues in raw["cues"].items()},
    )
