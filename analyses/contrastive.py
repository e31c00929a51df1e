"""Contrastive evaluation: how often a system scores the right translation above wrong ones that differ in a detail.

Follows Sennrich 2017, "How Grammatical is Character-level NMT?", and Müller et al. 2018 for pronouns. Works on
log-probabilities.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analyses.wilson import wilson

COLUMNS = ("item", "outcome", "margin", "margin_per_token", "chance")
RIGHT, WRONG, TIE = "right", "wrong", "tie"
_ALL, _NO_TAG = "all", "(none)"
# Control contexts that replace the sentences around an item.
CONTEXTS = {
    "none": "nothing",
    "another": "the sentences around another item, half the list away",
    "words-backwards": "its own sentences, the words of each from last to first",
}


@dataclass(frozen=True)
class Item:
    """A source sentence with its right translation and wrong ones.

    tags: what is tested (distance, pronoun, …). If known, context: the source sentences before it, in order;
    context_outputs: their translations; context_after: the source sentences after it.
    """

    source: str
    right: str
    wrong: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    context_outputs: tuple[str, ...] = ()
    context_after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """The scores of one item: log P (nats) of the right and the wrong translations, and their tokens (with </s>)."""

    right: float
    wrong: tuple[float, ...]
    right_tokens: int
    wrong_tokens: tuple[int, ...]


def with_contexts(items: Sequence[Item], which: str) -> list[Item]:
    """Replace the context of the items by one of CONTEXTS, as a control of how a system uses context.

    "another" is no valid control if one document has half of all items. Raises ValueError for "another" with fewer than
    two items, and for an unknown name.
    """
    if which == "none":
        return [replace(item, context=(), context_outputs=(), context_after=()) for item in items]
    if which == "another":
        if len(items) < 2:
            raise ValueError("There is no other item whose sentences could stand around this one: give two or more.")
        others = [items[(number + len(items) // 2) % len(items)] for number in range(len(items))]
        return [
            replace(other, source=item.source, right=item.right, wrong=item.wrong, tags=item.tags)
            for item, other in zip(items, others, strict=True)
        ]
    if which not in CONTEXTS:
        raise ValueError(f"{which!r} is no context of items; there are {', '.join(CONTEXTS)}.")

    def reversed_words(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(" ".join(line.split()[::-1]) for line in lines)

    return [
        replace(
            item,
            context=reversed_words(item.context),
            context_outputs=reversed_words(item.context_outputs),
            context_after=reversed_words(item.context_after),
        )
        for item in items
    ]


def judged(scored: Sequence[Scored], tags: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """One row per item: item (from 0), outcome (right, wrong, tie), margin, margin_per_token, chance, then its tags.

    An item is right if the right translation is more probable than every wrong one. margin (nats): log P of the right
    translation minus that of the most probable wrong one; margin_per_token: the same with log P divided by the number
    of tokens; chance: the accuracy of guessing. Raises ValueError for an item without a wrong translation.
    """
    if len(scored) != len(tags):
        raise ValueError(f"{len(scored)} items were scored, but there are tags of {len(tags)}: give one set an item.")
    rows = []
    for number, (scores, item_tags) in enumerate(zip(scored, tags, strict=True)):
        if not scores.wrong:
            raise ValueError(f"Item {number} has no wrong translation; there is nothing to compare the right one with.")
        margin = scores.right - max(scores.wrong)
        per_token = scores.right / scores.right_tokens - max(
            value / tokens for value, tokens in zip(scores.wrong, scores.wrong_tokens, strict=True)
        )
        outcome = TIE if margin == 0 else RIGHT if margin > 0 else WRONG
        chance = 1 / (1 + len(scores.wrong))
        rows.append({**dict(zip(COLUMNS, (number, outcome, margin, per_token, chance), strict=True)),
                     **{name: value for name, value in item_tags.items() if name not in COLUMNS}})  # fmt: skip
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(COLUMNS))
    names = [name for name in table if name not in COLUMNS]
    return table[[*COLUMNS, *names]].fillna(dict.fromkeys(names, _NO_TAG))


def accuracy(table: pd.DataFrame, by: str | None = None, level: float = 0.95) -> pd.DataFrame:
    """Accuracy for each value of a tag; a tie is wrong.

    Columns: tag, n, right, ties, share, low, high (Wilson), chance, margin, margin_per_token (means).

    table: from `judged`. by: None for one row, "all"; several tags separated by commas for each combination of their
    values that occurs, such as "1, no". Numbers are sorted by size, then the rest. Raises ValueError for a tag that no
    item has.
    """
    rows = []
    for tag, group in [(_ALL, table)] if by is None else _by_tags(table, by.split(",")):
        right, ties = int((group["outcome"] == RIGHT).sum()), int((group["outcome"] == TIE).sum())
        share = right / len(group) if len(group) else float("nan")
        means = [float(group[name].mean()) for name in ("chance", "margin", "margin_per_token")]
        rows.append((tag, len(group), right, ties, share, *wilson(right, len(group), level), *means))
    columns = ["tag", "n", "right", "ties", "share", "low", "high", "chance", "margin", "margin_per_token"]
    return pd.DataFrame(rows, columns=columns)


def _by_tags(table: pd.DataFrame, tags: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    if unknown := [tag for tag in tags if tag not in tag_names(table)]:
        raise ValueError(f"No item has the tag {unknown[0]!r}; there is {', '.join(tag_names(table)) or 'none'}.")
    values = _together(table, tags)
    for combination in map(", ".join, itertools.product(*(ordered(table[tag]) for tag in tags))):
        if (values == combination).any():
            yield combination, table[values == combination]


def _together(table: pd.DataFrame, tags: Sequence[str]) -> pd.Series:
    """The values of some tags in every row, separated by commas."""
    return table[list(tags)].fillna(_NO_TAG).astype(str).agg(", ".join, axis="columns")


def majority(tags: Sequence[Mapping[str, str]], by: str | None = None, of: str = "pronoun") -> dict[str, float]:
    """Majority baseline: the accuracy of always choosing the most frequent right value of a tag, by value of `by`.

    by: as in `accuracy`. Empty if no item has the tag. A system without context cannot do better on items that only the
    preceding sentences decide.
    """
    table, tags_by = pd.DataFrame([{_ALL: _ALL, **item_tags} for item_tags in tags]), (by or _ALL).split(",")
    if not {of, *tags_by} <= set(table):
        return {}
    commonest = table[of].mode()[0]
    shares = table[of].eq(commonest).groupby(_together(table, tags_by)).mean()
    return {str(tag): float(share) for tag, share in shares.items()}


def tag_names(table: pd.DataFrame) -> list[str]:
    """The tag columns of a table of `judged`."""
    return [str(name) for name in table if name not in COLUMNS]


def ordered(values: pd.Series) -> list[str]:
    """The distinct values of a tag: numbers by size, then all others in order of appearance."""
    distinct = list(dict.fromkeys(map(str, values)))
    numbers = pd.to_numeric(pd.Series(distinct, dtype="str"), errors="coerce").to_numpy(dtype=float)
    sort_keys = np.where(np.isnan(numbers), np.inf, numbers)
    return [distinct[index] for index in np.argsort(sort_keys, kind="stable")]


def from_truth(
    sources: Sequence[str],
    references: Sequence[str],
    truths: Sequence[Mapping[str, object]],
    documents: Sequence[str] | None = None,
    reach: int = 0,
) -> list[Item]:
    """One item per pronoun of a controlled test set: the reference against variants with each other form.

    Tags: distance (sentences back to the antecedent), gender, pronoun (the right form), order ("needed" if only the
    order of the sentences decides). Context: the preceding sentences of the same document with their references, back
    to the antecedent and at least `reach` of them if there are as many, and up to `reach` sentences after it.
    """
    from analyses.pronouns import variants

    variant_table = variants([line.split() for line in references], truths)
    items = []
    for _, rows in variant_table.groupby(["sentence", "target"], sort=False):
        (right,) = rows[rows["correct"]].to_dict("records")
        wrong = tuple(" ".join(tokens) for tokens in rows.loc[~rows["correct"], "tokens"])
        number, distance = int(right["sentence"]), int(right["distance"])
        order = "needed" if right["needs_order"] else "not needed"
        tags = {"distance": str(distance), "gender": right["gender"], "pronoun": right["form"].lower(), "order": order}
        before = range(max(0, number - max(distance, reach)), number)
        after = range(number + 1, min(len(sources), number + 1 + reach))
        contexts = (
            tuple(lines[row] for row in rows if documents is None or documents[row] == documents[number])
            for lines, rows in ((sources, before), (references, before), (sources, after))
        )
        items.append(Item(sources[number], " ".join(right["tokens"]), wrong, tags, *contexts))
    return items
