"""The alignment error of runs over a test set: what the figures draw is what the translator's own attention gives."""

from dataclasses import replace

import numpy as np
import pytest

import core_models
from analyses import alignment, attention
from core_models.checkpoint import write_weights
from core_models.system_builder import build
from tests.workbench.papers.written_runs import seeded, written_run
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, runs_of, traces
from workbench import notebook
from workbench.evaluation.alignment_error import ALIGNMENT_ERROR
from workbench.evaluation.result_cache import of_forced_references
from workbench.evaluation.translate import prepared_of
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.attention.alignment_error_figures import ComparedOptions, compared_table

NAMES = ("transformer", "future-cost-2")


@pytest.fixture
def runs(demo_runs):
    return tuple(open_run(f"demo/{name}", demo_runs) for name in NAMES)


def expected(run, layer=None, head=None):
    """Curve against the truth of the controlled corpus, sentence by sentence."""
    found = run.translations("test")
    translator = core_models.load(run.folder)
    weights, truth = [], []
    sides = (found.test_set.sources, found.test_set.references, found.truth)
    for source, target, record in zip(*sides, strict=True):
        (one,) = translator.score([source], [target], trace=["decoder.cross_attention"])
        mean = attention.average(one.trace["decoder.cross_attention"].values, layer, head)
        words = attention.to_words(mean, one.tokens, one.source_tokens)[:-1, :-1]
        assert words.shape == (len(target.split()), len(source.split()))
        weights.append(words)
        truth.append({(i, j) for i, j in record["alignment"]})
    return alignment.threshold_curve(weights, truth)


def drawn_aer(runs, **options):
    """AER by series as the figure draws it, a fraction; of argmax the two ends of its line."""
    table = draw("alignment-error", Request(runs, options=options)).table
    lines = table[(table["mark"] == "line") & (table["panel"] == "AER (%)")]
    return {name: rows["aer"].to_numpy() / 100 for name, rows in lines.groupby("series", sort=False)}


def test_the_curve_is_that_of_forced_references_against_the_truth(runs):
    figure = draw("alignment-error", Request(runs, options={"links": "truth"}))
    assert [panel.y.label for panel in figure.panels] == ["AER (%)", "precision (%)", "recall (%)"]
    lines = figure.table[figure.table["mark"] == "line"]
    for run, name in zip(runs, NAMES, strict=True):
        wanted = expected(run)
        drawn = lines[(lines["series"] == name) & (lines["panel"] == "AER (%)")]
        np.testing.assert_allclose(drawn["aer"], 100 * wanted["aer"].iloc[:-1], atol=0.2)
        flat = lines[(lines["series"] == f"{name}, argmax") & (lines["panel"] == "AER (%)")]
        np.testing.assert_allclose(flat["aer"], [100 * wanted["aer"].iloc[-1]] * 2, atol=0.2)
    assert "truth of the controlled corpus" in figure.caption


def test_the_caption_says_how_many_words_training_never_showed(runs):
    text, train = runs[0].translations("test").test_set, prepared_of(runs[0]).split("train")
    sides = ((text.sources, train.source_text), (text.references, train.target_text))
    shares = []
    for lines, trained in sides:
        seen = {word for row in range(len(train)) for word in trained(row).split()}
        words = [word for line in lines for word in line.split()]
        shares.append(f"{100 * sum(word not in seen for word in words) / len(words):.1f} %")
    said = f"Of the source's words {shares[0]}, of the references' {shares[1]} are not in the training text"
    assert said in draw("alignment-error", Request(runs, options={"links": "truth"})).caption


def test_what_the_figure_says_of_argmax_is_kept_beside_each_run(runs):
    draw("alignment-error", Request(runs, options={"links": "truth"}))
    for run in runs:
        found = ALIGNMENT_ERROR.load(run, of_forced_references(run, "test"), "test")
        assert found.aer == pytest.approx(expected(run)["aer"].iloc[-1], abs=2e-3)
        assert (found.links, found.layer, found.sentences) == ("truth", "mean", 30)


def test_layers_heads_and_files_of_links(runs, tmp_path):
    by_head = drawn_aer(runs[:1], links="truth", layer=1, head="each")
    heads = [f"transformer, head {number}" for number in range(1, runs[0].config.model.heads + 1)]
    assert [name for name in by_head if not name.endswith(", argmax")] == heads
    wanted = expected(runs[0], 1, 2)["aer"]
    np.testing.assert_allclose(by_head["transformer, head 2"], wanted.iloc[:-1], atol=2e-3)
    np.testing.assert_allclose(by_head["transformer, head 2, argmax"], wanted.iloc[-1], atol=2e-3)
    records = runs[0].translations("test").truth
    lines = (" ".join(f"{i}-{j}" for i, j in record["alignment"]) for record in records)
    (tmp_path / "gold.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    from_file, from_truth = drawn_aer(runs, links=str(tmp_path / "gold.txt")), drawn_aer(runs, links="truth")
    assert from_file.keys() == from_truth.keys()
    for name, values in from_file.items():
        np.testing.assert_allclose(values, from_truth[name], atol=1e-12)
    rolled = drawn_aer(runs[:1], links="truth", layer="rollout")["transformer"]
    assert ((rolled >= 0) & (rolled <= 1)).all()


def test_links_of_one_version_are_not_laid_on_another(copied_runs):
    """Sentences of the same lengths, so that only the texts tell the versions apart."""
    runs = [open_run(copied_runs / "demo" / name) for name in NAMES]
    path = runs[1].folder / "translations" / "test" / "references.txt"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{' '.join(reversed(line.split()))}\n" for line in lines), encoding="utf-8")
    both = (runs[0], open_run(runs[1].folder))
    for name in ("alignment-error", "alignment-error-lengths"):
        with pytest.raises(RunError, match="were tested on different versions of test; translate again"):
            draw(name, Request(both, options={"links": "truth"}))
    assert ALIGNMENT_ERROR.load(both[1], of_forced_references(both[1], "test"), "test") is None


def test_by_length_the_parts_make_up_the_whole(runs):
    figure = draw("alignment-error-lengths", Request(runs, options={"links": "truth"}))
    assert {panel.y.label for panel in figure.panels} == {"AER (%)", "n"}
    lines = figure.table[figure.table["mark"] == "line"]
    for run, name in zip(runs, NAMES, strict=True):
        whole = 100 * expected(run)["aer"].iloc[-1]
        drawn = lines[lines["series"] == name].drop_duplicates("bucket")["score"].dropna()
        assert drawn.min() - 0.2 <= whole <= drawn.max() + 0.2
    assert figure.table["n"].dropna().max() <= 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs gold links"),
        ({"links": "truth", "layer": "each", "head": "each"}, "choose a layer or a head"),
        ({"links": "truth", "layer": "first"}, "layer 'first': write mean, rollout, each, or a number from 1"),
        ({"links": "truth", "layer": "rollout", "head": 2}, "takes the mean over heads"),
        ({"links": "truth", "limit": 0.5}, "there is no option 'limit'"),
        ({"links": "none.txt"}, "there is no such file of links"),
    ],
)
def test_what_cannot_be_drawn_is_said(runs, options, message):
    with pytest.raises(RunError, match=message):
        draw("alignment-error", Request(runs, options=options))


def test_errors_are_compared_with_the_baselines(runs):
    """One run a system: the paired bootstrap of links by argmax, either way round."""
    request, options = Request(runs), ComparedOptions(links="truth")
    table = notebook.analyze("alignment-error", runs, links="truth").set_index("system")
    for run, name in zip(runs, NAMES, strict=True):
        assert table.loc[name, "percent"] == pytest.approx(100 * expected(run)["aer"].iloc[-1], abs=0.2)
    assert table.loc[NAMES[1], "delta"] == pytest.approx(table["percent"].diff().iloc[-1])
    assert table.loc[NAMES[0], ["delta", "p_value"]].isna().all()
    other = compared_table(replace(request, baseline=runs[1].name), options).set_index("system").loc[NAMES[0]]
    assert other.delta == -table.loc[NAMES[1], "delta"]
    assert other.p_value == table.loc[NAMES[1], "p_value"]
    heads = compared_table(Request(runs[:1]), ComparedOptions(links="truth", head="each"))
    assert heads["delta"].isna().tolist() == [True] + [False] * (len(heads) - 1)
    with pytest.raises(RunError, match="'none' is not among the runs"):
        compared_table(replace(request, baseline="none"), options)


@pytest.mark.slow
def test_runs_of_a_system_are_its_seeds(runs, copied_runs):
    """Two seeds of equal weights: the error of one, no spread; one seed alone is tested as a run is."""
    one = copied_runs / "demo"
    trained = [
        seeded(run, one / f"{run.folder.name}-{seed}", seed)
        for run in (open_run(one / name) for name in NAMES)
        for seed in (2, 3)
    ]
    options = {"links": "truth", "over_seeds": True}
    alone, both = (notebook.analyze("alignment-error", chosen, **options) for chosen in (runs, trained))
    single = compared_table(Request(runs), ComparedOptions(links="truth"))
    measures = single.columns.drop(["system", "spread", "seeds", "form"])
    for table, seeds, form in ((alone, 1, "sentences"), (both, 2, "seeds and sentences")):
        assert table["system"].tolist() == [run.system for run in runs]
        assert table[["seeds", "form"]].values.tolist() == [[seeds, form]] * 2
        np.testing.assert_allclose(table[measures].astype(float), single[measures].astype(float), atol=1e-4)
    assert both["spread"].tolist() == pytest.approx([0, 0], abs=1e-9)
    with pytest.raises(RunError, match="is not the only run of transformer"):
        notebook.analyze("alignment-error", [*trained, trained[0]], **options)
    with pytest.raises(RunError, match="one map of each run"):
        notebook.analyze("alignment-error", trained, head="each", **options)


@pytest.fixture
def of_pieces(prepared, tmp_path):
    """A recurrent run whose words have several pieces, untrained, and a file of gold links."""
    run = written_run(tmp_path, "rnn", "rnnsearch:preset=tiny", prepared)
    write_weights(
        run.weights, build(run.config.model, len(prepared.source_vocabulary), len(prepared.target_vocabulary))
    )
    gold = tmp_path / "gold.txt"
    gold.write_text("0-0\n" * len(run.translations("test")), encoding="utf-8")
    return run, str(gold)


def test_argmax_links_pieces_where_asked(of_pieces):
    """A word is linked with every word that one of its pieces attends to most, </s> left out."""
    run, gold = of_pieces
    test_set, translator = run.translations("test").test_set, core_models.load(run.folder)
    found, joined_before = [], []
    for source, target in zip(test_set.sources, test_set.references, strict=True):
        (one,) = translator.score([source], [target], trace=["decoder.cross_attention"])
        weights = attention.average(one.trace["decoder.cross_attention"].values)
        word_of = [
            sum(piece.startswith("▁") for piece in one.source_tokens[: i + 1]) - 1 for i in range(weights.shape[1])
        ]
        links, word = set(), -1
        for piece, row in zip(one.tokens[:-1], weights, strict=False):
            word += piece.startswith("▁")
            links.add((word_of[int(np.argmax(row[:-1]))], word))
        found.append(links)
        joined_before.append(
            alignment.from_attention(attention.to_words(weights, one.tokens, one.source_tokens)[:-1, :-1])
        )
    assert found != joined_before
    for argmax, links in (("pieces", found), ("words", joined_before)):
        wanted = alignment.alignment_error_rate(links, [{(0, 0)}] * len(links))
        options = {"links": gold, "argmax": argmax}
        (compared,) = notebook.analyze("alignment-error", [run], **options)["percent"]
        assert compared == pytest.approx(100 * wanted, abs=1e-3)
        assert drawn_aer([run], **options)["rnn, argmax"] == pytest.approx([wanted] * 2, abs=1e-5)
        kept = ALIGNMENT_ERROR.load(run, of_forced_references(run, "test"), "test")
        assert (kept.argmax, kept.aer) == (argmax, pytest.approx(wanted, abs=1e-5))


def test_rollout_without_self_attention_is_refused(of_pieces):
    run, gold = of_pieces
    with pytest.raises(RunError, match="needs self-attention on both sides; choose a Transformer"):
        draw("alignment-error", Request((run,), options={"links": gold, "layer": "rollout"}))


@pytest.mark.slow
def test_the_page_counts_it_when_asked(with_demo):
    at = open_page("attention", runs=[f"demo/{name}" for name in NAMES], error="true")
    curve, by_length = charts(at)[-2:]
    assert {"AER (%)", "precision (%)", "recall (%)", "threshold"} <= axis_titles(curve)
    wanted = expected(runs_of(with_demo, "transformer")[0])
    drawn = traces(curve, "transformer")[0]
    np.testing.assert_allclose(drawn["y"], 100 * wanted["aer"].iloc[:-1], atol=0.2)
    assert {"AER (%)", "n"} <= axis_titles(by_length)
    assert any(code.startswith("workbench figure alignment-error ") and " links=truth " in code for code in codes(at))
    assert len(charts(open_page("attention", runs=["demo/transformer"]))) == 2
