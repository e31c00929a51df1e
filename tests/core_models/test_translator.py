"""A trained system in use: order, prefixes, scores, n-best, traces, trees, and requests that cannot be served."""

import random
import re

import pytest
import torch

from analyses import beam
from core_models import load
from core_models.config import SearchConfig
from core_models.decoding import inference
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.translator import Translator, TranslatorError


@pytest.fixture(scope="module")
def translator(trained_run):
    return load(trained_run)


@pytest.fixture(scope="module")
def sources(prepared):
    return prepared.test("test").sources


@pytest.mark.slow
def test_the_order_and_the_batch_do_not_matter(translator, sources):
    alone = [translator.translate([source])[0] for source in sources]
    shuffled = random.Random(1).sample(range(len(sources)), len(sources))
    for batch_tokens in (200, 4096):
        together = translator.translate([sources[row] for row in shuffled], batch_tokens=batch_tokens)
        for row, translation in zip(shuffled, together, strict=True):
            assert translation.text == alone[row].text
            assert translation.source_tokens == alone[row].source_tokens
            assert translation.score == pytest.approx(alone[row].score, abs=1e-4)


def test_tokens_are_the_text_and_end_as_the_search_did(translator, sources):
    for translation in translator.translate(sources):
        ending = ["</s>"] * translation.finished
        assert translation.tokens == translator.target_vocabulary.pieces(translation.ids) + ending
        assert translation.text == translator.target_vocabulary.decode([translation.ids])[0]
        assert len(translation.token_log_probs) == len(translation.tokens)
        assert translation.log_prob == pytest.approx(sum(translation.token_log_probs), abs=1e-6)
        length = len(translation.tokens)
        assert translation.score == pytest.approx(translation.log_prob / length**0.6, abs=1e-6)


def test_scoring_a_translation_says_what_the_search_said(translator, sources):
    found = [
        (source, one)
        for source, one in zip(sources, translator.translate(sources), strict=True)
        if one.finished and translator.target_vocabulary.encode([one.text])[0] == one.ids
    ]
    assert len(found) > 10
    scored = translator.score([source for source, _ in found], [one.text for _, one in found])
    for (_, searched), forced in zip(found, scored, strict=True):
        assert forced.tokens == searched.tokens
        assert forced.token_log_probs == pytest.approx(searched.token_log_probs, abs=1e-4)
        assert forced.score == pytest.approx(searched.score, abs=1e-4)
        assert forced.score != pytest.approx(forced.log_prob, abs=1e-4)


@pytest.mark.parametrize("finished", ["drop", "keep"])
def test_a_prefix_is_honoured(translator, sources, finished):
    prefixes = ["der alte Baum", "", *["der kleine"] * (len(sources) - 2)]
    found = translator.translate(sources, prefix=prefixes, finished_hypotheses=finished)
    assert all(one.text.startswith(prefix) for one, prefix in zip(found, prefixes, strict=True))
    free = translator.translate(sources[1:2], finished_hypotheses=finished)[0]
    assert found[1].text == free.text
    longer = translator.translate(
        sources[:1], prefix=["der alte Mann sieht der alte Hund"], max_length=2, finished=finished
    )[0]
    assert longer.text.startswith("der alte Mann sieht der alte Hund")


@pytest.mark.parametrize("finished", ["drop", "keep"])
def test_the_n_best_are_different_and_sorted(translator, sources, finished):
    for translation in translator.translate(sources, beam=4, n_best=4, finished_hypotheses=finished):
        ranked = [translation, *translation.n_best]
        assert len(ranked) > 1 or not translation.finished
        assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
        assert len({tuple(one.tokens) for one in ranked}) == len(ranked)


def test_where_nothing_is_said_the_n_best_are_the_configurations(trained_run, sources):
    translator = load(trained_run)
    translator.search = translator.search.model_copy(update={"n_best": 3})
    given, asked, one = (translator.translate(sources[:4], **said) for said in ({}, {"n_best": 3}, {"n_best": 1}))
    assert [[other.text for other in best.n_best] for best in given] == [
        [other.text for other in best.n_best] for best in asked
    ]
    assert any(len(best.n_best) == 2 for best in given)
    assert not any(best.n_best for best in one)


def test_traces_are_as_long_as_the_tokens(translator, sources):
    names = {"log_prob", "future_cost.log_prob", "future_cost.gate", "decoder.cross_attention"}
    found = translator.translate(sources, trace=["*"]) + translator.translate(sources, trace=["*"], max_length=3)
    assert {translation.finished for translation in found} == {True, False}
    for translation in found:
        assert names <= translation.trace.keys()
        for name, array in translation.trace.items():
            array.check(name)
            sizes = dict(zip(array.axes, array.values.shape, strict=True))
            assert sizes.get("target", len(translation.tokens)) == len(translation.tokens)
            assert sizes.get("source", len(translation.source_tokens)) == len(translation.source_tokens)
        assert translation.trace["log_prob"].values.tolist() == pytest.approx(translation.token_log_probs, abs=1e-4)


def test_a_trace_holds_what_was_asked_for_and_changes_nothing(translator, sources):
    plain, traced = translator.translate(sources), translator.translate(sources, trace=["future_cost.gate"])
    assert all(list(one.trace) == ["future_cost.gate"] for one in traced)
    assert [one.trace for one in plain] == [None] * len(sources)
    assert [(one.ids, one.score) for one in plain] == [(one.ids, one.score) for one in traced]


def test_given_tokens_are_traced_as_the_search_left_them(translator, sources):
    found = translator.translate(sources, trace=["log_prob", "future_cost.*"], max_length=12)
    assert {one.finished for one in found} == {True, False}
    for one, trace in zip(
        found, translator.trace(sources, [one.tokens for one in found], ["log_prob", "future_cost.*"]), strict=True
    ):
        assert trace.keys() == one.trace.keys()
        for name, array in trace.items():
            assert array.values.tolist() == pytest.approx(one.trace[name].values.tolist(), abs=1e-5)


def test_a_batch_that_is_forced_is_no_longer_on_either_side_than_the_budget_says(translator, sources):
    """Sixty short sentences with long translations, which would be one batch by their sources."""
    sizes = []
    table = translator.systems[0].backbone.target_table
    hook = table.register_forward_hook(lambda module, words, vectors: sizes.append(words[0].numel()))
    try:
        scored = translator.score(sources[:1] * 60, [" ".join(sources[:8])] * 60)
    finally:
        hook.remove()
    assert len(scored) == 60
    assert max(sizes) <= translator.search.batch_tokens / translator.search.beam
    assert sum(sizes) > translator.search.batch_tokens


def test_the_recorded_tree_is_one_the_analyses_accept(translator, sources):
    for translation in translator.translate(sources[:4], beam=3, record=True):
        nodes = beam.tree(translation.tree)
        best = nodes[nodes.on_best].sort_values("step")
        assert list(best.word) == translation.tokens
        assert best.log_prob.tolist() == pytest.approx(translation.token_log_probs, abs=1e-9)
        assert (nodes.groupby("step").size() <= 6).all()


def test_an_ensemble_of_a_run_with_itself_is_the_run(translator, trained_run, sources):
    twice = load([trained_run, trained_run])
    for one, other in zip(translator.translate(sources), twice.translate(sources), strict=True):
        assert (one.text, one.score) == (other.text, pytest.approx(other.score, abs=1e-4))
    for one, other in zip(translator.score(sources, sources), twice.score(sources, sources), strict=True):
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
    with pytest.raises(TranslatorError, match="an ensemble has no trace"):
        twice.translate(sources[:1], trace=["*"])
    with pytest.raises(TranslatorError, match="an ensemble has no trace"):
        twice.translate([], trace=["*"])  # said before anything is searched


def test_samples_come_in_order_and_by_seed(translator, sources):
    one, two, other = (translator.sample(sources, 3, seed=seed) for seed in (4, 4, 5))
    assert [[draw.ids for draw in drawn] for drawn in one] == [[draw.ids for draw in drawn] for drawn in two]
    assert [[draw.ids for draw in drawn] for drawn in one] != [[draw.ids for draw in drawn] for drawn in other]
    pieces = [translator.source_vocabulary.pieces(ids) for ids in translator.source_vocabulary.encode(sources)]
    assert [drawn[0].source_tokens[:-1] for drawn in one] == pieces
    for draw in (draw for drawn in one for draw in drawn):
        assert draw.score == pytest.approx(draw.log_prob / len(draw.tokens) ** translator.search.length_penalty)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"samples": 0}, "samples 0: draw at least one"),
        ({"temperature": 0}, "temperature 0: choose one from 0.0001 to 10000"),
        ({"temperature": -1.0}, "temperature -1: choose one from"),
        ({"temperature": 1e-320}, "temperature 9.99989e-321: choose one from"),
        ({"top": 0}, "top 0: draw among at least one word"),
    ],
)
def test_draws_that_cannot_be_are_refused(translator, given, message):
    with pytest.raises(TranslatorError, match=re.escape(message)):
        translator.sample(["the dog"], **given)


def test_an_output_ends_where_the_learned_positions_do(prepared):
    torch.manual_seed(1)
    system = build(
        "transformer:preset=tiny,position_embedding=learned,max_positions=16", len(prepared.source_vocabulary)
    )
    short = Translator([system.eval()], prepared.source_vocabulary, prepared.target_vocabulary, SearchConfig(beam=2))
    (found,) = short.translate(["dog"])
    assert len(found.tokens) <= 16
    assert len(short.sample(["dog"], 1, seed=1)[0][0].ids) <= 16


@pytest.mark.slow
def test_samples_take_the_room_of_beams(translator, sources, monkeypatch):
    taken, draw = [], inference.sample
    monkeypatch.setattr(
        inference, "sample", lambda *given: taken.append((len(given[2]), int(given[2].max()))) or draw(*given)
    )
    budget, offset = translator.search.batch_tokens, translator.search.length_offset
    translator.sample(sources, 100, seed=1)
    assert sum(rows for rows, _ in taken) == len(sources)
    assert all(rows * 100 * (limit - offset) / translator.search.length_factor <= budget for rows, limit in taken)


def test_empty_requests_and_empty_sentences(translator):
    assert translator.translate([]) == translator.score([], []) == []
    found = translator.score(["der", ""], ["", "der"])
    assert [one.tokens[-1] for one in found] == ["</s>", "</s>"]
    assert found[0].tokens == ["</s>"]
    assert translator.translate([""], length_factor=0.1, length_offset=0)[0].source_tokens == ["</s>"]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"documents": ["d1"]}, "2 sources and 1 documents: one each is needed"),
        ({"prefix": ["der"] * 3}, "2 sources and 3 prefixes: one each is needed"),
    ],
)
def test_uneven_requests_are_refused(translator, request_, message):
    with pytest.raises(TranslatorError, match=message):
        translator.translate(["the dog", "the man"], **request_)


def test_one_string_in_place_of_a_list_is_refused(translator):
    """It would be a sentence a letter."""
    with pytest.raises(TranslatorError, match=r"sources: a list of strings is needed, not one string: \['the dog'\]"):
        translator.translate("the dog")
    with pytest.raises(TranslatorError, match="translations: a list of strings is needed"):
        translator.score(["the dog"], "der Hund")
    with pytest.raises(TranslatorError, match="trace: a list of names is needed"):
        translator.translate(["the dog"], trace="log_prob")


def test_an_exact_search_without_memory_says_so(translator, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(type(translator.systems[0]), "step", full)
    with pytest.raises(TranslatorError, match="out of memory while searching exactly one sentence alone"):
        translator.exact("the dog")


def test_uneven_scoring_is_refused(translator):
    with pytest.raises(TranslatorError, match="2 sources and 1 translations: one each is needed"):
        translator.score(["the dog", "the man"], ["der Hund"])
    with pytest.raises(TranslatorError, match="1 sources and 2 documents"):
        translator.score(["the dog"], ["der Hund"], documents=["a", "b"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"beam": 2, "n_best": 3}, "search: n_best: 3 hypotheses cannot come from a beam of 2"),
        ({"beem": 2}, r"search: unknown key 'beem'; did you mean 'beam'\?"),
        ({"beam": 0}, "search: beam: .*greater than 0"),
    ],
)
def test_a_search_that_cannot_be_is_refused(translator, given, message):
    with pytest.raises(ConfigError, match=message):
        translator.translate(["the dog"], **given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_auto_is_a_device_that_is_there(trained_run):
    assert load(trained_run, "auto").device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_device_that_is_not_there_is_named(trained_run):
    with pytest.raises(
        ConfigError, match=r"device 'cuda': PyTorch finds no such device here; use cpu \(there is no CUDA"
    ):
        load(trained_run, device="cuda")


@pytest.mark.parametrize("device", ["cuda:99", "graphics", "cpu:x"])
def test_a_device_that_cannot_be_is_refused(trained_run, device):
    with pytest.raises(ConfigError, match=f"device '{device}': PyTorch finds no such device here; use cpu"):
        load(trained_run, device=device)


def test_a_prefix_that_the_vocabulary_cannot_write_is_refused_with_its_words(translator, sources):
    with pytest.raises(TranslatorError, match=r"prefix 2 \('der 漢字 Hund'\): .* no pieces for '漢字'; .*leave it out"):
        translator.translate(sources[:2], prefix=["der Hund", "der 漢字 Hund"])
