"""Content of clauses, sampled from the lexicon, and their growth to the intended length.

Uses the lexicon and the shares of `data/controlled/config.yaml`, without word order and inflection. Constraints of the
document are given by a `Demand`: classes to avoid, and content that the sentence must have.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from core_models.text.controlled.content import COPULA, EXIST, Clause, NounPhrase, Subject
from core_models.text.controlled.lexicon import Lexicon, Noun, Phrase, Verb

LIST_ITEMS = 7


@dataclass(frozen=True, slots=True)
class Demand:
    """The constraints of the document on one sentence."""

    antecedent: Noun | None = None
    rival: Noun | None = None  # in the same sentence as the antecedent; only order distinguishes them
    it_class: str = ""
    it_gender: str = ""
    cue: Phrase | None = None
    you: float = 0.0  # the share of subjects that are "you"
    barred: tuple[str, ...] = ()  # classes that must not be mentioned


@dataclass(slots=True)
class Composer:
    lexicon: Lexicon
    tables: dict[str, Any]
    config: dict[str, Any]
    random: Random
    demand: Demand = field(default_factory=Demand)

    # Draws

    def chance(self, name: str) -> bool:
        return self.random.random() < self.config[name]

    def weighted(self, weights: dict[str, float]) -> str:
        return self.random.choices(list(weights), list(weights.values()))[0]

    def thing(self, thing_class: str = "") -> Noun:
        """Draw a noun of the class, or of any class that may be mentioned here."""
        if not thing_class:
            if self.chance("synonym_object"):
                return self.random.choice(self.lexicon.goods)
            thing_class = self.random.choice([name for name in self.lexicon.classes if name not in self.demand.barred])
        return self.random.choice(self.lexicon.classes[thing_class])

    def phrase(self, noun: Noun) -> NounPhrase:
        return NounPhrase(noun, "indefinite" if self.chance("indefinite") else "definite")

    def person(self) -> Subject:
        """Sample the subject; in a dialogue often the addressee."""
        if self.random.random() < self.demand.you:
            return Subject("you", kind="you")
        if self.chance("personal_pronoun"):
            entry = self.random.choice(self.tables["subjects"])
            return Subject(entry["person"], pronoun=(entry["en"], entry["de"]), kind="pronoun")
        if self.chance("name"):
            return Subject(phrase=NounPhrase(self.random.choice(self.lexicon.names)))
        return Subject(phrase=self.phrase(self.random.choice(self.lexicon.persons)))

    def owner(self) -> Noun:
        people = self.lexicon.names if self.chance("name") else self.lexicon.persons
        return self.random.choice(people)

    def with_tense(self, clause: Clause, modal: bool = True) -> Clause:
        """Sample the tense; "you" takes no present, so that no verb needs a separate form for du."""
        barred = {"present": clause.subject.kind == "you", "modal": not modal}
        clause.tense = self.weighted({name: w for name, w in self.config["tenses"].items() if not barred.get(name)})
        if clause.tense == "modal":
            clause.modal = self.random.choice(self.tables["modals"])
        return clause

    # Clauses

    def core(self) -> Clause:
        """Return a clause that meets the demand, or one of a sampled kind."""
        demand = self.demand
        if demand.it_class:
            return self.it_clause()
        if demand.antecedent is not None:
            verbs = self.lexicon.class_verbs[demand.antecedent.thing_class or ""]
            verb = self.random.choice(verbs if self.chance("class_verb") else self.lexicon.verbs)
            clause = self.with_tense(Clause(self.person(), verb, objects=[self.phrase(demand.antecedent)]))
            if demand.rival is not None:
                clause.instead, clause.instead_first = NounPhrase(demand.rival), self.random.random() < 0.5
            return clause
        kinds: dict[str, Callable[[], Clause]] = {
            "transitive": self.transitive,
            "collocation": self.collocation,
            "intransitive": self.intransitive,
            "reflexive": self.reflexive,
            "copula": self.copula,
            "existential": self.existential,
            "expletive": self.expletive,
        }
        return kinds[self.weighted(self.config["clauses"])]()

    def it_clause(self) -> Clause:
        name, gender = self.demand.it_class, self.demand.it_gender
        if self.chance("it_subject"):
            subject = Subject(it_gender=gender, kind="it")
            return Clause(subject, COPULA, predicate=self.random.choice(self.lexicon.predicates[name]))
        verb = self.random.choice(self.lexicon.class_verbs[name])
        return self.with_tense(Clause(self.person(), verb, it_gender=gender))

    def transitive(self, subject: Subject | None = None) -> Clause:
        noun = self.thing()
        verb = self.random.choice(self.lexicon.verbs)
        if noun.thing_class and self.chance("class_verb"):
            verb = self.random.choice(self.lexicon.class_verbs[noun.thing_class])
        return self.with_tense(Clause(subject or self.person(), verb, objects=[self.phrase(noun)]))

    def collocation(self) -> Clause:
        verb = self.random.choice(self.lexicon.collocations)
        return self.with_tense(Clause(self.person(), verb, objects=[NounPhrase(Noun(verb.noun, "", ()), "indefinite")]))

    def intransitive(self, subject: Subject | None = None) -> Clause:
        return self.with_tense(Clause(subject or self.person(), self.random.choice(self.lexicon.intransitive)))

    def reflexive(self) -> Clause:
        verb = self.random.choice(self.lexicon.reflexive)
        return self.with_tense(Clause(self.person(), verb, reflexive=True))

    def copula(self) -> Clause:
        name = self.random.choice([name for name in self.lexicon.classes if name not in self.demand.barred])
        subject = Subject(phrase=NounPhrase(self.thing(name)))
        return Clause(subject, COPULA, predicate=self.random.choice(self.lexicon.predicates[name]))

    def existential(self) -> Clause:
        clause = Clause(Subject(kind="there"), EXIST, objects=[NounPhrase(self.thing(), "indefinite")])
        clause.place = self.random.choice(self.lexicon.places)
        return clause

    def expletive(self) -> Clause:
        verb = self.random.choice(self.lexicon.weather)
        return self.with_tense(Clause(Subject(kind="weather"), verb), modal=False)

    def another(self) -> Clause:
        """Return a further clause of the sentence."""
        kind = self.random.random()
        return self.transitive() if kind < 0.7 else self.intransitive() if kind < 0.85 else self.reflexive()

    def reporter(self) -> Subject:
        """Sample the subject of reported speech: never "you", whose present tense needs separate forms."""
        subject = self.person()
        return subject if subject.kind != "you" else Subject(phrase=NounPhrase(self.random.choice(self.lexicon.names)))

    def relative_clause(self, phrase: NounPhrase) -> Clause:
        """Return a relative clause: the phrase is its object if it is a thing, its subject if it is a person."""
        gap = Subject(kind="gap")
        if phrase.noun in self.lexicon.persons:
            return self.transitive(gap) if self.random.random() < 0.6 else self.intransitive(gap)
        name = phrase.noun.thing_class
        verbs = self.lexicon.class_verbs[name] if name and self.chance("class_verb") else self.lexicon.verbs
        return self.with_tense(Clause(self.person(), self.random.choice(verbs), object_gap=True))

    # Growth

    def grow(self, clause: Clause, budget: int, inside: bool = False) -> None:
        """Add parts until the budget of source words is used; `inside` a relative clause only adverbs are added."""
        while budget > 0:
            options = {name: option for name, option in self.options(clause, inside).items() if option[0] <= budget}
            if not options:
                return
            name = self.weighted({name: self.config["growth"][name] for name in options})
            budget -= options[name][1](budget)

    def options(self, clause: Clause, inside: bool) -> dict[str, tuple[int, Callable[[int], int]]]:
        """Return the parts that may be added: the minimal cost, and a function that adds it and returns its cost."""
        without = (clause.question_word or {}).get("without")
        acts = clause.verb not in (COPULA, EXIST) and clause.subject.kind != "weather"
        phrases = [p for p in (clause.subject.phrase, *clause.objects) if p is not None and not p.noun.is_name]
        fresh = [p for p in phrases if len(p.adjectives) < 2]
        fixed = clause.verb.objects or clause.verb is EXIST
        plain = [p for p in clause.objects if not (p.possessor or p.number or fixed)]
        bare = [p for p in phrases if not (p.relative or p.number or clause.verb.objects)]
        options: dict[str, tuple[int, Callable[[int], int]]] = {}
        if clause.time is None and without != "time":
            options["time"] = (1, lambda budget: self.add_time(clause, budget))
        if clause.manner is None and acts:
            options["manner"] = (1, lambda budget: self.add_manner(clause))
        if clause.place is None and without != "place":
            options["place"] = (3, lambda budget: self.add_place(clause))
        if fresh:
            options["adjective"] = (1, lambda budget: self.add_adjective(self.random.choice(fresh)))
        if plain:
            options["possessor"] = (2, lambda budget: self.add_possessor(self.random.choice(plain)))
        if inside:
            return options
        if bare:
            options["relative"] = (6, lambda budget: self.add_relative(self.random.choice(bare), budget))
        listed = clause.objects and acts and not clause.verb.objects and len(clause.objects) < LIST_ITEMS
        if listed and (not clause.verb.thing_class or clause.verb.thing_class not in self.demand.barred):
            options["list"] = (4, lambda budget: self.add_item(clause))
        return options

    def add_time(self, clause: Clause, budget: int) -> int:
        fitting = [t for t in self.lexicon.times if t.tense == clause.tense and len(t.source) <= budget]
        clause.time = self.random.choice(fitting)
        clause.time_first = not (clause.question_word or clause.question) and self.chance("time_first")
        return len(clause.time.source)

    def add_manner(self, clause: Clause) -> int:
        clause.manner = self.random.choice(self.lexicon.manners)
        return 1

    def add_place(self, clause: Clause) -> int:
        clause.place = self.random.choice(self.lexicon.places)
        return len(clause.place.source)

    def add_adjective(self, phrase: NounPhrase) -> int:
        phrase.adjectives.append(self.random.choice([a for a in self.lexicon.adjectives if a not in phrase.adjectives]))
        return 1

    def add_possessor(self, phrase: NounPhrase) -> int:
        phrase.possessor, phrase.determiner = self.owner(), "definite"
        return 1 if phrase.possessor.is_name else 2

    def add_relative(self, phrase: NounPhrase, budget: int) -> int:
        phrase.relative = self.relative_clause(phrase)
        least = 1 + words(phrase.relative)
        self.grow(phrase.relative, min(budget - least, 5), inside=True)
        return 1 + words(phrase.relative)

    def add_item(self, clause: Clause) -> int:
        """Add an item to the list of objects, often with an adjective or a noun that is already in it."""
        item = self.phrase(self.thing(clause.verb.thing_class or ""))
        if self.chance("list_repeat"):
            earlier = self.random.choice(clause.objects)
            if earlier.adjectives:
                item.adjectives.append(self.random.choice(earlier.adjectives))
            elif earlier.noun.thing_class not in self.demand.barred:
                item.noun = earlier.noun
        if item.noun.plural and self.chance("list_number"):
            item.determiner, item.number = "number", self.random.choice(self.lexicon.numbers)
        if not item.adjectives and self.random.random() < 0.5:
            self.add_adjective(item)
        clause.objects.append(item)
        return 3 + len(item.adjectives)


def words(clause: Clause) -> int:
    """Estimate the source words of a clause, without its punctuation."""
    total = verb_words(clause.verb, clause.tense, clause.modal) + (1 if clause.predicate else 0)
    total += 1 if clause.it_gender else 0
    total += 1 if clause.question_word else 0
    if clause.subject.phrase is not None:
        total += phrase_words(clause.subject.phrase)
    elif clause.subject.kind != "gap":
        total += 1
    total += sum(phrase_words(item) + 1 for item in clause.objects) - (1 if clause.objects else 0)
    total += sum(len(p.source) for p in (clause.time, clause.manner, clause.place) if p is not None)
    return total + (2 + phrase_words(clause.instead) if clause.instead is not None else 0)


def verb_words(verb: Verb, tense: str, modal: dict[str, Any] | None) -> int:
    return 1 + (tense != "present") + bool(verb.particle) + bool(modal and modal.get("to"))


def phrase_words(phrase: NounPhrase) -> int:
    if phrase.noun.is_name:
        return 1
    total = 2 + len(phrase.adjectives) + (1 + words(phrase.relative) if phrase.relative is not None else 0)
    return total + (0 if phrase.possessor is None else 1 if phrase.possessor.is_name else 2)
