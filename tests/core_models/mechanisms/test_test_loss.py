"""A search decides whether losses of PAST and FUTURE layers take part in it: the same weights, built either way."""

import pytest
import torch

from core_models.config import SearchConfig
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.training.fit import fit
from core_models.translator import Translator

KINDS = ("none", "step_mean_prob")


@pytest.fixture(scope="module")
def translators(prepared):
    """By what they were built with, the same weights each time: one system, and an ensemble of two."""
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    weights = {}
    for seed in (1, 2):
        torch.manual_seed(seed)
        system = build("pfrnn-loss:preset=tiny", *map(len, vocabularies))
        weights[seed] = {name: value + 0.1 * torch.randn_like(value) for name, value in system.state_dict().items()}

    def built(kind, seed):
        system = build(f"pfrnn-loss:preset=tiny,test_loss={kind}", *map(len, vocabularies)).eval()
        system.load_state_dict(weights[seed])
        return system

    def translator(kind, *seeds):
        systems = [built(kind, seed) for seed in seeds]
        return Translator(systems, *vocabularies, SearchConfig(max_length=12))

    return {(kind, together): translator(kind, *range(1, together + 1)) for kind in KINDS for together in (1, 2)}


@pytest.fixture(scope="module")
def sources(prepared):
    return prepared.test("test").sources[:6]


def told(found):
    """Everything a search says, but for its tree."""
    return [(one.ids, one.score, one.token_log_probs, [(n.ids, n.score) for n in one.n_best]) for one in found]


@pytest.mark.parametrize("asked", KINDS)
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("precision", ["full", "int8"])
def test_what_is_asked_for_is_what_is_built_so(translators, sources, asked, together, precision):
    (other,) = set(KINDS) - {asked}
    settings = {"n_best": 2, "precision": precision}
    own, changed = translators[asked, together], translators[other, together]
    wanted = told(own.translate(sources, **settings))
    assert told(changed.translate(sources, test_loss=asked, **settings)) == wanted
    assert told(own.translate(sources, test_loss="as_built", **settings)) == wanted
    assert told(changed.translate(sources, **settings)) != wanted  # and what it is asked once, it is not from then on


@pytest.mark.parametrize("asked", KINDS)
def test_trees_and_traces_are_of_the_search_that_was_asked_for(translators, sources, asked):
    (other,) = set(KINDS) - {asked}
    own, changed = translators[asked, 1], translators[other, 1]
    found = changed.translate(sources, test_loss=asked, record=True, trace=["*log_prob"])
    wanted = own.translate(sources, record=True, trace=["*log_prob"])
    for one, same in zip(found, wanted, strict=True):
        assert one.tree == same.tree
        assert one.trace.keys() == same.trace.keys()
        assert one.trace["log_prob"].values.tolist() == same.trace["log_prob"].values.tolist()
        assert one.trace["log_prob"].values == pytest.approx(one.token_log_probs, abs=1e-4)


def test_what_a_run_is_searched_with_holds_for_all_that_it_is_asked(translators, sources):
    """Scores, samples and exact search too, which would say nothing of the search's errors else."""
    own, other = translators["none", 1], translators["step_mean_prob", 1]
    settings = SearchConfig(max_length=4, test_loss="none")
    set_so = Translator(other.systems, other.source_vocabulary, other.target_vocabulary, settings)
    own = Translator(own.systems, own.source_vocabulary, own.target_vocabulary, SearchConfig(max_length=4))
    targets = sources[::-1]
    scores = [[one.token_log_probs for one in each.score(sources, targets)] for each in (own, set_so, other)]
    assert scores[0] == scores[1] != scores[2]
    drawn = [[one.ids for (one,) in each.sample(sources, 1, seed=4)] for each in (own, set_so)]
    assert drawn[0] == drawn[1]
    exact = [each.exact(sources[0], most_nodes=20) for each in (own, set_so)]
    assert exact[0] == exact[1]


@pytest.mark.parametrize("name", ["transformer", "rnnsearch", "pfrnn", "gdr-bow"])
def test_without_such_losses_it_is_refused(prepared, sources, name):
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    translator = Translator(build(f"{name}:preset=tiny", *map(len, vocabularies)).eval(), *vocabularies)
    with pytest.raises(ConfigError, match="test_loss none: this system has no losses of PAST or FUTURE layers"):
        translator.translate(sources, test_loss="none")


def test_training_that_would_be_validated_so_is_refused_before_it_begins(new_run):
    run = new_run("run", "rnnsearch", search={"test_loss": "step_mean_prob"})
    with pytest.raises(ConfigError, match="test_loss step_mean_prob: this system has no losses"):
        fit(run, device="cpu")
    assert not (run / "state").exists()
