"""A decoder-only model of Hugging Face is a run by a template: a small random Llama with a trained tokenizer."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from core_models import load
from core_models.foreign import open_model
from core_models.settings import ConfigError
from tests.causal_models import write_llama
from workbench import cli
from workbench.evaluation.live_trace import trace_sentence
from workbench.evaluation.translate import test_set as named_test_set
from workbench.evaluation.translate import translate_test
from workbench.experiments.foreign_runs import open_huggingface
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.store.runs import Run, RunError
from workbench.views.attribution.measure import explain

pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")
pytestmark = pytest.mark.long

TEMPLATE = "English: {source} \nGerman: \n"


@pytest.fixture(scope="module")
def model(prepared, tmp_path_factory) -> Path:
    test = prepared.test("test")
    return write_llama(tmp_path_factory.mktemp("decoder") / "model", [*test.sources, *test.targets])


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.txt"
    path.write_text(TEMPLATE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(model, template, taught_run, tmp_path_factory) -> Run:
    data = taught_run.config.data_folder(taught_run.folder)
    return open_huggingface(model, tmp_path_factory.mktemp("runs") / "llama", data, template=template)[0]


def test_the_prompt_of_parts_is_that_of_the_whole_text(model, opened, prepared):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    found = open_model(opened.config.foreign)
    prompt, vocabularies = found.system.backbone.prompt, (found.source_vocabulary, found.target_vocabulary)
    sources, targets = prepared.test("test").sources, prepared.test("test").targets
    for source, target in zip(sources, targets, strict=True):
        one, other = (sides.encode([text])[0] for sides, text in zip(vocabularies, (source, target), strict=True))
        joined = vocabularies[0].pieces([*prompt.before, *one, *prompt.after, *other])
        whole = tokenizer(TEMPLATE.removesuffix("\n").replace("{source}", source) + target)["input_ids"]
        pieces = [piece.replace("Ġ", "▁") for piece in tokenizer.convert_ids_to_tokens(whole)]
        assert joined == pieces
        assert vocabularies[0].decode([one]) == [source]
        assert vocabularies[1].decode([other]) == [target]


@pytest.mark.slow
def test_translations_scores_traces_and_attributions_are_of_the_model(opened, prepared):
    translator = load(opened.folder)
    sources, references = prepared.test("test").sources[:6], prepared.test("test").targets[:6]
    assert len(translator.translate(sources, beam=3, max_length=12)) == 6
    scored = translator.score(sources, references)
    traced = translator.translate(sources, trace=["*"], max_length=12)
    from transformers import AutoTokenizer, LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(opened.config.foreign.path)
    tokenizer = AutoTokenizer.from_pretrained(opened.config.foreign.path)
    for source, reference, one in zip(sources, references, scored, strict=True):
        prompt = TEMPLATE.removesuffix("\n").replace("{source}", source)
        whole = torch.tensor([[*tokenizer(prompt + reference)["input_ids"], 1]])
        first = len(tokenizer(prompt.rstrip(" "))["input_ids"])
        log_probs = torch.log_softmax(model(whole).logits[0], -1)[:-1].gather(1, whole[0, 1:, None])[:, 0]
        assert one.token_log_probs == pytest.approx(log_probs[first - 1 :].tolist(), abs=1e-4)
    for one in traced:
        for array in one.trace.values():
            array.check("array")
        shares = [one.trace[f"{part}_share"].values for part in ("source", "template", "prefix")]
        np.testing.assert_allclose(sum(shares), 1, atol=1e-5)
        assert "lens.log_prob" in one.trace
    translate_test(opened, *named_test_set(opened, "test"), trees=True)
    found = explain(opened, "test", 0).attribution
    assert abs(found.error) == pytest.approx(0, abs=max(0.01 * abs(found.difference).max(), 0.005))


def test_the_attention_of_the_source_span_is_labelled_with_its_share(opened):
    if "test" not in opened.tests():
        translate_test(opened, *named_test_set(opened, "test"), trees=True)
    drawn = draw("attention", Request((opened,)))
    assert "attention to the source span of the prompt, divided by its share" in drawn.caption
    trace = trace_sentence(opened, "test", 0)
    assert f"source {trace.array('source_share').mean():.0%}, template" in drawn.caption


@pytest.mark.parametrize(
    ("text", "languages", "message"),
    [
        (None, {}, "is decoder-only; name a text that asks it to translate {source}: --template FILE"),
        ("German:", {}, "has {source} 0 times; write it once"),
        ("{source} {source}:", {}, "has {source} 2 times; write it once"),
        ("{source} \n", {}, "no words behind {source}"),
        ("{source} =", {"source_language": "en"}, "reads its languages in the template; leave --from and --to out"),
    ],
)
def test_what_a_template_lacks_is_a_sentence(model, tmp_path, text, languages, message):
    path = tmp_path / "template"
    path.write_text(text or "", encoding="utf-8")
    with pytest.raises(ConfigError) as said:
        open_huggingface(model, tmp_path / "run", template=None if text is None else path, **languages)
    assert message in str(said.value)
    assert not (tmp_path / "run").exists()


def test_a_template_for_an_encoder_decoder_and_one_that_is_not_there_are_refused(model, template, tmp_path):
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(settings | {"model_type": "marian"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="is an encoder-decoder, which needs no template; leave --template out"):
        open_huggingface(folder, tmp_path / "run", template=template)
    with pytest.raises(RunError, match="cannot be read"):
        open_huggingface(model, tmp_path / "run", template=tmp_path / "none")


def test_the_command_takes_a_template(model, template, tmp_path):
    words = ["open", "hf", str(model), "--as", "llama", "--runs", str(tmp_path), "--template", str(template)]
    assert CliRunner().invoke(cli.app, words).output.startswith(f"{tmp_path / 'llama'}: llama")
