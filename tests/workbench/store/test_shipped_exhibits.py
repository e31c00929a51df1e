"""The exhibits that the package carries: they open, translate to the stored text, and trace to the stored arrays.

They were made once; so this also holds the formats of configurations, weights, vocabularies, translations and traces.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import core_models
from analyses import aligner as aligners
from core_models.resources import data_folder
from tests.kinds import sampled
from workbench import cli
from workbench.evaluation import adequacy
from workbench.evaluation.live_trace import trace_sentence
from workbench.evaluation.result_cache import of_translations
from workbench.evaluation.scoring import score_table
from workbench.figures import run_styles
from workbench.figures.request import Request
from workbench.figures.spec import path_of
from workbench.store import exhibits
from workbench.store.listing import listing
from workbench.store.runs import ALIGNERS, open_run
from workbench.views.adequacy.word_coverage import COUNTERPARTS
from workbench.views.beam_size.figures import sizes_table
from workbench.views.contrastive import measure as contrastive
from workbench.views.reranking.figures import WeightsOptions, weights_table
from workbench.views.start import cards, findings, questions

pytestmark = pytest.mark.long

FILES = data_folder() / exhibits.NAME
NAMES = sorted(re.sub(r"\.", "/", path.stem, count=1) for path in FILES.glob("*.safetensors"))
SYSTEMS = {
    "transformer", "future-cost-1", "future-cost-2", "em-routing", "dynamic-routing", "gdr-bow-bca", "rnnsearch",
    "coverage", "pfrnn-loss", "qcn-reg", "document-transformer",
}  # fmt: skip
TRANSLATED, TRACED = 12, (0, 7)  # sentences


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """A runs folder without runs, beside which the package's exhibits are shown."""
    monkeypatch.delenv(exhibits.VARIABLE)
    return tmp_path / "runs"


def test_they_are_finished_runs_of_less_than_forty_megabytes(empty):
    assert sorted(run.name for run in listing(empty).known) == NAMES
    assert {name.rpartition("/")[2] for name in NAMES} == SYSTEMS
    assert all(run.finished for run in listing(empty).known)
    assert sum(path.stat().st_size for path in FILES.iterdir()) < 40e6


def test_a_command_names_an_exhibit_as_listed_and_a_run_by_its_path(empty, monkeypatch, tmp_path):
    run = open_run(NAMES[0], empty)
    assert run.argument == NAMES[0]
    typed = open_run(NAMES[0])
    assert (typed.name, typed.argument, typed.folder) == (run.name, run.argument, run.folder)
    assert open_run(run.argument).folder == run.folder
    own = open_run(shutil.copytree(run.folder, tmp_path / "runs" / NAMES[0]))
    assert own.argument == str(own.folder)
    monkeypatch.chdir(tmp_path)
    assert open_run(NAMES[0], empty).argument == str(own.folder)
    assert path_of(own) == f"runs/{NAMES[0]}"


def test_commands_translate_and_score_with_an_exhibit(empty, tmp_path):
    (tmp_path / "in.txt").write_text("the dog sleeps .\n", encoding="utf-8")
    (found,) = core_models.load(open_run(NAMES[0], empty).folder).translate(["the dog sleeps ."])
    file, name = str(tmp_path / "in.txt"), NAMES[0]
    assert CliRunner().invoke(cli.app, ["translate", name, "--input", file]).stdout.strip() == found.text
    (tmp_path / "out.txt").write_text(f"{found.text}\n", encoding="utf-8")
    scored = CliRunner().invoke(cli.app, ["score", name, "--source", file, "--target", str(tmp_path / "out.txt")])
    assert float(scored.stdout.split("\t")[0]) == pytest.approx(found.log_prob, abs=1e-3)


@pytest.mark.parametrize("name", sampled(NAMES, every=3))
def test_it_translates_to_the_stored_text_with_the_stored_scores(name, empty):
    run = open_run(name, empty)
    test = run.tests()[0]
    translations = run.translations(test)
    test_set = translations.test_set
    documents = {} if test_set.documents is None else {"documents": test_set.documents[:TRANSLATED]}
    found = core_models.load(run.folder).translate(test_set.sources[:TRANSLATED], **documents)
    assert [translation.text for translation in found] == translations.hypotheses[:TRANSLATED]
    scores = [translation.score for translation in found]
    np.testing.assert_allclose(scores, [detail["score"] for detail in translations.details[:TRANSLATED]], atol=1e-3)


@pytest.mark.parametrize("name", sampled(NAMES, every=3))
def test_a_forced_pass_gives_the_stored_traces(name, empty):
    run = open_run(name, empty)
    (test,) = (test for test in run.tests() if run.traced(test))
    store = run.traces(test)
    for sentence in TRACED:
        again = trace_sentence(run, test, sentence).trace
        compared = [name for name in store.names if name in again]
        assert compared
        for array in compared:
            np.testing.assert_allclose(
                again[array].values, store.array(array, sentence).values, atol=5e-3, err_msg=array
            )


@pytest.mark.parametrize("name", sampled(NAMES))
def test_measures_of_its_search_are_stored(name, empty):
    request = Request((open_run(name, empty),), "test")
    sizes = sizes_table(request)
    assert sizes["size"].tolist() == [1, 2, 4, 8, 16]
    (best, *_) = weights_table(request, WeightsOptions())["score"]
    scores = score_table(list(request.runs), "test").set_index("metric")["score"]
    assert best == pytest.approx(scores["bleu"]), "without reranking it is the search's own choice"


@pytest.mark.parametrize("name", NAMES)
def test_adequacy_is_counted_with_them(name, empty):
    run = open_run(name, empty)
    (test,) = (test for test in run.tests() if run.traced(test))
    (aligner,) = (run.folder.parent / ALIGNERS).glob("*.npz")
    counts = of_translations(run, test)
    key = {**counts, "aligner": aligners.load(aligner).digest, "towards": "first"}
    assert len(adequacy.SENTENCE_COUNTS.load(run, key)) == len(run.translations(test))
    assert len(COUNTERPARTS.load(run, counts, test)) == len(run.translations(test))
    assert adequacy.ADEQUACY.load(run, counts, test).aligner == key["aligner"]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("exhibits-documents/")])
def test_readers_of_documents_find_what_a_pronoun_stands_for(name, empty):
    table = contrastive.accuracy_table({name: contrastive.read(open_run(name, empty), "controlled-test")}, None)
    assert table["low"].item() > 0.6, "by chance a third"


def test_the_pictures_of_the_first_page_come_with_them(tmp_path, monkeypatch):
    """Drawn with the lines that an installation without other runs gives them."""
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    exhibits.unpack(sorted(FILES.glob(f"*{exhibits.ARCHIVE}")), tmp_path)
    runs = listing(tmp_path).runs
    run_styles.keep(tmp_path, [run.name for run in runs])
    monkeypatch.setattr(cards, "_draw", lambda *_: pytest.fail("a picture is missing or out of date"))
    monkeypatch.setattr(questions, "cards_of", lambda *_: pytest.fail("the cards are missing or out of date"))
    shown = findings.shown(runs)
    found = cards.cards(shown, "test")
    assert len(found) == 5
    for card in found:
        assert cards.picture(card, {run.name: run for run in runs}).startswith(b"\x89PNG")


def test_the_first_page_asks_what_they_can_answer(empty):
    shown = findings.shown(listing(empty).runs)
    assert {card.page for card in cards.cards(shown, "test")} == {
        "scores", "beam_trees", "routing", "past_future", "future_cost",
    }  # fmt: skip


def test_the_card_of_routing_is_of_em_routing_where_both_are_shown(empty):
    runs = [open_run(f"exhibits/{name}", empty) for name in ("transformer", "dynamic-routing", "em-routing")]
    (card,) = [card for card in questions.cards_of(runs, "test") if card.page == "routing"]
    assert card.runs == ["exhibits/em-routing"]
