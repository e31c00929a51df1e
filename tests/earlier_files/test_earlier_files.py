"""Files that earlier releases wrote still open: runs, an unfinished training, exported figures, a collection, links.

`format-2.tar.xz` says in .figures/README.txt which releases made it. It is never made again.
"""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import core_models
from core_models.config_format import FORMAT
from core_models.training.events import read_events
from tests.kinds import sampled
from tests.paths import ROOT
from tests.workbench.views.app_pages import open_page
from workbench.app.pages import FORMER, PAGES
from workbench.experiments.train import train
from workbench.export import collection
from workbench.export.figure_json import to_spec
from workbench.export.redraw import UNEXPLAINED, draw_again
from workbench.figures.from_spec import draw
from workbench.store.rating_studies import open_study
from workbench.store.runs import list_runs, open_run

SAMPLE = ROOT / "tests" / "earlier_files" / "format-2.tar.xz"
# What the release that began the training of `unfinished` logged when it went on with it: (step, loss), dev loss at 12.
LOSSES = {
    4: 5.467149522569445,
    6: 5.251174413465214,
    8: 5.307920883641098,
    10: 5.1445620284121265,
    12: 5.139431011350684,
}
DEV_LOSS = 5.051059227658992
# Least, highest and standard deviation of the routing maps, by panel.
ROUTING_MAPS = {
    "iteration 1": (1.0, 1.0, 0.0),
    "iteration 2": (0.521232, 1.458670, 0.264800),
    "iteration 3": (0.468158, 1.522689, 0.276736),
}
# Every place of a page in the URL, and queries as links of that release have them.
LINKS = {
    "start": {}, "runs": {}, "testsets": {}, "documents": {}, "adequacy": {}, "contrast": {}, "rating": {},
    "tokens": {}, "attribution": {}, "beam_sizes": {}, "rescoring": {}, "future_cost": {}, "past_future": {},
    "content_states": {}, "context": {}, "gallery": {}, "basket": {}, "jobs": {}, "help": {}, "curves": {}, "words": {},
    "scores": {"baseline": "earlier/em-routing", "test": "test"},
    "lengths": {"metric": "chrf", "measure": "source"},
    "sentences": {"sentence": "3"},
    "translate": {"beam": "3", "sentence": "1"},
    "attention": {"sentence": "1"},
    "beam_trees": {"sentence": "2"},
    "what_if": {"prefix": "die", "beam": "2"},
    "routing": {"sentence": "1"},
}  # fmt: skip


@pytest.fixture(scope="module")
def earlier(tmp_path_factory) -> Path:
    """The runs folder of the sample; tests only read it, but for what pages keep beside runs."""
    root = tmp_path_factory.mktemp("earlier")
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(root, filter="data")
    return root


def test_runs_are_listed_without_a_problem(earlier):
    assert {run.name: run.problem for run in list_runs(earlier)} == dict.fromkeys(
        ["earlier/em-routing", "earlier/transformer", "format-1", "outside/elsewhere", "unfinished"]
    )


@pytest.mark.parametrize("name", ["earlier/transformer", "earlier/em-routing", "format-1"])
def test_weights_give_each_token_the_probability_that_it_had(earlier, name):
    run = open_run(name, earlier)
    translations = run.translations("test")
    tokens = [detail["tokens"] for detail in translations.details]
    traces = core_models.load(run.folder).trace(translations.test_set.sources, tokens, ["log_prob"])
    assert run.config.format == FORMAT
    for detail, trace in zip(translations.details, traces, strict=True):
        found = trace["log_prob"].values[: len(detail["token_log_probs"])]
        assert found.tolist() == pytest.approx(detail["token_log_probs"], abs=1e-4)


def test_a_training_goes_on_where_it_stopped(earlier, tmp_path):
    for part in ("unfinished", "earlier/data"):
        _copy(earlier / part, tmp_path / part)
    run = open_run("unfinished", tmp_path)
    train(run, device="cpu")
    logged = list(read_events(run.log))
    losses = {event["step"]: event["main_loss"] for event in logged if event["event"] == "train"}
    assert {step: losses[step] for step in LOSSES} == pytest.approx(LOSSES, rel=1e-4)
    assert [event["main_loss"] for event in logged if event["event"] == "valid"][-1] == pytest.approx(
        DEV_LOSS, rel=1e-4
    )


def test_an_exported_figure_is_drawn_again_the_same(earlier):
    again = draw_again(earlier / ".figures" / "scores.pdf", earlier)
    assert again.same, again.changes


def test_maps_drawn_again_are_the_same_but_for_the_last_digits_of_a_processor(earlier):
    """They come from a forward pass in float32, of which only the processor that drew them first gives every digit."""
    again = draw_again(earlier / ".figures" / "routing-maps.svg", earlier)
    assert again.changes == ()
    values = again.drawn.figure.table.groupby("panel")["value"].agg(["min", "max", "std"])
    for panel, numbers in ROUTING_MAPS.items():
        assert values.loc[panel].tolist() == pytest.approx(numbers, abs=1e-5)


@pytest.mark.parametrize("file", ["beam-tree.json", "routing-curves.png", "length-scores.json"])
def test_a_figure_that_reads_otherwise_now_is_drawn_again_and_says_so(earlier, file):
    """Labels of pieces lost their space mark, what was called printed is called reported, and one sentence alone has no
    interval."""
    again = draw_again(earlier / ".figures" / file, earlier)
    assert (again.same, again.changes) == (False, ())
    assert again.drawn.figure.panels
    assert again.message.endswith(UNEXPLAINED)


def _tables(earlier: Path, name: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """The table of each mark of a figure, of then and as it is drawn again."""
    file = earlier / ".figures" / name
    figures = [json.loads(file.read_text(encoding="utf-8")), to_spec(draw_again(file, earlier).drawn.figure)]
    before, now = ([mark for panel in figure["panels"] for mark in panel["marks"]] for figure in figures)
    assert [mark["kind"] for mark in before] == [mark["kind"] for mark in now]
    for old, new in zip(before, now, strict=True):
        then, again = (pd.DataFrame(mark["table"]["data"], columns=mark["table"]["columns"]) for mark in (old, new))
        yield then, again


def test_the_numbers_of_a_tree_are_those_of_the_earlier_file(earlier):
    for tables in _tables(earlier, "beam-tree.json"):
        pd.testing.assert_frame_equal(*(table.drop(columns="text", errors="ignore") for table in tables))


def test_scores_of_buckets_are_those_of_the_earlier_file_but_for_intervals_of_one_sentence(earlier):
    changed = 0
    for then, now in _tables(earlier, "length-scores.json"):
        if {"n", "low", "high"} <= {*then}:
            alone = then["n"] == 1
            changed += alone.sum()
            then.loc[alone, ["low", "high"]] = float("nan")
        pd.testing.assert_frame_equal(then, now)
    assert changed


def test_every_figure_of_a_collection_and_of_a_bundle_is_drawn(earlier):
    kept = collection.read(collection.file_of(earlier))
    assert [one.drawing for one in kept] == ["scores", "beam-tree", "routing-maps", "length-scores", "training-curves"]
    assert [one.drawing for one in collection.read(earlier / ".figures" / "manifest.json")] == [
        one.drawing for one in kept
    ]
    for one in kept:
        assert draw(one, earlier).figure.panels


def test_a_study_of_human_ratings_opens(earlier):
    study = open_study(earlier, "study")
    assert len(study.items) == 4


def test_every_place_of_a_page_is_kept():
    assert set(LINKS) <= {*PAGES, *FORMER}


@pytest.mark.parametrize("page", sampled(sorted(LINKS), every=3))
def test_a_link_opens_its_page_on_what_it_names(earlier, page, monkeypatch):
    monkeypatch.setenv("WORKBENCH_RUNS", str(earlier))
    at = open_page(page, runs=["earlier/transformer", "earlier/em-routing"], **LINKS[page])
    if page != "rating":  # which names no run while it is blind
        chosen = next(widget for widget in at.multiselect if widget.key == "runs").value
        assert sorted(chosen) == ["earlier/em-routing", "earlier/transformer"]
    assert not [warning.value for warning in at.warning if "There is no" in warning.value]


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            (target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            (target / path.relative_to(source)).write_bytes(path.read_bytes())
