"""Ablations: which systems differ in one option alone, their scores, their costs, and what papers print for it."""

import math
import shutil

import pandas as pd
import pytest

from workbench.app.components import figure_view
from workbench.evaluation import scoring
from workbench.experiments import ablation
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.papers.reported_ablations import reported_costs, reported_notes, reported_scores
from workbench.plotting.grammar import Line, Points, Rule
from workbench.store.runs import RunError, open_run
from workbench.views.ablation.plots import ablation as drawn
from workbench.views.ablation.plots import ablation_cost

GRID = """name: grid
data: {controlled: {sentences: 10, dev: 2, test: 2}}
systems:
  transformer: "transformer:preset=tiny"
  em-2: "em-routing:preset=tiny,capsules=2"
  em-all: "em-routing:preset=tiny"
  em-32: "em-routing:preset=tiny,capsules=32"
  em-32-once: "em-routing:preset=tiny,capsules=32,iterations=1"
  dr-2: "dynamic-routing:preset=tiny,capsules=2"
  dr-4: "dynamic-routing:preset=tiny,capsules=4"
seeds: [1, 2]
training: {max_steps: 10}
"""
SCORES = {
    "transformer": 20.0,
    "em-2": 21.0,
    "em-all": 23.0,
    "em-32": 22.0,
    "em-32-once": 19.0,
    "dr-2": 20.5,
    "dr-4": 20.7,
}


@pytest.fixture
def grid(tmp_path):
    """A folder of experiments with one grid of two seeds, one of them 0.5 above and one 0.5 below its mean."""
    (tmp_path / "grid.yaml").write_text(GRID, encoding="utf-8")
    results = tmp_path / "results"
    results.mkdir()
    common = {"metric": "bleu", "test": "test"}
    rows = [{"system": system, "score": score, "low": score - 1, "high": score + 1, "seeds": 2, **common}
            for system, score in SCORES.items()]  # fmt: skip
    cells = [{"system": system, "seed": seed, "score": score + seed - 1.5, **common}
             for system, score in SCORES.items() for seed in (1, 2)]  # fmt: skip
    pd.DataFrame(rows).to_csv(results / "grid.scores.csv", index=False)
    pd.DataFrame(cells).to_csv(results / "grid.cells.csv", index=False)
    return tmp_path


def test_a_sweep_joins_systems_that_differ_in_the_option_alone(grid):
    settings = ablation.settings_of_experiment("grid", grid)
    assert ablation.option_grid(settings, "capsules") == {
        "em-2": ("em-routing", 2),
        "em-all": ("em-routing", 64),  # as many as the vector has numbers: preset tiny
        "em-32": ("em-routing", 32),
        "dr-2": ("dynamic-routing", 2),
        "dr-4": ("dynamic-routing", 4),
    }
    assert ablation.option_grid(settings, "iterations") == {"em-32": ("em-routing", 3), "em-32-once": ("em-routing", 1)}
    assert set(ablation.varied_options(settings)) == {"capsules", "iterations"}
    assert ablation.base_of(settings, "capsules") == "transformer"


def test_the_baseline_has_no_mechanism_and_the_backbone_of_those_that_are_varied():
    systems = ["coverage", "em-routing", "future-cost-1", "future-cost-2", "rnnsearch", "transformer"]
    settings = {system: ablation.of_description(system) for system in systems}
    assert ablation.base_of(settings, "model") == "transformer"
    assert ablation.base_of(settings, "model", "em-routing") == "em-routing"
    del settings["transformer"]
    assert ablation.base_of(settings, "model") == "rnnsearch"


def test_the_options_of_a_mechanism_are_those_in_which_two_systems_with_it_differ():
    systems = ["future-cost-1", "future-cost-2", "em-routing:capsules=2", "em-routing:capsules=4"]
    settings = {system: ablation.of_description(system) for system in systems}
    assert ablation.varied_options_of(["em_routing", "dynamic_routing"], settings) == ["capsules"]
    assert ablation.varied_options_of(["guided_capsules"], settings) == []


def test_series_of_one_mechanism_are_told_apart_by_what_differs():
    systems = [f"em-routing:capsules={n},inputs={inputs}" for n in (2, 4) for inputs in ("own", "all")]
    found = ablation.option_grid({system: ablation.of_description(system) for system in systems}, "capsules")
    assert set(found.values()) == {
        (f"em-routing, inputs={inputs}", n) for n in (2, 4) for inputs in ("own", "all")
    }  # fmt: skip


def test_an_option_that_two_mechanisms_share_is_varied_in_both():
    systems = ["qcn-reg", "qcn-reg:capsules=2", "qcn-reg:iterations=2", "qcn-reg:query_capsules.iterations=3"]
    settings = {system: ablation.of_description(system) for system in systems}
    assert ablation.varied_options(settings) == ["capsules", "iterations"]
    called = ablation.option_grid(settings, "iterations")
    assert called == {"qcn-reg": ("qcn-reg", 4), "qcn-reg:iterations=2": ("qcn-reg", 2)}


def test_an_option_that_nothing_varies_is_answered_with_those_that_do(grid):
    settings = ablation.settings_of_experiment("grid", grid)
    with pytest.raises(RunError, match="no two of these systems differ in inputs alone"):
        ablation.option_grid(settings, "inputs")
    with pytest.raises(RunError, match="none of these systems has an option 'capsule'; did you mean 'capsules'"):
        ablation.option_grid(settings, "capsule")
    with pytest.raises(RunError, match="no results of an experiment 'gird'; did you mean 'grid'"):
        ablation.of_experiment("gird", "test", "bleu", grid)


def test_an_option_of_a_run_is_not_what_its_training_says_of_it_again(context_runs):
    for own in ablation.settings_of_runs(context_runs).values():
        assert "context_sentences" in own
        assert not any(name.endswith(".context_sentences") for name in own)


def test_an_experiment_is_found_by_what_it_varies(grid):
    assert ablation.experiment_varying("iterations", "em-routing", grid) == "grid"
    assert ablation.experiment_varying("iterations", "dynamic-routing", grid) is None  # varied of another mechanism
    assert ablation.experiment_varying("d_model", "em-routing", grid) is None


def test_systems_that_are_still_to_be_trained_offer_no_option(grid):
    path = grid / "results" / "grid.scores.csv"
    scores = pd.read_csv(path)
    scores[scores["system"] != "em-32-once"].to_csv(path, index=False)
    settings = ablation.settings_of_experiment("grid", grid)
    assert set(settings) == set(SCORES) - {"em-32-once"}
    assert ablation.varied_options(settings) == ["capsules"]  # not iterations, whose other system has no score


def test_the_results_of_an_experiment_with_seeds_as_dots(grid):
    points, seeds = ablation.score_points(ablation.of_experiment("grid", "test", "bleu", grid), "capsules")
    figure = drawn(points, "capsules", "BLEU", seeds, ("transformer", 20.0))
    marks = figure.panels[0].marks
    (line,) = (mark for mark in marks if isinstance(mark, Line) and mark.series == "em-routing")
    assert line.table["place"].tolist() == [1, 5, 6]  # doublings
    assert line.table["score"].tolist() == [21.0, 22.0, 23.0]
    bars, dots = (mark for mark in marks if isinstance(mark, Points) and mark.series == "em-routing")
    assert bars.table["low"].tolist() == [20.0, 21.0, 22.0]
    assert sorted(dots.table["score"]) == [20.5, 21.5, 21.5, 22.5, 22.5, 23.5]
    (base,) = (mark for mark in marks if isinstance(mark, Rule))
    assert (base.series, base.position) == ("transformer", 20.0)
    assert figure.panels[0].x.texts == ("2", "4", "32", "64")
    assert "BLEU is highest with capsules 64 (em-routing, 23.00)" in figure.summary


def test_few_numbers_stand_by_their_size_and_names_one_by_one(grid):
    points, _ = ablation.score_points(ablation.of_experiment("grid", "test", "bleu", grid), "iterations")
    (panel,) = drawn(points, "iterations", "BLEU").panels
    assert panel.x.positions == (1.0, 3.0)
    named = points.assign(value=["both", "encoder"])
    (panel,) = drawn(named, "side", "BLEU").panels
    assert (panel.x.kind, panel.x.texts) == ("category", ("both", "encoder"))
    assert not any(isinstance(mark, Line) for mark in panel.marks)  # nothing lies between two names


def test_runs_that_differ_in_an_option_are_scored_against_the_one_without_it(demo_runs, routed_run):
    runs = tuple(open_run(f"demo/{name}", demo_runs) for name in ("transformer", "future-cost-1", "future-cost-2"))
    wanted = scoring.score_table(runs, "test", ["bleu"]).set_index("system")
    figure = draw("ablation", Request(runs, "test", options={"option": "model"}))
    table = figure.table
    points = table[(table.mark == "points") & (table.series == "future-cost")]
    for value, name in (("1", "future-cost-1"), ("2", "future-cost-2")):
        row = points[points.setting == value].iloc[0]
        expected = wanted.loc[f"demo/{name}"]
        assert (row.score, row.low, row.high) == pytest.approx((expected.score, expected.low, expected.high))
    (base,) = (mark for mark in figure.panels[0].marks if isinstance(mark, Rule))
    assert base.position == pytest.approx(wanted.loc["demo/transformer"].score)
    assert "3 runs, test set test" in figure.caption
    with_another = (*runs, routed_run)
    assert (
        "3 runs, test set test" in draw("ablation", Request(with_another, "test", options={"option": "model"})).caption
    )
    with pytest.raises(RunError, match="name the option that is varied"):
        draw("ablation", Request(runs, "test"))


def test_costs_are_relative_to_the_first_system_of_a_bench(grid):
    systems = {"transformer:preset=tiny": (1.0, 1.0), "em-routing:preset=tiny,iterations=1": (0.9, 0.95),
               "em-routing:preset=tiny,iterations=3": (0.6, 0.8)}  # fmt: skip
    rows = [{"engine": name, "system": name, "precision": "float32", "train_ratio": train, "decode_ratio": decode,
             "train_memory_bytes": 5e8 / train} for name, (train, decode) in systems.items()]  # fmt: skip
    rows += [{"engine": "int8", "system": "transformer:preset=tiny", "precision": "int8"}, {"engine": "marian"}]
    pd.DataFrame(rows).to_csv(grid / "results" / "speeds.csv", index=False)
    assert ablation.benches(grid) == ["speeds"]
    assert ablation.benches_of("iterations", grid) == ["speeds"]
    assert ablation.benches_of("capsules", grid) == []
    points, base, settings = ablation.cost_points("speeds", "iterations", grid)
    figure = ablation_cost(points, "iterations", base, reported_costs("iterations", settings))
    training, decoding, memory = figure.panels
    assert [panel.y.label for panel in figure.panels] == ["training speed", "decoding speed", "training memory"]
    for panel, wanted in ((training, [0.9, 0.6]), (decoding, [0.95, 0.8]), (memory, [1 / 0.9, 1 / 0.6])):
        (line,) = (mark for mark in panel.marks if isinstance(mark, Line))
        assert line.table["ratio"].tolist() == pytest.approx(wanted)
    (printed,) = (mark for mark in training.marks if isinstance(mark, Points))
    assert printed.table["ratio"].tolist() == pytest.approx([1.10 / 1.79])  # Dou et al. 2019, Table 1
    assert printed.table["place"].tolist() == [3.0]
    assert {panel.y.range for panel in (training, decoding)} == {(0.0, 1.06)}  # one scale, from nothing
    assert memory.y.range == (0.0, pytest.approx(1.06 / 0.6))
    assert "The lowest speed is 0.60 times" in figure.summary
    assert f"The most memory is 1.67 times that of {base}." in figure.summary


def test_what_is_printed_of_a_system_that_is_not_varied_is_left_out():
    """Both combinations have a `form`; only that of the linear one was measured at two values."""
    table = draw("ablation-cost", Request((), options={"option": "form", "bench": "speed-mechanisms-cpu"})).table
    assert set(table.setting.dropna()) == {"vector_top", "matrix_dense"}
    assert "reported" in set(table.series)


def test_what_dou_2019_prints_for_sides_inputs_capsules_and_iterations():
    ours = {"em": ablation.of_description("em-routing:capsules=8")}
    side = reported_scores("side", "bleu", ours)
    assert dict(side.points.itertuples(index=False)) == {"encoder": 26.33, "decoder": 26.34, "both": 26.62}
    assert (side.where, side.baseline) == ("Dou et al. 2019, Table 4", 25.84)
    inputs = reported_scores("inputs", "bleu", ours)
    assert dict(inputs.points.itertuples(index=False)) == {"own": 26.18, "all": 26.62}
    for option, said in (("capsules", "Figure 2: most capsules, 512"),
                         ("iterations", "Figure 3: best number of iterations, 3")):  # fmt: skip
        assert reported_scores(option, "bleu", ours) is None
        assert reported_notes(option, "bleu", ours) == [f"Dou et al. 2019, {said}"]
    assert reported_costs("capsules", ours).empty  # the paper's number follows from its width, which is another


def test_a_paper_has_its_own_panel_with_its_own_rule():
    table = pd.DataFrame({"series": "em-routing", "value": ["encoder", "both"], "score": [30.0, 31.0],
                          "low": math.nan, "high": math.nan, "seeds": 1})  # fmt: skip
    ours = {"em": ablation.of_description("em-routing")}
    side = reported_scores("side", "bleu", ours)
    figure = drawn(table, "side", "BLEU", None, ("transformer", 29.0), side.points, side.baseline)
    own, theirs = figure.panels
    assert own.x == theirs.x
    assert [mark.position for panel in figure.panels for mark in panel.marks if isinstance(mark, Rule)] == [29.0, 25.84]
    (hollow,) = (mark for mark in theirs.marks if isinstance(mark, Points))
    assert hollow.style.hollow


def test_several_metrics_stand_one_below_the_other(grid, monkeypatch):
    """Figures 4 and 5 of Yang 2019: no second axis, and the paper's best values in words."""
    for kind in ("scores", "cells"):
        path = grid / "results" / f"grid.{kind}.csv"
        table = pd.read_csv(path)
        pd.concat([table, table.assign(metric="chrf", score=2 * table["score"])]).to_csv(path, index=False)
    data = grid.parent / f"{grid.name}-data"
    shutil.copytree(grid, data / "experiments")
    monkeypatch.setattr(ablation, "data_folder", lambda: data)
    options = {"experiment": "grid", "option": "capsules"}
    figure = draw("ablation-stacked", Request((), options=options))
    assert [panel.y.label for panel in figure.panels] == ["BLEU", "chrF"]
    assert (figure.columns, figure.shared_x) == (1, True)
    for panel, metric in zip(figure.panels, ("bleu", "chrf"), strict=True):
        (one, *_) = draw("ablation", Request((), options={**options, "metric": metric})).panels
        for mark, other in zip(panel.marks, one.marks, strict=True):
            pd.testing.assert_frame_equal(mark.rows(), other.rows())
    with pytest.raises(RunError, match="metric 'blue': choose"):
        draw("ablation-stacked", Request((), options={**options, "metrics": "blue"}))


@pytest.fixture
def with_sides(grid, monkeypatch):
    """The grid among the experiments of the workbench, with a system that differs in its side, as a paper prints it."""
    for path in (grid / "grid.yaml", *(grid / "results").iterdir()):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("capsules=32,iterations=1", "capsules=32,side=encoder"), encoding="utf-8")
    data = grid.parent / f"{grid.name}-data"
    shutil.copytree(grid, data / "experiments")
    monkeypatch.setattr(ablation, "data_folder", lambda: data)
    return data / "experiments" / "results"


def test_what_papers_print_stands_between_the_metrics(with_sides):
    options = {"experiment": "grid", "option": "side"}
    stacked = draw("ablation-stacked", Request((), options={**options, "metrics": "bleu"}))
    alone = draw("ablation", Request((), options={**options, "metric": "bleu"}))
    assert "Hollow: reported in Dou et al. 2019" in stacked.caption
    own, theirs = stacked.panels
    assert [panel.y for panel in stacked.panels] == [panel.y for panel in alone.panels]
    assert not any(mark.style.hollow for mark in own.marks)
    assert any(mark.style.hollow for mark in theirs.marks)


def test_a_page_draws_an_experiment_anew_when_its_results_are_others(with_sides):
    request = Request((), options={"experiment": "grid", "option": "capsules", "metric": "bleu"})

    def scores():
        table = figure_view.drawn("ablation", request).table
        return table.loc[(table["series"] == "em-routing") & (table["mark"] == "line"), "score"].tolist()

    before, file = scores(), with_sides / "grid.scores.csv"
    table = pd.read_csv(file)
    table.assign(**{name: table[name] + 10 for name in ("score", "low", "high")}).to_csv(file, index=False)
    assert scores() == pytest.approx([score + 10 for score in before])
    assert before


def test_best_values_without_scores_are_told_in_words():
    systems = ["qcn-reg:context_sentences=1", "qcn-reg:context_sentences=2", "qcn-reg"]  # and the regularisation
    settings = {system: ablation.of_description(system) for system in systems}
    assert reported_notes("context_sentences", "bleu", settings) == [
        "Yang et al. 2019, Figure 4: best Meteor, 1", "Yang et al. 2019, Figure 4: best BLEU, 2",
    ]  # fmt: skip
    assert reported_notes("capsules", "bleu", settings)[0] == "Yang et al. 2019, Figure 5: best Meteor, 2"
