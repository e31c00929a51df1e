"""An exported run is the same model in CTranslate2: its forced scores, its translations by the README it comes with."""

import itertools
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from core_models import Translator, load
from core_models.checkpoint import Trained, write_weights
from core_models.config import RunConfig
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.vocabulary import BOS, PAD
from tests.workbench.export.readme_program import translations_by_readme
from workbench import cli
from workbench.export.ctranslate2 import ENGINE, export_ctranslate2, specify
from workbench.export.plain_transformer import refuse_other_systems
from workbench.store.runs import RunError, open_run

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")

LIKE_OURS = {
    "return_end_token": True,
    "min_decoding_length": 0,
    "suppress_sequences": [["<pad>"], ["<s>"]],
    "return_scores": True,
}
SEARCH = {"beam": 5, "penalty": "power", "max_length": 30}
KINDS = list(itertools.product(("pre", "post"), ("all", "target", "none"), ("sinusoidal", "learned")))


def _engine(folder: Path):
    return ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)


def _log_probs(engine, translator: Translator, sources: list[str], targets: list[str]) -> list[list[float]]:
    source, target = (
        [vocabulary.pieces(ids) for ids in vocabulary.encode(lines)]
        for vocabulary, lines in ((translator.source_vocabulary, sources), (translator.target_vocabulary, targets))
    )
    return [one.log_probs for one in engine.score_batch(source, target)]


@pytest.mark.parametrize(("norm", "tied", "positions"), KINDS)
def test_random_weights_score_and_search_alike(prepared, tmp_path, norm, tied, positions):
    """Norms and biases are drawn away from the ones and zeros they start as, so that none can be left out unseen."""
    torch.manual_seed(1)
    model = describe(
        f"transformer:preset=tiny,norm={norm},tie_embeddings={tied},position_embedding={positions},max_positions=64,"
        f"activation_function={'gelu' if tied == 'none' else 'relu'}"
    )
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    system = build(model, *map(len, vocabularies)).eval()
    with torch.no_grad():
        for parameter in system.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn_like(parameter)
        # CTranslate2 takes what it suppresses out of the distribution, the workbench does not: none is left to them.
        last_norm = system.backbone.decoder_norm if norm == "pre" else system.backbone.decoder[-1].feed_forward_norm
        last_norm.bias[0] += 20
        system.backbone.vocabulary.weight[[PAD, BOS], 0] = -10
    config = RunConfig(name="random", data="", model=model, training={"max_steps": 1}, search=SEARCH)
    spec = specify(Trained(tmp_path, config, system, *vocabularies, tmp_path))
    spec.validate()
    spec.optimize("float32")
    spec.save(str(tmp_path))
    engine, translator = _engine(tmp_path), Translator(system, *vocabularies, config.search)
    test_set = prepared.test("test")

    ours = translator.score(test_set.sources, test_set.targets)
    for one, theirs in zip(ours, _log_probs(engine, translator, test_set.sources, test_set.targets), strict=True):
        assert theirs == pytest.approx(one.token_log_probs, abs=1e-4)
    for one in translator.translate(test_set.sources):
        longest = min(30, 2 * len(one.source_tokens) + 20)
        (theirs,) = engine.translate_batch(
            [one.source_tokens[:-1]],
            beam_size=5,
            length_penalty=0.6,
            max_decoding_length=longest,
            patience=2,
            **LIKE_OURS,
        )
        assert theirs.hypotheses[0] == one.tokens
        assert theirs.scores[0] == pytest.approx(one.score, abs=1e-4)


def test_a_trained_run_translates_alike_by_its_readme(taught_run, prepared, tmp_path):
    folder = export_ctranslate2(taught_run, tmp_path / "exported")
    translator, test_set = load(taught_run.folder), prepared.test("test")
    ours = translator.translate(test_set.sources)
    assert sum(one.finished for one in ours) > len(ours) // 2
    assert translations_by_readme(folder, test_set.sources) == [one.text for one in ours]

    engine = _engine(folder)
    forced = translator.score(test_set.sources, test_set.targets)
    for one, theirs in zip(forced, _log_probs(engine, translator, test_set.sources, test_set.targets), strict=True):
        assert theirs == pytest.approx(one.token_log_probs, abs=1e-4)
    found = engine.translate_batch(
        [one.source_tokens[:-1] for one in ours], beam_size=5, length_penalty=0.6, **LIKE_OURS
    )
    for one, theirs in zip(ours, found, strict=True):
        if theirs.hypotheses[0] == one.tokens and one.finished:
            assert theirs.scores[0] == pytest.approx(one.score, abs=0.01), "<pad> and <s> have no share of theirs"


def test_int8_is_less_than_half_the_size_and_close(taught_run, prepared, tmp_path):
    plain, small = (export_ctranslate2(taught_run, tmp_path / kind, kind) for kind in ("float32", "int8"))
    sizes = [(folder / "model.bin").stat().st_size for folder in (plain, small)]
    assert sizes[1] < sizes[0] / 2
    translator, test_set = load(taught_run.folder), prepared.test("test")
    scored = translator.score(test_set.sources, test_set.targets)
    theirs = _log_probs(_engine(small), translator, test_set.sources, test_set.targets)
    mean = [sum(abs(a - b) for a, b in zip(one.token_log_probs, log_probs, strict=True)) / len(log_probs)
            for one, log_probs in zip(scored, theirs, strict=True)]  # fmt: skip
    assert sum(mean) / len(mean) < 0.1


def test_a_checkpoint_is_exported_with_its_own_weights(taught_run, prepared, tmp_path):
    run = Path(shutil.copytree(taught_run.folder, tmp_path / "run"))
    torch.manual_seed(2)
    other = build(taught_run.config.model, len(prepared.source_vocabulary), len(prepared.target_vocabulary))
    write_weights(run / "checkpoints" / "step-000007.safetensors", other)
    folders = [export_ctranslate2(open_run(f"{run}{step}"), tmp_path / f"out{step}") for step in ("", "@7")]
    assert len({(folder / "model.bin").read_bytes() for folder in folders}) == 2


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("future-cost-2", "CTranslate2 has no future_cost; take a transformer without mechanisms"),
        ("rnnsearch", "CTranslate2 knows the Transformer, not rnnsearch; take a transformer without mechanisms"),
    ],
)
def test_other_systems_are_refused_with_the_reason(system, message):
    with pytest.raises(RunError, match=f"my run: {message}"):
        refuse_other_systems(describe(system), "my run", ENGINE)


def test_a_parameter_without_a_place_is_refused(prepared, tmp_path):
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    system = build("transformer:preset=tiny", *map(len, vocabularies))
    system.backbone.temperature = torch.nn.Parameter(torch.ones(1))
    config = RunConfig(name="new", data="", model=system.config, training={"max_steps": 1})
    with pytest.raises(RunError, match=r"CTranslate2 has no place for backbone\.temperature"):
        specify(Trained(tmp_path, config, system, *vocabularies, tmp_path))


def test_a_taken_folder_and_an_unknown_quantization_are_refused_and_nothing_is_left(taught_run, tmp_path):
    with pytest.raises(RunError, match="is there already; choose another folder"):
        export_ctranslate2(taught_run, tmp_path)
    with pytest.raises(RunError, match=r"--quantization 'int9': did you mean 'int\d+'\?"):
        export_ctranslate2(taught_run, tmp_path / "out", "int9")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_the_model_and_says_how_to_run_it(taught_run, tmp_path):
    out = tmp_path / "exported"
    found = CliRunner().invoke(cli.app, ["export", "ctranslate2", str(taught_run.folder), "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert found.stdout == (out / "README.txt").read_text(encoding="utf-8")
    assert {"model.bin", "config.json", "shared_vocabulary.json", "source.model", "target.model"} < {
        path.name for path in out.iterdir()
    }
