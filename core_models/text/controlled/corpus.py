"""Documents of the controlled corpus: chains of antecedent and "it", forms of address, splits, files.

Places the parts of each chain in a document, and completes the truth records with what only context decides.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from core_models.files.atomic_folders import atomic_replace_folder, others
from core_models.files.file_marks import is_marked, mark, unmarked
from core_models.resources import data_folder
from core_models.settings import ConfigError, read_yaml
from core_models.text.controlled.composer import Composer, Demand
from core_models.text.controlled.draft import Draft, Word, place_words, truth
from core_models.text.controlled.grammar import Grammar
from core_models.text.controlled.lexicon import Lexicon, Noun, read_lexicon
from core_models.text.controlled.sentences import SentenceComposer
from core_models.text.controlled.settings import WINDOW, settings_from

SPLITS = ("train", "dev", "test")
_COMMAND, _SUFFIXES = "data controlled", ("en", "de", "docids", "truth.jsonl")
_RECORD = {"alignment", "pronouns", "address", "commitments"}  # keys of every truth record
GENDERS = ("m", "f", "n")
ATTEMPTS = 1000  # at one sentence: takes seconds; possible lengths need few


@dataclass(frozen=True)
class ControlledSplit:
    """Sentence pairs in order, the document id of each, and the truth record of each."""

    sources: list[str]
    targets: list[str]
    documents: list[str]
    truth: list[dict[str, Any]]


@dataclass(frozen=True)
class ControlledCorpus:
    """Three splits; `second_targets` is an independent second sample of the test translations (for the ceiling).

    `long` is an optional further test set of long sentences.
    """

    train: ControlledSplit
    dev: ControlledSplit
    test: ControlledSplit
    second_targets: list[str]
    long: ControlledSplit | None = None


@dataclass(slots=True)
class Deck:
    """Sampling without replacement from a shuffled deck that is refilled, so that shares are even."""

    cards: tuple[Any, ...]
    random: Random
    left: list[Any] = field(default_factory=list)

    def draw(self) -> Any:
        if not self.left:
            self.left = list(self.cards)
            self.random.shuffle(self.left)
        return self.left.pop()


@dataclass(slots=True)
class Chain:
    """An antecedent in sentence `start`, and its "it" `distance` sentences later."""

    noun: Noun
    start: int
    distance: int
    rival: Noun | None = None


@dataclass(frozen=True, slots=True)
class Written:
    draft: Draft
    source: list[Word]
    target: list[Word]

    def mention(self, noun: Noun) -> int:
        """Return the source position of the noun."""
        return next(word.position for _, name, word in self.draft.mentions if name == noun.singular)


class SplitWriter:
    """Writes documents until a split is full; `draws` only decides translations, sources do not depend on it."""

    def __init__(
        self, lexicon: Lexicon, tables: dict[str, Any], config: dict[str, Any], name: str, seed: int, draw: int
    ) -> None:
        self.name, self.config, self.lexicon = name, config, lexicon
        self.random, self.draws = Random(f"{seed}:{name}"), Random(f"{seed}:{name}:{draw}")
        self.composer = SentenceComposer(Composer(lexicon, tables, config, self.random))
        self.grammar = Grammar(tables)
        self.genders, self.dialogues = Deck(GENDERS, self.random), Deck((True, False), self.random)
        self.distances = {gender: Deck(tuple(config["it_distance"]), self.random) for gender in GENDERS}
        self.split = ControlledSplit([], [], [], [])

    def write(self, sentences: int) -> ControlledSplit:
        number = 0
        while len(self.split.sources) < sentences:
            number += 1
            self.document(f"{self.name}-{number:05d}", self.document_size(sentences - len(self.split.sources)))
        return self.split

    def document_size(self, left: int) -> int:
        """Sample the length of the next document so that the remaining sentences suffice for another."""
        shortest, longest = self.config["document_sentences"]
        size = min(left, self.random.randint(shortest, longest))
        if 0 < left - size < shortest:
            size = left if left <= longest else left - shortest
        return size

    def document(self, name: str, size: int) -> None:
        self.grammar.polite = self.dialogues.draw()
        dialogue = self.random.random() < self.config["dialogue"]
        first_cue = self.random.randrange(self.config["cue_reach"]) if dialogue else size
        written: list[Written] = []
        last_cue: int | None = None
        chain: Chain | None = None
        for index in range(size):
            since = None if last_cue is None else index - last_cue
            cue = index == first_cue if since is None else self.cue_due(since)
            chain = chain or self.open_chain(written, index, size)
            sentence = self.sentence(self.demand(chain, index, dialogue, cue))
            written.append(sentence)
            last_cue = index if cue else last_cue
            words = [word.text for word in sentence.source]
            if chain and index == chain.start and self.config["mark_antecedents"]:
                words[sentence.mention(chain.noun)] += f"-{chain.noun.translations[0].gender}"
            record = truth(sentence.draft, sentence.source, sentence.target)
            record["pronouns"] = self.pronouns(written, chain)
            record["address"] = self.addresses(written, last_cue)
            if chain and index == chain.start + chain.distance:
                record["phenomena"] += ["it", *(["needs_order"] if chain.rival else [])]
                chain = None
            if record["address"]:
                reached = record["address"][0]["cue"] is not None
                record["phenomena"].append("address" if reached else "address_out_of_reach")
            self.split.sources.append(" ".join(words))
            self.split.targets.append(" ".join(word.text for word in sentence.target))
            self.split.documents.append(name)
            self.split.truth.append(record)

    def cue_due(self, since: int) -> bool:
        return since >= self.config["cue_reach"] or self.random.random() < 1 / self.config["cue_reach"]

    def open_chain(self, written: Sequence[Written], index: int, size: int) -> Chain | None:
        """Perhaps begin a chain: its class must not occur in the sentences within the pronoun's window."""
        if self.random.random() >= self.config["it"]:
            return None
        gender = self.genders.draw()
        distance = self.distances[gender].draw()
        visible = written[max(0, index - (WINDOW - distance)) : index]
        mentioned = [name for sentence in visible for name, _, _ in sentence.draft.mentions]
        free = [name for name in self.lexicon.classes if name not in mentioned]
        if index + distance >= size or not free:
            self.genders.left.append(gender)
            self.distances[gender].left.append(distance)
            return None
        nouns = self.lexicon.classes[self.random.choice(free)]
        noun = self.random.choice([n for n in nouns if n.translations[0].gender == gender])
        rival = None
        if self.random.random() < self.config["needs_order"]:
            rival = self.random.choice([n for n in nouns if n.translations[0].gender != gender])
        return Chain(noun, index, distance, rival)

    def demand(self, chain: Chain | None, index: int, dialogue: bool, cue: bool) -> Demand:
        cues = self.lexicon.cues["polite" if self.grammar.polite else "familiar"]
        phrase = self.random.choice(cues) if cue else None
        you = 0.0 if not dialogue else self.config["you_beside_cue" if cue else "you"]
        if chain is None:
            return Demand(cue=phrase, you=you)
        name, gender = chain.noun.thing_class or "", chain.noun.translations[0].gender
        if index == chain.start:
            return Demand(antecedent=chain.noun, rival=chain.rival, cue=phrase, you=you, barred=(name,))
        if index == chain.start + chain.distance:
            return Demand(it_class=name, it_gender=gender, cue=phrase, you=you, barred=(name,))
        return Demand(cue=phrase, you=you, barred=(name,))

    def sentence(self, demand: Demand) -> Written:
        """Write one sentence within the length limits, by rejection sampling. Raises ConfigError if all fail."""
        lengths, shortest, longest = (self.config[name] for name in ("lengths", "shortest", "longest"))
        for _ in range(ATTEMPTS):
            bucket = self.random.choices(lengths, [entry["share"] for entry in lengths])[0]
            composed = self.composer.sentence(self.random.randint(*bucket["words"]), demand)
            draft = Draft(self.draws)
            part = self.composer.write(composed, draft, self.grammar)
            if shortest <= len(part.source) <= longest:
                place_words(part)
                return Written(draft, part.source, part.target)
        raise ConfigError(
            f"the controlled corpus: none of {ATTEMPTS} sentences, of the lengths "
            f"{[entry['words'] for entry in lengths]}, had {shortest} to {longest} words; mend lengths, shortest or "
            "longest in its configuration"
        )

    def pronouns(self, written: Sequence[Written], chain: Chain | None) -> list[dict[str, Any]]:
        if chain is None:
            return []
        antecedent = {"sentence": -chain.distance, "word": written[chain.start].mention(chain.noun)}
        return [
            {
                "target": p.target.position,
                "source": p.source.position,
                "antecedent": antecedent,
                "gender": p.gender,
                "alternatives": p.alternatives,
            }
            for p in written[-1].draft.pronouns
        ]

    def addresses(self, written: Sequence[Written], last_cue: int | None) -> list[dict[str, Any]]:
        """Return a record for every "you": its cue, and the words that make the other form of address (`swap`)."""
        sentence = written[-1]
        index = len(written) - 1
        cue = None
        if last_cue is not None and index - last_cue <= WINDOW:
            word = written[last_cue].draft.cue
            assert word is not None
            cue = {"sentence": last_cue - index, "word": word.position}
        swap = [[word.position, word.other] for word in sentence.target if word.other is not None]
        return [
            {
                "target": target.position,
                "source": source.position,
                "cue": cue,
                "form": "polite" if self.grammar.polite else "familiar",
                "alternatives": [target.other],
                "swap": swap,
            }
            for source, target in sorted(sentence.draft.addresses, key=lambda pair: pair[0].position)
        ]


def generate(
    sentences: int | None = None,
    dev: int | None = None,
    test: int | None = None,
    seed: int = 1,
    config: Path | Mapping[str, Any] | None = None,
    long: int = 0,
) -> ControlledCorpus:
    """Generate the corpus; sizes are sentences of each split, and default to those of the configuration.

    long: number of sentences in a further test set of the lengths `long_test` in the configuration, which an ordinary
    test set has too few of. config: a YAML file or its content; its keys replace those of
    `data/controlled/config.yaml`. The same arguments give the same bytes on every machine.
    """
    folder = data_folder() / "controlled"
    tables = read_yaml(folder / "grammar.yaml")
    settings = settings_from(config, folder / "config.yaml")
    lexicon = read_lexicon(folder, tables)
    sizes = {
        name: settings["sentences"][name] if size is None else size
        for name, size in zip(SPLITS, (sentences, dev, test), strict=True)
    }
    if min(sizes.values()) < 1:
        raise ConfigError(f"every split needs at least one sentence, but the sizes are {sizes}")

    def split(name: str, draw: int = 0) -> ControlledSplit:
        return SplitWriter(lexicon, tables, settings, name, seed, draw).write(sizes[name])

    first, last = settings["long_test"]
    only_long = settings | {"lengths": [{"words": [first, last], "share": 1}], "shortest": first}
    further = SplitWriter(lexicon, tables, only_long, "long", seed, draw=0).write(long) if long else None
    return ControlledCorpus(split("train"), split("dev"), split("test"), split("test", draw=1).targets, further)


def write(corpus: ControlledCorpus, folder: Path) -> None:
    """Write `train|dev|test` (and `long`) as `.en`, `.de`, `.docids`, `.truth.jsonl`, atomically.

    Replaces an earlier corpus; raises FolderError if the folder has other files.
    """
    with atomic_replace_folder(folder, _COMMAND, _foreign) as part:
        for name in (*SPLITS, "long"):
            split: ControlledSplit | None = getattr(corpus, name)
            if split is None:
                continue
            records = [json.dumps(record, ensure_ascii=False) for record in split.truth]
            columns = (split.sources, split.targets, split.documents, records)
            for suffix, lines in zip(_SUFFIXES, columns, strict=True):
                text = "".join(f"{line}\n" for line in lines)
                (part / f"{name}.{suffix}").write_text(text, encoding="utf-8", newline="\n")
        mark(part, _COMMAND)


def _foreign(folder: Path) -> str | None:
    """The first file in a folder that is not of a corpus; without a mark (earlier versions), by its truth records."""
    if is_marked(folder):
        return unmarked(folder, _COMMAND)
    ours = {
        f"{name}.{suffix}"
        for name in (*SPLITS, "long")
        if (records := _records(folder / f"{name}.truth.jsonl"))
        for suffix in _SUFFIXES
        if _lines(folder / f"{name}.{suffix}") == records
    }
    return others(folder, ours.__contains__)


def _records(path: Path) -> int:
    """The number of truth records in a file; 0 if it has anything else."""
    if not path.is_file():
        return 0
    try:
        lines = path.read_bytes().splitlines()
        return len(lines) if all(json.loads(line).keys() >= _RECORD for line in lines) else 0
    except (OSError, ValueError, AttributeError, RecursionError):
        return 0


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0
