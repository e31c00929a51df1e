"""Configurations of earlier formats mean what they meant: a run keeps the system that its weights were trained in."""

import pytest
import torch

from core_models.checkpoint import begin_run, open_trained, write_weights
from core_models.config import CONFIG, ModelConfig, RunConfig, SearchConfig, TrainingConfig, read_config
from core_models.config_format import FORMAT
from core_models.mechanisms.layer_aggregation import AggregationOptions
from core_models.mechanisms.layer_routing import EMRoutingOptions, RoutingOptions
from core_models.settings import ConfigError, parse, read_yaml, write_yaml
from core_models.system_builder import build
from core_models.system_catalogue import MECHANISMS
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
        assert content.pop("format") == FORMAT
        content["model"]["mechanisms"][0]["dynamic_routing"]["scale"] = "unit"

    folder, _ = written("dynamic-routing:capsules=8", given)
    config = read_config(folder)
    assert config.model.mechanisms == ({"dynamic_routing": {"capsules": 8, "scale": "unit"}},)
    assert config.format == FORMAT


@pytest.mark.parametrize("written_format", [FORMAT + 1, 0, "2", True, None])
def test_a_format_that_is_none_of_ours_is_refused(written, written_format):
    folder, _ = written("transformer", lambda content: content.update(format=written_format))
    with pytest.raises(ConfigError, match=rf"config.yaml: format: .* reads 1 to {FORMAT}"):
        read_config(folder)


@pytest.mark.parametrize("mechanisms", [["gdr"], [{"dynamic_routing": 2}], [{"future_cost": "x"}], [3], 5])
def test_mechanisms_of_format_1_that_are_none_are_refused_in_a_sentence(written, mechanisms):
    def spoil(content):
        del content["format"]
        content["model"]["mechanisms"] = mechanisms

    folder, _ = written("dynamic-routing", spoil)
    with pytest.raises(ConfigError, match=r"config.yaml: .*mechanisms"):
        read_config(folder)


# Settings by the names that they had until format 2, and the same by those of today.
RENAMED = [
    (ModelConfig, {"width": 96, "feed_forward": 80}, {"d_model": 96, "ffn_dim": 80}),
    (
        ModelConfig,
        {"tied": "none", "positions": "learned"},
        {"tie_embeddings": "none", "position_embedding": "learned"},
    ),
    (
        ModelConfig,
        {"backbone": "rnnsearch", "cell": "lstm", "first_state": "zero"},
        {"backbone": "rnnsearch", "rnn_cell": "lstm", "decoder_init": "zero"},
    ),
    (
        TrainingConfig,
        {"max_steps": 1, "clip": 0.5, "normalise": "sentences"},
        {"max_steps": 1, "max_grad_norm": 0.5, "loss_normalization": "sentences"},
    ),
    (
        TrainingConfig,
        {"max_steps": 1, "init_from": "run", "train": ["a"], "init_only": ["b"]},
        {"max_steps": 1, "init_from": "run", "trainable_params": ["a"], "init_params": ["b"]},
    ),
    (SearchConfig, {"finished": "stay"}, {"finished_hypotheses": "keep"}),
    (SearchConfig, {"finished": "leave"}, {"finished_hypotheses": "drop"}),
    (AggregationOptions, {"normalise": False}, {"normalize": False}),
    (RoutingOptions, {"normalise_mass": True}, {"normalize_mass": True}),
    (EMRoutingOptions, {"renormalise": True}, {"renormalize": True}),
]


@pytest.mark.parametrize(("section", "earlier", "today"), RENAMED)
def test_earlier_names_say_what_those_of_today_say(section, earlier, today):
    assert parse(section, earlier) == parse(section, today)
    for name in section.former_names.keys() & earlier.keys():
        both = {**today, name: earlier[name]}
        with pytest.raises(ConfigError, match=f"{name} is the former name of {section.former_names[name]}"):
            parse(section, both)


def test_every_earlier_name_is_tried():
    for section in (ModelConfig, TrainingConfig, SearchConfig, *(kind.Options for kind in MECHANISMS.values())):
        tried = {name for kind, earlier, _ in RENAMED if issubclass(section, kind) for name in earlier}
        assert section.former_names.keys() <= tried


@pytest.mark.parametrize(
    ("earlier", "today"),
    [
        ("rnnsearch:width=32,cell=lstm", "rnnsearch:d_model=32,rnn_cell=lstm"),
        ("em-routing:normalise_mass=true", "em-routing:normalize_mass=true"),
        ("dynamic-routing:dynamic_routing.normalise=false", "dynamic-routing:dynamic_routing.normalize=false"),
    ],
)
def test_a_system_is_described_by_earlier_names_too(earlier, today):
    assert describe(earlier) == describe(today)


@pytest.mark.parametrize(
    ("written_format", "given", "meant"),
    [(3, {}, "gnmt"), (1, {}, "gnmt"), (3, {"penalty": "power"}, "power"), (FORMAT, {}, "power")],
)
def test_a_search_of_an_earlier_format_keeps_the_length_penalty_of_its_time(written, written_format, given, meant):
    folder, _ = written("transformer", lambda content: content.update(format=written_format, search=given))
    assert read_config(folder).search.penalty == meant


@pytest.mark.parametrize(("written_format", "meant"), [(3, "gnmt"), (FORMAT, "power")])
def test_without_a_search_it_has_the_defaults_of_its_format(written, written_format, meant):
    folder, _ = written("transformer", lambda content: [content.update(format=written_format), content.pop("search")])
    assert read_config(folder).search.penalty == meant
