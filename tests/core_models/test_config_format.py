"""Configurations of earlier formats mean what they meant: a run keeps the system that its weights were trained in."""

import pytest
import torch

from core_models.checkpoint import begin_run, open_trained, write_weights
from core_models.config import CONFIG, RunConfig, read_config
from core_models.settings import ConfigError, read_yaml, write_yaml
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.batches import collate
from tests.core_models.laws import log_probs, random_sentences

# As it is said now, and the options that format 1 did not write because they were its defaults.
CHANGED = [
    ("dynamic-routing:scale=none", "dynamic_routing", ["scale"]),
    ("em-routing:scale=none,capsules=64,width_reduction=mean", "em_routing", ["scale"]),
    ("qcn:scale=none", "query_capsules", ["scale"]),
    ("attn-bow-bca:attention_squash=false", "guided_capsules", ["attention_squash"]),
]


@pytest.fixture
def written(tmp_path, prepared):
    """A run folder of a system, its configuration changed before it is read."""

    def write(system: str, change) -> tuple:
        model = describe(f"{system}{',' if ':' in system else ':'}preset=tiny,dropout=0,attention_dropout=0")
        training = {"max_steps": 1}
        config = RunConfig(name="run", data=str(prepared.folder), model=model, training=training)
        vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
        folder = tmp_path / "run"
        begin_run(folder, config, *vocabularies)
        torch.manual_seed(1)
        built = build(model, *map(len, vocabularies))
        write_weights(folder / "weights.safetensors", built)
        content = read_yaml(folder / CONFIG)
        change(content)
        write_yaml(folder / CONFIG, content)
        return folder, built

    return write


@pytest.mark.parametrize(("system", "kind", "options"), CHANGED)
def test_a_run_of_format_1_scores_as_it_did(written, system, kind, options):
    def as_format_1(content):
        del content["format"]
        for option in options:
            del content["model"]["mechanisms"][0][kind][option]

    folder, as_trained = written(system, as_format_1)
    opened = open_trained(folder).system.eval()
    batch = collate(random_sentences([4, 2], 1), random_sentences([5, 3], 2))
    as_trained.eval()
    with torch.no_grad():
        assert torch.equal(log_probs(opened, batch), log_probs(as_trained, batch))


def test_options_that_were_given_stay_and_a_new_run_says_its_format(written):
    def given(content):
        assert content.pop("format") == 2
        content["model"]["mechanisms"][0]["dynamic_routing"]["scale"] = "unit"

    folder, _ = written("dynamic-routing:capsules=8", given)
    config = read_config(folder)
    assert config.model.mechanisms == ({"dynamic_routing": {"capsules": 8, "scale": "unit"}},)
    assert config.format == 2


@pytest.mark.parametrize("written_format", [3, 0, "2", True, None])
def test_a_format_that_is_none_of_ours_is_refused(written, written_format):
    folder, _ = written("transformer", lambda content: content.update(format=written_format))
    with pytest.raises(ConfigError, match=r"config.yaml: format: .* reads 1 to 2"):
        read_config(folder)


@pytest.mark.parametrize("mechanisms", [["gdr"], [{"dynamic_routing": 2}], [{"future_cost": "x"}], [3], 5])
def test_mechanisms_of_format_1_that_are_none_are_refused_in_a_sentence(written, mechanisms):
    def spoil(content):
        del content["format"]
        content["model"]["mechanisms"] = mechanisms

    folder, _ = written("dynamic-routing", spoil)
    with pytest.raises(ConfigError, match=r"config.yaml: .*mechanisms"):
        read_config(folder)
