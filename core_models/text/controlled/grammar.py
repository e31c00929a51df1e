"""The two grammars: from the content of a clause to its words in both languages with links.

Inflection, agreement and word order by the tables in `data/controlled/grammar.yaml`. Only translations are sampled,
through the draft.
"""

from dataclasses import dataclass
from typing import Any

from core_models.text.controlled.content import COPULA, EXIST, Clause, NounPhrase, Subject
from core_models.text.controlled.draft import Choice, Draft, Part, Pronoun, Word
from core_models.text.controlled.lexicon import GermanNoun, GermanVerb, Noun, Phrase


@dataclass(slots=True)
class Grammar:
    """The two grammars with the tables of `grammar.yaml`; `polite` decides whether "you" is Sie or du."""

    tables: dict[str, Any]
    polite: bool = False

    # Noun phrases

    def noun_texts(self, german: GermanNoun, case: str, determiner: str) -> tuple[str, str, str]:
        """Return article, adjective ending and noun in their inflected form."""
        if determiner == "number":
            return "", self.tables["endings"]["number"][case]["p"], german.plural
        article = self.tables["cases"][determiner][case][german.gender]
        ending = self.tables["endings"][determiner][case][german.gender]
        return article, ending, german.genitive if case == "genitive" else german.singular

    def noun_phrase(
        self,
        draft: Draft,
        phrase: NounPhrase,
        case: str,
        translations: tuple[GermanNoun, ...] = (),
        verb_texts: list[list[str | None]] | None = None,
    ) -> tuple[Part, list[Word | None]]:
        """Return the phrase and, in a collocation, the words of the verb that was sampled together with the noun."""
        noun, numbered = phrase.noun, phrase.determiner == "number"
        if noun.is_name:
            return draft.pair([noun.singular], [noun.translations[0].singular]), []
        adjectives = [draft.draws.choice(adjective.translations)[0] for adjective in phrase.adjectives]
        variants: list[list[str | None]] = []
        for index, german in enumerate(translations or noun.translations):
            article, ending, head = self.noun_texts(german, case, phrase.determiner)
            verb = verb_texts[index] if verb_texts else []
            variants.append([article or None, *(adjective + ending for adjective in adjectives), head, *verb])
        slots, drawn = draft.settle(variants)
        choice = draft.choices[-1] if len(variants) > 1 else None
        article_word, head_word, rest = slots[0], slots[1 + len(adjectives)], slots[2 + len(adjectives) :]
        adjective_words = [word for word in slots[1 : 1 + len(adjectives)] if word is not None]
        assert head_word is not None

        source_noun = Word(noun.plural if numbered else noun.singular, content=True)
        if noun.thing_class:
            draft.mentions.append((noun.thing_class, noun.singular, source_noun))
        source_adjectives = [Word(adjective.source[0], content=True) for adjective in phrase.adjectives]
        draft.links += [*zip(source_adjectives, adjective_words, strict=True), (source_noun, head_word)]
        front = self.determiner(draft, phrase, article_word, [*source_adjectives, source_noun][0].text)
        part = Part([*front.source, *source_adjectives, source_noun], [*front.target, *adjective_words, head_word])
        if phrase.possessor is not None:
            self.attach_possessor(draft, part, phrase.possessor)
        if phrase.relative is not None:
            genders = [german.gender for german in translations or noun.translations]
            self.attach_relative(draft, part, phrase.relative, genders, drawn, choice)
        return part, rest

    def determiner(self, draft: Draft, phrase: NounPhrase, article: Word | None, following: str) -> Part:
        if phrase.number is not None:
            draft.tag("number")
            part = draft.pair(phrase.number.source, phrase.number.translations[0])
            part.source[0].content = True
            return part
        assert article is not None
        if phrase.possessor is not None:  # "the man 's book": the German article has no counterpart
            return Part([], [article])
        word = Word("the" if phrase.determiner == "definite" else "an" if following[0] in "aeiou" else "a")
        draft.links.append((word, article))
        return Part([word], [article])

    def attach_possessor(self, draft: Draft, part: Part, possessor: Noun) -> None:
        """Put the owner before the thing in English and after it in German."""
        mark = Word("'s")
        if possessor.is_name:
            owner = draft.pair([possessor.singular], [possessor.translations[0].singular])
            of = Word("von")
            draft.links.append((mark, of))
            owner.target.insert(0, of)
        else:
            owner, _ = self.noun_phrase(draft, NounPhrase(possessor), "genitive")
            draft.links.append((mark, owner.target[-1]))
        part.source[:0] = [*owner.source, mark]
        part.target += owner.target

    def attach_relative(
        self, draft: Draft, part: Part, clause: Clause, genders: list[str], drawn: int, choice: Choice | None
    ) -> None:
        """Add the relative clause; its pronoun has the gender of the sampled noun, and is forced by it."""
        draft.tag("relative")
        forms = self.tables["cases"]["definite"]["accusative" if clause.object_gap else "nominative"]
        pronoun = draft.pair(["that"], [forms[genders[drawn]]])
        if choice is not None:
            draft.force(choice, pronoun.target[0], [forms[gender] for gender in genders])
        body = self.clause(draft, clause, "subordinate")
        part.source += pronoun.source + body.source
        part.target += [Word(","), *pronoun.target, *body.target, Word(",")]

    def noun_list(self, draft: Draft, parts: list[Part]) -> Part:
        """Join the items with commas and a final "and", in both languages."""
        joined = Part(list(parts[0].source), list(parts[0].target))
        for index, part in enumerate(parts[1:], start=2):
            glue = draft.pair(["and"], ["und"]) if index == len(parts) else draft.pair([","], [","])
            joined.source += glue.source + part.source
            joined.target += glue.target + part.target
        return joined

    # Subjects and verbs

    def subject(self, draft: Draft, subject: Subject) -> Part:
        if subject.kind == "gap":
            return Part()
        if subject.kind == "there":  # neither "there" nor "es" has a counterpart
            return Part([Word("there")], [Word("es")])
        if subject.kind == "weather":
            return draft.pair(["it"], ["es"])
        if subject.kind == "it":
            return self.it(draft, subject.it_gender, "nominative")
        if subject.kind == "you":
            you = self.tables["you"]
            part = draft.pair([you["en"]], [self.addressed(you)])
            part.target[0].other = self.addressed(you, other=True)
            draft.addresses.append((part.source[0], part.target[0]))
            return part
        if subject.pronoun is not None:
            return draft.pair([subject.pronoun[0]], [subject.pronoun[1]])
        assert subject.phrase is not None
        return self.noun_phrase(draft, subject.phrase, "nominative")[0]

    def it(self, draft: Draft, gender: str, case: str) -> Part:
        forms = self.tables["pronouns"][case]
        part = draft.pair(["it"], [forms[gender]])
        others = [form for key, form in forms.items() if key != gender]
        draft.pronouns.append(Pronoun(part.source[0], part.target[0], gender, others))
        return part

    def addressed(self, forms: dict[str, str], other: bool = False) -> str:
        """Return the form of address; the polite one defaults to the plural."""
        polite = forms.get("polite", forms.get("plural", ""))
        return polite if self.polite != other else forms["familiar"]

    def finite(self, forms: dict[str, str], person: str) -> Word:
        if person == "you":
            return Word(self.addressed(forms), other=self.addressed(forms, other=True))
        return Word(forms.get(person) or forms["plural"])

    def lexical_texts(self, verb: GermanVerb, clause: Clause, joined: bool) -> list[str | None]:
        """Return [word, prefix or None]: the prefix is separate only in the present of a main clause."""
        if clause.tense == "perfect":
            return [verb.participle, None]
        if clause.tense == "modal":
            return [verb.prefix + verb.infinitive, None]
        finite = verb.finite(clause.subject.person != "third")
        return [verb.prefix + finite, None] if joined else [finite, verb.prefix or None]

    def clause(self, draft: Draft, clause: Clause, order: str) -> Part:
        """Return the clause without its punctuation; `order` is main, inverted or subordinate."""
        return _ClauseWriter(self, draft, clause, order).write()


@dataclass(slots=True)
class _ClauseWriter:
    """Writes one clause: first its parts, then the order of each language."""

    grammar: Grammar
    draft: Draft
    clause: Clause
    order: str

    def write(self) -> Part:
        clause, draft, tables = self.clause, self.draft, self.grammar.tables
        inverted = clause.question or clause.question_word is not None
        subject = self.grammar.subject(draft, clause.subject)
        pronoun = self.grammar.it(draft, clause.it_gender, "accusative") if clause.it_gender else Part()
        time, manner, place = (self.fixed(phrase) for phrase in (clause.time, clause.manner, clause.place))
        predicate = self.fixed(clause.predicate)
        joined = self.order == "subordinate"
        texts = [self.grammar.lexical_texts(verb, clause, joined) for verb in clause.verb.translations]
        objects, german_verb = self.objects_and_verb(texts)
        instead = self.instead()
        negation = draft.pair(["not"], ["nicht"]) if clause.negated else Part()
        question = (
            draft.pair([clause.question_word["en"]], [clause.question_word["de"]]) if clause.question_word else Part()
        )
        auxiliary, rest, particle, finite, tail = self.verb_group(german_verb, inverted)

        first = instead.source + [Word(",")] if clause.instead_first else []
        source = first + (time.source if clause.time_first else []) + question.source
        source += auxiliary + subject.source if inverted else subject.source + auxiliary
        source += negation.source + rest + predicate.source + pronoun.source + particle + objects.source
        source += [] if clause.instead_first else instead.source
        source += manner.source + place.source + ([] if clause.time_first else time.source)

        reflexive = [self.reflexive()] if clause.reflexive else []
        particle_word = [Word(tables["particle"])] if clause.question_word else []
        front: list[Word] = []
        if self.order == "main" and not inverted:
            first_parts = (instead if clause.instead_first else Part(), time, subject)
            front = next(part.target for part in first_parts if part.target)
            if clause.subject.kind == "there" and front is subject.target and place.target:
                front = place.target
        fields = [
            subject.target,
            pronoun.target,
            reflexive,
            particle_word,
            time.target,
            manner.target,
            place.target,
            objects.target,
            instead.target,
            negation.target,
            predicate.target,
        ]
        middle = [word for field_ in fields if field_ is not front for word in field_]
        if joined:
            target = middle + tail + [finite]
        else:
            target = question.target + front + [finite] + middle + tail
        self.tag(tail, joined)
        return Part(source, target)

    def tag(self, tail: list[Word], joined: bool) -> None:
        clause, draft = self.clause, self.draft
        if clause.tense != "present":
            draft.tag(clause.tense)
        elif tail:
            draft.tag("separable")
        if joined:
            draft.tag("verb_final")
        kinds = {"weather": "expletive", "there": "existential"}
        for present, name in (
            (clause.negated, "negation"),
            (clause.reflexive, "reflexive"),
            (clause.question_word, "particle"),
            (len(clause.objects) > 1, "list"),
            (clause.question or clause.question_word, "question"),
            (clause.verb.objects, "collocation"),
            (clause.predicate, "copula"),
            (clause.subject.kind in kinds, kinds.get(clause.subject.kind, "")),
        ):
            if present:
                draft.tag(name)

    def fixed(self, phrase: Phrase | None) -> Part:
        if phrase is None:
            return Part()
        return self.draft.pair(phrase.source, self.draft.draws.choice(phrase.translations), phrase.links)

    def objects_and_verb(self, texts: list[list[str | None]]) -> tuple[Part, list[Word]]:
        """Write the objects and sample the German verb; in a collocation both are one draw."""
        clause, draft = self.clause, self.draft
        if clause.verb.objects:
            part, verb = self.grammar.noun_phrase(draft, clause.objects[0], "accusative", clause.verb.objects, texts)
            parts = [part]
        else:
            verb = draft.settle(texts, bracket=any(text[1] for text in texts))[0] if texts else []
            parts = [self.grammar.noun_phrase(draft, item, "accusative")[0] for item in clause.objects]
        return self.grammar.noun_list(draft, parts) if parts else Part(), [word for word in verb if word is not None]

    def instead(self) -> Part:
        if self.clause.instead is None:
            return Part()
        part, _ = self.grammar.noun_phrase(self.draft, self.clause.instead, "dative")
        head = self.draft.pair(["instead", "of"], ["statt"], [(0, 0), (1, 0)])
        return Part(head.source + part.source, head.target + part.target)

    def reflexive(self) -> Word:
        return self.grammar.finite(self.grammar.tables["reflexives"], self.clause.subject.person)

    def verb_group(
        self, german: list[Word], inverted: bool
    ) -> tuple[list[Word], list[Word], list[Word], Word, list[Word]]:
        """Return English auxiliary, verb, particle and German finite verb, rest of the verb; link them."""
        clause, draft, tables = self.clause, self.draft, self.grammar.tables
        verb, person = clause.verb, clause.subject.person
        number = "third" if person == "third" else "plural"
        particle = [Word(verb.particle)] if verb.particle else []
        support = [Word(tables["do"][number])] if inverted or clause.negated else []
        if verb is COPULA or verb is EXIST:
            be = Word(tables["copula"]["en"][number])
            finite = german[0] if german else self.grammar.finite(tables["copula"]["de"], person)
            draft.links.append((be, finite))
            return [be], [], [], finite, []
        if clause.tense == "present":
            main = Word(verb.base if support or number == "plural" else verb.third)
            draft.link_all([main, *particle], german)
            self.tag_support(support)
            return support, [main], particle, german[0], german[1:]
        forms = tables["auxiliaries"][verb.auxiliary] if clause.tense == "perfect" else clause.modal
        assert forms is not None
        finite = self.grammar.finite(forms["de"], person)
        main = Word(verb.participle if clause.tense == "perfect" else verb.base)
        draft.link_all([main, *particle], german)
        if not forms.get("to"):
            auxiliary = Word(forms["en"][number])
            draft.links.append((auxiliary, finite))
            return [auxiliary], [main], particle, finite, german
        wants = Word(forms["en"]["plural" if support else number])
        draft.links.append((wants, finite))
        self.tag_support(support)
        return support, [wants, Word("to"), main], particle, finite, german

    def tag_support(self, support: list[Word]) -> None:
        if support:
            self.draft.tag("do_support")
