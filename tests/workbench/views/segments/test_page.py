"""Sentences: the table holds sacreBLEU's sentence scores, a click moves the sentence, texts show as typed."""

import html
import json
import re

import pytest
import streamlit as st
from sacrebleu.metrics import CHRF

from tests.workbench.views.app_pages import open_page, runs_of, switch, texts
from workbench.app.components import word_diff
from workbench.store import segment_annotations
from workbench.store.external import import_translations, read_test_set
from workbench.store.runs import RunError
from workbench.views.segments import table as sentence_table

NAMES = ["transformer", "future-cost-1", "future-cost-2"]


@pytest.fixture
def found(with_demo):
    return {name: run.translations("test") for name, run in zip(NAMES, runs_of(with_demo, *NAMES), strict=True)}


def _body(at) -> str:
    """What stands below the table; what else is HTML sets the margins of the page."""
    (body,) = [body for element in at.get("html") if 'dir="auto"' in (body := element.proto.body)]
    return body


def _diff_lines(at) -> list[str]:
    """The lines below the table as text, marks taken off."""
    body = _body(at)
    return [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in re.findall(r'<div dir="auto".*?</div>', body, re.S)]


def test_the_table_holds_every_sentence_with_its_scores(found):
    at = open_page("sentences", scored=["chrF"])
    table = at.dataframe[0].value
    references = found["transformer"].test_set.references
    assert table["sentence"].tolist() == list(range(30))
    assert table["source"].tolist() == found["transformer"].test_set.sources
    for name, translations in found.items():
        expected = [
            CHRF().sentence_score(line, [reference]).score
            for line, reference in zip(translations.hypotheses, references, strict=True)
        ]
        assert table[f"chrF {name}"].tolist() == pytest.approx(expected)
    assert "Δ chrF future-cost-1" in table
    assert "Δ chrF transformer" not in table


def test_it_is_filtered_and_sorted_by_the_url(found):
    sources = found["transformer"].test_set.sources
    word = sources[11].split()[-2]
    at = open_page("sentences", contains=word.upper(), sort="chrF transformer", largest="true", **{"in": "source"})
    table = at.dataframe[0].value
    assert sorted(table["sentence"]) == [number for number, line in enumerate(sources) if word in line]
    assert table["chrF transformer"].is_monotonic_decreasing
    at = open_page("sentences", contains="no such text")
    assert not at.dataframe
    assert "No sentence fulfils these conditions." in texts(at)


def test_range_and_labels_stand_in_the_url_as_text_and_order_do(with_demo, found):
    labels = "".join(f"{'news' if number % 3 else 'chat'}\n" for number in range(30))
    segment_annotations.save(with_demo, "test", "domain.txt", labels.encode(), 30)
    query = {"where": "chrF transformer", "least": "5", "most": "40", "labels-domain": "news"}
    at = open_page("sentences", **query)
    table = at.dataframe[0].value
    assert table["chrF transformer"].between(5, 40).all()
    assert set(table["domain"]) == {"news"}
    assert 0 < len(table) < 20
    for odd in ("inf", "nan", "no number"):
        assert not open_page("sentences", **{**query, "least": odd}).exception


def test_number_and_sort_key_stay_in_sight(found):
    for query, second in (({}, "Δ chrF future-cost-1"), ({"sort": "Δ chrF future-cost-2"}, "Δ chrF future-cost-2"),
                          ({"sort": "length ratio transformer"}, "length ratio transformer")):  # fmt: skip
        (table,) = open_page("sentences", **query).main.dataframe
        assert table.value.columns.tolist()[:3] == ["sentence", second, "source"]
        pinned = {name for name, about in json.loads(table.proto.columns).items() if about.get("pinned")}
        assert pinned == {"sentence", second}
    alone = open_page("sentences", runs=["demo/transformer"]).main.dataframe[0].value
    assert alone.columns.tolist()[:2] == ["sentence", "source"]


def test_previous_and_next_go_in_the_order_of_the_table(found, monkeypatch):
    """Within one run of the page: beside a rerun Streamlit may lose a click on a link."""
    monkeypatch.setattr(st, "rerun", lambda: pytest.fail("rerun"))
    rows = open_page("sentences", sort="chrF transformer").main.dataframe[0].value["sentence"].tolist()
    assert rows != list(range(30))
    at = open_page("sentences", sort="chrF transformer", sentence=str(rows[4]))

    def links(at) -> list[str]:
        return [link.proto.label for link in at.sidebar.get("page_link")]

    assert links(at) == ["5 of 30 in the order of Sentences"]
    switch(at, "attention").run()
    assert links(at) == ["5 of 30 in the order of Sentences"]
    order = at.session_state["_sentence_order"]
    assert [order.step(rows[4], by) for by in (1, -1, -99, 99)] == [rows[5], rows[3], rows[0], rows[-1]]
    switch(at, "sentences").run()
    at.selectbox(key="sort").set_value("sentence").run()
    assert links(at) == []


def test_the_chosen_sentence_stands_below_with_all_its_texts(found):
    at = open_page("sentences", sentence="4", against="baseline")
    lines = _diff_lines(at)
    assert lines[:2] == [found["transformer"].test_set.sources[4], found["transformer"].test_set.references[4]]
    assert lines[2] == found["transformer"].hypotheses[4]
    body = _body(open_page("sentences", sentence="4"))
    assert "<ins" in body
    assert "<del" in body
    kept = html.unescape(re.sub(r"<[^>]+>", "", re.sub(r"<del.*?</del>", "", body)))
    for translations in found.values():
        assert " ".join(translations.hypotheses[4].split()) in " ".join(kept.split())


def test_another_page_keeps_runs_and_sentence(with_demo):
    at = open_page("sentences", sentence="4", runs=["demo/transformer", "demo/future-cost-1"], contains="e")
    links = [link.proto.page for link in at.get("page_link")]
    assert links == ["attention", "attribution", "beam_trees", "translate"]
    switch(at, "beam_trees").run()
    assert at.sidebar.number_input(key="sentence").value == 4
    assert at.sidebar.multiselect(key="runs").value == ["demo/transformer", "demo/future-cost-1"]


def test_labels_and_scores_from_elsewhere_are_columns(with_demo):
    rows = ["comet;domain", *(f"{number / 10};{'news' if number % 3 else '**chat**'}" for number in range(30))]
    segment_annotations.save(with_demo, "test", "human 1.csv", "\n".join(rows).encode(), 30)
    (with_demo / "annotations" / "test" / "short.txt").write_text("a\nb\n", encoding="utf-8")
    at = open_page("sentences", sort="human-1: comet", largest="true")
    table = at.dataframe[0].value
    assert table["sentence"].tolist() == list(range(29, -1, -1))
    assert table["human-1: domain"].tolist()[:3] == ["news", "news", "**chat**"]
    assert "short: has 2 lines but the test set has 30 segments" in at.warning[0].value.replace("\\", "")
    at.multiselect(key="labels-human-1: domain").select("**chat**").run()
    assert at.dataframe[0].value["sentence"].tolist() == list(range(27, -1, -3))


def test_a_file_of_labels_is_taken_in_once(with_demo):
    kept = with_demo / "annotations" / "test" / "domain.txt"
    at = open_page("sentences")
    at.file_uploader(key="annotations-test").upload("domain.txt", b"news\n" * 30, "text/plain").run()
    assert at.dataframe[0].value["domain"].tolist() == ["news"] * 30
    kept.write_text("chat\n" * 30, encoding="utf-8")  # somebody mends the file, while it stands in the box of this page
    at.toggle(key="largest").set_value(True).run()
    assert at.dataframe[0].value["domain"].tolist() == ["chat"] * 30
    assert kept.read_text(encoding="utf-8") == "chat\n" * 30


def test_an_annotation_that_does_not_fit_is_not_kept(with_demo):
    with pytest.raises(RunError, match="has 1 lines but the test set has 30 segments"):
        segment_annotations.save(with_demo, "test", "labels.txt", b"one\n", 30)
    with pytest.raises(RunError, match="give it one of these endings"):
        segment_annotations.save(with_demo, "test", "labels.exe", b"one\n", 1)
    assert segment_annotations.files(with_demo, "test") == []
    kept = segment_annotations.save(with_demo, "test", "../../x y.txt", b"one\n", 1)
    assert kept == with_demo / "annotations" / "test" / "x-y.txt"


def test_a_text_is_shown_as_typed():
    typed = "<b> $x$ ** &amp; <script>alert(1)</script> :red[no]"
    shown = word_diff.html_line("<i>", word_diff.plain(typed))
    assert "<b>" not in shown
    assert "<script" not in shown
    assert "<i>" not in shown
    assert html.unescape(re.search(r'<div dir="auto"[^>]*>(.*)</div></div>$', shown)[1]) == typed


def test_of_many_sentences_a_part_is_shown(runs_root, tmp_path):
    lines = [f"line {n}" for n in range(1, sentence_table.MOST_ROWS + 201)]
    source = tmp_path / "source"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    import_translations(runs_root / "outside", read_test_set("long", source, [source]), source, {"copy": source})
    at = open_page("sentences")
    assert at.main.dataframe[0].value["sentence"].tolist() == list(range(sentence_table.MOST_ROWS))
    at.number_input(key="rows").set_value(2).run()
    assert at.main.dataframe[0].value["source"].tolist() == lines[sentence_table.MOST_ROWS :]
    assert any("of which 1,001 to 1,200 are shown" in caption.value.replace("\\", "") for caption in at.caption)
    at.text_input(key="contains").set_value("line 119").run()  # the second part has gone
    assert at.main.dataframe[0].value["source"].tolist() == [line for line in lines if "line 119" in line]
    assert not at.exception
