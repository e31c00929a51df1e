"""Beam-search records as trees, and the differences between the searches of two systems.

A record is a mapping of equally long lists, one row per candidate in order of step, then rank: step (from 1), parent
(row of the kept candidate it extends, -1 at step 1), word, log_prob (nats), score (cumulative), normalised (under the
length penalty), rank (from 0, among the step's candidates), fate ("kept", "pruned" or "finished"); and `best`, the row
of the last word of the best hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

COLUMNS = ("step", "parent", "word", "log_prob", "score", "normalised", "rank", "fate")
# Where one prefix has two fates, the higher one counts: it stayed in the search.
_FATES = {"pruned": 0, "kept": 1, "finished": 2}
Prefix = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class BeamDiff:
    """Two searches of one sentence in one trie.

    nodes: one row per prefix, shared prefixes merged: prefix, word, step, parent (row, -1 for a first word), in_a,
    in_b, fate_a, fate_b (None if absent), score_a, score_b (NaN if absent), best_a, best_b, y. only_a, only_b: the
    candidates that only one search considered: prefix (before the word), word, step, score, fate. divergence_step: the
    first step at which the best paths differ, None if they are equal.
    """

    nodes: pd.DataFrame
    only_a: pd.DataFrame
    only_b: pd.DataFrame
    divergence_step: int | None


def tree(record: Mapping[str, Any]) -> pd.DataFrame:
    """The nodes of a record with their layout: one row per candidate, in the record's order.

    Columns: id (row), parent, step, word, log_prob, score, normalised, rank, fate, on_best, prefix (all words up to
    this one), children (how many), y. y counts lines downwards: the best path is the line y = 0, children are ordered
    by rank, a node is on the line of its first child, and each leaf has its own line. Raises ValueError if the record
    contradicts itself.
    """
    check(record)
    parents = [int(parent) for parent in record["parent"]]
    prefixes: list[Prefix] = []
    for parent, word in zip(parents, record["word"], strict=True):
        prefixes.append((*(prefixes[parent] if parent >= 0 else ()), word))
    best = set(_ancestry(parents, int(record["best"])))
    nodes = pd.DataFrame({"id": range(len(parents)), **{name: list(record[name]) for name in COLUMNS}})
    nodes["on_best"] = [row in best for row in range(len(parents))]
    nodes["prefix"] = prefixes
    nodes["children"] = nodes.id.map(nodes.parent.value_counts()).fillna(0).astype(int)
    nodes["y"] = _lines(parents, lambda row: (row not in best, record["rank"][row], row))
    return nodes


def diff(record_a: Mapping[str, Any], record_b: Mapping[str, Any]) -> BeamDiff:
    """Merge two beam-search records of one sentence by prefix; a prefix is its words, so vocabularies may differ.

    The layout is that of `tree`, with A's best path on top and B's best path next where they differ.
    """
    a, b = tree(record_a), tree(record_b)
    by_prefix = [_by_prefix(nodes) for nodes in (a, b)]
    best = [set(nodes.prefix[nodes.on_best]) for nodes in (a, b)]
    # Parents before children: sorted by length, and within a length in the order of the searches.
    prefixes = sorted(dict.fromkeys([*a.prefix, *b.prefix]), key=len)
    row_of = {prefix: row for row, prefix in enumerate(prefixes)}
    parents = [row_of[prefix[:-1]] if len(prefix) > 1 else -1 for prefix in prefixes]
    columns: dict[str, Any] = {
        "prefix": prefixes,
        "word": [prefix[-1] for prefix in prefixes],
        "step": [len(prefix) for prefix in prefixes],
        "parent": parents,
    }
    for side, rows, path in zip("ab", by_prefix, best, strict=True):
        columns[f"in_{side}"] = [prefix in rows for prefix in prefixes]
        columns[f"fate_{side}"] = pd.Series([rows[p]["fate"] if p in rows else None for p in prefixes], dtype=object)
        columns[f"score_{side}"] = [rows[p]["score"] if p in rows else float("nan") for p in prefixes]
        columns[f"best_{side}"] = [prefix in path for prefix in prefixes]

    def order(row: int) -> tuple[Any, ...]:
        prefix = prefixes[row]
        rank = min(rows[prefix]["rank"] for rows in by_prefix if prefix in rows)
        return prefix not in best[0], prefix not in best[1], rank, row

    columns["y"] = _lines(parents, order)
    paths = [max(path, key=len) for path in best]
    return BeamDiff(
        pd.DataFrame(columns), _only(a, by_prefix[1]), _only(b, by_prefix[0]), _divergence(paths[0], paths[1])
    )


def check(record: Mapping[str, Any]) -> None:
    """Raise ValueError if a record contradicts itself."""
    missing = [name for name in (*COLUMNS, "best") if name not in record]
    if missing:
        raise ValueError(f"The beam record lacks {', '.join(missing)}.")
    lengths = {name: len(record[name]) for name in COLUMNS}
    rows = lengths["step"]
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The lists of a beam record must be equally long, got {lengths}.")
    if not 0 <= record["best"] < rows:
        raise ValueError(f"The beam record's best row {record['best']} is none of its {rows} rows.")
    for row in range(rows):
        parent, step, fate = int(record["parent"][row]), record["step"][row], record["fate"][row]
        if fate not in _FATES:
            raise ValueError(f"Row {row} of the beam record has the fate {fate!r}: use one of {', '.join(_FATES)}.")
        if parent == -1 and step == 1:
            continue
        if not 0 <= parent < row or record["step"][parent] != step - 1 or record["fate"][parent] != "kept":
            raise ValueError(
                f"Row {row} of the beam record (step {step}) extends row {parent}: a parent must be an earlier row, "
                "one step before, that was kept."
            )


def _ancestry(parents: Sequence[int], row: int) -> list[int]:
    path = []
    while row >= 0:
        path.append(row)
        row = parents[row]
    return path


def _lines(parents: Sequence[int], order: Callable[[int], Any]) -> list[int]:
    """The line of each node: leaves get the next free line depth-first, a parent is on the line of its first child."""
    children: dict[int, list[int]] = {}
    for row, parent in enumerate(parents):
        children.setdefault(parent, []).append(row)
    lines, free = [0] * len(parents), 0
    waiting = sorted(children.get(-1, []), key=order, reverse=True)
    while waiting:
        row = waiting.pop()
        # The first child is visited next and no leaf lies between, so it finds the same free line.
        lines[row] = free
        below = sorted(children.get(row, []), key=order, reverse=True)
        waiting += below
        free += not below
    return lines


def _by_prefix(nodes: pd.DataFrame) -> dict[Hashable, dict[Hashable, Any]]:
    """The node of each prefix; of two with the same spelling the one that got further, then the better score."""
    order = nodes.assign(standing=nodes.fate.map(_FATES)).sort_values(["standing", "score"], kind="stable")
    return {row["prefix"]: row for row in order.to_dict("records")}


def _only(nodes: pd.DataFrame, other: Mapping[Hashable, Any]) -> pd.DataFrame:
    rows = nodes[[prefix not in other for prefix in nodes.prefix]].reset_index(drop=True)
    rows = rows[["prefix", "word", "step", "score", "fate"]]
    return rows.assign(prefix=[prefix[:-1] for prefix in rows.prefix])


def _divergence(path_a: Prefix, path_b: Prefix) -> int | None:
    if path_a == path_b:
        return None
    common = 0
    while common < min(len(path_a), len(path_b)) and path_a[common] == path_b[common]:
        common += 1
    return common + 1
