"""Difficulty of a controlled corpus: BLEU of rules without reordering, the ceiling, and the value of context.

Computed from the corpus and its truth records only, without models.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from core_models.text.controlled.corpus import GENDERS, ControlledCorpus, ControlledSplit

Figures = dict[str, float | str]
Case = tuple[frozenset[str], str]  # the words of the source sentence, and what is right


def oracles(corpus: ControlledCorpus) -> Figures:
    """Return measures of the test split: BLEU (0 to 100), accuracies (fractions), counts, BLEU's signature.

    `word_for_word`: every source word becomes the German words it is linked to most often in the training split, in
    source order. `bag_of_words`: the right German words in the order of the source words they are linked to; words
    without counterpart stay after their left (or before their right) neighbor, whichever is better. `ceiling`: an
    independent second sample of the right translations against the first. `context_blind`: the right translation with
    every pronoun and form of address replaced by the most frequent one of the training split. `majority`: the most
    frequent choice of the training split; `sentence_only`: naive Bayes over the words of the source sentence, trained
    on the training split.
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize="none", force=True)
    test = corpus.test

    def bleu(hypotheses: Sequence[str]) -> float:
        return float(metric.corpus_score(hypotheses, [test.targets]).score)

    dictionary = word_dictionary(corpus.train)
    bags = [
        [reordered(target, record, before) for target, record in zip(test.targets, test.truth, strict=True)]
        for before in (False, True)
    ]
    figures: Figures = {
        "bleu_word_for_word": bleu([word_for_word(source, dictionary) for source in test.sources]),
        "bleu_bag_of_words": max(bleu(bag) for bag in bags),
        "bleu_ceiling": bleu(corpus.second_targets),
        "bleu_context_blind": bleu(context_blind(corpus)),
    }
    for name, cases in (("pronoun", pronoun_cases), ("address", address_cases)):
        figures |= {f"{name}_{key}": value for key, value in accuracies(cases(corpus.train), cases(test)).items()}
    seen = set(corpus.train.sources)
    figures["test_sources_in_train"] = sum(source in seen for source in test.sources) / max(1, len(test.sources))
    figures["bleu_signature"] = str(metric.get_signature())
    return figures


def format_oracles(figures: Figures) -> str:
    """Format the figures as lines: a heading, then names, BLEU with one digit, fractions with three."""
    lines = ["Oracles of the test text, what rules reach without a model: BLEU, and shares of right choices"]
    for name, value in figures.items():
        digits = 1 if name.startswith("bleu_") else 0 if name.endswith("_cases") else 3
        text = value if isinstance(value, str) else f"{value:.{digits}f}"
        lines.append(f"{name.replace('_', ' '):<28}{text}")
    return "\n".join(lines)


def word_dictionary(split: ControlledSplit) -> dict[str, tuple[str, ...]]:
    """Return for every source word the German words (none, one or several) it is linked to most often."""
    counts: dict[str, Counter[tuple[str, ...]]] = {}
    for source, target, record in zip(split.sources, split.targets, split.truth, strict=True):
        german = target.split()
        linked: dict[int, list[str]] = {}
        for i, j in record["alignment"]:
            linked.setdefault(i, []).append(german[j])
        for i, word in enumerate(source.split()):
            counts.setdefault(word, Counter())[tuple(linked.get(i, ()))] += 1
    return {word: counter.most_common(1)[0][0] for word, counter in counts.items()}


def word_for_word(source: str, dictionary: dict[str, tuple[str, ...]]) -> str:
    return " ".join(german for word in source.split() for german in dictionary.get(word, (word,)))


def reordered(target: str, record: dict[str, Any], before: bool) -> str:
    """Return the right words in source order; those without counterpart stay at their left (right) neighbor."""
    words = target.split()
    first_link: dict[int, int] = {}
    for i, j in record["alignment"]:
        first_link[j] = min(i, first_link.get(j, i))
    order = range(len(words) - 1, -1, -1) if before else range(len(words))
    keys: dict[int, int] = {}
    neighbor = max(first_link.values(), default=0) if before else -1
    for j in order:
        neighbor = first_link.get(j, neighbor)
        keys[j] = neighbor
    return " ".join(words[j] for j in sorted(range(len(words)), key=lambda j: (keys[j], j)))


def context_blind(corpus: ControlledCorpus) -> list[str]:
    """Return the right test translations with every context-dependent choice replaced by the majority of training."""
    gender = commonest(label for _, label in pronoun_cases(corpus.train))
    form = commonest(label for _, label in address_cases(corpus.train))
    lines = []
    for target, record in zip(corpus.test.targets, corpus.test.truth, strict=True):
        words = target.split()
        for pronoun in record["pronouns"]:
            others = [other for other in GENDERS if other != pronoun["gender"]]
            if gender in others:
                words[pronoun["target"]] = pronoun["alternatives"][others.index(gender)]
        for address in record["address"][:1]:
            for position, word in address["swap"] if address["form"] != form else ():
                words[position] = word
        lines.append(" ".join(words))
    return lines


def commonest(labels: Iterable[str]) -> str:
    return max(Counter(labels).items(), key=lambda item: item[1], default=("", 0))[0]


def pronoun_cases(split: ControlledSplit) -> list[Case]:
    return _cases(split, "pronouns", lambda record: record["gender"])


def address_cases(split: ControlledSplit) -> list[Case]:
    return _cases(split, "address", lambda record: record["form"])


def _cases(split: ControlledSplit, field: str, label: Callable[[dict[str, Any]], str]) -> list[Case]:
    return [
        (frozenset(source.split()), label(record[field][0]))
        for source, record in zip(split.sources, split.truth, strict=True)
        if record[field]
    ]


def accuracies(train: Sequence[Case], test: Sequence[Case]) -> dict[str, float]:
    """Return the accuracy of the majority label, and of naive Bayes over the sentence's words, on the test cases."""
    if not train or not test:
        return {"cases": float(len(test))}
    labels = Counter(label for _, label in train)
    majority = commonest(label for _, label in train)
    counts = {
        label: Counter(word for words, train_label in train if train_label == label for word in words)
        for label in labels
    }

    def score(words: Iterable[str], label: str) -> float:
        return math.log(labels[label]) + math.fsum(
            math.log((counts[label][word] + 1) / (labels[label] + 2)) for word in words
        )

    right = sum(max(labels, key=lambda label: score(words, label)) == truth for words, truth in test)
    return {
        "cases": float(len(test)),
        "majority": sum(truth == majority for _, truth in test) / len(test),
        "sentence_only": right / len(test),
    }
