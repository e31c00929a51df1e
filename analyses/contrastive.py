"""Contrastive scoring: how often a system finds the right translation more probable than wrong ones that differ in a
detail (Sennrich 2017, "How Grammatical is Character-level NMT?"; Müller et al. 2018 for pronouns).

Works on log-probabilities; knows neither the system that gave them nor the file the items came from.
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
# What may stand around an item instead of its own sentences.
CONTEXTS = {
    "none": "nothing",
    "another": "the sentences around another item, half the list away",
    "words-backwards": "its own sentences, the words of each from last to first",
}


@dataclass(frozen=True)
class Item:
    """A source, its right translation and wrong ones; `tags` say what is tested (distance, pronoun, …). Where they are
    known, `context` are the source sentences before it in their order, `context_outputs` their translations and
    `context_after` the source sentences after it."""

    source: str
    right: str
    wrong: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    context_outputs: tuple[str, ...] = ()
    context_after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """What a system says of one item: log P (nats) of the right translation and of each wrong one, and the tokens,
    </s> counted, that each sum runs over."""

    right: float
    wrong: tuple[float, ...]
    right_tokens: int
    wrong_tokens: tuple[int, ...]


def with_contexts(items: Sequence[Item], which: str) -> list[Item]:
    """The items, with one of CONTEXTS around them instead: a control of what a system reads there, and how.

    The sentences around another item are no control where one document has half of all items. Raises ValueError where
    there is no other item.
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

    def turned(lines: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(" ".join(line.split()[::-1]) for line in lines)

    return [
        replace(
            item,
            context=turned(item.context),
            context_outputs=turned(item.context_outputs),
            context_after=turned(item.context_after),
        )
        for item in items
    ]


def judged(scored: Sequence[Scored], tags: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """One row an item: item (from 0), outcome (right, wrong, tie), margin, margin_per_token, chance, then its tags.

    An item is right where the right translation is more probable than every wrong one. margin (nats): log P of the
    right one less that of the most probable wrong one; margin_per_token: the same of log P divided by its tokens;
    chance: what guessing would score. Raises ValueError for an item without a wrong translation.
    """
    if len(scored) != len(tags):
        raise ValueError(f"{len(scored)} items were scored, but there are tags of {len(tags)}: give one set an item.")
    rows = []
    for number, (one, own) in enumerate(zip(scored, tags, strict=True)):
        if not one.wrong:
            raise ValueError(f"Item {number} has no wrong translation; there is nothing to compare the right one with.")
        margin = one.right - max(one.wrong)
        per_token = one.right / one.right_tokens - max(
            value / tokens for value, tokens in zip(one.wrong, one.wrong_tokens, strict=True)
        )
        outcome = TIE if margin == 0 else RIGHT if margin > 0 else WRONG
        rows.append({**dict(zip(COLUMNS, (number, outcome, margin, per_token, 1 / (1 + len(one.wrong))), strict=True)),
                     **{name: value for name, value in own.items() if name not in COLUMNS}})  # fmt: skip
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(COLUMNS))
    names = [name for name in table if name not in COLUMNS]
    return table[[*COLUMNS, *names]].fillna(dict.fromkeys(names, _NO_TAG))


def accuracy(table: pd.DataFrame, by: str | None = None, level: float = 0.95) -> pd.DataFrame:
    """The share of right items of each value of a tag, a tie being wrong: tag, n, right, ties, share, low, high
    (Wilson), chance, margin, margin_per_token (means). `by` None: one row, "all"; of several tags with commas between:
    what values of theirs occur together, such as "1, no". Numbers come by size, then the rest.

    table: of `judged`. Raises ValueError for a tag that no item has.
    """
    rows = []
    for tag, own in [(_ALL, table)] if by is None else _by_tags(table, by.split(",")):
        right, ties = int((own["outcome"] == RIGHT).sum()), int((own["outcome"] == TIE).sum())
        share = right / len(own) if len(own) else float("nan")
        means = [float(own[name].mean()) for name in ("chance", "margin", "margin_per_token")]
        rows.append((tag, len(own), right, ties, share, *wilson(right, len(own), level), *means))
    columns = ["tag", "n", "right", "ties", "share", "low", "high", "chance", "margin", "margin_per_token"]
    return pd.DataFrame(rows, columns=columns)


def _by_tags(table: pd.DataFrame, tags: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    if unknown := [tag for tag in tags if tag not in tag_names(table)]:
        raise ValueError(f"No item has the tag {unknown[0]!r}; there is {', '.join(tag_names(table)) or 'none'}.")
    values = _together(table, tags)
    for said in map(", ".join, itertools.product(*(ordered(table[tag]) for tag in tags))):
        if (values == said).any():
            yield said, table[values == said]


def _together(table: pd.DataFrame, tags: Sequence[str]) -> pd.Series:
    """The values of some tags in every row, with commas between."""
    return table[list(tags)].fillna(_NO_TAG).astype(str).agg(", ".join, axis="columns")


def majority(tags: Sequence[Mapping[str, str]], by: str | None = None, of: str = "pronoun") -> dict[str, float]:
    """What a system reaches that takes the commonest right value of a tag throughout: the share of each value of `by`
    (None: "all"; several tags as in `accuracy`) whose items are of it. Empty where no item has the tag.

    A system that reads no sentence but its own cannot know better where only the sentences before decide.
    """
    known, asked = pd.DataFrame([{_ALL: _ALL, **own} for own in tags]), (by or _ALL).split(",")
    if not {of, *asked} <= set(known):
        return {}
    commonest = known[of].mode()[0]
    shares = known[of].eq(commonest).groupby(_together(known, asked)).mean()
    return {str(tag): float(share) for tag, share in shares.items()}


def tag_names(table: pd.DataFrame) -> list[str]:
    """The tags of a table of `judged`."""
    return [str(name) for name in table if name not in COLUMNS]


def ordered(values: pd.Series) -> list[str]:
    """The different values of a tag: numbers by size, before all others in the order in which they come."""
    distinct = list(dict.fromkeys(map(str, values)))
    numbers = pd.to_numeric(pd.Series(distinct, dtype="str"), errors="coerce").to_numpy(dtype=float)
    places = np.where(np.isnan(numbers), np.inf, numbers)
    return [distinct[place] for place in np.argsort(places, kind="stable")]


def from_truth(
    sources: Sequence[str],
    references: Sequence[str],
    truths: Sequence[Mapping[str, object]],
    documents: Sequence[str] | None = None,
    reach: int = 0,
) -> list[Item]:
    """An item for each pronoun of a controlled test set: the reference against it with each other form in its place.

    Tags: distance (sentences back to the antecedent), gender, pronoun (the right form), order ("needed" where only the
    order of the sentences tells). Context: the sentences of the same document before it with their references, back to
    the antecedent, and at least `reach` of them where they are there; and up to `reach` after it.
    """
    from analyses.pronouns import variants

    made = variants([line.split() for line in references], truths)
    items = []
    for _, rows in made.groupby(["sentence", "target"], sort=False):
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
