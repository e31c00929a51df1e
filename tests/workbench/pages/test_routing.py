"""Routing: figures and page show what the layers of a forced pass sent, and the measures of analyses.routing."""

import shutil

import numpy as np
import pytest

import core_models
from analyses import routing
from tests.workbench.pages.app_pages import charts, codes, open_page, texts
from workbench.drawing import Request, draw
from workbench.evaluation import test_set as read_test_set
from workbench.evaluation import translate_test
from workbench.runs import Run, RunError, open_run
from workbench.training import new_run, train

LAYERS = "preset=tiny,encoder_layers=3,decoder_layers=2"


@pytest.fixture(scope="module")
def routed(demo_runs, tmp_path_factory) -> Run:
    """A hardly trained run of em-routing on the demo's data, its test set translated."""
    folder = tmp_path_factory.mktemp("routed") / "demo" / "em-routing"
    training = {"max_steps": 2, "warmup": 1, "batch_tokens": 256}
    run = new_run(
        folder,
        f"em-routing:{LAYERS},capsules=8,iterations=3",
        demo_runs / "demo" / "data",
        training,
        {"max_length": 12},
    )
    train(run, device="cpu")
    test, truth = read_test_set(run, "test")
    translate_test(run, test, truth)
    return open_run(folder)


@pytest.fixture
def passed(routed):
    """[iterations, source, layers, capsules] of the reference of sentence 2, by the translator's own account."""
    found = routed.translations("test").test_set
    scored = core_models.load(routed.folder).score([found.sources[2]], [found.references[2]], trace=["*.assignments"])
    return scored[0].trace["em_routing.encoder.assignments"].values


def request(run: Run, **options) -> Request:
    return Request((run,), "test", 2, options={"target": "reference", **options})


def test_maps_are_shares_times_capsules_with_one_order_for_all_iterations(routed, passed):
    figure = draw("routing-maps", request(routed))
    shares = passed.mean(1) * 8
    assert [panel.title for panel in figure.panels] == ["iteration 1", "iteration 2", "iteration 3"]
    order = None
    for panel, wanted in zip(figure.panels, shares, strict=True):
        (heat,) = panel.marks
        found, _, _ = heat.cells()
        drawn = heat.table.drop_duplicates("place").sort_values("place")["capsule"].to_numpy()
        order = drawn if order is None else order
        np.testing.assert_array_equal(drawn, order)
        np.testing.assert_allclose(found, wanted[:, drawn], atol=1e-5)
    owner = shares[-1].argmax(0)[order]
    assert (np.diff(owner) >= 0).all()  # by the layer that sends them most
    assert sorted(order) == list(range(8))
    assert figure.panels[0].y.texts == ("1", "2", "3")


def test_a_position_the_natural_order_and_growth(routed, passed):
    figure = draw("routing-maps", request(routed, position=1, order="natural", difference=True))
    for panel, wanted in zip(figure.panels, np.diff(passed[:, 1], axis=0) * 8, strict=True):
        np.testing.assert_allclose(panel.marks[0].cells()[0], wanted, atol=1e-5)
    assert [panel.title for panel in figure.panels] == ["iteration 2", "iteration 3"]
    assert {panel.marks[0].role for panel in figure.panels} == {"signed"}


def test_curves_are_the_measures_beside_the_papers(routed, passed):
    figure = draw("routing-curves", request(routed, layers=True))
    whole = figure.table[(figure.table.series == "em-routing") & (figure.table.mark == "line")]
    np.testing.assert_allclose(whole.entropy.dropna(), routing.entropy(passed), atol=1e-5)
    np.testing.assert_allclose(whole.diversity.dropna(), routing.diversity(passed), atol=1e-5)
    third = figure.table[figure.table.series == "em-routing, layer 3"]
    np.testing.assert_allclose(third.entropy.dropna(), routing.entropy(passed[:, :, [2]]), atol=1e-5)
    printed = figure.table[figure.table.series == "printed"]
    assert printed.entropy.dropna().tolist() == [6.24, 5.93, 5.86]
    assert printed.diversity.dropna().tolist() == [0.0, 0.09, 0.18]


def test_what_cannot_be_drawn_is_said(routed, demo_runs):
    for options, message in (
        ({"side": "middle"}, "side 'middle': choose encoder or decoder"),
        ({"position": 99}, "position 99: write mean, or a number from 0 to"),
        ({"order": "random"}, "order 'random': choose sorted or natural"),
        ({"limit": 1}, "limit 1: write a number above 1"),
        ({"positon": 1}, "there is no option 'positon'"),
    ):
        with pytest.raises(RunError, match=message):
            draw("routing-maps", request(routed, **options))
    with pytest.raises(RunError, match="transformer routes no layers of its encoder"):
        draw("routing-maps", request(open_run(demo_runs / "demo" / "transformer")))


def test_the_page(routed, with_demo, passed):
    shutil.copytree(routed.folder, with_demo / "demo" / "em-routing")
    runs = ["demo/transformer", "demo/em-routing"]
    at = open_page("routing", runs=runs, sentence="2", translation="Reference")
    maps, curves = charts(at)
    heats = [trace for trace in maps["data"] if trace["type"] == "heatmap"]
    assert len(heats) == 3
    assert any("entropy" in str(axis.get("title")) for name, axis in curves["layout"].items() if "axis" in name)
    commands = [code.split()[2] for code in codes(at) if code.startswith("workbench figure ")]
    assert commands == ["routing-maps", "routing-curves"]
    assert any("Without routing of this stack: transformer" in said.value.replace("\\", "") for said in at.caption)
    alone = open_page("routing", runs=["demo/transformer"])
    assert any("None of the chosen runs routes the layers of its encoder" in text for text in texts(alone))
    assert any(code.startswith("workbench train em-routing") for code in codes(alone))
