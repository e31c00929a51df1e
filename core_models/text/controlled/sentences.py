"""Sentences of joined clauses.

Decides the number of clauses for a length and how they are joined; their content comes from the composer, their words
from the grammar.
"""

from dataclasses import dataclass
from typing import Any

from core_models.text.controlled.composer import Composer, Demand, words
from core_models.text.controlled.content import COPULA, EXIST, Clause
from core_models.text.controlled.draft import Draft, Part, Word
from core_models.text.controlled.grammar import Grammar
from core_models.text.controlled.lexicon import Phrase

REPORT = {"en": "that", "de": "dass"}


@dataclass(slots=True)
class Unit:
    """A main clause, possibly with one subordinate clause."""

    main: Clause
    subordinator: dict[str, Any] | None = None
    subordinate: Clause | None = None
    subordinate_first: bool = False


@dataclass(slots=True)
class Sentence:
    units: list[Unit]
    coordinators: list[dict[str, Any]]
    question: bool = False
    cue: Phrase | None = None


@dataclass(slots=True)
class SentenceComposer:
    """Joins clauses to sentences and writes them."""

    composer: Composer

    def sentence(self, aim: int, demand: Demand) -> Sentence:
        """Compose a sentence of about `aim` source words that meets the demand."""
        composer = self.composer
        composer.demand = demand
        core = composer.core()
        count = max(1, round(aim / composer.config["words_per_clause"]))
        units, coordinators = [Unit(core)], []
        for _ in range(count - 1):
            kind = composer.weighted(composer.config["joins"])
            if kind == "coordinate" or units[-1].subordinate is not None:
                units.append(Unit(composer.another()))
                coordinators.append(composer.random.choice(composer.tables["coordinators"]))
            elif kind == "report":
                report = Clause(composer.reporter(), composer.random.choice(composer.lexicon.reporting))
                units[-1] = Unit(report, REPORT, units[-1].main)
            else:
                first = len(units) == 1 and composer.chance("subordinate_first")
                units[-1] = Unit(
                    units[-1].main, composer.random.choice(composer.tables["subordinators"]), composer.another(), first
                )
        sentence = Sentence(units, coordinators, cue=demand.cue)
        self.ask(sentence)
        self.share_budget(sentence, aim)
        return sentence

    def ask(self, sentence: Sentence) -> None:
        """Turn some of the sentences that allow it into questions."""
        composer, unit, clause = self.composer, sentence.units[0], sentence.units[0].main
        if len(sentence.units) > 1 or unit.subordinate_first or unit.subordinator is REPORT or clause.instead_first:
            return
        sentence.question = composer.chance("question")
        if not sentence.question:
            return
        clause.question = True
        acts = clause.verb not in (COPULA, EXIST) and clause.subject.kind != "weather"
        if acts and composer.chance("wh_question"):
            clause.question_word = composer.random.choice(composer.tables["questions"])

    def share_budget(self, sentence: Sentence, aim: int) -> None:
        """Grow the clauses, each by an even share of the remaining words."""
        clauses = [c for unit in sentence.units for c in (unit.main, unit.subordinate) if c is not None]
        joints = sum(2 if unit.subordinate_first else 1 for unit in sentence.units if unit.subordinate)
        cue = 0 if sentence.cue is None else 1 + len(sentence.cue.source)
        left = aim - 1 - joints - len(sentence.coordinators) - cue - sum(words(clause) for clause in clauses)
        for index, clause in enumerate(clauses):
            share = max(0, left) // (len(clauses) - index)
            before = words(clause)
            self.composer.grow(clause, share)
            left -= words(clause) - before
            if self.negatable(clause):
                clause.negated = self.composer.chance("negation")

    def negatable(self, clause: Clause) -> bool:
        """True if the clause has a definite object or none; an indefinite one would be negated by "kein"."""
        definite = all(item.determiner == "definite" for item in clause.objects) and len(clause.objects) < 2
        return definite and clause.verb is not EXIST and not clause.verb.objects and clause.instead is None

    def write(self, sentence: Sentence, draft: Draft, grammar: Grammar) -> Part:
        """Write the sentence in both languages."""
        whole = Part()
        for index, unit in enumerate(sentence.units):
            if index:
                entry = sentence.coordinators[index - 1]
                comma = [","] if entry.get("comma") else []
                glue = draft.pair([*comma, entry["en"]], [*comma, entry["de"]], [(i, i) for i in range(len(comma) + 1)])
                whole.source += glue.source
                whole.target += glue.target
                draft.tag("coordination")
            part = self.write_unit(unit, draft, grammar)
            whole.source += part.source
            whole.target += part.target
        if sentence.cue is not None:
            comma_pair = draft.pair([","], [","])
            cue = draft.pair(sentence.cue.source, sentence.cue.translations[0], sentence.cue.links)
            draft.cue = cue.source[0]
            whole.source += comma_pair.source + cue.source
            whole.target[:0] = cue.target + comma_pair.target
        end = "?" if sentence.question else "."
        stop = draft.pair([end], [end])
        return Part(whole.source + stop.source, whole.target + stop.target)

    def write_unit(self, unit: Unit, draft: Draft, grammar: Grammar) -> Part:
        if unit.subordinate is None or unit.subordinator is None:
            return grammar.clause(draft, unit.main, "main")
        draft.tag("report" if unit.subordinator is REPORT else "subordinate")
        translations = unit.subordinator["de"]
        translations = [translations] if isinstance(translations, str) else translations
        head = draft.pair([unit.subordinator["en"]], [draft.draws.choice(translations)])
        body = grammar.clause(draft, unit.subordinate, "subordinate")
        main = grammar.clause(draft, unit.main, "inverted" if unit.subordinate_first else "main")
        if unit.subordinate_first:
            comma = draft.pair([","], [","])
            return Part(
                head.source + body.source + comma.source + main.source,
                head.target + body.target + comma.target + main.target,
            )
        return Part(main.source + head.source + body.source, main.target + [Word(",")] + head.target + body.target)
