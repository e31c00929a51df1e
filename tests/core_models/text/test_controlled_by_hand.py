"""The controlled corpus by hand: German sentences with their links, and what its oracles make of a few words."""

from random import Random

import pytest
import yaml

from core_models.resources import data_folder
from core_models.text.controlled import ControlledSplit
from core_models.text.controlled.content import COPULA, Clause, NounPhrase, Subject
from core_models.text.controlled.draft import Draft, Part, place_words, truth
from core_models.text.controlled.grammar import Grammar
from core_models.text.controlled.lexicon import Lexicon, Noun
from core_models.text.controlled.oracles import accuracies, reordered, word_dictionary, word_for_word

TABLES = yaml.safe_load((data_folder() / "controlled" / "grammar.yaml").read_text(encoding="utf-8"))


def noun_of(lexicon: Lexicon, name: str) -> Noun:
    every = [lexicon.persons, lexicon.goods, *lexicon.classes.values()]
    return next(noun for nouns in every for noun in nouns if noun.singular == name)


@pytest.mark.parametrize(
    ("noun", "determiner", "case", "german"),
    [
        ("man", "definite", "nominative", "der rote alte Mann"),
        ("man", "definite", "accusative", "den roten alten Mann"),
        ("man", "definite", "dative", "dem roten alten Mann"),
        ("man", "definite", "genitive", "des roten alten Mannes"),
        ("man", "indefinite", "nominative", "ein roter alter Mann"),
        ("man", "indefinite", "accusative", "einen roten alten Mann"),
        ("cow", "definite", "accusative", "die rote alte Kuh"),
        ("cow", "definite", "dative", "der roten alten Kuh"),
        ("cow", "definite", "genitive", "der roten alten Kuh"),
        ("cow", "indefinite", "nominative", "eine rote alte Kuh"),
        ("book", "definite", "nominative", "das rote alte Buch"),
        ("book", "indefinite", "accusative", "ein rotes altes Buch"),
        ("cow", "number", "accusative", "drei rote alte Kühe"),
    ],
)
def test_noun_phrases_agree(lexicon: Lexicon, noun: str, determiner: str, case: str, german: str) -> None:
    adjectives = [a for name in ("red", "old") for a in lexicon.adjectives if a.source == (name,)]
    number = next(n for n in lexicon.numbers if n.source == ("three",)) if determiner == "number" else None
    phrase = NounPhrase(noun_of(lexicon, noun), determiner, adjectives, number)
    part, _ = Grammar(TABLES).noun_phrase(Draft(Random(1)), phrase, case)
    assert " ".join(word.text for word in part.target) == german


def written(lexicon: Lexicon, clause: Clause, order: str = "main", polite: bool = False) -> tuple[str, str, dict]:
    draft = Draft(Random(1))
    part: Part = Grammar(TABLES, polite).clause(draft, clause, order)
    place_words(part)
    texts = [" ".join(word.text for word in side) for side in (part.source, part.target)]
    return texts[0], texts[1], truth(draft, part.source, part.target)


def test_perfect_bracket_with_time_manner_place_and_its_links(lexicon: Lexicon) -> None:
    read = next(verb for verb in lexicon.class_verbs["text"] if verb.base == "read")
    clause = Clause(
        Subject(phrase=NounPhrase(noun_of(lexicon, "man"))),
        read,
        "perfect",
        objects=[NounPhrase(noun_of(lexicon, "letter"))],
        place=lexicon.places[0],
        time=next(time for time in lexicon.times if time.source == ("yesterday",)),
        manner=next(manner for manner in lexicon.manners if manner.source == ("slowly",)),
    )
    source, target, record = written(lexicon, clause)
    assert source == "the man has read the letter slowly in the garden yesterday"
    assert target == "gestern hat der Mann langsam im Garten den Brief gelesen"
    links = "0-2 1-3 2-1 3-9 4-7 5-8 6-4 7-5 8-5 9-6 10-0"
    assert " ".join(f"{i}-{j}" for i, j in record["alignment"]) == links
    assert written(lexicon, clause, "subordinate")[1] == "der Mann gestern langsam im Garten den Brief gelesen hat"
    clause.question = True
    assert written(lexicon, clause)[:2] == (
        "has the man read the letter slowly in the garden yesterday",
        "hat der Mann gestern langsam im Garten den Brief gelesen",
    )


def test_separable_verb_do_support_and_address(lexicon: Lexicon) -> None:
    put = next(verb for verb in lexicon.class_verbs["clothing"] if verb.base == "put")
    coat = NounPhrase(noun_of(lexicon, "coat"))
    clause = Clause(Subject(phrase=NounPhrase(noun_of(lexicon, "woman"))), put, objects=[coat], negated=True)
    source, target, record = written(lexicon, clause)
    assert (source, target) == ("the woman does not put on the coat", "die Frau zieht den Mantel nicht an")
    assert record["unaligned_source"] == [2]
    assert record["commitments"] == [
        {"target": 2, "chosen": "zieht", "alternatives": [], "forces": [6], "continuations": {"zieht": ["an"]}}
    ]
    assert written(lexicon, clause, "subordinate")[1] == "die Frau den Mantel nicht anzieht"
    you = Clause(Subject("you", kind="you"), put, "modal", modal=TABLES["modals"][3], it_gender="f", negated=True)
    assert written(lexicon, you)[:2] == ("you do not want to put it on", "du willst sie nicht anziehen")
    assert written(lexicon, you, polite=True)[1] == "Sie wollen sie nicht anziehen"


def test_relative_clause_owner_and_reflexive(lexicon: Lexicon) -> None:
    sleep = next(verb for verb in lexicon.intransitive if verb.base == "sleep")
    girl = NounPhrase(noun_of(lexicon, "girl"), "indefinite", relative=Clause(Subject(kind="gap"), sleep, "perfect"))
    see = next(verb for verb in lexicon.verbs if verb.base == "see")
    bird = NounPhrase(noun_of(lexicon, "bird"), possessor=noun_of(lexicon, "father"))
    source, target, record = written(lexicon, Clause(Subject(phrase=girl), see, objects=[bird]))
    assert source == "a girl that has slept sees the father 's bird"
    assert target == "ein Mädchen , das geschlafen hat , sieht den Vogel des Vaters"
    assert record["unaligned_target"] == [2, 6, 8]
    hurry = next(verb for verb in lexicon.reflexive if verb.base == "hurry")
    we = Clause(Subject("we", pronoun=("we", "wir"), kind="pronoun"), hurry, reflexive=True)
    assert written(lexicon, we)[:2] == ("we hurry", "wir beeilen uns")


def test_it_as_subject_of_a_predicate(lexicon: Lexicon) -> None:
    clause = Clause(Subject(it_gender="m", kind="it"), COPULA, predicate=lexicon.predicates["food"][0])
    assert written(lexicon, clause)[:2] == ("it is delicious", "er ist köstlich")


def test_word_for_word_and_bag_of_words_on_a_sentence_worked_by_hand() -> None:
    """er hat das Buch gelesen, but "denn" and "ja" have no counterpart: they stay at their neighbour."""
    target, record = "er hat denn das Buch ja gelesen", {"alignment": [[0, 0], [1, 1], [2, 6], [3, 3], [4, 4]]}
    assert reordered(target, record, before=False) == "er hat denn gelesen das Buch ja"
    assert reordered(target, record, before=True) == "er hat ja gelesen denn das Buch"
    split = ControlledSplit(
        ["he has read it", "he has"],
        ["er hat es gelesen", "er hat"],
        ["a", "a"],
        [{"alignment": [[0, 0], [1, 1], [2, 3], [3, 2]]}, {"alignment": [[0, 0], [1, 1]]}],
    )
    assert word_for_word("it has read he", word_dictionary(split)) == "es hat gelesen er"


def test_naive_bayes_and_majority_on_cases_counted_by_hand() -> None:
    train = [(frozenset({"sir"}), "polite"), (frozenset({"sir"}), "polite"), (frozenset({"mate"}), "familiar")]
    test = [(frozenset({"sir"}), "polite"), (frozenset({"mate"}), "familiar"), (frozenset({"mate"}), "familiar")]
    assert accuracies(train, test) == {"cases": 3.0, "majority": pytest.approx(1 / 3), "sentence_only": 1.0}
