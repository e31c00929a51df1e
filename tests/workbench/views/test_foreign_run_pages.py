"""Every page opens on a model of Hugging Face (one of ours, exported): alone, and beside runs of other kinds."""

import pytest

from tests.causal_models import write_llama
from tests.workbench.views.app_pages import open_page
from workbench.app.pages import PAGES
from workbench.evaluation.translate import test_set as named_test_set
from workbench.evaluation.translate import translate_test
from workbench.experiments.foreign_runs import open_huggingface
from workbench.export.huggingface import export_huggingface
from workbench.store import external
from workbench.store.runs import open_run

pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")
pytestmark = pytest.mark.long


@pytest.fixture
def pair(with_demo) -> list[str]:
    """Names of a run of the demo and of the same model opened from its export, the test set translated with trees."""
    ours = open_run(with_demo / "demo" / "transformer")
    model = export_huggingface(ours, with_demo.parent / "model")
    run, _ = open_huggingface(model, with_demo / "demo" / "theirs", ours.config.data_folder(ours.folder))
    translate_test(run, *named_test_set(run, "test"), trees=True)
    return ["demo/transformer", "demo/theirs"]


@pytest.fixture
def of_all_kinds(pair, with_demo, tmp_path) -> list[str]:
    """Of each kind a run: ours, an encoder-decoder, a decoder-only model, and translations made elsewhere."""
    ours = open_run(with_demo / "demo" / "transformer")
    test_set = ours.translations("test").test_set
    model = write_llama(tmp_path / "llama", [*test_set.sources, *(test_set.references or [])])
    template = tmp_path / "template.txt"
    template.write_text("English: {source} \nGerman: \n", encoding="utf-8")
    data = ours.config.data_folder(ours.folder)
    run, _ = open_huggingface(model, with_demo / "demo" / "llama", data, template=template)
    translate_test(run, *named_test_set(run, "test"), trees=True)
    lines = "".join(f"{line}\n" for line in test_set.references or [])
    external.import_content(with_demo, "online", lines.encode(), "online.txt", test_set)
    return [*pair, "demo/llama", "outside/online"]


def _assert_every_page_opens(runs) -> None:
    """No error but that of two runs which babble alike."""
    for name in PAGES:
        at = open_page(name, runs=runs, test="test")
        said = [error.value for error in at.error]
        assert [error for error in said if "nothing to draw" not in error] == [], name
        assert not at.exception, name


@pytest.mark.slow
def test_every_page_opens_on_all_kinds_together(of_all_kinds):
    _assert_every_page_opens(of_all_kinds)


@pytest.mark.exhaustive
def test_every_page_opens_on_a_model_of_hugging_face_alone(pair):
    _assert_every_page_opens(pair[1:])
