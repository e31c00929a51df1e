"""Beam trees: a small search worked by hand, and laws of the layout on random searches."""

import random

import pytest

from analyses import beam

FIELDS = ("step", "parent", "word", "log_prob", "score", "normalised", "rank", "fate")
# Beam 2. "the cat </s>" wins although "a" ranked first at step 1.
A = {
    **dict(
        zip(
            FIELDS,
            zip(
                (1, -1, "a", -0.5, -0.5, -0.5, 0, "kept"),
                (1, -1, "the", -0.9, -0.9, -0.9, 1, "kept"),
                (1, -1, "one", -3.0, -3.0, -3.0, 2, "pruned"),
                (2, 1, "cat", -0.1, -1.0, -0.5, 0, "kept"),
                (2, 0, "cat", -0.9, -1.4, -0.7, 1, "kept"),
                (2, 0, "dog", -1.5, -2.0, -1.0, 2, "pruned"),
                (3, 3, "</s>", -0.1, -1.1, -0.4, 0, "finished"),
                (3, 4, "</s>", -0.2, -1.6, -0.5, 1, "finished"),
                strict=True,
            ),
            strict=True,
        )
    ),
    "best": 6,
}
# Keeps "a dog", never looks at "one", and ends "a dog </s>".
B = {
    **dict(
        zip(
            FIELDS,
            zip(
                (1, -1, "a", -0.4, -0.4, -0.4, 0, "kept"),
                (1, -1, "the", -1.0, -1.0, -1.0, 1, "kept"),
                (2, 0, "dog", -0.2, -0.6, -0.3, 0, "kept"),
                (2, 1, "cat", -0.3, -1.3, -0.7, 1, "kept"),
                (2, 0, "cat", -2.0, -2.4, -1.2, 2, "pruned"),
                (3, 2, "</s>", -0.1, -0.7, -0.2, 0, "finished"),
                (3, 3, "</s>", -0.5, -1.8, -0.6, 1, "finished"),
                strict=True,
            ),
            strict=True,
        )
    ),
    "best": 5,
}


def test_tree_worked_by_hand():
    nodes = beam.tree(A)
    assert nodes.prefix[6] == ("the", "cat", "</s>")
    assert list(nodes.on_best) == [False, True, False, True, False, False, True, False]
    assert list(nodes.children) == [2, 1, 0, 1, 1, 0, 0, 0]
    # Lines: "the cat </s>" 0; "a cat </s>" 1; "a dog" 2; "one" 3.
    assert list(nodes.y) == [1, 0, 3, 0, 1, 2, 0, 1]
    assert list(nodes.id) == list(range(8))
    assert list(nodes.score) == list(A["score"])


def test_diff_worked_by_hand():
    found = beam.diff(A, B)
    nodes = found.nodes.set_index("prefix")
    assert len(nodes) == 9  # eight prefixes of A, and B's "a dog </s>"
    dog = nodes.loc[[("a", "dog")]].iloc[0]
    assert (dog.in_a, dog.in_b, dog.fate_a, dog.fate_b, dog.score_a, dog.score_b) == (
        True, True, "pruned", "kept", -2.0, -0.6,
    )  # fmt: skip
    one = nodes.loc[[("one",)]].iloc[0]
    assert (one.in_b, one.fate_b) == (False, None)
    assert list(found.only_a[["prefix", "word", "step", "fate"]].itertuples(index=False, name=None)) == [
        ((), "one", 1, "pruned"),
        (("a", "cat"), "</s>", 3, "finished"),
    ]
    assert list(found.only_b[["prefix", "word", "score"]].itertuples(index=False, name=None)) == [
        (("a", "dog"), "</s>", -0.7)
    ]
    assert found.divergence_step == 1
    assert set(nodes.y[nodes.best_a]) == {0}
    # B's best path comes first among what is not A's: the next line after A's.
    assert set(nodes.y[nodes.best_b]) == {1}


def test_diff_of_a_search_with_itself_finds_nothing():
    found = beam.diff(A, A)
    assert found.divergence_step is None
    assert found.only_a.empty
    assert found.only_b.empty
    assert (found.nodes.fate_a == found.nodes.fate_b).all()
    by_prefix = dict(zip(found.nodes.prefix, found.nodes.y, strict=True))
    single = beam.tree(A)
    assert by_prefix == dict(zip(single.prefix, single.y, strict=True))


def test_one_best_path_that_continues_the_other_parts_after_its_end():
    def line(*words):
        count = len(words)
        return {
            "step": list(range(1, count + 1)),
            "parent": list(range(-1, count - 1)),
            "word": list(words),
            **{name: [-1.0] * count for name in ("log_prob", "score", "normalised")},
            "rank": [0] * count,
            "fate": ["kept"] * count,
            "best": count - 1,
        }

    assert beam.diff(line("a", "b"), line("a", "b", "c")).divergence_step == 3


def test_two_spellings_of_one_prefix_keep_the_better_fate():
    """Two vocabulary ids may print alike: the merged node is the one that stayed in the search."""
    twice = {name: [*A[name], A[name][2]] for name in FIELDS}
    twice["fate"][2] = "kept"
    moved = {**{name: [twice[name][i] for i in (0, 1, 2, 8, 3, 4, 5, 6, 7)] for name in FIELDS}, "best": 7}
    moved["parent"] = [parent + (parent > 2) for parent in moved["parent"]]
    assert list(moved["word"][2:4]) == ["one", "one"]
    nodes = beam.diff(moved, B).nodes
    assert nodes.fate_a[nodes.prefix == ("one",)].item() == "kept"


def random_record(seed, beam_size=4, steps=12):
    draw = random.Random(seed)
    rows, alive = [], [-1]
    for step in range(1, steps + 1):
        candidates = [(parent, f"w{word}") for parent in alive for word in range(3)]
        draw.shuffle(candidates)
        alive = []
        for rank, (parent, word) in enumerate(candidates):
            fate = "kept" if rank < beam_size else "pruned"
            alive += [len(rows)] if fate == "kept" else []
            rows.append((step, parent, word, -1.0, -float(step), -1.0, rank, fate))
    return {**dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True)), "best": draw.choice(alive)}


@pytest.mark.parametrize("seed", range(5))
def test_layout_laws(seed):
    nodes = beam.tree(random_record(seed))
    assert (nodes.y[nodes.on_best] == 0).all()
    assert nodes.on_best.sum() == nodes.step.max()
    assert not nodes.duplicated(["step", "y"]).any()  # no two nodes on one spot
    leaves = nodes[nodes.children == 0]
    assert sorted(leaves.y) == list(range(len(leaves)))  # each leaf a line, no line empty
    inner = nodes[(nodes.parent >= 0) & ~nodes.on_best]
    for _, siblings in inner.groupby("parent"):
        assert siblings.sort_values("rank").y.is_monotonic_increasing
    # Lines that join parent and child never cross: within a step, order by y is order by the parents' y.
    for _, level in nodes[nodes.parent >= 0].groupby("step"):
        assert nodes.y[level.sort_values("y").parent].is_monotonic_increasing


def test_contradictions_are_named():
    with pytest.raises(ValueError, match="lacks rank"):
        beam.tree({name: value for name, value in A.items() if name != "rank"})
    with pytest.raises(ValueError, match=r"Row 5 .* extends row 2.*was kept"):
        beam.tree({**A, "parent": [-1, -1, -1, 1, 0, 2, 3, 4]})
    with pytest.raises(ValueError, match="'lost'"):
        beam.tree({**A, "fate": ["lost", *A["fate"][1:]]})
    with pytest.raises(ValueError, match="best row 9"):
        beam.tree({**A, "best": 9})
    with pytest.raises(ValueError, match="equally long"):
        beam.tree({**A, "word": ["a"]})
