"""Translate, and the command line beside it: a sentence stands where it is told to stand, or alone."""

import os
import shlex
import shutil

import pytest
from typer.testing import CliRunner

import core_models
from analyses import attention
from analyses.alignment import from_attention
from analyses.attention import END
from core_models.translator import TranslatorError
from tests.workbench.views.app_pages import codes, open_page, texts
from workbench import cli
from workbench.app.components import document_context_input
from workbench.app.frame import Frame
from workbench.app.url_state import ViewState
from workbench.evaluation.document_context import as_arguments, context_rows, typed_context
from workbench.store.runs import Run, RunError, list_runs
from workbench.views.interactive import decoding as live
from workbench.views.interactive import prefix_constrained

SOURCE, LINES = "it sleeps .", ["the dog sees the cat .", "the cat is old ."]
SEARCH = {"beam": 2, "length_penalty": 0.6}


@pytest.fixture
def here(runs_root, demo_runs, context_runs) -> dict[str, Run]:
    """Runs that read the sentences before, and the demo's Transformer, by their names."""
    for folder in (demo_runs / "demo" / "transformer", *(run.folder for run in context_runs)):
        shutil.copytree(folder, runs_root / "demo" / folder.name, copy_function=os.link)
    return {run.name.removeprefix("demo/"): run for run in list_runs(runs_root)}


def in_document(run, row):
    """A sentence in its document by the translator's own account, after the run's own translations."""
    translations, translator = run.translations("test"), core_models.load(run.folder)
    test_set = translations.test_set
    contexts, outputs = translator.contexts(test_set.sources, test_set.documents, translations.hypotheses)
    written = None if outputs is None else [outputs[row]]
    before = {} if contexts is None else {"contexts": [contexts[row]], "context_outputs": written}
    return translator.translate([test_set.sources[row]], **before, **SEARCH)[0]


def after_lines(run):
    """The typed sentence behind the typed lines, as one document."""
    translator = core_models.load(run.folder)
    outputs = [one.text for one in translator.translate(LINES, ["one"] * 2)]
    contexts, written = translator.contexts([*LINES, SOURCE], ["one"] * 3, [*outputs, ""])
    written = None if written is None else written[-1:]
    return translator.translate([SOURCE], contexts=contexts[-1:], context_outputs=written, **SEARCH)[0]


def shown(at):
    return at.dataframe[0].value["log_prob"].iloc[0], at.dataframe[0].value["text"].iloc[0]


def said(one):
    return pytest.approx(one.log_prob, abs=1e-4), one.text


def second(run):
    """The first sentence with two before it."""
    test_set = run.translations("test").test_set
    return next(row for row in range(len(test_set.sources)) if context_rows(test_set, row, 2)[1] is not None)


@pytest.mark.parametrize("name", ["qcn-reg", "han"])
@pytest.mark.slow
def test_translate_puts_a_chosen_sentence_into_its_document_and_a_typed_one_where_it_is_told(here, name):
    run, options = here[name], {"beam": "2", "with": name, "runs": [f"demo/{name}"]}
    row, test_set = second(run), run.translations("test").test_set
    at = open_page("translate", sentence=str(row), **options)
    assert shown(at) == said(in_document(run, row))
    assert "\n".join(test_set.sources[row - 2 : row]) in texts(at)
    typed = open_page("translate", source=SOURCE, before="\n".join(LINES), **options)
    assert shown(typed) == said(after_lines(run))
    (command,) = (code for code in codes(typed) if code.startswith("printf "))
    words = shlex.split(command.partition(" | ")[2])
    printed = CliRunner().invoke(cli.app, words[1:], input=f"{SOURCE}\n")
    assert printed.stdout.splitlines()[0].split("\t")[2] == after_lines(run).text, printed.output
    alone = open_page("translate", source=SOURCE, **options)
    assert shown(alone) == said(core_models.load(run.folder).translate([SOURCE], **SEARCH)[0])
    assert shown(alone)[0] != shown(typed)[0]
    assert any("No sentence stands before it" in caption.value for caption in alone.caption)


def test_a_run_of_another_version_reads_what_stands_before_the_shown_sentence(context_runs, tmp_path):
    """Not what stands before the sentence of that number in its own test set."""
    shown, other = context_runs[0], shutil.copytree(context_runs[1].folder, tmp_path / "han")
    row, path = second(shown), other / "translations" / "test" / "sources.txt"
    path.write_text("a cat sleeps .\n" * len(shown.translations("test").test_set.sources), encoding="utf-8")
    (known,) = (run for run in list_runs(tmp_path) if run.folder == other)
    view = ViewState((shown.name, known.name), "test", row)
    here, alike = (Frame(tmp_path, (shown, run), (), view) for run in (known, context_runs[1]))
    assert here.tested == (shown, known)
    test_set = shown.translations("test").test_set
    read = document_context_input.read_by(here, known, "", "")
    assert read.sources[:2] == (test_set.sources[row - 1], test_set.sources[row - 2])
    assert read.outputs is None  # its own translations are of other sentences
    assert document_context_input.read_by(alike, context_runs[1], "", "").outputs is not None


@pytest.mark.slow
def test_the_page_hands_each_run_what_it_reads(here):
    names = ["demo/qcn-reg", "demo/han", "demo/transformer"]
    runs = [here[name.removeprefix("demo/")] for name in names]
    row = second(runs[0])
    at = open_page("translate", runs=names, sentence=str(row), beam="2")
    table = next(frame.value for frame in at.dataframe if "log_prob_change" in frame.value)
    by_system = table.set_index("system")  # the baseline comes first
    for run in runs:
        assert tuple(by_system.loc[run.folder.name, ["log_prob", "text"]]) == said(in_document(run, row))
    assert any("transformer: single sentences" in caption.value for caption in at.caption)
    typed = open_page("translate", runs=names[:2], source=SOURCE, before="\n".join(LINES), beam="2")
    table = next(frame.value for frame in typed.dataframe if "log_prob_change" in frame.value)
    typed_texts = table.set_index("system")["text"].to_dict()
    assert typed_texts == {run.folder.name: after_lines(run).text for run in runs[:2]}


def test_coverage_is_that_of_the_pass_in_the_document(here):
    """Of a sentence of the test set whose attention covers other words when nothing stands before it."""
    run = here["han"]
    translator, test_set = core_models.load(run.folder), run.translations("test").test_set

    def covered(source, tokens, before):
        (trace,) = translator.trace([source], [tokens], ["decoder.cross_attention"], **as_arguments(before))
        pieces = [*translator.source_vocabulary.pieces(translator.source_vocabulary.encode([source])[0]), END]
        words = attention.to_words(trace["decoder.cross_attention"].values.mean((0, 1)), tokens, pieces)
        words, *_ = attention.without_end(words, attention.joined(tokens), attention.joined(pieces))
        return {i for i, _ in from_attention(words)}, words.shape[1]

    for source in test_set.sources:
        before = live.completed(run, typed_context("\n".join(LINES), 3))
        (one,) = translator.translate([source], contexts=[before.sources], context_outputs=[before.outputs], **SEARCH)
        wanted, words = covered(source, one.tokens, before)
        if wanted != covered(source, one.tokens, None)[0]:
            break
    else:
        pytest.fail("no sentence of the test set is covered in another way without its context")
    found = prefix_constrained.account(run, source, one.tokens, before)
    assert (found.covered, found.words) == (wanted, words)


def test_sentences_before_that_would_keep_the_page_waiting_are_refused_before_they_are_translated(here):
    with pytest.raises(RunError, match="one before it has 151 words"):
        live.completed(here["han"], typed_context("a " * 151, 3))


def test_a_run_trained_without_reads_no_typed_sentences(here):
    options = {"runs": ["demo/qcn-reg", "demo/transformer"], "with": "transformer", "beam": "2"}
    at = open_page("translate", source=SOURCE, before="\n".join(LINES), **options)
    assert not at.error
    assert any("transformer: single sentences" in caption.value for caption in at.caption)
    table = at.dataframe[0].value.set_index("system")
    alone = core_models.load(here["transformer"].folder).translate([SOURCE], **SEARCH)[0]
    assert tuple(table.loc["transformer", ["log_prob", "text"]]) == said(alone)
    (command,) = (code for code in codes(at) if code.startswith("printf "))
    assert "--context" not in command
    with pytest.raises(TranslatorError, match="trained on single sentences"):
        live.translate(here["transformer"], live.TranslationRequest(SOURCE, before=typed_context("\n".join(LINES), 0)))


@pytest.mark.slow
def test_the_command_line_reads_documents_of_a_file(here, tmp_path):
    """Ids beside the file or named are read; without, it is said that every line stands alone."""

    def run(*words, input=None):
        return CliRunner().invoke(cli.app, [str(word) for word in words], input=input)

    reader, plain = here["han"], here["transformer"]
    test_set, file = reader.translations("test").test_set, tmp_path / "some.en"
    file.write_text("".join(f"{line}\n" for line in test_set.sources[:5]), encoding="utf-8")
    ids = tmp_path / "ids.txt"
    ids.write_text("a\na\na\nb\nb\n", encoding="utf-8")
    translator = core_models.load(reader.folder)
    wanted = [one.text for one in translator.translate(test_set.sources[:5], list("aaabb"))]
    alone = run("translate", reader.folder, "--input", file)
    assert alone.stdout.splitlines() == [one.text for one in translator.translate(test_set.sources[:5])]
    assert "every line stands alone. Give --doc-ids or --context." in alone.stderr
    named = run("translate", reader.folder, "--input", file, "--doc-ids", ids)
    assert named.stdout.splitlines() == wanted
    assert not named.stderr
    (tmp_path / "some.docids").write_bytes(ids.read_bytes())
    assert run("translate", reader.folder, "--input", file).stdout.splitlines() == wanted
    drawn = run("translate", reader.folder, "--input", file, "--num-samples", "1", "--temperature", "0.01")
    samples = translator.sample(test_set.sources[:5], 1, 0.01, documents=list("aaabb"))
    assert drawn.stdout.splitlines() == [one.text for (one,) in samples]
    scored = [run("score", reader.folder, "--source", file, "--target", file, *ids) for ids in ((), ("--doc-ids", ids))]
    assert scored[0].stdout == scored[1].stdout
    expected = translator.score(test_set.sources[:5], test_set.sources[:5], list("aaabb"))
    for line, one in zip(scored[0].stdout.splitlines(), expected, strict=True):
        assert float(line.split("\t")[0]) == pytest.approx(one.log_prob, abs=1e-3)
    for words, message in (
        ((plain.folder, "--input", file, "--doc-ids", ids), "was trained without context and reads single sentences"),
        ((plain.folder, "--input", file, "--context", "a b ."), "trained on single sentences"),
        ((reader.folder, "--input", file, "--context-target", "a b ."), "--context-target goes with --context"),
        ((reader.folder, "--test", "test", "--context", "a b ."), "--context would change nothing beside --test"),
        ((reader.folder, "--input", "-", "--doc-ids", ids), "--doc-ids is for a file"),
        ((reader.folder, "--input", file, "--doc-ids", ids, "--context", "a b ."), "--context for any line: leave one"),
    ):
        refused = run("translate", *words)
        assert refused.exit_code != 0
        assert message in refused.output + repr(refused.exception)
    (tmp_path / "some.docids").write_text("of another text\n", encoding="utf-8")
    assert "has 1 document ids" in repr(run("translate", reader.folder, "--input", file).exception)
    for words in ((plain.folder,), (reader.folder, "--context", "a b .")):  # nobody asks for the ids
        assert len(run("translate", *words, "--input", file).stdout.splitlines()) == 5
