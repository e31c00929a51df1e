"""The page Context: its texts, its parts, and what it needs."""

import itertools
import json
import shutil

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from analyses.documents import how_far
from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, texts, traces
from tests.workbench.views.document_context.test_figures import number_with_context, run_test
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import open_run
from workbench.views.adequacy.controlled_choices import MAJORITY, choices_table
from workbench.views.contrastive import measure as contrastive
from workbench.views.contrastive.items import controlled_items


@pytest.mark.slow
def test_the_page_shows_the_texts_and_scrubs_the_iteration(with_context, context_runs):
    names, row = [run.name for run in context_runs], number_with_context(context_runs[0])
    at = open_page("context", runs=names, sentence=str(row), iteration="0")
    lines = run_test(context_runs[0]).sources
    assert {lines[row - 1], lines[row - 2]} <= set(texts(at))
    maps = next(chart for chart in charts(at) if any(trace["type"] == "heatmap" for trace in chart["data"]))
    assert sum(trace["type"] == "heatmap" for trace in maps["data"]) == 3
    assert any("--option iteration=0" in code for code in codes(at))
    at = open_page("context", runs=names, sentence=str(row), figure="Figure 6: c of all iterations")
    assert any("context-routing" in code and "--option show=c " in code for code in codes(at))


@pytest.mark.slow
def test_the_page_says_who_reads_which_translations(with_context, context_runs):
    """Own translations of the sentences before stand with the run that reads them; references, of all, stand once."""
    row, han = number_with_context(context_runs[0]), context_runs[1]
    shutil.copytree(han.folder, with_context / "other")
    hypotheses = with_context / "other" / "translations" / "test" / "hypotheses.txt"
    own = hypotheses.read_text(encoding="utf-8").splitlines()
    hypotheses.write_text("".join(f"other {line}\n" for line in own), encoding="utf-8")
    test = run_test(han)

    def shown(**query):
        at = open_page("context", runs=["qcn-reg", "han", "other"], sentence=str(row), **query)
        beside = [(left.caption, right.text) for left, right in itertools.pairwise(at.columns)]
        return [(label[0].value.replace("\\", ""), text[0].value) for label, text in beside if label and text]

    lines = shown()
    for back in (1, 2):
        place = lines.index((how_far(back), test.sources[row - back]))
        assert lines[place + 1 : place + 3] == [
            ("translation read by han", own[row - back] or "(empty)"),
            ("translation read by other", f"other {own[row - back]}"),
        ]
    place = (lines := shown(translation="Reference")).index((how_far(1), test.sources[row - 1]))
    assert lines[place + 1] == ("translation read by han, other", test.references[row - 1])


@pytest.mark.slow
def test_the_other_parts_of_the_page(with_context, context_runs):
    row = number_with_context(context_runs[0])
    at = open_page("context", runs=["qcn-reg", "han"], sentence=str(row), context="What it changes",
                   translation="Reference")  # fmt: skip
    drawn = draw("context-changes", Request(tuple(context_runs[:2]), "test", row, options={"target": "reference"}))
    assert drawn.summary in texts(at)
    at = open_page("context", runs=["qcn-reg", "demo/transformer"], context="Test set")
    assert len(charts(at)) == 2
    assert any("Without context: transformer" in caption.value.replace("\\", "") for caption in at.caption)


def test_pronouns_are_told_as_written_and_as_scored(with_context, context_runs):
    """One run writes the references and has scored its pronouns, another babbles and has not."""
    run, test = open_run("qcn-reg", with_context), run_test(context_runs[0])
    folder = run.folder / "translations" / "test"
    (folder / "hypotheses.txt").write_text("".join(f"{line}\n" for line in test.references), encoding="utf-8")
    contrastive.score_items(run, controlled_items(run), "controlled-test", "the truth of test")
    at = open_page("context", runs=["qcn-reg", "demo/transformer"], context="Pronouns")
    written, scored = charts(at)
    right = np.concatenate([trace["y"] for trace in traces(written, "qcn-reg")])
    assert len(right)
    assert (right == 100).all()
    known = choices_table([run], "test", "reach").query("choice == 'pronoun'")
    (majority,) = [trace["y"] for trace in traces(written, MAJORITY)]
    assert majority == pytest.approx(100 * known.loc[known["system"] == MAJORITY, "share"])
    wanted = contrastive.accuracy_table({"qcn-reg": contrastive.read(run, "controlled-test")}, "distance")
    (shown,) = [trace for trace in traces(scored, "qcn-reg") if trace["type"] == "scatter"]
    assert shown["y"] == pytest.approx(100 * wanted["share"])
    names = scored["layout"]["xaxis"]["ticktext"]
    assert names == [f"{row.tag} (n = {row.n})" for row in wanted.itertuples()]
    assert "Not scored yet: demo/transformer. Score the pronouns of its test set:" in texts(at)
    (command,) = [code for code in codes(at) if code.startswith("workbench contrastive-eval --controlled test --run ")]
    assert command.endswith("demo/transformer")


def test_pronouns_need_a_test_set_that_knows_which_is_right(with_context):
    (with_context / "qcn-reg" / "translations" / "test" / "truth.jsonl").unlink()
    at = open_page("context", runs=["qcn-reg"], context="Pronouns")
    assert any("does not say which pronoun is right" in text for text in texts(at))
    assert "workbench data controlled --out DIR" in codes(at)
    assert not charts(at)


@pytest.mark.slow
def test_scope_and_capsules_are_scores_over_the_values_of_an_option(runs_by):
    """BLEU and chrF of the runs beside the chosen one, as sacreBLEU counts them, one below the other."""
    runs = runs_by("capsules", 2, 4, 8)
    at = open_page("context", runs=["scope/capsules-4"], context="Scope and capsules")
    assert at.selectbox(key="option").options == ["capsules"]
    chart = charts(at)[0]
    lines = [trace for trace in traces(chart, "qcn") if trace["mode"] == "lines+markers"]
    assert [trace["x"].tolist() for trace in lines] == [[2, 4, 8]] * 2
    assert {"capsules", "BLEU", "chrF"} <= axis_titles(chart)
    for trace, metric in zip(lines, (BLEU(), CHRF()), strict=True):
        opened = [run.translations("test") for run in runs]
        scores = [metric.corpus_score(one.hypotheses, [one.test_set.references]).score for one in opened]
        assert trace["y"] == pytest.approx(scores, abs=1e-4)
    assert any("ablation-stacked" in code and "--option option=capsules " in code for code in codes(at))


@pytest.mark.parametrize("known", [True, False])
def test_a_sentence_without_context_leads_to_one_with_context_and_a_pronoun_if_known(with_context, context_runs, known):
    truth = with_context / "qcn-reg" / "translations" / "test" / "truth.jsonl"
    pronouns = [row for row, line in enumerate(truth.read_text(encoding="utf-8").splitlines())
                if "it" in json.loads(line)["phenomena"]]  # fmt: skip
    if not known:
        truth.unlink()
    at = open_page("context", runs=["qcn-reg"], sentence="0")
    assert not charts(at)
    at.button(key="to-context").click().run()
    wanted = pronouns[0] if known else number_with_context(context_runs[0], 1)
    assert at.sidebar.number_input(key="sentence").value == wanted
    assert charts(at)


@pytest.mark.slow
def test_the_page_says_what_it_needs(with_context, context_runs):
    number = number_with_context(context_runs[0], 1)
    at = open_page("context", runs=["demo/transformer"], sentence=str(number))
    assert any("None of the chosen runs reads the sentences before" in text for text in texts(at))
    assert charts(at), "those of a run that is not chosen"
    assert any("Shown instead: " in text and "qcn-reg" in text for text in texts(at))
    assert not any("train" in code for code in codes(at))
    at = open_page("context", runs=["qcn-reg"], sentence="0")
    assert any("begins its document" in text for text in texts(at))
    assert not charts(at)
