"""Routing: figures and page show what the layers of a forced pass sent, and the measures of analyses.routing."""

import json
import shutil

import numpy as np
import pytest

import core_models
from analyses import routing
from tests.workbench.views.app_pages import charts, codes, open_page, showing_piece_marks, texts
from workbench.app.pages import PAGES
from workbench.experiments import ablation
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.plotting.grammar import Line
from workbench.store.runs import Run, RunError, open_run
from workbench.views.layer_routing.figures import rows_of


@pytest.fixture
def routed(routed_run) -> Run:
    return routed_run


@pytest.fixture
def passed(routed):
    """[iterations, source, layers, capsules] of the reference of sentence 2, by the translator's own account."""
    found = routed.translations("test").test_set
    scored = core_models.load(routed.folder).score([found.sources[2]], [found.references[2]], trace=["*.assignments"])
    return scored[0].trace["em_routing.encoder.assignments"].values


def request(run: Run, **options) -> Request:
    return Request((run,), "test", 2, options={"target": "reference", **options})


@pytest.mark.parametrize("order", ["natural", "sorted"])
def test_a_capsule_stands_at_its_own_number_in_one_order_at_every_position(routed, passed, order):
    """In whatever order: the number below a column is that of the capsule which the column is of."""
    orders = set()
    for position in ("mean", 1, 3):
        figure = draw("routing-maps", request(routed, order=order, position=position))
        wanted = passed.mean(1) if position == "mean" else passed[:, position]
        for panel, shares in zip(figure.panels, wanted, strict=True):
            numbers = [int(text) for text in panel.x.texts]
            assert panel.x.positions == tuple(range(8))
            np.testing.assert_allclose(panel.marks[0].cells()[0], shares[:, numbers] * 8, atol=1e-4)
            orders.add(tuple(numbers))
    assert len(orders) == 1
    assert order == "sorted" or orders == {tuple(range(8))}
    unless_told = draw("routing-maps", request(routed)).panels[0].x.texts
    assert unless_told == tuple(map(str, range(8)))


def test_entropy_along_a_sentence_has_the_look_that_the_run_has_in_the_other_curves(routed):
    marks = [mark for panel in draw("routing-curves", request(routed)).panels for mark in panel.marks]
    curves = {mark.series: mark.style for mark in marks if isinstance(mark, Line)}
    (panel,) = draw("routing-along", request(routed)).panels
    (line,) = (mark for mark in panel.marks if isinstance(mark, Line))
    assert line.style == curves[line.series]


@pytest.mark.parametrize("asked", ["3", "3  ▁the"])
def test_a_position_in_the_url_is_a_number(both, asked):
    """Typed, or of an older link, which had the word behind it."""
    at = open_page("routing", **both, sentence="2", translation="Reference", position=asked)
    assert at.select_slider(key="position").value == "3"
    assert at.select_slider(key="position").options[4] == "3"
    assert not showing_piece_marks(at)
    assert not at.warning
    assert all("--option position=3 " in code for code in codes(at) if code.startswith("workbench figure"))


def test_maps_are_shares_times_capsules_with_one_order_for_all_iterations(routed, passed):
    figure = draw("routing-maps", request(routed, order="sorted"))
    shares = passed.mean(1) * 8
    assert [panel.title for panel in figure.panels] == ["iteration 1", "iteration 2", "iteration 3"]
    order = None
    for panel, wanted in zip(figure.panels, shares, strict=True):
        (heat,) = panel.marks
        found, _, _ = heat.cells()
        drawn = heat.table.drop_duplicates("place").sort_values("place")["capsule"].to_numpy()
        order = drawn if order is None else order
        np.testing.assert_array_equal(drawn, order)
        np.testing.assert_allclose(found, wanted[:, drawn], atol=1e-4)
    owner = shares[-1].argmax(0)[order]
    assert (np.diff(owner) >= 0).all()  # by the layer that sends them most
    assert sorted(order) == list(range(8))
    assert figure.panels[0].y.texts == ("1", "2", "3")


def test_a_position_the_natural_order_and_growth(routed, passed):
    figure = draw("routing-maps", request(routed, position=1, order="natural", difference=True))
    for panel, wanted in zip(figure.panels, np.diff(passed[:, 1], axis=0) * 8, strict=True):
        np.testing.assert_allclose(panel.marks[0].cells()[0], wanted, atol=1e-4)
    assert [panel.title for panel in figure.panels] == ["iteration 2", "iteration 3"]
    assert {panel.marks[0].role for panel in figure.panels} == {"signed"}


def test_curves_are_the_measures_beside_the_papers(routed, passed):
    figure = draw("routing-curves", request(routed, layers=True))
    whole = figure.table[(figure.table.series == "em-routing") & (figure.table.mark == "line")]
    np.testing.assert_allclose(whole.entropy.dropna(), routing.entropy(passed), atol=1e-5)
    np.testing.assert_allclose(whole.diversity.dropna(), routing.diversity(passed), atol=1e-5)
    third = figure.table[figure.table.series == "em-routing, layer 3"]
    np.testing.assert_allclose(third.entropy.dropna(), routing.entropy(passed[:, :, [2]]), atol=1e-5)
    printed = figure.table[figure.table.series == "reported"]
    assert printed.entropy.dropna().tolist() == [6.24, 5.93, 5.86]
    assert printed.diversity.dropna().tolist() == [0.0, 0.09, 0.18]


def test_entropy_is_drawn_as_a_share_of_that_of_even_shares_of_each_number_of_capsules(routed, passed):
    shares = draw("routing-curves", request(routed))
    nats = draw("routing-curves", request(routed, entropy="nats"))
    own, printed = (shares.table[shares.table.series == name] for name in ("em-routing", "reported"))
    np.testing.assert_allclose(own.entropy_share.dropna(), routing.entropy(passed) / np.log(8), atol=1e-5)
    np.testing.assert_allclose(printed.entropy_share.dropna(), np.array([6.24, 5.93, 5.86]) / np.log(512))
    assert [panel.y.label for panel in shares.panels] == ["entropy / log N", "diversity"]
    assert [mark.position for mark in shares.panels[0].marks if mark.kind == "rule"] == [1.0]
    assert "divided by log 512" in shares.caption
    assert {mark.y for mark in nats.panels[0].marks} == {"entropy", "value"}
    assert [mark.position for mark in nats.panels[0].marks if mark.kind == "rule"] == [pytest.approx(np.log(8))]
    along = draw("routing-along", request(routed)).panels[0].marks[0]
    np.testing.assert_allclose(along.values(along.y), along.values("entropy") / np.log(8))


def test_what_cannot_be_drawn_is_said(routed, demo_runs):
    for options, message in (
        ({"side": "middle"}, "side 'middle': choose encoder, decoder"),
        ({"position": 99}, "position 99: write mean, or a number from 0 to"),
        ({"order": "random"}, "order 'random': choose natural, sorted"),
        ({"limit": 1}, "limit 1: write a number above 1"),
        ({"positon": 1}, "there is no option 'positon'"),
    ):
        with pytest.raises(RunError, match=message):
            draw("routing-maps", request(routed, **options))
    with pytest.raises(RunError, match="transformer routes no layers of its encoder"):
        draw("routing-maps", request(open_run(demo_runs / "demo" / "transformer")))


def test_one_iteration_keeps_the_order_and_the_scale_of_all(routed, passed):
    whole = draw("routing-maps", request(routed, position=1))
    for iteration in (1, 2, 3):
        (panel,) = draw("routing-maps", request(routed, position=1, iteration=iteration)).panels
        (heat,), (same,) = panel.marks, whole.panels[iteration - 1].marks
        assert heat.rows().equals(same.rows())
        assert heat.limits == same.limits
    with pytest.raises(RunError, match="the first iteration has no growth"):
        draw("routing-maps", request(routed, iteration=1, difference=True))
    with pytest.raises(RunError, match="iteration 4: write all, or a number from 1 to 3"):
        draw("routing-maps", request(routed, iteration=4))


def test_the_curves_of_a_position_mark_the_iteration(routed, passed):
    table = draw("routing-curves", request(routed, position=2, iteration=2)).table
    line = table[(table.series == "em-routing") & (table.mark == "line")]
    np.testing.assert_allclose(line.entropy.dropna(), routing.entropy(passed[:, [2]]), atol=1e-5)
    marked = table[(table.series == "em-routing") & (table.mark == "points")]
    assert set(marked.iteration) == {2}
    np.testing.assert_allclose(marked.entropy.dropna(), routing.entropy(passed[:, [2]])[1], atol=1e-5)


def test_along_the_sentence_stands_the_entropy_of_each_position(routed, passed):
    figure = draw("routing-along", request(routed, iteration=2, position=3))
    line, rule, marked = figure.panels[0].marks
    wanted = [routing.entropy(passed[[1]][:, [place]])[0] for place in range(passed.shape[1])]
    np.testing.assert_allclose(line.table.entropy, wanted, atol=1e-5)
    assert (rule.position, marked.table.position.tolist()) == (3.0, [3])
    assert figure.panels[0].x.texts[-1] == "</s>"


def test_in_the_decoder_a_position_is_named_by_its_prefix(routed):
    tokens = [*draw("routing-along", request(routed, side="decoder")).panels[0].x.texts]
    caption = draw("routing-curves", request(routed, side="decoder", position=2)).caption
    assert f"where {tokens[2]} is predicted after {tokens[0]} {tokens[1]}" in caption


def test_runs_of_other_words_are_named_apart_and_each_is_drawn_as_far_as_it_reaches(routed, tmp_path):
    folder = shutil.copytree(routed.folder, tmp_path / "shorter")
    path = folder / "translations" / "test" / "details.jsonl"
    details = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    longer = details[2]["tokens"]
    word = next(piece for one in details for piece in one["tokens"] if piece not in (longer[0], "</s>"))
    details[2]["tokens"] = [word, "</s>"]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in details), encoding="utf-8")
    assert len(longer) > 3

    def drawn_at(name, position):
        options = {"side": "decoder", "position": position}
        return draw(name, Request((routed, open_run(folder)), "test", 2, options=options))

    first, last = f"where {longer[0]} is predicted", f"where {longer[-1]} is predicted"
    for name in ("routing-maps", "routing-curves", "routing-along"):
        caption = drawn_at(name, 0).caption
        assert f"(em-routing: {first} after the beginning; shorter: where {word} is predicted" in caption
        assert last in drawn_at(name, len(longer) - 1).caption
        with pytest.raises(RunError, match=f"write mean, or a number from 0 to {len(longer) - 1}"):
            drawn_at(name, len(longer))
    assert {"em-routing", "shorter"} <= set(drawn_at("routing-curves", 0).table.series)
    assert "shorter" not in set(drawn_at("routing-curves", len(longer) - 1).table.series)


@pytest.fixture
def both(routed, with_demo):
    """Query parameters of a page with a run that routes and one that does not."""
    shutil.copytree(routed.folder, with_demo / "demo" / "em-routing")
    return {"runs": ["demo/transformer", "demo/em-routing"]}


def drawn(at) -> list[str]:
    return [code.split()[2] for code in codes(at) if code.startswith("workbench figure ")]


@pytest.mark.slow
def test_the_page(both):
    at = open_page("routing", **both, sentence="2", translation="Reference")
    maps, curves, _ = charts(at)
    heats = [trace for trace in maps["data"] if trace["type"] == "heatmap"]
    assert len(heats) == 3
    assert any("entropy" in str(axis.get("title")) for name, axis in curves["layout"].items() if "axis" in name)
    assert drawn(at) == ["routing-maps", "routing-curves", "routing-along"]
    assert any("Without routing of this stack: transformer" in said.value.replace("\\", "") for said in at.caption)
    at.select_slider(key="iteration").set_value("2").run()
    at.select_slider(key="position").set_value("1").run()
    assert not at.exception
    assert len([trace for trace in charts(at)[0]["data"] if trace["type"] == "heatmap"]) == 1
    assert all("--option iteration=2" in code and "--option position=1" in code for code in codes(at))


@pytest.mark.slow
def test_the_other_sections_of_the_page(both):
    for part, names in (("Test set", ["routing-corpus"]), ("Trained vs. control", ["routing-learned"]),
                        ("Over training", ["routing-health"])):  # fmt: skip
        at = open_page("routing", **both, routing=part)
        assert drawn(at) == names
        assert not at.error
    linked = open_page("routing", **both, routing="What is learned")  # as the part was called when the link was made
    assert drawn(linked) == ["routing-learned"]
    linked = open_page("routing", **both, routing="Test set", formula="As printed")
    assert any("formula" in code for code in codes(linked))
    at = open_page("routing", **both, routing="Ablations")
    assert drawn(at)[0] == "ablation"
    source, option = at.selectbox(key="swept"), at.selectbox(key="option")
    settings = ablation.settings_of_experiment(source.value)
    assert option.value in ablation.varied_options_of(PAGES["routing"].mechanisms, settings)
    at = source.select("runs").run()  # the demo's runs, none of which differ in an option of routing
    assert "model" in at.selectbox(key="option").options
    assert not at.error


def test_the_page_without_a_run_that_routes_says_how_to_train_one(with_demo):
    alone = open_page("routing", runs=["demo/transformer"])
    assert any("None of the chosen runs routes the layers of its encoder" in text for text in texts(alone))
    assert any("workbench train em-routing" in code and "workbench demo em-routing" in code for code in codes(alone))


def test_layers_of_several_runs_stand_at_rows_of_their_own_names():
    """One run routes the embedding too, the other has one layer more."""
    rows = rows_of([["embedding", "1", "2"], ["1", "2", "3"]])
    assert rows == ["embedding", "1", "2", "3"]
    assert rows_of([["1", "2"], ["1", "2"]]) == ["1", "2"]
