"""On a fresh installation, where the exhibits are the only runs, every page shows something at once."""

import pytest

from core_models.resources import data_folder
from tests.kinds import sampled
from tests.workbench.views.app_pages import charts, codes, open_page
from workbench.app.pages import PAGES
from workbench.jobs import allowed_commands
from workbench.store import exhibits
from workbench.store.runs import runs_folder

# Pages that begin with what a user does, or with texts.
WITHOUT_FIGURES = {"start", "rating", "basket", "jobs", "help"}


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """An empty runs folder, beside which the package's exhibits are shown."""
    monkeypatch.setenv(exhibits.VARIABLE, str(data_folder() / exhibits.NAME))
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))


@pytest.mark.parametrize("page", sampled([page for page in PAGES if page not in WITHOUT_FIGURES], every=6))
def test_every_page_shows_figures_or_tables(page):
    at = open_page(page, sentence="2")  # one with others before it in its document
    assert not at.error
    assert charts(at) or at.dataframe


def test_start_shows_pictures_and_human_rating_begins_with_a_new_study():
    assert len(open_page("start").get("image")) >= 5
    assert "Create study" in [button.label for button in open_page("rating").button]


def test_the_page_jobs_offers_what_it_may_start():
    at = open_page("jobs")
    (command,) = codes(at)
    assert command.startswith("workbench demo --runs")
    assert allowed_commands.read(command, runs_folder())
