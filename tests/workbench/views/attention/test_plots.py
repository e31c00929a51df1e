"""Attention maps, the alignment grid, words and layers: what the marks hold for tables worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from workbench.export.files import save
from workbench.plotting.axes import matrix_table
from workbench.plotting.grammar import Heat, Labels, Line, Points
from workbench.plotting.matplotlib_renderer import to_matplotlib
from workbench.plotting.plotly_renderer import to_plotly
from workbench.store.runs import RunError
from workbench.views.attention import plots as attention
from workbench.views.attention.figures import PARTS, map_differences
from workbench.views.tokens import plots as tokens

pytestmark = pytest.mark.long

KEYS, QUERIES = ["the", "dog", "the", "</s>"], ["der", "Hund", "</s>"]
WEIGHTS = [[0.7, 0.1, 0.1, 0.1], [0.0, 0.8, 0.2, 0.0], [0.0, 0.0, 0.25, 0.75]]


def cells(*panels: str) -> pd.DataFrame:
    table = matrix_table(np.array(WEIGHTS), KEYS, QUERIES, x="key", y="query", value="weight")
    return pd.concat([table.assign(panel=panel) for panel in panels], ignore_index=True)


def test_a_map_reads_downwards_and_keeps_repeated_tokens_apart():
    figure = attention.attention_maps(cells("transformer"))
    (panel,) = figure.panels
    (heat,) = panel.marks
    assert heat.cells()[0].tolist() == WEIGHTS
    assert (panel.x.texts, panel.y.texts) == (tuple(KEYS), tuple(QUERIES))
    assert panel.y.reversed
    assert "'Hund' attends most to 'dog' (0.80)" in figure.summary
    drawn = to_plotly(figure).data[0]
    assert drawn.z.shape == (3, 4)
    assert "key" not in drawn.hovertext[0][0]
    assert to_matplotlib(figure).axes[0].yaxis.get_inverted()


@pytest.mark.long
def test_many_maps_share_one_scale_and_their_labels():
    names = [f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
    figure = attention.attention_maps(cells(*names), columns=4, limit=0.5)
    assert [panel.title for panel in figure.panels] == names
    assert figure.shared_x
    assert figure.shared_y
    drawn = to_plotly(figure)
    assert {trace.coloraxis for trace in drawn.data} == {"coloraxis"}
    assert (drawn.layout.coloraxis.cmin, drawn.layout.coloraxis.cmax) == (0.0, 0.5)
    assert drawn.data[0].z.max() == 0.5
    assert len(to_matplotlib(figure, "page").axes) == len(names) + 1


def test_compared_systems_share_one_axis_of_the_source_and_no_word_lacks_its_label():
    source, targets = [f"s{number}" for number in range(50)], {"a": 45, "b": 12}
    tables = [
        matrix_table(np.full((count, 50), 0.02), source, [f"{name}{n}" for n in range(count)], "key", "query", "weight")
        .assign(panel=name)
        for name, count in targets.items()
    ]  # fmt: skip
    figure = attention.attention_maps(pd.concat(tables), columns=2, keys_down=True)
    assert (figure.columns, figure.side_by_side, figure.shared_y) == (2, True, True)
    screen = to_plotly(figure, width=280)
    assert [len(axis.ticktext) for axis in screen.select_xaxes()] == [45, 12]
    assert list(screen.layout.yaxis.ticktext) == source
    assert screen.layout.yaxis2.showticklabels is False
    assert [panel.y.label for panel in figure.panels] == ["source", "source"]
    assert [panel.marks[0].cells()[0].shape for panel in figure.panels] == [(50, 45), (50, 12)]


def test_maps_of_other_words_or_of_other_heads_have_no_difference():
    plain = cells("a")
    with pytest.raises(RunError, match=r"b and a read or write other words here.*target=reference"):
        map_differences({"a": [plain], "b": [plain.replace({"query_token": {"Hund": "Katze"}})]}, "a")
    with pytest.raises(RunError, match="b has other layers or heads than a"):
        map_differences({"a": [plain], "b": [plain, plain]}, "a")
    with pytest.raises(RunError, match="needs two runs"):
        map_differences({"a": [plain]}, "a")


def test_differences_are_white_at_0_on_a_scale_of_their_own():
    changed = cells("b − a")
    changed["weight"] = [-0.4, 0.1, 0.3, *np.zeros(9)]
    figure = attention.attention_maps(cells("a", "b"), differences=changed, columns=3, caption="Maps.")
    heats = [panel.marks[0] for panel in figure.panels]
    assert [(heat.role, heat.limits) for heat in heats] == [("probability", (0, 0.8))] * 2 + [("signed", (-0.4, 0.4))]
    assert figure.caption == (
        "Maps. Colors reach from 0 to 0.8, the largest value rounded up. Differences reach from −0.4 to 0.4, the "
        "largest value rounded up."
    )


def test_all_maps_share_the_scale_of_the_largest_weight():
    table = cells("a", "b")
    table.loc[table["panel"] == "a", "weight"] /= 2
    figure = attention.attention_maps(table)
    assert {panel.marks[0].limits for panel in figure.panels} == {(0.0, 0.8)}
    assert figure.caption == "Colors reach from 0 to 0.8, the largest value rounded up."
    asked = attention.attention_maps(table, caption="Maps.", limit=0.5)
    assert asked.caption == "Maps. Colors reach from 0 to 0.5; larger values, up to 0.8, have the last color."


def test_links_stand_on_their_cells():
    links = pd.DataFrame(
        [("a", 0, 0, "attention"), ("a", 1, 1, "sure"), ("a", 1, 2, "possible"), ("b", 2, 3, "attention")],
        columns=["panel", "query", "key", "kind"],
    )
    figure = attention.attention_maps(cells("a", "b"), links, columns=2)
    first, second = ([mark for mark in panel.marks if isinstance(mark, Points)] for panel in figure.panels)
    found = {mark.series: mark.rows()[["key", "query"]].to_numpy().tolist() for mark in first}
    assert found == {"gold, sure": [[1, 1]], "gold, possible": [[2, 1]], "most attended": [[0, 0]]}
    assert [mark.series for mark in second] == ["most attended"]
    assert {mark.series for mark in figure.legend()} == set(found)


def words(system: str, written: list[str], ranks: list[int]) -> pd.DataFrame:
    count = len(written)
    return pd.DataFrame(
        {
            "system": system,
            "step": range(1, count + 1),
            "token": written,
            "probability": [1 / rank for rank in ranks],
            "entropy": [0.5 * rank for rank in ranks],
            "rank": ranks,
            "best": ["der"] * count,
            "best_probability": [0.9] * count,
        }
    )


def test_systems_with_the_same_words_share_their_panels():
    table = pd.concat([words("a", ["der", "</s>"], [1, 4]), words("b", ["der", "</s>"], [2, 1])])
    figure = tokens.token_probabilities(table)
    assert [panel.y.label for panel in figure.panels] == ["P(word)", "entropy (nats)", "rank"]
    for panel, column in zip(figure.panels, ("probability", "entropy", "rank"), strict=True):
        drawn = {mark.series: mark.values(column).tolist() for mark in panel.marks if isinstance(mark, Line)}
        assert drawn == {name: rows[column].tolist() for name, rows in table.groupby("system")}
    assert [mark.series for mark in figure.legend()] == ["a", "b"]
    assert figure.summary == (
        "Tokens that are the most probable ones where they stand: 1 of 2 of a, 1 of 2 of b. "
        "Least sure is a of '</s>' (P = 0.25, rank 4)."
    )
    assert figure.panels[2].y.texts[:2] == ("1", "10")


def test_systems_with_other_words_stand_side_by_side():
    figure = tokens.token_probabilities(pd.concat([words("a", ["der"], [1]), words("b", ["die", "</s>"], [2, 1])]))
    assert figure.columns == 2
    assert [panel.title for panel in figure.panels[:2]] == ["a", "b"]
    assert [panel.x.texts for panel in figure.panels] == [("der",), ("die", "</s>")] * 3
    assert figure.legend() == []


def test_the_lens_names_the_best_word_and_shades_the_written_one(tmp_path):
    rows = words("a", ["der", "</s>"], [2, 1])
    rows["best"] = ["Donaudampfschifffahrt" * 3, "</s>"]
    table = pd.concat([rows.assign(layer=0, name="embedding"), rows.assign(layer=1, name="layer 1")])
    figure = tokens.layer_lens(table)
    heat, labels = figure.panels[0].marks
    assert isinstance(heat, Heat)
    assert isinstance(labels, Labels)
    assert heat.cells()[0].tolist() == [[0.5, 0.5], [1.0, 1.0]]
    texts = labels.table["label"].tolist()
    assert texts[-1] == "</s>"
    assert texts[0].endswith("…")
    assert len(texts[0]) == 44
    assert figure.panels[0].x.texts == ("embedding", "layer 1")
    assert save(figure, tmp_path / "lens.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (
            [1, 2],
            [1, 1],
            "after embedding at least half of its 2 tokens are already the most probable ones, all 2 after",
        ),
        (
            [2, 2, 1, 1],
            [2, 1, 1, 1],
            "after embedding at least half of its 4 tokens are already the most probable ones, 3 after",
        ),
        ([2, 2], [1, 1], "all of its 2 tokens are the most probable ones after"),
        ([2, 2, 2], [1, 2, 2], "1 of its 3 tokens are the most probable ones after"),
    ],
)
def test_the_lens_says_after_which_layer_the_words_are_settled(first, last, said):
    parts = [words("a", ["der"] * len(ranks), ranks) for ranks in (first, last)]
    table = pd.concat([part.assign(layer=at, name=("embedding", "layer 1")[at]) for at, part in enumerate(parts)])
    assert tokens.layer_lens(table).summary == f"a: {said} layer 1."


def test_the_summary_names_the_side_of_a_token_however_the_axis_calls_it():
    for labels in (PARTS["encoder"][1], PARTS["decoder"][1], ("context (sources)", "source")):
        (key, query) = (label.split()[0] for label in labels)
        for panels in (("a",), ("a", "b")):
            summary = attention.attention_maps(cells(*panels), labels=labels).summary
            assert f"the most attended {key} token gets 0.75 of a {query} token's attention" in summary


def test_the_lens_of_four_systems_has_two_panels_in_a_row_with_room_for_nine_letters():
    rows = words("a", ["Entscheidung", "Entschluss", "</s>"], [1, 1, 1])
    rows["best"] = ["vorhaben", "Entscheidung", "Entschluss"]
    layers = pd.concat([rows.assign(layer=number, name=f"layer {number}") for number in range(5)])
    figure = tokens.layer_lens(pd.concat([layers.assign(system=system) for system in "abcd"]))
    assert (len(figure.panels), figure.columns) == (4, 2)
    _, labels = figure.panels[0].marks
    assert list(dict.fromkeys(labels.table["label"])) == ["vorhaben", "Entsche…", "Entschl…"]
