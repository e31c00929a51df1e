"""Runs opens models of other libraries: a folder of Hugging Face, a checkpoint of fairseq; refusals are one message."""

import pytest

from core_models import load
from tests.fairseq_models import random_tensors, settings, write_checkpoint, write_dictionaries
from tests.workbench.views.app_pages import codes, open_page, runs_of
from workbench.export.huggingface import export_huggingface
from workbench.store import read_only
from workbench.store.runs import open_run

SENTENCES = ["the old dog sleeps .", "a cat sees the tree today ."]


def _open(library: str, **texts: str):
    """The page after the form was sent with these texts; its errors without marks of Markdown."""
    at = open_page("runs")
    if library != "Hugging Face":
        at.segmented_control(key="open-library").set_value(library).run()
    for key, text in texts.items():
        at.text_input(key=f"open-{key.replace('_', '-')}").set_value(str(text))
    next(button for button in at.button if button.label == "Open").click().run()
    return at, [error.value.replace("\\", "") for error in at.error]


@pytest.mark.long
def test_a_model_of_hugging_face_is_opened_and_its_translation_offered(with_demo, tmp_path):
    pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")
    (ours,) = runs_of(with_demo, "transformer")
    model = export_huggingface(ours, tmp_path / "model")
    at, errors = _open("Hugging Face", name="theirs", path=model)
    assert errors == []
    assert "theirs is there" in at.success[0].value
    assert f"workbench translate {with_demo}/theirs --test test --save-beams" in codes(at)
    run = open_run("theirs", with_demo)
    assert run.config.data_folder(run.folder) == ours.config.data_folder(ours.folder)
    found, wanted = (load(one.folder).translate(SENTENCES, beam=1) for one in (run, ours))
    assert [one.text for one in found] == [one.text for one in wanted]
    _, errors = _open("Hugging Face", name="theirs", path=model)
    assert len(errors) == 1
    assert "is there already" in errors[0]


def test_a_checkpoint_of_fairseq_is_opened(with_demo, tmp_path):
    given = settings()
    checkpoint = write_checkpoint(tmp_path / "checkpoint_best.pt", given, random_tensors(given))
    source, target = write_dictionaries(tmp_path)
    texts = {"path": checkpoint, "source_dict": source, "target_dict": target}
    _, errors = _open("fairseq", name="theirs", **{**texts, "target_dict": tmp_path / "none.txt"})
    assert len(errors) == 1
    assert "none.txt" in errors[0]
    at, errors = _open("fairseq", name="theirs", **texts)
    assert errors == []
    assert "theirs is there" in at.success[0].value
    assert open_run("theirs", with_demo).system == given["arch"]
    row = at.dataframe[0].value.set_index("run").loc["theirs"]
    assert (row["state"], row["of"]) == ("trained", "")


def test_start_leads_to_the_form_also_where_there_is_no_run(runs_root):
    (link,) = [link for link in open_page("start").get("page_link") if "Hugging Face" in link.proto.label]
    assert link.proto.page == "runs"
    at = open_page("runs")
    assert at.text_input(key="open-path").value == ""
    assert "Open" in [button.label for button in at.button]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"name": "", "path": "model"}, "no name for a run"),
        ({"name": "../theirs", "path": "model"}, "no name for a run"),
        ({"name": "theirs", "path": ""}, "Say where the model lies"),
        ({"name": "theirs", "path": "nowhere"}, "config.json is missing"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_one_message(with_demo, texts, said):
    at, errors = _open("Hugging Face", **texts)
    assert len(errors) == 1
    assert said in errors[0]
    assert not (with_demo / "theirs").exists()
    assert not at.exception


def test_nothing_is_opened_where_nothing_may_be_written(with_demo, monkeypatch):
    monkeypatch.setenv(read_only.READ_ONLY, "1")
    at = open_page("runs")
    assert all(button.disabled for button in at.button if button.label == "Open")
    (popover,) = [one for one in at.get("popover") if one.proto.popover.label == "Open a model"]
    assert popover.proto.popover.disabled
