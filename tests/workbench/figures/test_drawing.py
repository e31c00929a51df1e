"""Every figure shows the numbers of evaluation and of the analyses under the runs' names; errors say what helps."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses import beam, words
from analyses.future_cost import calibration
from workbench.evaluation import bucketed_scores, scoring, translate
from workbench.experiments.exhibits import grid_files
from workbench.experiments.grid import read_experiment
from workbench.figures.drawing import draw
from workbench.figures.registry import load
from workbench.figures.request import Request, looks, styles
from workbench.plotting import theme
from workbench.plotting.axes import token_axis
from workbench.store.runs import Run, RunError, open_run, short_names
from workbench.store.training_logs import training_table
from workbench.views.future_cost import measure

SHORT = ("transformer", "future-cost-1", "future-cost-2")


@pytest.fixture(autouse=True, scope="module")
def _empty_runs_folder(tmp_path_factory):
    """No run has a style for good, whatever lies in the folder that the tests are started in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_RUNS", str(tmp_path_factory.mktemp("empty")))
        yield


@pytest.fixture
def runs(demo_runs):
    return tuple(open_run(f"demo/{name}", demo_runs) for name in SHORT)


def _drawn(figure, series, panel, mark="line"):
    """The drawn table of one series in one panel (named by its title or its y axis)."""
    table = figure.table
    return table[(table.series == series) & (table.panel == panel) & (table.mark == mark)]


def _check_scores(figure, request):
    wanted = scoring.score_table(request.runs, request.test, ("bleu", "chrf"))
    panels = {panel.x.label: panel for panel in figure.panels}
    for row in wanted.itertuples():
        marks = panels[scoring.METRIC_NAMES[row.metric]].marks
        (found,) = next(mark for mark in marks if mark.series == row.system.rsplit("/")[-1]).rows().itertuples()
        assert (found.score, found.low, found.high) == (row.score, row.low, row.high)


def _check_lengths(figure, request, panel, column):
    scores, differences, _ = bucketed_scores.tables(request.runs, request.test, baseline=request.base)
    wanted = (differences if column == "delta" else scores).dropna(subset=[column])
    for system, rows in wanted.groupby("system"):
        np.testing.assert_array_equal(_drawn(figure, system.rsplit("/")[-1], panel)[column], rows[column])
    counts = figure.table[figure.table.mark == "bars"]
    assert counts.n.sum() == len(request.runs[0].translations(request.test))


def _check_training(figure, request):
    for (run, name), rows in training_table(request.runs).groupby(["run", "name"]):
        found = _drawn(figure, run.rsplit("/")[-1], name.replace("_", " "))
        assert sorted(zip(found.step, found.value, strict=True)) == sorted(zip(rows.step, rows.value, strict=True))


def _nodes(figure, panel=None):
    points = figure.table[figure.table.mark == "points"]
    return points if panel is None else points[points.panel.str.partition(",")[0] == panel]


def _once(points):
    """Without the words of the row above that a row begins with."""
    starts = points.panel.str.extract(r"steps (\d+) to", expand=False).astype(float)
    return points[starts.isna() | (points.step >= starts)]


def _check_tree(points, run, request):
    points = _once(points)
    wanted = beam.tree(run.translations(request.test).tree(request.sentence))
    for column in ("log_prob", "score", "normalised", "rank"):
        np.testing.assert_allclose(sorted(points[column].astype(float)), sorted(wanted[column]))
    best = points[points.series == "best path"].sort_values("step")
    assert best.word.tolist() == run.translations(request.test).details[request.sentence]["tokens"]


def _check_diff(figure, request):
    trees = [run.translations(request.test).tree(request.sentence) for run in request.runs[:2]]
    wanted = beam.diff(*trees).nodes
    points = _once(_nodes(figure))
    prefixes = {
        " ".join(prefix): (bool(a), bool(b))
        for prefix, a, b in zip(wanted.prefix, wanted.in_a, wanted.in_b, strict=True)
    }
    assert set(points.prefix) == set(prefixes)
    for series, sides in (("transformer only", (True, False)), ("future-cost-1 only", (False, True))):
        assert set(points[points.series == series].prefix) == {
            prefix for prefix, found in prefixes.items() if found == sides
        }


def _check_overlay(figure, request):
    run = request.runs[0]
    trace, detail = run.traces(request.test)[request.sentence], run.translations(request.test).details[request.sentence]
    lines = figure.table[figure.table.mark == "line"]
    for column, name in (("log_prob", "log_prob"), ("estimated", measure.FUTURE), ("gate", measure.GATE)):
        found = lines[lines[column].notna()].groupby("series", sort=False)[column].apply(list)
        np.testing.assert_allclose(found.iloc[0], trace[name].values)
    assert figure.panels[0].x.texts == token_axis(detail["tokens"]).texts


def _check_calibration(figure, request):
    for run in request.runs[1:]:
        traces = run.traces(request.test)
        wanted = calibration(
            *([traces.array(name, row).values for row in traces] for name in (measure.FUTURE, "log_prob"))
        )
        found = figure.table[(figure.table.mark == "points") & (figure.table.series == run.name.rsplit("/")[-1])]
        np.testing.assert_allclose(found.mean_realised, wanted.mean_realised)
        np.testing.assert_array_equal(found.n, wanted.n)


def _check_words(figure, request):
    reference = request.runs[0].translations(request.test).test_set.references
    for run in request.runs:
        written = run.translations(request.test).hypotheses
        wanted = words.by_frequency({"it": written}, reference, words.frequencies(reference), samples=10)
        found = _drawn(figure, run.name.rsplit("/")[-1], "F-measure")
        assert found.score.tolist() == wanted.score.tolist()
        assert found.n.tolist() == wanted.n.tolist()


def _check_adequacy(figure, request):
    from workbench.evaluation.adequacy import adequacy_table, aligner_of

    aligner, _ = aligner_of(request.runs, request.test)
    panels = {panel.x.label: panel for panel in figure.panels}
    for row in adequacy_table(request.runs, request.test, aligner).itertuples():
        marks = panels[row.measure].marks
        (found,) = next(mark for mark in marks if mark.series == row.system.rsplit("/")[-1]).rows().itertuples()
        assert (found.score, found.low, found.high) == (row.score, row.low, row.high)


ALL, PAIR = slice(None), slice(2)
TREE = {"minimum_probability": 0.0, "node_cap": 10_000, "steps": "all", "pruned": True}
# name -> the runs it is drawn of, its options, the series its legend or table must name, what its numbers must equal
CASES = {
    "scores": (ALL, {}, SHORT, _check_scores),
    "adequacy": (ALL, {}, SHORT, _check_adequacy),
    "length-scores": (ALL, {}, SHORT, lambda f, r: _check_lengths(f, r, "BLEU", "score")),
    "length-differences": (ALL, {}, SHORT[1:], lambda f, r: _check_lengths(f, r, "Δ BLEU", "delta")),
    "output-lengths": (
        ALL,
        {},
        (*SHORT, "reference"),
        lambda f, r: _check_lengths(f, r, "mean length (words)", "mean_output_length"),
    ),
    "training-curves": (ALL, {}, SHORT, _check_training),
    "beam-tree": (slice(1), TREE, ("best path",), lambda f, r: _check_tree(_nodes(f), r.runs[0], r)),
    "beam-trees": (
        PAIR,
        TREE,
        ("best path",),
        lambda f, r: [_check_tree(_nodes(f, run.name.rsplit("/")[-1]), run, r) for run in r.runs],
    ),
    "beam-diff": (PAIR, TREE, ("transformer only", "future-cost-1 only"), _check_diff),
    "future-cost-overlay": (slice(2, 3), {}, ("gate",), _check_overlay),
    "future-cost-calibration": (ALL, {}, SHORT[1:], _check_calibration),
    "word-f-measure": (ALL, {}, SHORT, _check_words),
}


def test_every_figure_is_drawn_by_a_test():
    """Here, or in a file of its own where the demo's runs cannot draw it."""
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert [name for name in load() if name not in CASES and f'("{name}"' not in tests] == []


@pytest.mark.parametrize("name", list(CASES))
def test_a_figure_shows_the_numbers_of_the_line_before_it(name, runs):
    chosen, options, series, check = CASES[name]
    request = Request(runs[chosen], sentence=4, options=options)
    figure = draw(name, request)
    assert set(series) <= set(figure.table.series)
    assert figure.summary
    assert not any("▁" in text for text in (*figure.texts(), figure.summary))
    check(figure, request)


def test_a_metric_by_name_and_a_list_of_them_are_one(runs):
    by_name = draw("scores", Request(runs, options={"metrics": "ter,chrf"}))
    by_list = draw("scores", Request(runs, options={"metrics": ["ter", "chrf"]}))
    assert by_name.table.equals(by_list.table)
    assert [panel.x.label for panel in by_name.panels] == ["TER", "chrF"]


def test_the_baseline_is_the_run_named_else_the_first(runs):
    named = draw("length-differences", Request(runs, baseline="demo/future-cost-2"))
    assert set(named.table[named.table.mark == "line"].series) >= {"transformer", "future-cost-1"}
    assert "future-cost-2" in named.caption


def test_names_are_short_only_where_that_tells_them_apart(copied_runs):
    shutil.copytree(copied_runs / "demo", copied_runs / "again")
    two = [open_run(f"{folder}/transformer", copied_runs) for folder in ("demo", "again")]
    one = open_run("demo/future-cost-1", copied_runs)
    assert list(short_names([*two, one]).values()) == ["demo/transformer", "again/transformer", "future-cost-1"]


def test_a_run_looks_the_same_whatever_of_the_chosen_runs_is_drawn():
    """The choice alone decides on dash and marker: not what is drawn of it, not the order, so not the baseline
    either; the name alone decides on the colour."""
    names = ("gdr", "transformer", "rnnsearch", "qcn", "future-cost-1", "han")
    chosen = tuple(Run(Path("runs", name), f"demo/{name}") for name in names)
    wanted = styles(Request(chosen))
    assert len({(style.dash, style.marker) for style in wanted.values()}) == len(names)
    for some in itertools.permutations(chosen, 2):
        shown = styles(Request(some, palette_runs=chosen))
        assert shown == {run.folder.name: wanted[run.folder.name] for run in some}
        assert styles(Request((*some, *(run for run in chosen if run not in some)))) == wanted
    beside = styles(Request((Run(Path("runs", "aol"), "demo/aol"), chosen[0]), palette_runs=chosen))
    assert beside["gdr"] == wanted["gdr"]
    assert (beside["aol"].dash, beside["aol"].marker) not in {(one.dash, one.marker) for one in wanted.values()}


@settings(deadline=None)
@given(st.lists(st.text("abcdefgh-/", min_size=1, max_size=4), max_size=5, unique=True), st.data())
def test_a_run_keeps_its_colour_whoever_joins(others, data):
    """In any company, of systems of the catalogue or of runs with names of one's own; and no two lines look alike."""
    known = st.sampled_from(["transformer", "rnnsearch", "gdr", "gdr-bow", "han", "em-routing", "future-cost-1"])
    named = [f"demo/{data.draw(known)}", f"mine/{data.draw(st.text('xyz', min_size=1))}"]
    alone = [looks([Run(Path("runs", name), name)])[name] for name in named]
    together = looks([Run(Path("runs", name), name) for name in dict.fromkeys([*named, *others])])
    assert [together[name].colour for name in named] == [style.colour for style in alone]
    assert len({(style.dash, style.marker) for style in together.values()}) == len(together)


def test_systems_with_a_colour_of_their_own_are_those_of_the_catalogue():
    """And those of one paper, beside each other in the catalogue, differ in it."""
    from core_models.system_catalogue import catalogue

    names = list(catalogue())
    assert set(theme.SYSTEMS) <= set(names)
    colours = [theme.style_of(name).colour for name in names if name in theme.SYSTEMS]
    assert all(colour not in near for colour, *near in zip(*(colours[start:] for start in range(4)), strict=False))


@pytest.mark.parametrize("file", grid_files(), ids=lambda file: file.stem)
def test_no_two_exhibits_of_a_grid_have_one_colour(file):
    systems = read_experiment(file).systems
    assert len({theme.style_of(name).colour for name in systems}) == len(systems)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("beam-tree", "Drawn of transformer alone, not of future-cost-1, future-cost-2."),
        ("beam-trees", "Drawn of transformer and future-cost-1 alone, not of future-cost-2."),
        ("beam-diff", "Drawn of transformer and future-cost-1 alone, not of future-cost-2."),
        ("future-cost-overlay", "Drawn of future-cost-2 alone, not of transformer, future-cost-1."),
    ],
)
def test_a_figure_of_fewer_runs_than_are_given_says_so(name, said, runs):
    ordered = (runs[2], *runs[:2]) if name == "future-cost-overlay" else runs
    assert said in draw(name, Request(ordered)).caption
    fewer = ordered[: 1 if name in ("beam-tree", "future-cost-overlay") else 2]
    assert "Drawn of" not in draw(name, Request(fewer)).caption


def _expect(message, name, runs, **wanted):
    with pytest.raises(RunError, match=message):
        draw(name, Request(tuple(runs), **wanted))


def test_an_unknown_figure_is_answered_with_the_nearest(runs):
    _expect("no figure is called 'length-score'; did you mean 'length-scores'", "length-score", runs)
    _expect("no run is chosen", "scores", ())


@pytest.mark.parametrize("name", list(load()))
def test_an_option_that_no_one_reads_is_refused(name, runs):
    _expect("no_such", name, runs, options={"no_such": 1})


def test_a_baseline_that_is_not_among_the_runs_is_refused(runs):
    _expect("the baseline 'gone' is not among the runs", "length-differences", runs, baseline="gone")


@pytest.mark.parametrize("name", ["beam-trees", "beam-diff", "length-differences", "ngram-differences"])
def test_a_comparison_asks_for_a_second_run(name, runs):
    _expect("two runs", name, runs[:1])


def test_what_a_run_lacks_is_answered_with_the_command_that_makes_it(copied_runs):
    run = open_run("demo/future-cost-2", copied_runs)
    _expect(r"workbench translate \S+/future-cost-2 --test wmt", "scores", [run], test="wmt")
    _expect("sentences 0 to 29, not 30", "beam-tree", [run], sentence=30)
    _expect(
        r"sentence 30 .* is not traced .*workbench trace \S+/future-cost-2 --test test",
        "future-cost-overlay",
        [run],
        sentence=30,
    )
    (run.folder / "translations" / "test" / "trees.npy").unlink()
    _expect(r"workbench translate \S+/future-cost-2 --test test --save-beams", "beam-tree", [run])
    translate.trace_test(run, run.translations("test"), ["future_cost.*"], [0])
    _expect(r"log_prob of 'test' is not traced; do it: workbench trace \S+", "future-cost-overlay", [run])
    _expect(r"log_prob of 'test' is not traced; do it: workbench trace \S+", "future-cost-calibration", [run])
    shutil.rmtree(run.folder / "traces")
    _expect(r"has no traces of 'test' yet; make them: workbench trace \S+", "future-cost-calibration", [run])
    (run.folder / "training.jsonl").unlink()
    _expect("nothing was logged yet; train the run first", "training-curves", [run])


def test_a_run_without_future_cost_is_told_which_has_one(runs):
    for name in ("future-cost-overlay", "future-cost-calibration"):
        _expect("choose a run of future-cost-1 or future-cost-2", name, runs[:1])


def test_a_trace_of_another_translation_is_not_drawn(copied_runs):
    """Also where it is as long."""
    run = open_run("demo/future-cost-2", copied_runs)
    path = run.folder / "translations" / "test" / "details.jsonl"
    details = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    details[0]["tokens"][0] = "another"
    path.write_text("".join(json.dumps(detail) + "\n" for detail in details), encoding="utf-8")
    for name in ("future-cost-overlay", "future-cost-calibration"):
        _expect("of other translations; trace them again: workbench trace", name, [run])
