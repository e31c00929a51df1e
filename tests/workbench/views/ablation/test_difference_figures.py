"""Differences to the baselines of several experiments, by what tells the experiments apart."""

import pandas as pd
import pytest

from workbench.experiments import ablation
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.papers import experiment_differences
from workbench.plotting.grammar import Line, Points, Rule
from workbench.store.runs import RunError
from workbench.views.ablation.difference_figures import varied_between

GRID = """name: {name}
data: {{controlled: {{sentences: {sentences}, dev: 2, test: 2}}}}
systems:
  transformer: "transformer:preset=tiny,d_model={width}"
  gdr: "gdr:preset=tiny,d_model={width}"
  {last}
seeds: [1, 2]
training: {{max_steps: 10, learning_rate: {rate}}}
"""
# Of each experiment: width, sentences, rate, third system, and differences of gdr on two test sets.
EXPERIMENTS = {
    "wide": (32, 10, 0.001, "coverage: coverage:preset=tiny,d_model=32", (3.0, -1.0)),
    "narrow": (16, 10, 0.002, "future-cost-1: future-cost-1:preset=tiny,d_model=16", (1.0, -2.0)),
    "few": (16, 5, 0.002, "coverage: coverage:preset=tiny,d_model=16", (0.5, -3.0)),
}


@pytest.fixture(autouse=True)
def experiments(tmp_path, monkeypatch):
    folder = tmp_path / "experiments"
    (folder / "results").mkdir(parents=True)
    for name, (width, sentences, rate, last, deltas) in EXPERIMENTS.items():
        text = GRID.format(name=name, width=width, sentences=sentences, rate=rate, last=last)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        systems = ["transformer", "gdr", last.partition(":")[0]]
        compared = [
            {"system": system, "baseline": "transformer", "metric": metric, "test": test, "delta": delta,
             "low": delta - 1, "high": delta + 1, "seeds": 2}
            for metric in ("bleu", "chrf") for system in systems[1:]
            for test, delta in zip(("test", "long"), deltas, strict=True)
        ]  # fmt: skip
        pd.DataFrame(compared).to_csv(folder / "results" / f"{name}.comparisons.csv", index=False)
        pd.DataFrame({"system": systems}).to_csv(folder / "results" / f"{name}.scores.csv", index=False)
    for module in (ablation, experiment_differences):
        monkeypatch.setattr(module, "data_folder", lambda: tmp_path)


def drawn(experiments: str, option: str, **options: str):
    return draw("ablation-differences", Request((), options={"experiments": experiments, "option": option, **options}))


def test_each_point_is_the_difference_to_the_baseline_of_its_own_experiment():
    figure = drawn("wide,narrow", "d_model")
    assert [panel.title for panel in figure.panels] == ["test", "long"]
    for panel, wanted in zip(figure.panels, ([1.0, 3.0], [-2.0, -1.0]), strict=True):
        zero, line, points = panel.marks
        assert (type(zero), zero.position, type(line), type(points)) == (Rule, 0.0, Line, Points)
        assert line.series == points.series == "gdr"
        assert line.table["setting"].tolist() == ["16", "32"]
        assert line.table["delta"].tolist() == wanted
        assert points.table["low"].tolist() == [delta - 1 for delta in wanted]
    assert "What differs too: learning rate. " in figure.caption
    assert "largest with d_model 32 (gdr, test, +3.00), smallest with 16 (gdr, long, -2.00)" in figure.summary


def test_the_sentences_of_a_controlled_text_are_an_option_too():
    figure = drawn("narrow,few", "sentences", metric="chrf")
    lines = [mark for panel in figure.panels for mark in panel.marks if isinstance(mark, Line)]
    assert [line.table["setting"].tolist() for line in lines] == [["5", "10"]] * 2
    assert "differs too" not in figure.caption


def test_systems_of_one_value_stand_beside_each_other():
    figure = drawn("wide,few", "d_model")
    for panel in figure.panels:
        places = {mark.series: mark.table["place"].to_numpy() for mark in panel.marks if isinstance(mark, Line)}
        assert list(places) == ["gdr", "coverage"]
        assert (places["gdr"] < places["coverage"]).all()
    assert "What differs too: learning rate, sentences." in figure.caption


def test_options_that_differ_between_experiments_are_those_of_their_systems():
    assert varied_between(["wide", "narrow"]) == ["learning_rate", "d_model"]
    assert varied_between(["narrow", "few"]) == ["sentences"]
    assert varied_between(["wide"]) == varied_between([]) == []


@pytest.mark.parametrize(("wrong", "said"), [
    ({"option": "d_model", "experiments": "wide"}, "no system of wide has differences by bleu at two values"),
    ({"option": "d_model", "experiments": ""}, "name experiments with results"),
    ({"option": "d_model", "experiments": "wide,narow"}, "did you mean 'narrow'"),
    ({"option": "d_model", "experiments": "wide,narrow", "metric": "blue"}, "metric 'blue': choose"),
    ({"experiments": "wide,narrow", "option": ""}, "name the option that is varied"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_said(wrong, said):
    with pytest.raises(RunError, match=said):
        draw("ablation-differences", Request((), options=wrong))
