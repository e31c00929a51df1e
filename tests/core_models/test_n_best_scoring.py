"""Rescoring: what the parts of a system say of hypotheses is what forcing them says; the weighted best is chosen."""

import pytest
import torch

from core_models.config import SearchConfig
from core_models.n_best_scoring import chosen, parts_of, weighted
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.translator import Translator


@pytest.fixture
def translator(prepared):
    """Both layers with their losses, which take part in the search; weights as they are drawn."""
    torch.manual_seed(3)
    system = build(
        "pfrnn-loss:preset=tiny,tie_embeddings=target",
        *map(len, (prepared.source_vocabulary, prepared.target_vocabulary)),
    )
    with torch.no_grad():
        for parameter in system.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    search = SearchConfig(beam=4, n_best=4, max_length=8, length_penalty=0)
    return Translator(system.double().eval(), prepared.source_vocabulary, prepared.target_vocabulary, search)


def test_the_parts_of_an_n_best_list_are_its_forced_log_probabilities(translator, prepared):
    sources = prepared.test("dev").sources[:3]
    found = translator.translate(sources)
    parts = parts_of(translator, sources, found)
    system = translator.systems[0]
    for source, one, every in zip(sources, found, parts, strict=True):
        assert len(every) == 1 + len(one.n_best)
        for hypothesis, said in zip([one, *one.n_best], every, strict=True):
            assert set(said) == {"main", "decoder", "past", "future", "length"}
            assert said["main"] == pytest.approx(hypothesis.log_prob, abs=1e-4)
            assert said["length"] == len(hypothesis.tokens)
            batch = collate(translator.source_vocabulary.encode([source]), [hypothesis.ids])
            with torch.no_grad():
                forced = system(system.encode(batch), batch.target_in, batch.target_mask)
                words = system.token_log_probs(forced, batch.target)
            for name, value in words.items():
                assert said[name] == pytest.approx(float(value[0, : len(hypothesis.tokens)].sum()), abs=1e-4)


def test_weights_decide():
    parts = [{"decoder": -1.0, "past": -6.0, "length": 3.0}, {"decoder": -2.0, "past": -4.0, "length": 5.0}]
    assert weighted(parts[1], {"decoder": 1, "past": 0.5, "length": 2}) == -2 - 2 + 10
    assert [chosen(parts, weights) for weights in ({"decoder": 1}, {"decoder": 1, "past": 1}, {"length": -1})] == [
        0,
        1,
        0,
    ]
    assert chosen([parts[0], parts[0]], {"past": 1}) == 0


def test_a_weight_of_no_part_is_refused():
    with pytest.raises(ConfigError, match="these hypotheses have no part 'pasts'; did you mean 'past'"):
        weighted({"main": -1.0, "past": -2.0}, {"pasts": 1.0})


def test_a_system_that_mixes_nothing_has_main_alone(prepared):
    system = build("rnnsearch:preset=tiny", len(prepared.source_vocabulary))
    translator = Translator(
        system.eval(), prepared.source_vocabulary, prepared.target_vocabulary, SearchConfig(max_length=5)
    )
    sources = prepared.test("dev").sources[:2]
    assert [set(one) for every in parts_of(translator, sources, translator.translate(sources)) for one in every] == [
        {"main", "length"}
    ] * 2
