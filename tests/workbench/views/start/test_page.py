"""Start: what is loaded, the machine, and the job that builds the demo."""

import subprocess
import sys
import time
from importlib.metadata import version

from tests.paths import ROOT
from tests.workbench.views.app_pages import codes, open_page, texts
from workbench.experiments import demo
from workbench.jobs import queue


def test_it_counts_what_is_loaded_and_names_the_machine_when_asked(with_demo):
    for name in demo.systems():  # the tests' demo has not all of them
        index = with_demo / "demo" / name / "traces" / "test" / "index.json"
        if not index.exists():
            index.parent.mkdir(parents=True)
            index.touch()
    at = open_page("start")
    assert {metric.label: metric.value for metric in at.metric} == {
        "Runs": "3",
        "Broken runs": "0",
        "Chosen": "3",
        "Test sets": "1",
    }
    assert not at.dataframe
    at.session_state["machine"] = True
    machine = at.run().dataframe[0].value.set_index("part")["found"]
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


def test_the_first_page_waits_for_no_library_that_it_does_not_show(with_demo):
    """They take most of a second to import; Plotly comes with Streamlit."""
    script = (
        "import sys; from tests.workbench.views.app_pages import open_page\n"
        "open_page('start', runs=['demo/transformer'])\n"
        "print(*({'pandas', 'pyarrow', 'matplotlib', 'sacrebleu', 'scipy', 'torch'} & set(sys.modules)))"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert told.stdout.strip() == ""
