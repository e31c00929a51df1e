"""PAST, FUTURE and REDUNDANT mass of source words along a translation: flips and remaining mass (Zheng 2019).

mass[T, I, G]: how much of source word i is in each group when target word t is predicted, groups in the order of GROUPS
(two without REDUNDANT). It sums to one over groups for routing and a classifier, over source words for two attentions.
Steps count from 1. Works on arrays and words; links between words come from the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from analyses.alignment import Link
from analyses.attention import word_numbers
from analyses.significance import DEFAULT_SEED, ratio_intervals

GROUPS = ("past", "future", "redundant")
PAST, FUTURE, REDUNDANT = range(len(GROUPS))


def group_mass(assignments: np.ndarray, groups: int) -> np.ndarray:
    """The mass of each group: assignments[..., J], with adjacent capsules of a group -> [..., groups].

    Raises ValueError if the groups cannot have equally many capsules.
    """
    shares = np.asarray(assignments, dtype=np.float64)
    if shares.shape[-1] % groups:
        raise ValueError(f"{shares.shape[-1]} capsules cannot be dealt to {groups} groups of one size")
    return shares.reshape(*shares.shape[:-1], groups, -1).sum(-1)


def of_words(
    mass: np.ndarray, targets: Sequence[str], sources: Sequence[str], distribution: str | None = "group"
) -> np.ndarray:
    """Turn the mass of pieces into the mass of words: mass[T, I, G] of target and source pieces.

    Takes the mean over the pieces of a target word. Over the pieces of a source word: the mean if each piece has a
    distribution over groups, the sum if the mass is a distribution over the "source".
    """
    values = np.asarray(mass, dtype=np.float64)
    if values.shape[:2] != (len(targets), len(sources)):
        raise ValueError(f"A mass {values.shape} is not of {len(targets)} target and {len(sources)} source pieces.")
    down, across = (np.eye(numbers[-1] + 1)[numbers] for numbers in (word_numbers(targets), word_numbers(sources)))
    down = down / down.sum(axis=0)
    if distribution != "source":
        across = across / across.sum(axis=0)
    return np.einsum("ta,tig,ib->abg", down, values, across)


def past_share(mass: np.ndarray) -> np.ndarray:
    """PAST / (PAST + FUTURE) of each word at each step: [..., I, G] -> [..., I]; 0.5 if both are zero."""
    past, future = (np.asarray(mass[..., group], dtype=np.float64) for group in (PAST, FUTURE))
    both = past + future
    return np.divide(past, both, out=np.full_like(both, 0.5), where=both > 0)


def flips(mass: np.ndarray) -> np.ndarray:
    """The first step from which PAST stays above FUTURE, for each source word: [T, I, G] -> [I]; NaN if never."""
    above = np.asarray(mass[..., PAST]) > np.asarray(mass[..., FUTURE])
    stays = np.logical_and.accumulate(above[::-1], axis=0)[::-1]
    return np.where(stays[-1], stays.argmax(axis=0) + 1.0, np.nan)


def remaining_mass(mass: np.ndarray) -> np.ndarray:
    """FUTURE mass of each source word at the last step, where </s> is predicted: [T, I, G] -> [I].

    The paper claims that none is left (section 4.3, footnote 7).
    """
    return np.asarray(mass[-1, :, FUTURE], dtype=np.float64)


def written_at(links: Iterable[Link], words: int) -> np.ndarray:
    """The step that generates the last counterpart of each source word: links (source, target), from 0 -> [words].

    NaN for a word without counterpart.
    """
    steps = np.full(words, np.nan)
    for i, j in links:
        steps[i] = np.fmax(steps[i], j + 1.0)
    return steps


def flip_table(masses: Sequence[np.ndarray], links: Sequence[Iterable[Link]]) -> pd.DataFrame:
    """One row per source word: sentence, word, flip, written (steps), distance (flip - written), largest.

    Distance 0: PAST rises above FUTURE at the step that generates the word's counterpart; 1: one step later; NaN: it
    never stays above. largest: FUTURE is the largest group one step before that step, PAST one step after. Words
    without a counterpart are left out, and those whose counterpart is the first word: nothing stands before it.
    masses[T, I, G] and links (source, target) of each sentence.
    """
    tables = []
    for sentence, (mass, sentence_links) in enumerate(zip(masses, links, strict=True)):
        written = written_at(sentence_links, mass.shape[1])
        words = np.flatnonzero(written > 1)
        steps, group = written[words].astype(int), mass.argmax(-1)
        after = np.minimum(steps, len(mass) - 1)  # where nothing follows, the step itself
        largest = (group[steps - 2, words] == FUTURE) & (group[after, words] == PAST)
        rows = {"sentence": sentence, "word": words, "flip": flips(mass)[words], "written": steps, "largest": largest}
        tables.append(pd.DataFrame(rows))
    columns = ["sentence", "word", "flip", "written", "largest"]
    table = pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns, dtype=float)
    return table.assign(distance=table["flip"] - table["written"])


def flips_in_time(table: pd.DataFrame, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """How many words of a `flip_table` change from FUTURE to PAST as their counterpart is written, by two measures.

    "passes": PAST rises above FUTURE as it is written or one step later, whatever REDUNDANT holds. "largest": the
    largest group changes so. Columns: measure, share, low, high (95 % bootstrap over sentences), n (words).
    """
    columns = ["measure", "share", "low", "high", "n"]
    if table.empty:
        return pd.DataFrame(columns=columns)
    rows = []
    for measure, changes in (("passes", table["distance"].isin([0, 1])), ("largest", table["largest"].astype(bool))):
        sums = changes.groupby(table["sentence"]).agg(["sum", "size"]).to_numpy(dtype=np.float64)
        changed, words = sums.sum(axis=0)
        (interval,) = ratio_intervals(sums[:, :1], sums[:, 1:], samples, seed)
        rows.append((measure, changed / words, *interval, int(words)))
    return pd.DataFrame(rows, columns=columns)


def distribution(distances: np.ndarray, reach: int = 8) -> pd.DataFrame:
    """Histogram of the distances: distance (-reach to reach, clipped), n, share of all.

    The last row, with distance NaN, counts the NaN. Without any distance the shares are NaN.
    """
    values = np.asarray(distances, dtype=np.float64)
    known = np.clip(values[~np.isnan(values)], -reach, reach).round().astype(int)
    counts = [*np.bincount(known + reach, minlength=2 * reach + 1).tolist(), int(np.isnan(values).sum())]
    table = pd.DataFrame({"distance": [*range(-reach, reach + 1), np.nan], "n": counts})
    return table.assign(share=table["n"] / (len(values) or np.nan))


def remainders(masses: Sequence[np.ndarray], ends: Sequence[int]) -> pd.DataFrame:
    """Remaining FUTURE mass, one row per sentence.

    Columns: sentence, words, left (sum over words), mean (per word), most (maximum over words), word (position of the
    maximum); NaN for a sentence without words. masses[T, I, G]; ends: the number of source words, without </s>.
    """
    rows = []
    for sentence, (mass, words) in enumerate(zip(masses, ends, strict=True)):
        left = remaining_mass(mass)[:words]
        if not len(left):
            rows.append((sentence, 0, np.nan, np.nan, np.nan, -1))
            continue
        rows.append((sentence, words, left.sum(), left.mean(), left.max(), int(left.argmax())))
    return pd.DataFrame(rows, columns=["sentence", "words", "left", "mean", "most", "word"])


def course(masses: Sequence[np.ndarray], bins: int = 10, samples: int = 1000, seed: int = DEFAULT_SEED) -> pd.DataFrame:
    """The mean mass of a source word over the relative position t / T (`along`); the sides are the groups."""
    groups = GROUPS[: masses[0].shape[-1]]
    means = {name: [np.asarray(mass[..., group]).mean(1) for mass in masses] for group, name in enumerate(groups)}
    return along(means, [len(mass) for mass in masses], bins, samples, seed)


def along(
    sides: Mapping[str, Sequence[np.ndarray]],
    lengths: Sequence[int],
    bins: int = 10,
    samples: int = 1000,
    seed: int = DEFAULT_SEED,
) -> pd.DataFrame:
    """Means of step values in equal bins of the relative position t / T.

    Columns: side, place (the middle of the bin), value, low, high (95 % bootstrap over sentences), n (steps). sides:
    for each sentence the values of its first steps; lengths: T of each sentence. Empty bins are left out.
    """
    rows = []
    for side, sentences in sides.items():
        sums = np.zeros((len(lengths), 2, bins))
        for sentence, (values, length) in enumerate(zip(sentences, lengths, strict=True)):
            bin_numbers = -(-np.arange(1, len(values) + 1) * bins // length) - 1
            np.add.at(sums[sentence, 0], bin_numbers, values)
            np.add.at(sums[sentence, 1], bin_numbers, 1)
        total, steps = sums.sum(0)
        intervals = ratio_intervals(sums[:, 0], sums[:, 1], samples, seed)
        for number in np.flatnonzero(steps):
            place, mean = (number + 0.5) / bins, total[number] / steps[number]
            rows.append((side, place, mean, *intervals[number], int(steps[number])))
    return pd.DataFrame(rows, columns=["side", "place", "value", "low", "high", "n"])
