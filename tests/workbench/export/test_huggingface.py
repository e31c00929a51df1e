"""An exported run is the same model in `transformers`: its logits, and its translations by the README it comes with."""

import itertools
import json
import sys

import pytest
import torch
from typer.testing import CliRunner

from core_models import Translator, load
from core_models.checkpoint import Trained
from core_models.config import RunConfig
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS, Vocabulary
from tests.kinds import sampled
from tests.workbench.export.readme_program import translations_by_readme
from workbench import cli
from workbench.export.huggingface import ENGINE, converted, export_huggingface, how_to_run, write_model
from workbench.export.plain_transformer import refuse_other_systems
from workbench.store.runs import RunError

pytestmark = pytest.mark.long

transformers = pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")

KINDS = list(itertools.product(("pre", "post"), ("sinusoidal", "learned"), ("all", "target", "none")))
SEARCH = {"beam": 4, "penalty": "power", "length_penalty": 0.2, "max_length": 24, "length_factor": 100}


@pytest.fixture(scope="module")
def vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """Source and target vocabularies of different sizes and kinds."""
    english = ["the old dog sees the small tree today", "a man finds a tree , and the dog loves him", "here it is !"]
    german = ["der alte Hund sieht heute den kleinen Baum", "ein Mann findet einen Baum , und der Hund liebt ihn"]
    return Vocabulary.train(english, 52, "bpe"), Vocabulary.train(german, 30)


def _random(folder, vocabularies, norm, positions, tied, **search) -> Trained:
    """An untrained system that can end a sentence; its norms and biases are drawn away from ones and zeros."""
    model = describe(
        f"transformer:preset=tiny,norm={norm},tie_embeddings={tied},position_embedding={positions},max_positions=64,"
        f"activation_function={'gelu' if tied == 'none' else 'relu'}"
    )
    torch.manual_seed(1)
    system = build(model, *map(len, vocabularies)).eval()
    with torch.no_grad():
        for parameter in system.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
            else:
                parameter *= 2
        last_norm = system.backbone.decoder_norm if norm == "pre" else system.backbone.decoder[-1].feed_forward_norm
        last_norm.bias[0] += 8
        system.backbone.vocabulary.weight[:, 0] = 0
        system.backbone.vocabulary.weight[EOS, 0] = 0.45
    config = RunConfig(name="random", data="", model=model, training={"max_steps": 1}, search=SEARCH | search)
    return Trained(folder, config, system, *vocabularies, folder)


def _model(folder):
    """The model of a folder; every tensor has its place, and every place its tensor."""
    model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folder, local_files_only=True, output_loading_info=True
    )
    assert not any(report.values())
    return model


def _logits(trained: Trained, model, sources: list[str], targets: list[str]):
    """Ours and theirs at every position of every pair, cut to the words of our vocabulary."""
    batch = collate(trained.source_vocabulary.encode(sources), trained.target_vocabulary.encode(targets))
    words = torch.cat([torch.full_like(batch.target[:, :1], BOS), batch.target[:, :-1]], 1)
    with torch.no_grad():
        system = trained.system
        ours = system.scores(system(system.encode(batch), words, batch.target_mask)).values
        theirs = model(batch.source, attention_mask=batch.source_mask.long(), decoder_input_ids=words).logits
    return ours[batch.target_mask], theirs[batch.target_mask]


@pytest.mark.parametrize(("norm", "positions", "tied"), sampled(KINDS, every=3))
def test_logits_and_translations_are_the_same(vocabularies, tmp_path, norm, positions, tied):
    """The kinds whose tables are all tied have one vocabulary, the others two; the sample has each class once."""
    used = vocabularies[:1] * 2 if tied == "all" else vocabularies
    trained = _random(tmp_path, used, norm, positions, tied)
    write_model(trained, tmp_path)
    model = _model(tmp_path)
    words = ["a", "man", "finds", "the", "small", "tree", ",", "and", "it", "loves", "him", "today"]
    sources = ["", *(" ".join(words[start:stop]) for start, stop in itertools.combinations((0, 2, 3, 4, 6, 9, 12), 2))]
    ours, theirs = _logits(trained, model, sources[:4], ["der alte Hund", "ein Mann findet ihn heute", "", "und"])
    assert torch.allclose(ours, theirs[:, : ours.shape[1]], atol=1e-5)
    assert theirs[:, ours.shape[1] :].lt(-1e8).all(), "rows that fill up a vocabulary"

    target = "target" if used[0] is not used[1] else ""
    source_tokenizer, target_tokenizer = (
        transformers.AutoTokenizer.from_pretrained(tmp_path / folder) for folder in ("", target)
    )
    read = source_tokenizer(sources, padding=True, return_tensors="pt")
    found = model.generate(**read, output_scores=True, return_dict_in_generate=True)
    translated = Translator(trained.system, *used, trained.config.search).translate(sources)
    texts = target_tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
    ended = found.sequences.eq(EOS).any(1).tolist()  # `generate` ranks hypotheses that it cut among the finished ones
    for one, text, score, is_whole in zip(translated, texts, found.sequences_scores.tolist(), ended, strict=True):
        if is_whole:
            assert text == one.text
            assert score == pytest.approx(one.score, abs=1e-4)
        else:
            assert not one.finished or score > one.score


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tokenizer_segments_and_joins_every_text_alike(tmp_path, kind):
    lines = [
        "the old dog sees the small tree today",
        "Fine full-width A ; 12,5 % of café -- « so » …",
        "a < b / c > d, keep up",
    ]
    vocabulary = Vocabulary.train(lines, 75 if kind == "bpe" else 46, kind)
    trained = _random(tmp_path, (vocabulary, vocabulary), "pre", "sinusoidal", "all")
    write_model(trained, tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    texts = [
        *lines, "", "   ", "  two  spaces ", "ﬁne Ⅳ ｆｕｌｌ", "tab\there", "日本語 dog", "e\u0301 é",
        "a\u00a0b\u3000c", "</s>", "the<unk>dog", "<s> in <pad> text", "😀😀 tree",
    ]  # fmt: skip
    ids = vocabulary.encode(texts)
    assert [one[:-1] for one in tokenizer(texts)["input_ids"]] == ids
    assert {one[-1] for one in tokenizer(texts)["input_ids"]} == {EOS}
    assert tokenizer.batch_decode(tokenizer(texts)["input_ids"], skip_special_tokens=True) == vocabulary.decode(ids)


def test_a_trained_run_translates_alike_by_its_readme(taught_run, prepared, tmp_path):
    folder = export_huggingface(taught_run, tmp_path / "exported")
    translator, test_set = load(taught_run.folder), prepared.test("test")
    ours = translator.translate(test_set.sources)
    assert sum(one.finished for one in ours) > len(ours) // 2
    theirs = translations_by_readme(folder, test_set.sources)
    assert [text for text, one in zip(theirs, ours, strict=True) if one.finished] == [
        one.text for one in ours if one.finished
    ]


def test_a_beam_of_one_is_the_greedy_search_of_generate(taught_run, prepared, tmp_path):
    """Whatever the length penalty."""
    folder, sources = export_huggingface(taught_run, tmp_path / "exported"), prepared.test("test").sources
    target = folder / "target" if (folder / "target").is_dir() else folder
    read = transformers.AutoTokenizer.from_pretrained(folder)(sources, padding=True, return_tensors="pt")
    written = _model(folder).generate(**read, num_beams=1, length_penalty=1.0, early_stopping=False)
    theirs = transformers.AutoTokenizer.from_pretrained(target).batch_decode(written, skip_special_tokens=True)
    ours = load(taught_run.folder).translate(sources, beam=1, n_best=1, length_penalty=1.0)
    ended = [one.finished for one in ours]
    assert sum(ended) > len(ours) // 2
    assert [one.text for one in ours if one.finished] == [*itertools.compress(theirs, ended)]


def test_a_folder_has_nothing_to_execute(vocabularies, tmp_path):
    write_model(_random(tmp_path, vocabularies, "pre", "learned", "none"), tmp_path)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors"}
    assert "auto_map" not in json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("search", "warning"),
    [
        ({"penalty": "gnmt"}, "has `penalty: gnmt`"),
        ({"finished_hypotheses": "keep"}, "has `finished_hypotheses: keep`"),
    ],
)
def test_a_search_that_generate_does_not_know_is_warned_of(vocabularies, tmp_path, search, warning):
    plain, other = (_random(tmp_path, vocabularies, "pre", "sinusoidal", "none", **one) for one in ({}, search))
    assert "Warning" not in how_to_run(plain, "run", tmp_path)
    assert warning in how_to_run(other, "run", tmp_path)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("future-cost-2", "transformers has no future_cost; take a transformer without mechanisms"),
        ("rnnsearch", "transformers knows the Transformer, not rnnsearch; take a transformer without mechanisms"),
    ],
)
def test_other_systems_are_refused_with_the_reason(system, message):
    with pytest.raises(RunError, match=f"my run: {message}"):
        refuse_other_systems(describe(system), "my run", ENGINE)


def test_a_parameter_without_a_place_is_refused(vocabularies, tmp_path):
    trained = _random(tmp_path, vocabularies, "post", "sinusoidal", "none")
    trained.system.backbone.temperature = torch.nn.Parameter(torch.ones(1))
    with pytest.raises(RunError, match=r"transformers has no place for backbone\.temperature"):
        converted(trained)


def test_a_taken_folder_and_a_missing_package_are_refused_and_nothing_is_left(taught_run, tmp_path, monkeypatch):
    with pytest.raises(RunError, match="is there already; choose another folder"):
        export_huggingface(taught_run, tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)  # as where the extra is not installed
    with pytest.raises(RunError, match=r"not installed; install it: pip install 'nmt-workbench\[huggingface\]'"):
        export_huggingface(taught_run, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_the_model_and_says_how_to_run_it(taught_run, tmp_path):
    out = tmp_path / "exported"
    found = CliRunner().invoke(cli.app, ["export", "huggingface", str(taught_run.folder), "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert found.stdout == (out / "README.txt").read_text(encoding="utf-8")
    assert {path.name for path in out.iterdir()} >= {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
