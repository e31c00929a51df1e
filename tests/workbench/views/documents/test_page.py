"""Documents: translations side by side with what was read before them, and scores of documents beside sacreBLEU's."""

import json
import shutil

import pandas as pd
import pytest
from sacrebleu.metrics import BLEU

import core_models
from tests.workbench.views.app_pages import codes, open_page, texts
from workbench.evaluation.document_context import context_rows, reads_translations
from workbench.evaluation.scoring import Counting
from workbench.evaluation.translate import prepared_of
from workbench.papers.our_measurements import origin_fields
from workbench.store.runs import RunError, open_run
from workbench.views.documents import measure as documents
from workbench.views.test_sets import measure
from workbench.views.test_sets.measure import corpora_table


@pytest.fixture
def tested(context_runs):
    return context_runs[0].translations("test").test_set


def test_a_document_is_told_sentence_by_sentence(context_runs, demo_runs, tested):
    runs = [*context_runs[:1], open_run("demo/transformer", demo_runs)]
    name = tested.documents[-1]
    rows = [row for row, own in enumerate(tested.documents) if own == name]
    table = documents.sentences_table(runs, "test", name)
    assert table["sentence"].tolist() == rows
    assert table["source"].tolist() == [tested.sources[row] for row in rows]
    assert table["qcn-reg"].tolist() == [runs[0].translations("test").hypotheses[row] for row in rows]
    first = rows[0]
    wanted = ["none", str(first), f"{first} to {first + 1}", f"{first} to {first + 2}", f"{first + 1} to {first + 3}"]
    assert table["qcn-reg read"].tolist()[:5] == wanted[: len(rows)]
    assert "demo/transformer read" not in table
    with pytest.raises(RunError, match="test has no document 'x'"):
        documents.sentences_table(runs, "test", "x")


def test_whose_translations_were_read_is_told(context_runs, offline_run, tested):
    """Of systems that read translations, their own; as their translators say."""
    row = next(row for row in range(len(tested.sources)) if None not in context_rows(tested, row, 3, 2))
    said = {run.name: documents.describe_read_context(run, tested, row) for run in (*context_runs, offline_run)}
    qcn, han, document, offline = (run.name for run in (*context_runs, offline_run))
    assert said[qcn] == said[document] == f"{row - 3} to {row - 1}"
    assert said[han] == f"{row - 3} to {row - 1} with its own translations"
    assert said[offline] == f"{row - 2} to {row - 1}, {row + 1} to {row + 2}"
    assert documents.describe_read_context(context_runs[1], tested, 0) == documents.NONE
    for run in (*context_runs, offline_run):
        assert reads_translations(run) == core_models.load(run.folder).context.outputs


def test_documents_are_scored_as_sacrebleu_does(context_runs, tested):
    run = context_runs[0]
    (found,) = documents.levels_table([run], "test", "bleu", Counting(), samples=20).to_dict("records")
    lines, ids = run.translations("test").hypotheses, tested.documents
    order = list(dict.fromkeys(ids))
    outputs, references = (
        [" ".join(line for line, own in zip(side, ids, strict=True) if own == name) for name in order]
        for side in (lines, tested.references)
    )
    assert found["document"] == pytest.approx(BLEU().corpus_score(outputs, [references]).score)
    assert found["score"] == pytest.approx(BLEU().corpus_score(lines, [tested.references]).score)
    each = [
        BLEU().corpus_score([lines[row] for row in rows], [[tested.references[row] for row in rows]]).score
        for rows in documents.documents_of([run], "test").values()
    ]
    assert found["mean"] == pytest.approx(sum(each) / len(each))
    assert found["documents"] == len(order)
    assert found["low"] <= found["document"] <= found["high"]


def test_corpora_are_told_as_table_1_tells_them(context_runs):
    prepared = prepared_of(context_runs[0])
    table = corpora_table(context_runs).set_index("split")
    assert set(table["runs"]) == {", ".join(run.name for run in context_runs)}
    text = prepared.test("test")
    assert table.loc["test", "sentences"] == len(text.sources)
    assert table.loc["test", "documents"] == len(set(text.documents))
    assert table.loc["train", "sentences"] == len(prepared.split("train"))
    assert table.loc["train", "length"] == pytest.approx(
        table.loc["train", "sentences"] / table.loc["train", "documents"]
    )
    assert 6 <= table.loc["train", "length"] <= 14  # what the corpus is configured for
    # The folder of all prepared data is called so: what it belongs to has the name.
    assert prepared.folder.name == "data"
    assert set(table["data"]) == {prepared.folder.parent.name} == {origin_fields(context_runs[0], "test")["data"]}


def test_the_page_shows_the_document_of_the_sentence_and_its_scores(with_context, context_runs, tested):
    row = len(tested.sources) - 1
    at = open_page("documents", runs=["qcn-reg", "demo/transformer"], sentence=str(row))
    shown = at.dataframe[0].value
    assert shown["sentence"].tolist() == [
        place for place, own in enumerate(tested.documents) if own == tested.documents[row]
    ]
    levels = next(frame.value for frame in at.dataframe if "signature" in frame.value)
    wanted = documents.levels_table(context_runs[:1], "test", "bleu", Counting())
    assert levels["document"][0] == pytest.approx(wanted["document"][0])
    before = documents.describe_read_context(context_runs[0], tested, row)
    assert any(f"qcn-reg {before}. " in caption.value.replace("\\", "") for caption in at.caption)
    box = at.selectbox(key="document")
    box.set_value(tested.documents[shown["sentence"][0] - 1]).run()
    assert not at.exception
    earlier = at.dataframe[0].value["sentence"].tolist()
    assert earlier[-1] == shown["sentence"][0] - 1
    assert at.session_state["sentence"] == earlier[0]


def test_the_page_tells_what_each_run_read(with_context, context_runs, offline_run, tested):
    shutil.copytree(offline_run.folder, with_context / "san")
    row = next(row for row in range(len(tested.sources)) if None not in context_rows(tested, row, 3, 2))
    at = open_page("documents", runs=["han", "san", "demo/transformer"], sentence=str(row))
    (said,) = [caption.value for caption in at.caption if "Read beside" in caption.value]
    assert said.replace("\\", "") == (
        f"Read beside sentence {row}: han {row - 3} to {row - 1} with its own translations; "
        f"san {row - 2} to {row - 1}, {row + 1} to {row + 2}. "
        "transformer: no sentence but its own. Select a row to look at its sentence."
    )
    columns = json.loads(at.dataframe[0].proto.columns)
    helps = {name: column["help"] for name, column in columns.items() if name.endswith(" read")}
    assert helps == {
        "han read": "Sentences before this one in the document, with the system's own translations of them",
        "san read": "Sentences around this one in the document",
    }


def test_without_document_ids_the_page_says_so(with_context):
    for path in with_context.glob("*/*/translations/test/documents.txt"):
        path.unlink()
    at = open_page("documents", runs=["demo/transformer"])
    assert any("says of no sentence which document it belongs to" in text for text in texts(at))
    assert not codes(at)


def test_the_page_of_test_sets_has_the_corpora(with_context, context_runs):
    at = open_page("testsets", runs=["qcn-reg"])
    corpora = next(frame.value for frame in at.dataframe if "length" in frame.value)
    assert corpora["sentences"].tolist() == corpora_table(context_runs[:1])["sentences"].tolist()


def test_the_page_of_test_sets_says_that_repeated_lines_are_no_finding(with_context, monkeypatch):
    monkeypatch.setattr(measure, "findings_table", lambda *_: pd.DataFrame())
    said = texts(open_page("testsets", runs=["qcn-reg"]))
    assert any("Lines that are repeated are no finding: the tables above count them." in text for text in said)
