"""The app on texts that are odd but are somebody's: empty outputs, other scripts, words without end, links that fit
nothing. Every page works, and says what is odd."""

from __future__ import annotations

import html
import unicodedata

import numpy as np
import pytest
import sacrebleu

from core_models.text.parallel import write_lines
from tests.bad_input.conftest import SOURCES, TARGETS
from tests.workbench.plotting.heat_maps import heat_of
from tests.workbench.views.app_pages import charts, open_page, texts
from workbench.export.files import save
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.plotting.axes import token_axis
from workbench.plotting.fonts import missing_glyphs
from workbench.plotting.grammar import Figure, Panel
from workbench.plotting.plotly_renderer import to_plotly
from workbench.store.external import import_translations, read_test_set
from workbench.store.runs import list_runs

LONG = "x" * 2000
# Hebrew, Arabic with a vowel sign, a letter with a combining accent that is kept apart, Devanagari.
SCRIPTS = ["שלום עולם .", "مرحبًا بالعالم .", f"caf{unicodedata.normalize('NFD', 'é')} noir .", "नमस्ते दुनिया ."]


@pytest.fixture
def bring(tmp_path, monkeypatch):
    """bring(sources, references, {system: hypotheses}): the app then shows them as outside runs."""

    def lay_out(sources: list[str], references: list[str], systems: dict[str, list[str]]) -> None:
        write_lines(tmp_path / "source", sources)
        write_lines(tmp_path / "reference", references)
        for name, lines in systems.items():
            write_lines(tmp_path / name, lines)
        test_set = read_test_set("test", tmp_path / "source", [tmp_path / "reference"])
        import_translations(
            tmp_path / "runs", test_set, tmp_path / "source", {name: tmp_path / name for name in systems}
        )
        monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))

    return lay_out


def shown_html(at) -> str:
    return html.unescape(" ".join(element.proto.body for element in at.get("html")))


@pytest.fixture
def mostly_empty(bring) -> list[str]:
    """Of a hundred outputs of one system 86 are empty."""
    references = [f"{TARGETS[place % len(TARGETS)]} {place}" for place in range(100)]
    written = [line if place % 7 == 0 and place < 98 else "" for place, line in enumerate(references)]
    assert sum(not line for line in written) == 86
    sources = [f"{SOURCES[place % len(SOURCES)]} {place}" for place in range(100)]
    bring(sources, references, {"baseline": references, "silent": written})
    return written


def open_and_hear(page: str, **query: str):
    """A page that has no error and says how many outputs are empty."""
    at = open_page(page, runs=["baseline", "silent"], **query)
    assert not at.error, page
    assert "Empty outputs: silent 86 of 100." in [caption.value.replace("\\", "") for caption in at.caption], page
    return at


@pytest.mark.slow
def test_86_empty_outputs_are_scored_as_they_are_and_stop_no_page(mostly_empty):
    references = [f"{TARGETS[place % len(TARGETS)]} {place}" for place in range(100)]
    table = open_and_hear("scores", metrics="BLEU").dataframe[0].value.set_index("system")["score"]
    assert table["silent"] == pytest.approx(sacrebleu.corpus_bleu(mostly_empty, [references]).score)
    sentences = open_and_hear("sentences", sentence="50", sort="chrF silent")
    assert sentences.dataframe[0].value["chrF silent"].tolist().count(0.0) == 86
    assert "(empty)" in shown_html(sentences)
    adequate = open_and_hear("adequacy").dataframe[-1].value
    assert set(adequate["system"]) == {"silent"}
    assert (adequate["translation"] == "").sum() == 86
    for page in ("lengths", "words"):
        assert charts(open_and_hear(page))


@pytest.mark.parametrize("page", ["words", "sentences"])
def test_other_scripts_stand_as_typed(bring, page):
    """No reordering, no composing: what the file holds is what the page is given, code point by code point."""
    bring(SCRIPTS, SCRIPTS, {"baseline": SCRIPTS, "other": SCRIPTS[1:] + SCRIPTS[:1]})
    at = open_page(page, runs=["baseline", "other"], sentence="1")
    assert not at.error
    if page == "sentences":
        assert SCRIPTS[1] in shown_html(at)
        assert at.dataframe[0].value["source"].tolist() == SCRIPTS
    if page == "words":
        assert set(SCRIPTS[1:3]) <= set(texts(at))


def test_a_figure_for_a_paper_draws_scripts_that_its_fonts_have(bring, tmp_path):
    """Hebrew, Arabic and combining accents are in the font that comes with Matplotlib."""
    bring(SCRIPTS[:3], SCRIPTS[:3], {"baseline": SCRIPTS[:3], "other": ["."] * 3})
    figure = draw("ngram-differences", Request(tuple(list_runs(tmp_path / "runs"))))
    assert missing_glyphs(figure) == []
    file = save(figure, tmp_path / "words.pdf")
    assert file.read_bytes().startswith(b"%PDF")
    assert b"LastResort" not in file.read_bytes()


@pytest.mark.parametrize("page", ["words", "sentences"])
def test_a_word_of_2000_characters_leaves_pages_usable(bring, page):
    lines = [*SOURCES, f"{LONG} ."]
    bring(lines, lines, {"baseline": lines, "other": [*SOURCES, f"{LONG}y ."]})
    at = open_page(page, runs=["baseline", "other"], sentence=str(len(SOURCES)))
    assert not at.error
    for chart in charts(at):
        axes = [axis for name, axis in chart["layout"].items() if name.startswith(("xaxis", "yaxis"))]
        labels = [text for axis in axes if axis.get("ticktext") is not None for text in axis["ticktext"]]
        assert max(map(len, labels), default=0) < 60
    if page == "sentences":
        assert LONG in shown_html(at)


def test_a_long_token_is_cut_on_the_axis_and_whole_on_hover():
    tokens = ["the", LONG, "</s>"]
    axis = token_axis(tokens)
    heat = heat_of(np.eye(3), tokens, tokens, x="source", y="target")
    figure = Figure("map", "", (Panel((heat,), axis, axis),))
    drawn = to_plotly(figure)
    assert drawn.layout.xaxis.ticktext == ("the", "x" * 23 + "…", "&lt;/s&gt;")
    assert drawn.layout.margin.l < 250
    assert LONG in drawn.data[0].hovertext[1][1].replace("<br>", "")
    assert max(map(len, drawn.data[0].hovertext[1][1].split("<br>"))) < 120


def test_labels_that_miss_lines_are_left_out_and_the_page_says_where_to_look(bring, tmp_path):
    bring(SOURCES, TARGETS, {"baseline": TARGETS})
    (tmp_path / "runs" / "annotations" / "test").mkdir(parents=True)
    (tmp_path / "runs" / "annotations" / "test" / "domain.txt").write_text("news\nchat\n", encoding="utf-8")
    at = open_page("lengths", measure="label or document")
    assert any("no labels" in text and "page Sentences" in text for text in texts(at))
    (warning,) = open_page("sentences").warning
    assert "domain: has 2 lines but the test set has 36 segments" in warning.value.replace("\\", "")


@pytest.mark.parametrize(
    ("links", "error", "caption"),
    [
        ("9-0\n0-0\n", "gold.txt:1: link 9-0 is outside of its sentence: words are counted from 0", ""),
        ("1-1\n1-1\n", "", "counted from 1"),
        ("0-0\n", "gold.txt has 1 lines for 2 sentences: give one line for each", ""),
    ],
)
def test_gold_links_that_fit_nothing_are_named_and_their_counting_is_said(
    run, tmp_path, monkeypatch, links, error, caption
):
    monkeypatch.setenv("WORKBENCH_RUNS", str(run.parent))
    (tmp_path / "gold.txt").write_text(links, encoding="utf-8")
    at = open_page("attention", runs=["one"])
    at.text_input(key="links").set_value(str(tmp_path / "gold.txt")).run()
    assert not at.exception
    said = [element.value.replace("\\", "") for element in at.error]
    assert any(error in text for text in said) if error else not said
    assert any(caption in element.value for element in at.caption)
