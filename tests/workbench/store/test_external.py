"""Translations made elsewhere: laid out as runs, scored as trained ones are, and never asked for what a model knows."""

from dataclasses import replace

import pytest
from sacrebleu.metrics import BLEU, CHRF
from typer.testing import CliRunner

from core_models.text.parallel import TextError, write_lines
from tests.workbench.views.app_pages import codes, open_page, texts
from workbench.cli import app
from workbench.evaluation import run_table, scoring, translate
from workbench.evaluation.scoring import Counting
from workbench.store import external
from workbench.store.runs import RunError, list_runs, open_run
from workbench.views.test_sets import measure as testsets

SOURCES = ["das ist ein Haus .", "der Hund läuft schnell durch den Wald .", "ja", "eine Katze und ein Hund ."]
FIRST = ["this is a house .", "The dog runs quickly through the woods .", "yes", "a cat and a dog ."]
SECOND = ["that is a house .", "the dog runs fast through the forest .", "yes", "one cat and one dog ."]
SYSTEMS = {
    "online-a": ["this is a house .", "the dog runs fast through the woods .", "", "a cat and dog ."],
    "online-b": ["it is house .", "The dog walks through the forest .", "ja", "a cat and a dog ."],
}


@pytest.fixture
def files(tmp_path):
    """The files of a small test set with two references, in a folder of their own."""
    folder = tmp_path / "files"
    folder.mkdir()
    sides = {"src.de": SOURCES, "ref.1.en": FIRST, "ref.2.en.gz": SECOND, "docids": ["d1", "d1", "d2", "d2"]}
    for name, lines in {**sides, **{f"{name}.en": lines for name, lines in SYSTEMS.items()}}.items():
        write_lines(folder / name, lines)
    return folder


def _bring(files, out, *systems, options=()):
    words = ["runs", "import-translations", "--test", "small", "--source", files / "src.de"]
    words += ["--reference", files / "ref.1.en", "--reference", files / "ref.2.en.gz"]
    words += ["--doc-ids", files / "docids", "--out", out, *options]
    return CliRunner().invoke(app, [*map(str, words), *systems], catch_exceptions=True)


@pytest.fixture
def runs(files, tmp_path):
    named = [f"{name}={files / name}.en" for name in SYSTEMS]
    assert _bring(files, tmp_path / "runs" / "outside", *named).exit_code == 0
    return [run for run in list_runs(tmp_path / "runs") if run.problem is None]


def test_files_come_back_as_they_were(runs):
    assert [run.name for run in runs] == ["outside/online-a", "outside/online-b"]
    assert all(run.outside and not run.trained for run in runs)
    found = runs[0].translations("small")
    assert found.hypotheses == SYSTEMS["online-a"]
    assert found.test_set.sources == SOURCES
    assert found.test_set.all_references == [FIRST, SECOND]
    assert found.test_set.documents == ["d1", "d1", "d2", "d2"]


@pytest.mark.parametrize("reference", [0, 1, 2])
def test_scores_are_sacrebleus_with_one_or_several_references(runs, reference):
    towards = [[FIRST, SECOND], [FIRST], [SECOND]][reference]
    table = scoring.score_table(runs, "small", ["bleu", "chrf"], 10, counting=Counting("default", reference))
    for row in table.itertuples():
        metric = BLEU() if row.metric == "bleu" else CHRF()
        wanted = metric.corpus_score(SYSTEMS[row.system.partition("/")[2]], towards).score
        assert row.score == pytest.approx(wanted, abs=1e-12)
        assert f"nrefs:{len(towards)}" in row.signature
    with pytest.raises(RunError, match="has 2 references, from 1; there is no reference 3"):
        scoring.score_table(runs, "small", ["bleu"], 10, counting=Counting("default", 3))


def test_a_preset_of_a_paper_counts_as_its_script_does(runs):
    table = scoring.score_table(runs, "small", ["bleu"], 10, counting=Counting("zheng-2018-zh-en"))
    metric = BLEU(tokenize="none", smooth_method="none", lowercase=True)
    for row in table.itertuples():
        wanted = metric.corpus_score(SYSTEMS[row.system.partition("/")[2]], [FIRST, SECOND]).score
        assert row.score == pytest.approx(wanted, abs=1e-12)
        assert "case:lc" in row.signature


def test_a_second_test_set_goes_beside_the_first_and_the_same_one_replaces_it(runs, files):
    folder = runs[0].folder
    test_set = external.read_test_set("other", files / "src.de")
    external.import_translations(folder.parent, test_set, files / "src.de", {"online-a": files / "online-b.en"})
    assert open_run(folder).tests() == ["other", "small"]
    assert open_run(folder).translations("other").hypotheses == SYSTEMS["online-b"]
    assert open_run(folder).translations("other").test_set.references is None
    test_set = external.read_test_set("small", files / "src.de", [files / "ref.1.en"])
    external.import_translations(folder.parent, test_set, files / "src.de", {"online-a": files / "online-a.en"})
    assert open_run(folder).translations("small").test_set.all_references == [FIRST]


def test_nothing_is_written_when_one_file_does_not_fit(files, tmp_path):
    write_lines(files / "short.en", FIRST[:3])
    out = tmp_path / "out"
    test_set = external.read_test_set("small", files / "src.de")
    with pytest.raises(TextError, match=r"src\.de has 4 lines but \S*short\.en has 3"):
        external.import_translations(
            out, test_set, files / "src.de", {"good": files / "online-a.en", "bad": files / "short.en"}
        )
    assert not out.exists()


def test_refusals_name_what_is_wrong(files, tmp_path, copied_runs):
    for words, said in (
        (["online-a"], "write SYSTEM=FILE"),
        ([f"a={files}/online-a.en", f"a={files}/online-b.en"], "a is named twice"),
    ):
        result = _bring(files, tmp_path / "out", *words)
        assert result.exit_code == 2
        assert said in result.output
    test_set = external.read_test_set("small", files / "src.de")
    with pytest.raises(RunError, match="a trained run is here"):
        external.import_translations(
            copied_runs / "demo", test_set, files / "src.de", {"transformer": files / "online-a.en"}
        )
    for name in ("../up", ".hidden", "a/b", "run@step"):
        with pytest.raises(RunError, match="cannot be a folder's name"):
            external.import_translations(tmp_path / "out", test_set, files / "src.de", {name: files / "online-a.en"})


def test_a_file_s_content_becomes_a_run_with_the_test_set_as_it_is(runs, tmp_path):
    test_set = runs[0].translations("small").test_set
    content = "\ufeff" + "".join(f"{line}\r\n" for line in SYSTEMS["online-b"])
    run = external.import_content(tmp_path / "other", "mine", content.encode(), "mine.txt", test_set)
    (listed,) = list_runs(tmp_path / "other")
    assert (listed.name, listed.outside, listed.folder) == ("outside/mine", True, run.folder)
    assert listed.translations("small").hypotheses == SYSTEMS["online-b"]
    assert listed.translations("small").test_set == test_set


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("new", b"a\nb\nc\n", "small has 4 lines but new.txt has 3: at line 4"),
        ("new", b"a\nb\nc\nd\ne\n", "small has 4 lines but new.txt has 5"),
        ("new", b"", "new.txt: the file is empty"),
        ("new", "ä\n".encode("latin-1") * 4, r"new.txt:1: not UTF-8"),
        ("new", "a\n".encode("utf-16") * 4, r"new.txt:1: not UTF-8 .*UTF-16"),
        ("online-a", b"a\n" * 4, "outside/online-a has translations of small already; give this system another name"),
        ("", b"a\n" * 4, "cannot be a folder's name"),
        ("../up", b"a\n" * 4, "cannot be a folder's name"),
    ],
)
def test_content_that_does_not_fit_is_refused_and_leaves_nothing(runs, name, content, said):
    root = runs[0].folder.parents[1]
    test_set, before = runs[0].translations("small").test_set, sorted(root.rglob("*"))
    with pytest.raises(ValueError, match=said):
        external.import_content(root, name, content, "new.txt", test_set)
    assert sorted(root.rglob("*")) == before
    assert runs[0].translations("small").hypotheses == SYSTEMS["online-a"]


def test_what_needs_a_model_says_that_there_is_none(runs):
    run = runs[0]
    for ask in (
        lambda: run.config,
        lambda: run.traces("small"),
        lambda: run.translations("small").details,
        lambda: run.translations("small").tree(0),
        lambda: translate.trace_test(run, run.translations("small"), ["*"], [0]),
    ):
        with pytest.raises(RunError, match="elsewhere"):
            ask()
    with pytest.raises(RunError, match="workbench runs import-translations --test news --source FILE"):
        run.translations("news")


def test_the_table_of_runs_holds_outside_runs_with_their_scores(runs):
    table = run_table.runs_table(runs, "small")
    assert table["state"].tolist() == ["outside", "outside"]
    wanted = [BLEU().corpus_score(lines, [FIRST, SECOND]).score for lines in SYSTEMS.values()]
    assert table["bleu"].tolist() == pytest.approx(wanted)


def test_test_sets_are_counted_and_odd_lines_found(runs):
    (row,) = testsets.testsets_table(runs).to_dict("records")
    assert (row["sentences"], row["documents"], row["references"]) == (4, 2, 2)
    assert row["source_words"] == pytest.approx(20 / 4)
    outputs = testsets.outputs_table(runs, "small").set_index("system")
    assert outputs["empty"].tolist() == [1, 0]
    assert outputs["copies"].tolist() == [0, 1]
    findings = testsets.findings_table(runs, "small")
    assert list(findings[["sentence", "side", "finding"]].itertuples(index=False, name=None)) == [
        (2, "outside/online-b", "copy of the source"),
        (2, "outside/online-a", "empty"),
    ]


def test_a_run_that_is_named_after_a_side_takes_no_lines_of_it(runs):
    file = runs[0].results / "translations" / "small" / "sources.txt"
    file.write_text("\n".join(["", *SOURCES[1:], ""]), encoding="utf-8")
    source, reference = (replace(run, name=name) for run, name in zip(runs, ("source", "reference"), strict=True))
    usual, named = (testsets.findings_table(some, "small") for some in (runs, [source, reference]))
    assert usual["side"].tolist().count("source") == 1
    assert named.drop(columns="side").equals(usual.drop(columns="side"))


def test_two_versions_under_one_name_are_two_rows(runs, files):
    test_set = external.read_test_set("small", files / "src.de", [files / "ref.1.en"])
    external.import_translations(runs[0].folder.parent, test_set, files / "src.de", {"online-a": files / "online-a.en"})
    assert testsets.testsets_table(runs)["references"].tolist() == [1, 2]


def test_a_document_is_scored_as_a_test_set_of_its_own(runs):
    table = testsets.documents_table(runs, "small", "chrf", Counting()).set_index("document")
    assert table["n"].tolist() == [2, 2]
    for name, lines in SYSTEMS.items():
        wanted = [
            CHRF().corpus_score(lines[rows], [FIRST[rows], SECOND[rows]]).score for rows in (slice(2), slice(2, 4))
        ]
        assert table[f"outside/{name}"].tolist() == pytest.approx(wanted, abs=1e-9)


@pytest.fixture
def in_the_app(runs, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(runs[0].folder.parents[1]))


def test_outside_runs_are_scored_on_the_page(in_the_app):
    at = open_page("scores", reference="2", preset="lowercase: 13a tokeniser, case-insensitive")
    wanted = [BLEU(lowercase=True).corpus_score(lines, [SECOND]).score for lines in SYSTEMS.values()]
    assert at.dataframe[1].value["score"].tolist()[:2] == pytest.approx(wanted)
    assert any("--preset lowercase --reference 2" in code for code in codes(at))


def test_the_page_of_test_sets_shows_counts_findings_and_documents(in_the_app):
    at = open_page("testsets", metric="chrF")
    sets, outputs, findings, documents = (frame.value for frame in at.dataframe)
    assert sets["sentences"].tolist() == [4]
    assert outputs["system"].tolist() == ["online-a", "online-b"]
    assert findings["side"].tolist() == ["online-b", "online-a"]
    wanted = CHRF().corpus_score(SYSTEMS["online-a"][:2], [FIRST[:2], SECOND[:2]]).score
    assert documents["online-a"][0] == pytest.approx(wanted)


def test_systems_may_be_called_as_the_columns_of_the_documents(files, tmp_path, monkeypatch):
    named = [f"{name}={files / system}.en" for name, system in zip(("document", "n"), SYSTEMS, strict=True)]
    assert _bring(files, tmp_path / "runs" / "outside", *named).exit_code == 0
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))
    at = open_page("testsets", metric="chrF")
    assert not at.error
    assert list(at.dataframe[-1].value) == ["document", "n", "outside/document", "outside/n"]


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("beam_trees", "Only the texts are known"),
        ("curves", "Only the texts are known"),
        ("future_cost", "None of the chosen runs estimates a future cost"),
        ("beam_sizes", "Only the texts are known"),
        ("translate", "Translated elsewhere: "),
        ("attention", "Translated elsewhere: "),
        ("tokens", "Translated elsewhere: "),
    ],
)
def test_pages_that_need_a_model_say_so_in_a_sentence(in_the_app, page, sentence):
    at = open_page(page)
    said = [*texts(at), *(error.value.replace("\\", "") for error in at.error)]
    assert any(sentence in text for text in said)
    assert not any("workbench resume" in code or "workbench translate" in code for code in codes(at))
