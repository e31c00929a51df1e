"""Laws of the controlled corpus: records that fit the text; context that a rule decides; shares; difficulty."""

from collections import Counter

import pytest
import yaml

from core_models.resources import data_folder
from core_models.text.controlled import ControlledCorpus, ControlledSplit, format_oracles, generate, oracles
from core_models.text.controlled.corpus import SplitWriter
from core_models.text.controlled.lexicon import Lexicon, Noun

pytestmark = pytest.mark.long

FOLDER = data_folder() / "controlled"
TABLES = yaml.safe_load((FOLDER / "grammar.yaml").read_text(encoding="utf-8"))
CONFIG = yaml.safe_load((FOLDER / "config.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def corpus() -> ControlledCorpus:
    return generate(sentences=6000, dev=100, seed=7)


@pytest.fixture(scope="module")
def figures(corpus: ControlledCorpus) -> dict[str, float | str]:
    return oracles(corpus)


def test_sizes_and_documents(corpus: ControlledCorpus) -> None:
    shortest, longest = CONFIG["document_sentences"]
    for split, size in ((corpus.train, 6000), (corpus.dev, 100), (corpus.test, CONFIG["sentences"]["test"])):
        assert len(split.sources) == len(split.targets) == len(split.documents) == len(split.truth) == size
        runs = 1 + sum(a != b for a, b in zip(split.documents, split.documents[1:], strict=False))
        counts = Counter(split.documents)
        assert runs == len(counts)  # each id is one unbroken run
        assert all(shortest <= count <= longest for count in counts.values())


# The records


def splits(corpus: ControlledCorpus) -> list[ControlledSplit]:
    return [corpus.train, corpus.dev, corpus.test]


def test_every_word_is_aligned_or_named_as_unaligned(corpus: ControlledCorpus) -> None:
    for split in splits(corpus):
        for source, target, record in zip(split.sources, split.targets, split.truth, strict=True):
            links = record["alignment"]
            assert sorted({i for i, _ in links} | set(record["unaligned_source"])) == list(range(len(source.split())))
            assert sorted({j for _, j in links} | set(record["unaligned_target"])) == list(range(len(target.split())))
            assert not {i for i, _ in links} & set(record["unaligned_source"])
            assert not {j for _, j in links} & set(record["unaligned_target"])
            assert links == sorted(links)
            assert len(links) == len({tuple(link) for link in links})


def test_the_first_word_of_a_commitment_forces_the_words_that_stand_there(corpus: ControlledCorpus) -> None:
    with_alternatives = 0
    for split in splits(corpus):
        for target, record in zip(split.targets, split.truth, strict=True):
            words = target.split()
            for commitment in record["commitments"]:
                forced = [words[position] for position in commitment["forces"]]
                assert commitment["forces"] == sorted(commitment["forces"])
                assert min(commitment["forces"]) > commitment["target"]
                assert words[commitment["target"]] == commitment["chosen"]
                assert forced == commitment["continuations"][commitment["chosen"]]
                assert [commitment["chosen"], *commitment["alternatives"]] == sorted(
                    commitment["continuations"], key=lambda word: word != commitment["chosen"]
                )
                with_alternatives += bool(commitment["alternatives"])
    assert with_alternatives > 500


def test_repetitions_are_all_the_places_of_a_repeated_word(corpus: ControlledCorpus, lexicon: Lexicon) -> None:
    content = {
        form
        for nouns in [*lexicon.classes.values(), lexicon.goods, lexicon.persons]
        for noun in nouns
        for form in (noun.singular, noun.plural)
    }
    content |= {phrase.source[0] for phrase in [*lexicon.adjectives, *lexicon.numbers]}
    for source, record in zip(corpus.train.sources, corpus.train.truth, strict=True):
        words = source.split()
        expected = {word: [i for i, other in enumerate(words) if other == word] for word in words if word in content}
        assert sorted(record["repetitions"]) == sorted(places for places in expected.values() if len(places) > 1)


# Context


def selected_class(words: list[str], position: int, lexicon: Lexicon) -> str:
    """Return the class that the verb before an object "it", or the predicate after a subject "it", selects."""
    for name, verbs in lexicon.class_verbs.items():
        if any(words[position - 1] in (verb.base, verb.third, verb.participle) for verb in verbs):
            return name
    predicates = {phrase.source[0]: name for name, phrases in lexicon.predicates.items() for phrase in phrases}
    return next(predicates[word] for word in words[position:] if word in predicates)


def test_it_is_decided_by_the_one_noun_of_the_class_in_the_three_sentences_before(
    corpus: ControlledCorpus, lexicon: Lexicon
) -> None:
    ordered = 0
    for split in splits(corpus):
        for index, (source, target, record) in enumerate(zip(split.sources, split.targets, split.truth, strict=True)):
            for pronoun in record["pronouns"]:
                words = source.split()
                assert words[pronoun["source"]] == "it"
                nouns = {
                    form: noun
                    for noun in lexicon.classes[selected_class(words, pronoun["source"], lexicon)]
                    for form in (noun.singular, noun.plural)
                }
                assert not set(words) & set(nouns)
                found = [
                    (-back, position, nouns[word])
                    for back in (1, 2, 3)
                    if index >= back and split.documents[index - back] == split.documents[index]
                    for position, word in enumerate(split.sources[index - back].split())
                    if word in nouns
                ]
                if "needs_order" in record["phenomena"]:
                    ordered += 1
                    assert len(found) == 2
                    assert found[0][0] == found[1][0]  # the same sentence: only its order tells
                    antecedent = in_its_place(found, split.sources[index + found[0][0]].split())
                else:
                    assert len(found) == 1
                    antecedent = found[0]
                assert pronoun["antecedent"] == {"sentence": antecedent[0], "word": antecedent[1]}
                (german,) = antecedent[2].translations
                assert pronoun["gender"] == german.gender
                forms = [
                    cells
                    for cells in TABLES["pronouns"].values()
                    if cells[german.gender] == target.split()[pronoun["target"]]
                    and sorted(pronoun["alternatives"]) == sorted(set(cells.values()) - {cells[german.gender]})
                ]
                assert len(forms) == 1
    assert ordered > 20


def in_its_place(found: list[tuple[int, int, Noun]], words: list[str]) -> tuple[int, int, Noun]:
    """Return the noun that does not follow "instead of the"."""
    (wanted,) = [item for item in found if words[item[1] - 3 : item[1] - 1] != ["instead", "of"]]
    return wanted


def test_genders_are_balanced_and_independent_of_class_and_distance(corpus: ControlledCorpus, lexicon: Lexicon) -> None:
    for split in (corpus.train, corpus.test):
        genders = Counter(gender for gender, _, _ in cases_of(split, lexicon))
        assert all(0.30 <= genders[gender] / genders.total() <= 0.37 for gender in "mfn")
    cases = cases_of(corpus.train, lexicon)
    for column in (1, 2):
        for value, count in Counter(case[column] for case in cases).items():
            for gender in "mfn":
                own = sum(case[0] == gender and case[column] == value for case in cases)
                assert abs(own / count - 1 / 3) < 0.12  # three standard deviations at 150 cases


def cases_of(split: ControlledSplit, lexicon: Lexicon) -> list[tuple[str, int, str]]:
    """Return gender, distance and class of every "it" that has an antecedent."""
    return [
        (
            pronoun["gender"],
            pronoun["antecedent"]["sentence"],
            selected_class(source.split(), pronoun["source"], lexicon),
        )
        for source, record in zip(split.sources, split.truth, strict=True)
        for pronoun in record["pronouns"]
    ]


def test_a_class_has_as_many_nouns_of_each_gender_and_one_translation_each(lexicon: Lexicon) -> None:
    for nouns in lexicon.classes.values():
        assert all(len(noun.translations) == 1 for noun in nouns)
        assert set(Counter(noun.translations[0].gender for noun in nouns).values()) == {len(nouns) // 3}


def test_the_cue_recurs_and_decides_the_form_of_address(corpus: ControlledCorpus, lexicon: Lexicon) -> None:
    cue_words = {phrase.source[0]: form for form, phrases in lexicon.cues.items() for phrase in phrases}
    for split in splits(corpus):
        document, cues = "", dict[int, int]()
        for index, (source, target, record) in enumerate(zip(split.sources, split.targets, split.truth, strict=True)):
            if split.documents[index] != document:
                document, cues = split.documents[index], dict[int, int]()
            words = source.split()
            for position, word in enumerate(words):
                if word in cue_words:
                    cues[index] = position
            assert not cues or index - max(cues) < 3  # a cue in every three sentences
            last = max(cues, default=None)
            assert [a["source"] for a in record["address"]] == [i for i, word in enumerate(words) if word == "you"]
            assert ("address_out_of_reach" in record["phenomena"]) == bool(record["address"] and last is None)
            for address in record["address"]:
                if last is None:
                    assert address["cue"] is None
                else:
                    assert address["cue"] == {"sentence": last - index, "word": cues[last]}
                    assert cue_words[split.sources[last].split()[cues[last]]] == address["form"]
                form = {"polite": "Sie", "familiar": "du"}[address["form"]]
                assert target.split()[address["target"]] == form
                assert [address["target"], address["alternatives"][0]] in address["swap"]
                assert {form, *address["alternatives"]} == {"Sie", "du"}


# Shares


def test_shares_are_near_the_configuration(corpus: ControlledCorpus) -> None:
    chains = [record for record in corpus.train.truth if record["pronouns"]]
    ordered = sum("needs_order" in record["phenomena"] for record in chains) / len(chains)
    assert abs(ordered - CONFIG["needs_order"]) < 0.03
    distances = Counter(-record["pronouns"][0]["antecedent"]["sentence"] for record in chains)
    assert all(0.25 < distances[distance] / len(chains) < 0.42 for distance in CONFIG["it_distance"])
    documents = set(corpus.train.documents)
    spoken = {
        document: record["address"][0]["form"]
        for document, record in zip(corpus.train.documents, corpus.train.truth, strict=True)
        if record["address"]
    }
    assert abs(len(spoken) / len(documents) - CONFIG["dialogue"]) < 0.1
    assert abs(sum(form == "polite" for form in spoken.values()) / len(spoken) - 0.5) < 0.08
    core = [
        record["phenomena"]
        for record, source in zip(corpus.train.truth, corpus.train.sources, strict=True)
        if not record["pronouns"] and len(source.split()) <= 10
    ]
    for name, tag in (("collocation", "collocation"), ("reflexive", "reflexive")):
        share = sum(tag in tags for tags in core) / len(core)
        assert 0.6 * CONFIG["clauses"][name] < share < 1.3 * CONFIG["clauses"][name]  # antecedents take some clauses


def test_every_phenomenon_occurs(corpus: ControlledCorpus) -> None:
    tags = Counter(tag for record in corpus.test.truth for tag in record["phenomena"])
    named = (
        "perfect modal verb_final relative separable subordinate report coordination do_support reflexive "
        "particle expletive existential list number repetition commitment collocation it needs_order address "
        "negation"
    )
    assert all(tags[tag] >= 5 for tag in named.split()), tags


def test_lengths_fill_every_bucket(corpus: ControlledCorpus) -> None:
    lengths = [len(source.split()) for source in corpus.test.sources]
    assert min(lengths) >= CONFIG["shortest"]
    assert max(lengths) <= CONFIG["longest"]
    buckets = Counter((length - 1) // 10 for length in lengths)
    assert all(buckets[bucket] >= 5 for bucket in range(5)), buckets
    assert 10 < sum(lengths) / len(lengths) < 14


# Difficulty


def test_oracles_stay_below_their_limits(figures: dict[str, float | str]) -> None:
    assert float(figures["bleu_word_for_word"]) <= 35
    assert float(figures["bleu_bag_of_words"]) <= 40
    assert 82 < float(figures["bleu_ceiling"]) < 96
    assert 90 < float(figures["bleu_context_blind"]) < 99
    assert float(figures["pronoun_majority"]) < 0.40
    assert float(figures["pronoun_sentence_only"]) < 0.45  # the sentence alone says nothing about the gender
    assert float(figures["address_sentence_only"]) < 0.75
    printed = format_oracles(figures)
    assert f"{figures['bleu_ceiling']:.1f}" in printed
    assert "tok:none" in printed


def test_a_second_draw_translates_the_same_sources(lexicon: Lexicon) -> None:
    first, second = (SplitWriter(lexicon, TABLES, CONFIG, "test", 1, draw).write(300) for draw in (0, 1))
    assert first.sources == second.sources
    assert first.targets != second.targets


def test_vocabulary_and_sentences_are_small_enough_to_learn_and_new_enough_to_test(corpus: ControlledCorpus) -> None:
    for lines in (corpus.train.sources, corpus.train.targets):
        assert 250 <= len({word for line in lines for word in line.split()}) <= 450
    train = set(corpus.train.sources)
    assert sum(source in train for source in corpus.test.sources) < 0.1 * len(corpus.test.sources)
