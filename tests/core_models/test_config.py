"""Configurations and the catalogue: what is refused, and in which words."""

import pytest

from core_models.config import PRESETS, ModelConfig, RunConfig, SearchConfig, TrainingConfig, read_config
from core_models.settings import SYNONYMS, ConfigError, parse, read_yaml, write_yaml
from core_models.system_builder import build
from core_models.system_catalogue import SYSTEMS, catalogue
from core_models.system_spec import describe

RUN = {"name": "run", "data": "data", "model": {"preset": "tiny"}, "training": {"max_steps": 1}}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_fills_what_is_not_given(preset):
    config = ModelConfig(preset=preset, width=96, heads=3)
    assert (config.d_model, config.heads) == (96, 3)
    assert config.ffn_dim == PRESETS[preset]["ffn_dim"]


@pytest.mark.parametrize("name", catalogue())
def test_every_system_is_described_and_built(name):
    assert build(f"{name}{',' if ':' in name else ':'}preset=tiny", 12).config == describe(f"{name}:preset=tiny")


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        (
            "transformer:preset=tiny,norm=post,dropout=0.2",
            {"preset": "tiny", "norm": "post", "dropout": 0.2, "d_model": 64},
        ),
        (
            "future-cost-2:preset=tiny,weight=0.7,tied_head=false",
            {"mechanisms": ({"future_cost": {"model": 2, "weight": 0.7, "tied_head": False}},)},
        ),
        ("future-cost-1:backbone=rnnsearch,d_model=32", {"backbone": "rnnsearch", "d_model": 32}),
        (
            "gdr:losses=[bow,bca], redundant=false,d_model=32",
            {"d_model": 32, "mechanisms": ({"guided_capsules": {"losses": ["bow", "bca"], "redundant": False}},)},
        ),
        ("gdr-bow:losses=[]", {"mechanisms": ({"guided_capsules": {"losses": []}},)}),
        (
            "rnnsearch-2dec+future-cost-2:d_model=32,model=1",
            {"backbone": "rnnsearch", "deep_layers": 1, "d_model": 32, "mechanisms": ({"future_cost": {"model": 1}},)},
        ),
        ("coverage+rnnsearch-3dec", {"deep_layers": 2, "mechanisms": ({"coverage": {}},)}),
        (
            "prnn-loss+future-cost-2:future_cost.weight=0.7,objective=mean,past_future_layers.weight=2",
            {
                "mechanisms": (
                    {"past_future_layers": {"layers": ["past"], "losses": ["past"], "objective": "mean", "weight": 2}},
                    {"future_cost": {"model": 2, "weight": 0.7}},
                )
            },
        ),
        (
            "qcn-reg+gdr:query_capsules.capsules=8,correlation=eq7",
            {
                "mechanisms": (
                    {"query_capsules": {"capsules": 8, "correlation": "eq7"}},
                    {"capsule_regularisation": {"correlation": "eq7"}},
                    {"guided_capsules": {}},
                )
            },
        ),
    ],
)
def test_a_change_goes_where_its_key_belongs(name, keys):
    described = describe(name)
    assert {key: getattr(described, key) for key in keys} == keys


def test_changing_a_system_leaves_the_catalogue_alone():
    before = repr(SYSTEMS)
    describe("future-cost-2:weight=0.9,preset=tiny")
    assert repr(SYSTEMS) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("transfomer", r"there is no system 'transfomer'; did you mean 'transformer'\?"),
        ("xyz", "there is no system 'xyz'; known: transformer, future-cost-1"),
        ("transformer:preset=tiny,norn=post", r"no part of this system has an option 'norn'; did you mean 'norm'\?"),
        ("transformer:weight=1", "no part of this system has an option 'weight'"),
        ("future-cost-1:wieght=1", r"no part of this system has an option 'wieght'; did you mean 'weight'\?"),
        ("transformer:tiny", "write key=value, not 'tiny'"),
        ("transformer:mechanisms=[{coverage: {}}]", r"mechanisms come with systems; join some by \+, as in pfrnn-loss"),
        ("pfrnn+futurecost-2", r"there is no system 'futurecost-2'; did you mean 'future-cost-2'\?"),
        ("pfrnn+", "there is no system ''; known: transformer"),
        (
            "gdr-bow+pfrnn",
            "gdr-bow is on backbone transformer and pfrnn on rnnsearch; the first names the backbone: begin with pfrnn",
        ),
        ("rnnsearch-2dec+pfrnn+rnnsearch-3dec", "rnnsearch-3dec has deep_layers=2, one before it 1; leave one out"),
        ("pfrnn+coverage+prnn-loss", "pfrnn and prnn-loss both have past_future_layers; leave one of them out"),
        ("pfrnn+rnnsearch", "rnnsearch adds nothing to pfrnn; leave it out"),
        (
            "pfrnn-loss+future-cost-2:weight=0.7",
            r"several parts have an option 'weight'; say which one is meant: past_future_layers.weight=... or "
            r"future_cost.weight=...",
        ),
        (
            "pfrnn+future-cost-2:future_costs.weight=1",
            r"no part of this system has an option 'future_costs.weight'; did you mean 'future_cost.weight'\?",
        ),
        ("transformer:preset=tiny,embedding=7", "embedding: a Transformer's is d_model, 64; leave it out"),
        ("transformer:d_model=65,preset=tiny", "heads: 2 does not divide d_model 65"),
        ("transformer:norm=middle", r"norm: input should be 'pre' or 'post' \(given: 'middle'\)"),
        ("gdr:losses=[bow,bca", r"gdr:losses=\[bow,bca: losses=\[bow: the value is not readable as YAML"),
        (
            "gdr:losses=[bow,bac]",
            r"mechanisms.guided_capsules: losses: input should be 'bow' or 'bca' \(given: 'bac'\)",
        ),
        ("em-routing:iterations=0", r"mechanisms.em_routing: iterations: input should be greater than 0 \(given: 0\)"),
    ],
)
def test_a_wrong_name_or_key_is_answered_with_the_nearest(name, message):
    with pytest.raises(ConfigError, match=message):
        describe(name)


@pytest.mark.parametrize(("synonym", "name"), SYNONYMS.items())
def test_a_key_of_another_toolkit_is_answered_with_the_name_here(synonym, name):
    sections = [section for section in (ModelConfig, TrainingConfig, SearchConfig) if name in section.model_fields]
    assert sections
    for section in sections:
        with pytest.raises(ConfigError, match=f"unknown key '{synonym}'; did you mean '{name}'\\?"):
            parse(section, {synonym: 1})


def test_synonyms_are_answered_in_the_name_of_a_system_and_only_where_the_name_is_known():
    with pytest.raises(ConfigError, match=r"an option 'hidden_size'; did you mean 'd_model'\?"):
        describe("transformer:preset=tiny,hidden_size=64")
    with pytest.raises(ConfigError, match=r"unknown key 'lr'; known: beam, "):
        parse(SearchConfig, {"lr": 1})


@pytest.mark.parametrize(
    ("mechanisms", "message"),
    [
        ([{"future_cots": {}}], r"mechanisms: there is no 'future_cots'; did you mean 'future_cost'\?"),
        ([{"future_cost": {"wieght": 1}}], r"mechanisms.future_cost: unknown key 'wieght'; did you mean 'weight'\?"),
        ([{"future_cost": {"weight": -1}}], "mechanisms.future_cost: weight: .*greater than or equal to 0"),
        ([{"future_cost": {}, "coverage": {}}], "each entry is one name with its options"),
        ([{"future_cost": {}}, {"future_cost": {"model": 2}}], "future_cost is named twice"),
    ],
)
def test_wrong_mechanisms_are_refused(mechanisms, message):
    with pytest.raises(ConfigError, match=message):
        build({"preset": "tiny", "mechanisms": mechanisms}, 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trainning": {}}, r"run.yaml: unknown key 'trainning'; did you mean 'training'\?"),
        ({"training": {"max_steps": 1, "warm_up": 3}}, r"unknown key 'training.warm_up'; did you mean 'warmup'\?"),
        ({"training": {"max_steps": 1, "early_stopping": {"metrik": "bleu"}}}, r"did you mean 'metric'\?"),
        ({"training": {}}, "give max_steps or max_epochs, else it never ends"),
        ({"training": {"max_steps": 1, "init_params": ["backbone.*"]}}, "init_params: does nothing without init_from"),
        ({"training": {"max_steps": 0}}, r"training.max_steps: input should be greater than 0 \(given: 0\)"),
        ({"search": {"beam": 2, "n_best": 3}}, "n_best: 3 hypotheses cannot come from a beam of 2"),
        ({"data": None}, "run.yaml: data: "),
    ],
)
def test_a_wrong_run_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        parse(RunConfig, {**RUN, **change}, where="run.yaml")


def test_a_missing_key_is_named():
    with pytest.raises(ConfigError, match=r"run.yaml: data is missing"):
        parse(RunConfig, {key: value for key, value in RUN.items() if key != "data"}, where="run.yaml")


@pytest.mark.parametrize("model", [{"preset": "tiny", "norm": "post"}, {"preset": None, **PRESETS["tiny"]}])
def test_a_configuration_survives_its_file(tmp_path, model):
    config = parse(RunConfig, {**RUN, "model": {**model, "mechanisms": [{"future_cost": {"model": 2}}]}})
    write_yaml(tmp_path / "config.yaml", config.model_dump(mode="json", exclude_none=True))
    assert read_config(tmp_path) == config
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_configurations_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        SearchConfig().beam = 2


@pytest.mark.parametrize(
    ("part", "name"), [("model", "d_model"), ("model", "heads"), ("search", "beam"), ("training", "warmup")]
)
def test_numbers_that_nothing_could_hold_are_refused(new_run, part, name):
    run = new_run("run")
    settings = read_yaml(run / "config.yaml")
    settings[part][name] = 10**400
    write_yaml(run / "config.yaml", settings)
    with pytest.raises(ConfigError, match=rf"{part}\.{name}: "):
        read_config(run)
