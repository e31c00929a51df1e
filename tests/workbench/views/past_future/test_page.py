"""Past and future: figures of a sentence show the mass of a forced pass; the page links them by its two sliders."""

import shutil

import numpy as np
import pytest

import core_models
from analyses import past_future, past_future_gold
from analyses.attention import joined
from tests.workbench.views.app_pages import charts, codes, open_page, showing_piece_marks, texts
from workbench.app.pages import PAGES
from workbench.evaluation.gold_alignments import truths
from workbench.experiments import ablation
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError, open_run
from workbench.views.past_future.corpus_figures import UnderTranslationOptions, remainder_table


@pytest.fixture
def passed(guided_run):
    """Sentence 2's reference in words, and its groups' mass [iterations, T, I, 3], by the translator's own account."""
    found = guided_run.translations("test").test_set
    (one,) = core_models.load(guided_run.folder).score(
        [found.sources[2]], [found.references[2]], trace=["guided_capsules.assignments"]
    )
    each = one.trace["guided_capsules.assignments"].values
    mass = [past_future.of_words(past_future.group_mass(shares, 3), one.tokens, one.source_tokens) for shares in each]
    return joined(one.source_tokens), joined(one.tokens), np.stack(mass)


def request(run: Run, **options) -> Request:
    return Request((run,), "test", 2, options={"target": "reference", **options})


def heats(figure) -> list:
    return [mark.cells()[0] for panel in figure.panels for mark in panel.marks if mark.kind == "heat"]


def test_maps_are_the_mass_of_each_group_with_true_counterparts_marked(guided_run, passed):
    sources, targets, mass = passed
    for iteration in (1, 2, "last"):
        figure = draw("past-future", request(guided_run, iteration=iteration))
        wanted = mass[-1 if iteration == "last" else iteration - 1]
        assert [panel.title for panel in figure.panels] == ["PAST", "FUTURE", "REDUNDANT"]
        for group, found in enumerate(heats(figure)):
            np.testing.assert_allclose(found, wanted[..., group].T, atol=1e-5)
    assert figure.panels[0].x.texts == tuple(targets)
    assert figure.panels[0].y.texts == tuple(sources)
    marked = figure.table[figure.table.series == "gold, sure"]
    links = {(int(i), int(j)) for i, j in zip(marked.word, marked.step, strict=True)}
    assert links == truths(guided_run, "test")[2].links


def test_the_signed_map_pieces_and_capsules(guided_run, passed):
    *_, mass = passed
    figure = draw("past-future", request(guided_run, difference=True))
    assert figure.panels[-1].title == "PAST − FUTURE"
    np.testing.assert_allclose(heats(figure)[-1], (mass[-1, ..., 0] - mass[-1, ..., 1]).T, atol=1e-5)
    assert figure.panels[-1].marks[0].limits == (-1, 1)
    capsules = draw("past-future", request(guided_run, capsules=True))
    assert [panel.title for panel in capsules.panels][:3] == ["PAST 1", "PAST 2", "FUTURE 1"]
    assert capsules.columns == 2
    np.testing.assert_allclose(sum(heats(capsules)[2:4]), mass[-1, ..., 1].T, atol=1e-5)
    pieces = draw("past-future", request(guided_run, pieces=True))
    assert pieces.panels[0].x.texts[-1] == "</s>"
    assert any(text.startswith("·") for text in pieces.panels[0].y.texts)
    assert " ".join(pieces.panels[0].y.texts).replace(" ·", "") == " ".join(figure.panels[0].y.texts)
    assert "attends to most" in pieces.caption


def test_a_strip_is_one_step_and_multiples_are_chosen_ones(guided_run, passed):
    sources, targets, mass = passed
    strip = draw("past-future-strip", request(guided_run, step=3))
    (panel,) = strip.panels
    np.testing.assert_allclose(heats(strip)[0], mass[-1, 3].T, atol=1e-5)
    assert (panel.y.texts, panel.x.texts) == (("PAST", "FUTURE", "REDUNDANT"), tuple(sources))
    assert f"at step 3, where {targets[3]!r} is predicted" in strip.caption
    chosen = draw("past-future-strip", request(guided_run, steps="1,4"))
    (panel,), (found,) = chosen.panels, heats(chosen)
    assert (panel.x.texts, panel.x.positions) == ((targets[1], targets[4]), (0.5, 3.5))
    for step, columns in ((1, [0, 1]), (4, [3, 4])):
        np.testing.assert_allclose(found[:, columns], mass[-1, step, :, :2], atol=1e-5)
    assert np.isnan(found[:, 2]).all()
    marked = {(int(row.word), int(row.place)) for row in chosen.table[chosen.table.series == "gold, sure"].itertuples()}
    links = truths(guided_run, "test")[2].links
    assert marked == {(i, place) for i, j in links for place in {1: (0, 1), 4: (3, 4)}.get(j, ())}
    usual = draw("past-future-strip", request(guided_run)).panels[0]
    assert len(usual.x.texts) == min(10, len(targets))


def outlined(figure) -> set[tuple[str, int, int]]:
    """Panel, word and step of every outlined cell."""
    table = figure.table[figure.table.mark == "outlines"]
    return {(row.panel, int(row.word), int(row.step)) for row in table.itertuples()}


def test_cells_are_outlined_where_the_larger_group_contradicts_the_gold_links(guided_run, passed):
    *_, mass = passed
    figure = draw("past-future", request(guided_run, difference=True))
    known = truths(guided_run, "test")[2]
    cells = past_future_gold.cells(known.links, known.source_words, known.target_words)
    wrong = {
        (cell.word, cell.step)
        for cell in cells.itertuples()
        if (mass[-1, cell.step, cell.word, 0] < mass[-1, cell.step, cell.word, 1]) == cell.past
    }
    assert 0 < len(wrong) < len(cells)
    panels = ("PAST", "FUTURE", "PAST − FUTURE")
    assert outlined(figure) == {(panel, *cell) for panel in panels for cell in wrong}
    share = past_future.past_share(mass[-1])[cells.step, cells.word]
    area = past_future_gold.area_under_curve(share, cells.past.to_numpy())
    said = f"gdr-bow-bca {area:.3f}, {len(wrong)} of {len(cells)} cells misjudged"
    assert said in figure.caption
    assert said in figure.summary
    strip = draw("past-future-strip", request(guided_run, step=3))
    assert {(word, step) for _, word, step in outlined(strip)} == {cell for cell in wrong if cell[1] == 3}
    pairs = draw("past-future-strip", request(guided_run, steps="1,4"))
    assert {(word, step) for _, word, step in outlined(pairs)} == {cell for cell in wrong if cell[1] in (1, 4)}
    without = draw("past-future", request(guided_run, truth=False))
    assert not outlined(without)
    assert "AUC" not in without.caption + without.summary


def test_a_text_is_judged_only_if_its_links_are_known(guided_run):
    reference = guided_run.translations("test").test_set.references[2]
    of_reference = draw("past-future", request(guided_run))
    same = draw("past-future", request(guided_run, target="typed", text=reference))
    assert outlined(same) == outlined(of_reference)
    for options, reason in (
        ({"target": "typed", "text": f"{reference} {reference}"}, "the forced text is another"),
        ({"pieces": True}, "gold links are of words, not of pieces"),
    ):
        figure = draw("past-future", request(guided_run, **options))
        assert not outlined(figure)
        assert f"Not compared with gold links: gdr-bow-bca: {reason}" in figure.summary.replace(
            "gold links are known for the reference, and ", ""
        )


def test_life_lines_stack_to_one_and_say_where_words_flip(guided_run, passed):
    sources, _, mass = passed
    figure = draw("past-future-lines", request(guided_run, source="0,2", step=1))
    assert [panel.title for panel in figure.panels] == [f"0 {sources[0]}", f"2 {sources[2]}"]
    for panel, word in zip(figure.panels, (0, 2), strict=True):
        bars = [mark for mark in panel.marks if mark.kind == "bars"]
        assert [mark.series for mark in bars] == ["PAST", "FUTURE", "REDUNDANT"]
        for group, mark in enumerate(bars):
            np.testing.assert_allclose(mark.values("top") - mark.values("base"), mass[-1, :, word, group], atol=1e-5)
        np.testing.assert_allclose(bars[-1].values("top"), 1, atol=1e-5)
        flip = past_future.flips(mass[-1])[word]
        rules = [mark.position for mark in panel.marks if mark.kind == "rule" and mark.series]
        assert rules == ([] if np.isnan(flip) else [flip - 1.5])
        written = [mark.values("step").tolist() for mark in panel.marks if mark.kind == "points"]
        wanted = sorted(j for i, j in truths(guided_run, "test")[2].links if i == word)
        assert written == ([wanted] if wanted else [])


def test_what_cannot_be_drawn_is_said(guided_run, demo_runs):
    for name, options, message in (
        ("past-future", {"iteration": 4}, "iteration 4: write last, or a number from 1 to 3"),
        ("past-future", {"step": 99}, "step 99: write all, or a number from 0 to"),
        ("past-future-strip", {"steps": "1,x"}, "steps '1,x': write numbers from 0"),
        ("past-future-lines", {"source": [99]}, r"source 99: write numbers from 0 to"),
        ("past-future", {"stepp": 1}, "there is no option 'stepp'"),
    ):
        with pytest.raises(RunError, match=message):
            draw(name, request(guided_run, **options))
    with pytest.raises(RunError, match="transformer separates no PAST and FUTURE"):
        draw("past-future", request(open_run(demo_runs / "demo" / "transformer")))


@pytest.fixture
def both(guided_run, with_demo):
    """Query parameters of a page with a run that separates PAST and FUTURE and one that does not."""
    shutil.copytree(guided_run.folder, with_demo / "demo" / "gdr-bow-bca")
    return {"runs": ["demo/transformer", "demo/gdr-bow-bca"]}


def drawn(at) -> list[str]:
    return [code.split()[2] for code in codes(at) if code.startswith("workbench figure ")]


@pytest.mark.slow
def test_the_page_links_its_figures(both, passed):
    *_, mass = passed
    at = open_page("past_future", **both, sentence="2", translation="Reference")
    assert drawn(at) == ["past-future", "past-future-strip", "past-future-lines"]
    maps = [trace for trace in charts(at)[0]["data"] if trace["type"] == "heatmap"]
    np.testing.assert_allclose(maps[0]["z"], mass[-1, ..., 0].T, atol=1e-5)
    assert charts(at)[2]["layout"]["barmode"] == "overlay"  # side by side, stacked bars would not stand at their step
    assert any("Without PAST and FUTURE: transformer" in said.value.replace("\\", "") for said in at.caption)
    at.select_slider(key="iteration").set_value("2").run()
    at.select_slider(key="step").set_value("1").run()
    assert not at.exception
    assert all("--option iteration=2" in code and "--option step=1" in code for code in codes(at))
    maps, strip, _ = charts(at)
    np.testing.assert_allclose(maps["data"][0]["z"], mass[1, ..., 0].T, atol=1e-5)
    (heat,) = [trace for trace in strip["data"] if trace["type"] == "heatmap"]
    np.testing.assert_allclose(heat["z"], mass[1, 1].T, atol=1e-5)
    at.toggle(key="pieces").set_value(True).run()
    assert not showing_piece_marks(at)
    at.toggle(key="pieces").set_value(False)
    at.multiselect(key="lives").set_value([1]).run()
    assert "--option 'source=[1]'" in codes(at)[-1]
    at.select_slider(key="step").set_value("all").run()
    at.multiselect(key="strip").set_value([3, 0]).run()
    assert "--option 'steps=[0, 3]'" in codes(at)[1]
    assert not at.exception


@pytest.mark.slow
def test_the_other_sections_of_the_page(both):
    corpus = ["past-future-course", "flip-times", "overlap"]
    for part, names in (("Test set", corpus), ("Against the truth", ["past-future-truth"])):
        at = open_page("past_future", **both, **{"past-future": part, "forced-sentences": "20"})
        assert drawn(at) == names
        assert not at.error


def test_lengths_and_scores_are_of_all_chosen_runs(both):
    """Figures 5a, 5b and 6: the Transformer is what GDR is held against."""
    at = open_page("past_future", **both, **{"past-future": "By length"})
    assert drawn(at) == ["output-lengths", "length-scores", "scores"]
    for chart in charts(at):
        assert {"transformer", "gdr-bow-bca"} <= {trace.get("name") for trace in chart["data"]}
    assert not at.error


@pytest.mark.slow
def test_ablations_need_no_chosen_run(with_demo):
    at = open_page("past_future", runs=["demo/transformer"], **{"past-future": "Ablations"})
    assert drawn(at)[0] == "ablation"
    settings = ablation.settings_of_experiment(at.selectbox(key="swept").value)
    assert at.selectbox(key="option").value in ablation.varied_options_of(PAGES["past_future"].mechanisms, settings)
    assert not at.error


def test_a_sentence_with_much_left_is_looked_at(both, with_demo):
    at = open_page("past_future", **both, **{"past-future": "Under-translation", "forced-sentences": "20"})
    assert drawn(at) == ["under-translation", "past-future"]
    run = open_run(with_demo / "demo" / "gdr-bow-bca")
    wanted = remainder_table(Request((run,), "test"), UnderTranslationOptions(sentences=20))
    (shown,) = [table.value for table in at.dataframe if "translation" in table.value]
    assert shown.sentence.tolist() == wanted.sentence.tolist()
    assert not at.error


def test_the_page_without_such_a_run_says_how_to_train_one(with_demo):
    alone = open_page("past_future", runs=["demo/transformer"])
    assert any("None of the chosen runs separates PAST and FUTURE" in text for text in texts(alone))
    assert any("workbench train gdr" in code and "workbench demo gdr" in code for code in codes(alone))
