"""fast_align's model (Dyer et al. 2013, section 2) in plain Python, a word at a time: the aligner's independent twin.

Numbers are fast_align's own defaults: -p 0.08, -T 4, -a 0.01.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import exp

from scipy.special import psi

NULL = None  # the word that makes those that no word makes
NULL_SHARE, TENSION, CONCENTRATION = 0.08, 4.0, 0.01
UNSEEN = 1e-9
Words = Sequence[str]
Table = dict[tuple[str | None, str], float]


def prior(i: int, j: int, m: int, n: int) -> float:
    """P(a_j = i | m, n), places from 1; i = 0 is the null word."""
    if i == 0:
        return NULL_SHARE
    closeness = [exp(-TENSION * abs(k / m - j / n)) for k in range(1, m + 1)]
    return (1 - NULL_SHARE) * closeness[i - 1] / sum(closeness)


def translation_table(giving: Sequence[Words], made: Sequence[Words], iterations: int) -> Table:
    """t(made word | giving word) after expectation maximisation with a Dirichlet prior on each giving word's row."""
    meets = defaultdict(set)
    for left, right in zip(giving, made, strict=True):
        for word in (NULL, *left):
            meets[word].update(right)
    table = {(word, other): 1.0 for word, others in meets.items() for other in others}
    for _ in range(iterations):
        counts: Counter = Counter()
        for left, right in zip(giving, made, strict=True):
            for j, other in enumerate(right, start=1):
                joint = [prior(i, j, len(left), len(right)) * table[w, other] for i, w in enumerate((NULL, *left))]
                for word, value in zip((NULL, *left), joint, strict=True):
                    counts[word, other] += value / sum(joint)
        for word, others in meets.items():
            total = sum(counts[word, other] + CONCENTRATION for other in others)
            for other in others:
                table[word, other] = exp(psi(counts[word, other] + CONCENTRATION) - psi(total))
    return table


def posteriors(table: Table, left: Words, right: Words, j: int) -> list[float]:
    """How well each giving word explains the word at place j (from 1), up to a factor; the null word first.

    A word that is in no training sentence goes with its like alone, or with none.
    """
    known_left, known_right = {word for word, _ in table}, {other for _, other in table}
    other, found = right[j - 1], []
    for i, word in enumerate((NULL, *left)):
        if i == 0:
            found.append(NULL_SHARE * table.get((NULL, other), UNSEEN) if other in known_right else UNSEEN)
            continue
        if word in known_left and other in known_right:
            value = table.get((word, other), UNSEEN)
        else:
            value = 1.0 if word == other else UNSEEN
        found.append(value * prior(i, j, len(left), len(right)))
    return found


def grow_diag_final_and(forward: set, backward: set, sources: int, targets: int) -> set:
    """Koehn et al. 2005: row by row over a grid of words, again and again until nothing is added."""
    linked = [[(i, j) in forward and (i, j) in backward for j in range(targets)] for i in range(sources)]

    def row_linked(i: int) -> bool:
        return any(linked[i])

    def column_linked(j: int) -> bool:
        return any(row[j] for row in linked)

    def touches(i: int, j: int) -> bool:
        around = [(a, b) for a in (i - 1, i, i + 1) for b in (j - 1, j, j + 1) if (a, b) != (i, j)]
        return any(0 <= a < sources and 0 <= b < targets and linked[a][b] for a, b in around)

    cells = [(i, j) for i in range(sources) for j in range(targets)]
    added = True
    while added:
        added = False
        for i, j in cells:
            if linked[i][j] or (i, j) not in forward | backward or not touches(i, j):
                continue
            if not (row_linked(i) and column_linked(j)):
                linked[i][j] = added = True
    for side in (forward, backward):
        for i, j in cells:
            if (i, j) in side and not row_linked(i) and not column_linked(j):
                linked[i][j] = True
    return {(i, j) for i, j in cells if linked[i][j]}
