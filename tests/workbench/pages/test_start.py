"""Start: what is loaded, the machine, and the job that builds the demo."""

import time
from importlib.metadata import version

from tests.workbench.pages.app_pages import codes, open_page, texts
from workbench import demo, jobs
from workbench.jobs import Job
from workbench.widgets import job_view


def test_it_counts_what_is_loaded_and_names_the_machine(with_demo):
    at = open_page("start")
    assert {metric.label: metric.value for metric in at.metric} == {
        "Runs": "3",
        "Broken runs": "0",
        "Chosen": "3",
        "Test sets": "1",
    }
    machine = at.dataframe[0].value.set_index("part")["found"]
    assert machine["torch"] == version("torch")
    assert "CPU" in machine["Device"]
    assert "The demo is built." in texts(at)
    assert not at.button(key="previous").value


def test_the_demo_is_started_found_again_after_a_reload_and_cancelled(runs_root):
    at = open_page("start")
    assert f"workbench demo --runs {runs_root}" in codes(at)
    next(button for button in at.button if button.label == "Build the demo").click().run()
    (job,) = jobs.list_jobs(runs_root / ".jobs")
    assert job.command[-3:] == ("demo", "--runs", str(runs_root))
    assert job.state == "running"

    again = open_page("start")
    assert again.get("progress")
    next(button for button in again.button if button.label == "Cancel").click().run()
    deadline = time.monotonic() + 20
    while job.state == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert job.state != "running"
    at = open_page("start")
    assert "not finished" in at.warning[0].value
    assert any(button.label == "Build the demo" for button in at.button)


def test_progress_runs_over_all_systems(tmp_path):
    job = Job(tmp_path, "Demo", ("workbench", "demo"), 0, 0.0)
    assert job_view.progress(job) == 0.0
    first, second, third = demo.SYSTEMS
    (tmp_path / "log.txt").write_text(f"demo 700/700 {first}\ndemo 350/700 {second}\nTranslating the test set\n")
    assert job_view.progress(job) == (1 + 0.5) / 3
    (tmp_path / "log.txt").write_text(f"demo 700/700 {third}\n")
    assert job_view.progress(job) == 1.0
