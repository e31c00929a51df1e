"""Jobs: the table and the log of the one that is chosen, and the buttons on pages that lack something."""

import re
import shutil
import time

import pytest

from tests.workbench.jobs.held_jobs import asleep, lay_down
from tests.workbench.views.app_pages import charts, codes, open_page, texts
from workbench.jobs import queue
from workbench.views.jobs.table import lasted

SECONDS = 60.0


@pytest.fixture
def several(runs_root, tmp_path):
    """Jobs in every state, the newest first; `exit`, `cancelled` and the log as the process left them."""
    states = {
        "running": {"log.txt": "tracing test 20/80\n"},
        "ending": {"cancelled": ""},
        "done": {"exit": "0\n"},
        "failed": {"exit": "2\n", "log.txt": "workbench: **one**: no run here\n"},
        "killed": {"exit": "137\n"},
        "cancelled": {"cancelled": ""},
        "lost": {},
    }
    with asleep(tmp_path) as shell:
        for place, (name, told) in enumerate(states.items()):
            began = time.time() - 100 * place
            living = shell if name in ("running", "ending") else None
            folder = lay_down(runs_root, name, living, started=began, asked=began)
            for file, text in told.items():
                (folder / file).write_text(text)
        yield runs_root


def test_the_table_holds_every_job_with_its_state(several):
    table = open_page("jobs").dataframe[0].value
    assert table["state"].tolist() == ["running", "ending", "done", "failed", "failed", "cancelled", "lost"]
    assert table["progress"].iloc[[0, 2]].tolist() == [0.25, 1.0]
    assert table["command"].iloc[0] == f"workbench resume {several}/running"
    assert table["line"].tolist()[3] == "workbench: **one**: no run here"
    assert re.fullmatch(r"[1-9] min \d+ s", table["lasted"].iloc[1])  # begun a hundred seconds before the page


@pytest.mark.parametrize(
    ("name", "said", "button"),
    [
        ("running", "Running.", "Cancel"),
        ("ending", "it was cancelled and finishes", "End at once"),
        ("done", "it has ended well", None),
        ("failed", "mend what its last lines say", "Restart"),
        ("killed", "killed from outside by signal 9", "Restart"),
        ("cancelled", "go on where they stopped", "Restart"),
        ("lost", "gone without a result", "Restart"),
    ],
)
def test_the_chosen_job_says_what_its_state_means_and_offers_what_can_be_done(several, name, said, button):
    at = open_page("jobs")
    at.session_state["job"] = name
    at.run()
    assert any(said in text for text in texts(at))
    assert f"workbench resume {several}/{name}" in codes(at)
    offered = {"Cancel", "End at once", "Restart"} & {one.label for one in at.button}
    assert offered == ({button} if button else set())
    if name == "failed":
        assert "workbench: **one**: no run here" in codes(at)


def test_only_jobs_that_have_ended_are_cleared(several):
    at = open_page("jobs")
    next(button for button in at.button if button.label.startswith("Clear")).click().run()
    assert at.dataframe[0].value["state"].tolist() == ["running", "ending"]
    assert {job.title for job in queue.list_jobs(several)} == {"running", "ending"}


def test_without_jobs_the_page_names_a_command_that_makes_one(runs_root):
    at = open_page("jobs")
    assert any("No job was started here yet" in text for text in texts(at))
    assert codes(at) == [f"workbench demo --runs {runs_root}"]
    assert "Run now" in [button.label for button in at.button]


def test_without_jobs_the_command_scores_the_runs_that_are_there(with_demo):
    at = open_page("jobs", runs=["demo/future-cost-1", "demo/transformer"], baseline="demo/transformer")
    (command,) = codes(at)
    assert command == f"workbench evaluate {with_demo}/demo/transformer {with_demo}/demo/future-cost-1 --test test"
    next(button for button in at.button if button.label == "Run now").click().run()
    assert at.dataframe[0].value["command"].tolist() == [command]
    queue.list_jobs(with_demo)[0].cancel()


def test_a_job_that_waits_says_its_place_and_can_be_taken_out(several):
    waiting = [queue.start(several, [name, "--help"]) for name in ("demo", "trace")]
    at = open_page("jobs")
    table = at.dataframe[0].value
    assert table["state"].tolist()[:4] == ["waiting", "waiting", "running", "ending"]
    assert table["line"].tolist()[:2] == ["number 2 in the queue", "number 1 in the queue"]
    assert table["started"].tolist()[:2] == ["", ""]
    at.session_state["job"] = waiting[1].folder.name
    assert any("number 2 in the queue" in text for text in texts(at.run()))
    at.session_state["job"] = waiting[0].folder.name
    at.run()
    next(button for button in at.button if button.label == "Cancel").click().run()
    assert at.dataframe[0].value["state"].tolist()[:2] == ["waiting", "cancelled"]
    assert at.dataframe[0].value["line"].tolist()[0] == "number 1 in the queue"
    waiting[1].cancel()


def test_what_a_page_lacks_waits_for_its_turn_there(several):
    at = open_page("start")
    next(button for button in at.button if button.label == "Build the demo").click().run()
    assert [job.state for job in queue.list_jobs(several)][:3] == ["waiting", "running", "ending"]
    assert any("Waiting for its turn: number 1 in the queue" in text for text in texts(at))
    next(button for button in at.button if button.label == "Cancel").click().run()
    assert any("The last time: Cancelled" in text for text in texts(at))


@pytest.mark.slow
def test_what_is_missing_is_made_by_its_own_command_once(with_demo):
    """The button beside the printed command starts this very command; when it has ended the page shows what it made."""
    run = with_demo / "demo" / "future-cost-2"
    shutil.rmtree(run / "traces")
    first, second = (open_page("future_cost", runs=["demo/future-cost-2"]) for _ in range(2))
    command = f"workbench trace {run} --test test"
    assert command in codes(first)
    for tab in (first, second):
        next(button for button in tab.button if button.label == "Run now").click().run()
    (job,) = queue.list_jobs(with_demo)
    assert job.command == command
    assert "Run now" not in [button.label for button in second.button]
    deadline = time.monotonic() + SECONDS
    while job.state in queue.ACTIVE and time.monotonic() < deadline:
        time.sleep(0.1)
    assert job.state == "done", job.log
    assert len(charts(first.run())) == 2
    assert command not in codes(first)


def test_of_several_runs_each_has_its_button_and_words_left_open_have_none(with_demo):
    names = ["demo/future-cost-1", "demo/future-cost-2"]
    for name in names:
        shutil.rmtree(with_demo / name / "traces")
    labels = [button.label.replace("\\", "") for button in open_page("future_cost", runs=names).button]
    assert [label for label in labels if label.startswith("Run now")] == [
        f"Run now: trace {name.removeprefix('demo/')} --test test" for name in names
    ]
    at = open_page("routing", runs=["demo/transformer"])
    (shown,) = [code for code in codes(at) if "--data DATA" in code]
    started = [label for button in at.button if (label := button.label).startswith("Run now")]
    assert len(started) == 1, "what builds on the demo can be started, what asks for data cannot"
    assert shown.splitlines()[0].startswith("workbench demo ")


@pytest.mark.parametrize(
    ("seconds", "said"), [(-1, "0 s"), (8.9, "8 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"), (7500, "2 h 5 min")]
)
def test_times_are_said_as_people_say_them(seconds, said):
    assert lasted(seconds) == said
