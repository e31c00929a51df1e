"""Two walks through the app in a real browser: pages, the state in the URL, keys, a PDF that a paper can take; and
from a table of sentences through the inside of one to a bundle of figures."""

import os
import re
import shutil
import subprocess
import zipfile
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlparse

import pytest

from tests.paths import ROOT
from tests.workbench.app.app_server import serving
from tests.workbench.app.browsing import Place, comes_to, follow, query, ready
from workbench.store.runs import list_runs


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The app on trainings of a real corpus, where the checkout has some whose searches were recorded."""
    folder = tmp_path_factory.mktemp("real")
    recorded = [
        (run, test)
        for grid in sorted((ROOT / "runs").glob("multi30k*"))
        for run in list_runs(grid)
        if run.trained
        for test in run.tests()
        if run.translations(test).has_trees
    ]
    if not recorded:
        pytest.skip("no run of Multi30k has recorded searches here; see docs/results/multi30k.md")
    first, test = recorded[0]
    grid = first.folder.parent
    runs = [run for run, other in recorded if other == test and run.folder.parent == grid][:2]
    for run in runs:
        shutil.copytree(run.folder, folder / "runs" / grid.name / run.folder.name, copy_function=os.link)
    with serving(folder) as server:
        yield Place(server.address, server.log, [f"{grid.name}/{run.folder.name}" for run in runs], test)


@pytest.fixture(params=["demo", "real"])
def place(request) -> Place:
    return request.getfixturevalue(request.param)


@pytest.mark.slow
def test_from_start_to_a_pdf_of_two_beam_trees(address, browser, tmp_path):
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    page.set_default_timeout(60_000)
    elsewhere: list[str] = []
    page.on(
        "request",
        lambda request: (
            elsewhere.append(request.url) if not request.url.startswith((address, "data:", "blob:")) else None
        ),
    )

    page.goto(f"{address}/?runs=demo/transformer&runs=demo/future-cost-2&runs=gone")
    ready(page, "Look inside neural machine translation")
    assert page.get_by_text("There is no run 'gone' here").is_visible()

    follow(page, "Compare", "Buckets")
    page.locator(".js-plotly-plot .barlayer").first.wait_for()
    assert query(page)["runs"] == ["demo/transformer", "demo/future-cost-2"]

    follow(page, "Search", "Beam trees")
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for()
    page.get_by_role("heading", name="Beam trees").click()
    page.keyboard.press("n")
    page.wait_for_url("**sentence=1**")
    assert query(page)["runs"] == ["demo/transformer", "demo/future-cost-2"]
    page.get_by_text("Both systems").wait_for()
    find = page.get_by_label("Find a sentence")
    find.press_sequentially("npn")
    assert find.input_value() == "npn"
    find.fill("")
    page.get_by_role("heading", name="Beam trees").click()
    page.keyboard.press("p")
    page.wait_for_url(lambda url: "sentence=1" not in url)
    assert query(page).get("sentence", ["0"]) == ["0"], "typing in a text field went nowhere"
    page.keyboard.press("n")
    page.wait_for_url("**sentence=1**")
    ready(page, "Beam trees")

    page.get_by_role("button", name="Export").click()
    with page.expect_download() as started:
        page.get_by_role("button", name="PDF").click()
    file = tmp_path / "trees.pdf"
    started.value.save_as(file)
    assert started.value.suggested_filename == "beam-trees.pdf"
    assert file.read_bytes().startswith(b"%PDF")
    _check_pdf(file)

    page.goto(f"{address}/beam_trees?runs=demo/transformer&runs=demo/future-cost-2&sentence=1&show=Difference")
    ready(page, "Beam trees")
    page.get_by_text("considered").first.wait_for()
    assert query(page)["show"] == ["Difference"]

    of_link = {"runs": ["demo/transformer", "demo/future-cost-2"], "sentence": ["1"], "prefix": ["die"], "beam": ["3"]}
    page.goto(f"{address}/what_if?{urlencode(of_link, doseq=True)}")
    ready(page, "Translate")
    comes_to(page, "Translate", lambda: (urlparse(page.url).path, query(page)), ("/translate", of_link))

    page.goto(f"{address}/start?sentence=1")  # the first page by its name
    comes_to(page, "Look inside neural machine translation", lambda: urlparse(page.url).path, "/")
    assert elsewhere == [], "the page asks nobody but the app"
    page.close()


@pytest.mark.exhaustive
def test_from_a_sentence_in_a_table_to_a_bundle_of_figures(place, browser, tmp_path):
    """Compare, a row, inside its sentence, the basket: the runs and the sentence stay the same all the way."""
    page = browser.new_page(viewport={"width": 1400, "height": 1400}, accept_downloads=True)
    page.set_default_timeout(60_000)
    runs = place.runs
    page.goto(f"{place.address}/scores?{urlencode({'runs': runs, 'test': place.test}, doseq=True)}")
    ready(page, "Scores")
    page.locator(".js-plotly-plot .scatterlayer").first.wait_for()

    follow(page, "Compare", "Sentences")
    box = {"x": 18, "y": 35 + 3 * 35 + 17}  # before the fourth row
    page.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(position=box)
    page.get_by_role("heading", name="Sentence 3", exact=True).wait_for()
    ready(page, "Sentences")
    source = page.get_by_test_id("stHtml").first.inner_text().split("\n")[1]

    page.get_by_test_id("stPageLink").get_by_text("Attention").click()  # below the sentence; further by the menu
    ready(page, "Attention")
    shown = (
        ("Inside", "Attention", ".heatmaplayer"),
        ("Inside", "Attribution", ".barlayer"),
        ("Search", "Translate", ""),
    )
    for menu, title, drawn in shown:
        follow(page, menu, title)
        assert (query(page)["runs"], query(page)["sentence"]) == (runs, ["3"])
        page.get_by_text(source, exact=True).first.wait_for()
        if drawn:
            page.locator(f".js-plotly-plot {drawn}").first.wait_for()
    page.locator("[data-testid=stButtonGroup] [data-variant]").filter(has_text=re.compile(r"^\s*2\s")).first.click()
    page.wait_for_url("**prefix=**")
    ready(page, "Translate")
    clicked = query(page)["prefix"][0]
    page.get_by_text("Struck out: only there.").wait_for()

    follow(page, "Search", "Beam trees")
    assert (query(page)["runs"], query(page)["sentence"]) == (runs, ["3"])
    page.locator(".js-plotly-plot .scatterlayer .points path").last.click(force=True)
    page.get_by_text("Prefix: ").wait_for()
    node = page.get_by_text("Prefix: ").inner_text().removeprefix("Prefix: ")
    page.get_by_test_id("stPageLink").get_by_text("Translate from here").click()
    ready(page, "Translate")
    assert (query(page)["runs"], query(page)["sentence"]) == (runs, ["3"])
    assert page.get_by_label("Forced prefix", exact=True).input_value() == node != clicked
    assert page.get_by_label("Sentence (").input_value() == "3"
    follow(page, "Search", "Beam trees")
    page.get_by_role("button", name="Add to collection").first.click()
    page.get_by_text("In the collection: 1").first.wait_for()

    follow(page, "Workbench", "Figure collection")
    assert query(page)["runs"] == runs
    with page.expect_download() as started:
        page.get_by_role("button", name="Download bundle").click()
    started.value.save_as(tmp_path / "bundle.zip")
    names = zipfile.ZipFile(tmp_path / "bundle.zip").namelist()
    assert {Path(name).suffix for name in names} >= {".pdf", ".svg", ".png", ".csv", ".json", ".tex"}, names
    page.close()
    assert not re.search(r"Traceback|Error|Exception", place.log.read_text()), place.log.read_text()


def _check_pdf(file: Path) -> None:
    """No bitmaps, and every font is embedded."""
    if not (shutil.which("pdffonts") and shutil.which("pdfimages")):
        assert os.environ.get("CI") != "true", "pdffonts and pdfimages are missing; install poppler-utils"
        return
    images = subprocess.run(
        ["pdfimages", "-list", file], capture_output=True, text=True, check=True
    ).stdout.splitlines()[2:]
    assert images == []
    fonts = subprocess.run(["pdffonts", file], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert fonts
    assert all(line.split()[-5] == "yes" for line in fonts), fonts


# Of the first chart: does the legend end above the panels and within the chart?
LEGEND_FITS = """() => {
  const chart = document.querySelector('.js-plotly-plot'), legend = chart?.querySelector('.legend')
  if (!legend || !chart._fullLayout._size) return false
  const [outer, inner] = [chart, legend].map((one) => one.getBoundingClientRect())
  return inner.bottom - outer.top <= chart._fullLayout._size.t && inner.right <= outer.right
}"""


@pytest.mark.slow
def test_a_narrow_page_has_whole_legends_and_does_not_move_sideways(address, browser):
    page = browser.new_page(viewport={"width": 340, "height": 900})
    page.set_default_timeout(60_000)
    runs = "runs=demo/transformer&runs=demo/future-cost-2&test=test"
    for name, heading in (("lengths", "Buckets"), ("beam_trees", "Beam trees")):
        page.goto(f"{address}/{name}?{runs}")
        ready(page, heading)
        page.wait_for_function(LEGEND_FITS)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 340
    page.close()


def _chosen_sentence(page) -> int:
    """As the box and the URL have it; -1 while they differ."""
    number = page.get_by_label("Sentence (").input_value()
    return int(number) if query(page).get("sentence", ["0"]) == [number] else -1


def _sentence_to_rate(page) -> int:
    numbers = re.findall(r"Sentence (\d+) of 30", page.get_by_test_id("stMain").inner_text())
    return int(numbers[0]) - 1 if len(numbers) == 1 else -1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("path", "heading", "back", "forward", "shown"),
    [
        ("attention?runs=demo/transformer&runs=demo/future-cost-1", "Attention", "Previous", "Next", _chosen_sentence),
        ("documents?runs=demo/transformer", "Documents", "Previous", "Next", _chosen_sentence),
        ("rating?rater=ann", "Human rating", "Back", "Forward", _sentence_to_rate),
    ],
    ids=["Attention", "Documents", "Human rating"],
)
def test_eight_fast_clicks_are_eight_sentences(address, study, browser, path, heading, back, forward, shown):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/{path}")
    ready(page, heading)
    place = 0
    for clicked, by in ((forward, 8), (forward, 8), (back, -8)):
        button = page.get_by_role("button", name=clicked, exact=True)
        for _ in range(8):
            button.click()
        place += by
        comes_to(page, heading, partial(shown, page), place)
    page.close()


@pytest.mark.exhaustive
def test_clicks_keys_and_typed_numbers_go_to_the_same_sentence(address, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/attention?runs=demo/transformer&runs=demo/future-cost-1")
    ready(page, "Attention")
    number, after = page.get_by_label("Sentence ("), page.get_by_role("button", name="Next")
    number.fill("20")  # the box tells the server when it is left, which is when the button is clicked
    after.click()
    comes_to(page, "Attention", number.input_value, "21")
    for _ in range(3):
        page.get_by_role("button", name="Previous").click()
    page.get_by_role("heading", name="Attention", level=1).click()
    for _ in range(4):
        page.keyboard.press("p")
    comes_to(page, "Attention", number.input_value, "14")
    while after.is_enabled():
        after.click()
    comes_to(page, "Attention", number.input_value, "29")  # the buttons end where the test set does

    page.goto(f"{address}/documents?runs=demo/transformer")
    ready(page, "Documents")
    for _ in range(2):
        page.get_by_role("button", name="Next document").click()
    ready(page, "Documents")
    assert page.get_by_role("button", name="Next document").is_disabled(), "the demo has three documents"
    page.close()


@pytest.mark.exhaustive
def test_back_from_a_page_keeps_how_sentences_are_sorted_and_filtered(address, browser):
    """By the browser's button as by the menu, whether the choice came with the URL or by a click."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/sentences?{urlencode({'sort': 'chrF transformer', 'largest': 'true', 'contains': 'the'})}")
    ready(page, "Sentences")
    contains = page.get_by_label("Contains")
    counted = page.get_by_text(" sentences; select a row")
    before = counted.inner_text()
    contains.fill("a")
    contains.press("Enter")
    comes_to(page, "Sentences", lambda: counted.inner_text() != before, True)
    said = counted.inner_text()
    chosen = {"sort": ["chrF transformer"], "largest": ["true"], "contains": ["a"]}

    page.get_by_test_id("stPageLink").get_by_text("Beam trees").click()
    ready(page, "Beam trees")
    assert not chosen.keys() & query(page).keys()
    for way_back in (page.go_back, lambda: follow(page, "Compare", "Sentences")):
        way_back()
        ready(page, "Sentences")
        assert contains.input_value() == "a"
        assert counted.inner_text() == said
        assert {key: value for key, value in query(page).items() if key in chosen} == chosen
        follow(page, "Search", "Beam trees")
    page.close()


# Of the first chart: dashes and widths of the lines of runs, as they are drawn and as the legend shows them.
DRAWN_LINES = """() => {
  const chart = document.querySelector('.js-plotly-plot')
  const look = ({ style }) => [style.stroke, style.strokeDasharray, style.strokeWidth].join(" ")
  const looks = (lines) => [...chart.querySelectorAll(lines)].map(look)
  return [looks('.scatterlayer path.js-line'), looks('.legend .legendlines path.js-line')]
}"""


@pytest.mark.slow
def test_defaults_with_a_run_in_training_and_a_legend_as_the_lines_are_drawn(address, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    page.goto(f"{address}/scores")
    ready(page, "Scores")
    sidebar = page.get_by_test_id("stSidebar")
    assert sidebar.get_by_role("combobox", name="Baseline").input_value() == "demo/transformer"
    assert sidebar.get_by_text("rnnsearch").count() == 0
    page.get_by_text("Baseline: transformer.").wait_for()

    follow(page, "Workbench", "Training curves")
    page.locator(".js-plotly-plot .legend").first.wait_for()
    drawn, in_legend = page.evaluate(DRAWN_LINES)
    assert set(in_legend) == set(drawn)
    assert len(set(drawn)) == len(in_legend) == 3
    page.close()
