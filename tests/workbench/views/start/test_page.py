"""Start: questions and findings of the runs at hand, the machine, and the job that builds the demo."""

import json
import shutil
import subprocess
import sys
import time
from importlib.metadata import version

import pytest
from sacrebleu.metrics import CHRF

from tests.paths import ROOT
from tests.workbench.views.app_pages import codes, open_page, runs_of, texts
from workbench.app import url_state
from workbench.evaluation import scoring
from workbench.experiments import demo
from workbench.figures import run_styles
from workbench.figures.request import Request
from workbench.jobs import queue
from workbench.views.future_cost.measure import agreement_table
from workbench.views.start import cards, findings
from workbench.views.start.questions import cards_of

QUESTIONS = {
    "Which system is better, and where?": "scores",
    "Where do two searches part?": "beam_trees",
    "Does a system foresee its next word?": "future_cost",
}


def _questions(at):
    return [button.label.strip("*") for button in at.button if button.key and button.key.startswith("card-")]


def test_a_card_for_each_question_that_the_runs_answer_leads_to_its_page(with_demo):
    at = open_page("start")
    assert _questions(at) == list(QUESTIONS)
    assert len(at.get("image")) == len(QUESTIONS)
    known = {run.name: run for run in runs_of(with_demo, *demo.systems())}
    (card,) = [card for card in cards.cards(list(known.values()), "test") if card.page == "beam_trees"]
    at = at.button(key="card-beam_trees").click().run()
    assert not at.exception
    assert at.title[0].value == "Beam trees"
    assert at.multiselect(key="runs").value == card.runs == ["demo/transformer", "demo/future-cost-2"]
    assert at.number_input(key="sentence").value == card.sentence
    assert at.segmented_control(key="show").value == "difference"


def test_a_picture_has_the_lines_of_its_runs_folder_though_another_one_is_stored(with_demo):
    known = {run.name: run for run in runs_of(with_demo, *demo.systems())}
    (card,) = [card for card in cards.cards(list(known.values()), "test") if card.page == "scores"]

    def picture_with(lines: range) -> bytes:
        stored = json.dumps({"version": run_styles.VERSION, "lines": dict(zip(known, lines, strict=False))})
        (with_demo / run_styles.FILE).write_text(stored)
        return cards.picture(card, known)

    first, others = picture_with(range(9)), picture_with(range(5, 9))
    assert first != others
    assert picture_with(range(9)) == first


def test_a_run_that_routes_adds_its_question(with_demo, routed_run):
    shutil.copytree(routed_run.folder, with_demo / "demo" / "em-routing")
    assert "What does the routing agree on, iteration by iteration?" in _questions(open_page("start"))


def test_a_card_on_a_pronoun_shows_a_sentence_with_one(context_runs):
    (card,) = [card for card in cards_of(context_runs, "test") if card.page == "context"]
    record = context_runs[0].translations("test").truth[card.sentence]
    assert "it" in record["phenomena"]


def test_of_many_runs_those_are_compared_that_are_chosen(with_demo, monkeypatch):
    monkeypatch.setattr(url_state, "MOST_RUNS", 2)
    at = open_page("start", runs=["demo/transformer", "demo/future-cost-2"])
    assert _questions(at) == list(QUESTIONS)
    at = at.button(key="card-scores").click().run()
    assert at.multiselect(key="runs").value == ["demo/transformer", "demo/future-cost-2"]


def test_two_searches_part_at_the_short_sentence_whose_outputs_differ_most(with_demo):
    pair = runs_of(with_demo, "transformer", "future-cost-2")
    first, second = (run.translations("test") for run in pair)
    texts = zip(first.hypotheses, second.hypotheses, first.test_set.references, strict=True)
    chrf = CHRF()
    differences = [
        abs(chrf.sentence_score(one, [right]).score - chrf.sentence_score(other, [right]).score)
        for one, other, right in texts
    ]
    short = [row for row, source in enumerate(first.test_set.sources) if len(source.split()) <= 12]
    (card,) = [card for card in cards.cards(pair, "test") if card.page == "beam_trees"]
    assert card.sentence == max(short, key=differences.__getitem__)
    (found,) = [finding for finding in findings.findings(pair, "test") if finding.page == "sentences"]
    assert found.sentence == differences.index(max(differences))
    assert f"{max(differences):.0f} chrF" in found.text


def test_findings_are_those_of_the_tables_that_they_lead_to(with_demo):
    runs = runs_of(with_demo, *demo.systems())
    found = {finding.page: finding for finding in findings.findings(runs, "test")}
    table = scoring.comparison_table(runs, "test", runs[0].name)
    significant = table[table.p_holm < 0.05]
    if significant.empty:
        assert "No run differs significantly from transformer" in found["scores"].text
    else:
        most = significant.loc[significant.delta.abs().idxmax()]
        assert f"{most.system.removeprefix('demo/')} is {abs(most.delta):.1f} BLEU" in found["scores"].text
    estimates = agreement_table(Request(tuple(runs[1:]), "test"))
    worst = estimates.loc[estimates.mean_absolute_error.idxmax()]
    assert f"those of {worst.system}, by {worst.mean_absolute_error:.2f} nats" in found["future_cost"].text
    at = open_page("start")
    assert all(finding.text in texts(at) for finding in found.values())
    assert at.button(key="finding-sentences").click().run().title[0].value == "Sentences"


def test_it_names_the_machine_when_asked_and_offers_more_of_the_demo(with_demo):
    for name in demo.systems():  # the tests' demo has not all of them
        index = with_demo / "demo" / name / "traces" / "test" / "index.json"
        if not index.exists():
            index.parent.mkdir(parents=True)
            index.touch()
    at = open_page("start")
    assert not at.dataframe
    at.session_state["machine"] = True
    machine = at.run().dataframe[0].value.set_index("part")["value"]
    assert machine["torch"] == version("torch")
    assert "CPU" in machine["Device"]
    assert "The demo is built." in texts(at)
    assert not at.button(key="surprise").value
    at.session_state["more"] = True
    at.run().selectbox(key="another").select("em-routing").run()
    assert f"workbench demo em-routing --runs {with_demo}" in codes(at)
    assert not {*demo.systems()} & {*at.selectbox(key="another").options}
    assert not any("twice its updates" in text for text in texts(at))
    at.selectbox(key="another").select("prnn").run()
    assert any("prnn begins from the demo's rnnsearch" in text and "twice its updates" in text for text in texts(at))


def test_any_description_joins_the_demo_and_what_is_none_is_refused(with_demo, monkeypatch):
    monkeypatch.setattr(demo, "complete", lambda root: True)
    (with_demo / "demo" / "future-cost-1").rename(with_demo / "demo" / "coverage-form=subtractive")
    at = open_page("start")
    at.session_state["more"] = True
    field = at.run().text_input(key="described")
    assert all(f"`{example}`" in field.help for example in ("coverage:form=subtractive", "pfrnn-loss+future-cost-2"))
    at = field.input("coverage:form=subtractive").run()
    assert "demo/coverage-form=subtractive is there already." in texts(at)
    at = at.text_input(key="described").input(" coverage:form=neural ").run()
    assert f"workbench demo coverage:form=neural --runs {with_demo}" in codes(at)
    at = at.text_input(key="described").input("pfrnn-loss+future-cost-2:rnn_cell=lstm").run()
    assert f"workbench demo pfrnn-loss+future-cost-2:rnn_cell=lstm --runs {with_demo}" in codes(at)
    assert any("begins from the demo's rnnsearch:rnn_cell=lstm" in text for text in texts(at))
    at = at.text_input(key="described").input("coverage:form=neutral").run()
    assert any("form: input should be" in error.value.replace("\\", "") for error in at.error)
    assert not [code for code in codes(at) if code.startswith("workbench demo")]


def test_the_demo_is_started_found_again_after_a_reload_and_cancelled(runs_root):
    at = open_page("start")
    assert f"workbench demo --runs {runs_root}" in codes(at)
    next(button for button in at.button if button.label == "Build the demo").click().run()
    (job,) = queue.list_jobs(runs_root)
    assert job.arguments == ("demo", "--runs", str(runs_root))
    assert job.state == "running"

    again = open_page("start")
    assert "Build the demo" not in [button.label for button in again.button]
    next(button for button in again.button if button.label == "Cancel").click().run()
    deadline = time.monotonic() + 20
    while job.state in queue.ACTIVE and time.monotonic() < deadline:
        time.sleep(0.1)
    assert job.state == "cancelled"
    at = open_page("start")
    assert any("The last time: Cancelled" in text and "go on where they stopped" in text for text in texts(at))
    assert any(button.label == "Build the demo" for button in at.button)


@pytest.mark.slow
def test_the_first_page_waits_for_no_library_that_it_does_not_show(with_demo):
    """They take most of a second to import; Plotly comes with Streamlit. Cards and findings are stored by then."""
    open_page("start")
    script = (
        "import sys; from tests.workbench.views.app_pages import open_page\n"
        "assert len(open_page('start').get('image')) == 3\n"
        "print(*({'pandas', 'pyarrow', 'matplotlib', 'sacrebleu', 'scipy', 'torch'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert told.stdout.strip() == ""
