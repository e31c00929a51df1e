"""Attention, alignment, words and the lens of runs: the figures hold what the translator says of the same passes."""

import numpy as np
import pytest
import torch

import core_models
from analyses import attention
from analyses.alignment import from_attention
from core_models.layers import attention as attention_layers
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS
from workbench.evaluation import translate
from workbench.evaluation.live_trace import layers_and_heads, trace_sentence
from workbench.experiments.train import new_run, train
from workbench.export.files import save
from workbench.figures.drawing import draw
from workbench.figures.request import Request
from workbench.plotting.axes import token_texts
from workbench.plotting.grammar import Heat
from workbench.store.runs import Run, RunError, open_run

SENTENCE = 4


@pytest.fixture
def runs(demo_runs):
    return tuple(open_run(f"demo/{name}", demo_runs) for name in ("transformer", "future-cost-2"))


def traced(run, target="own"):
    """The trace of the sentence, its source pieces and its target pieces, straight from the translator."""
    translator, found = core_models.load(run.folder), run.translations("test")
    source = found.test_set.sources[SENTENCE]
    if target == "own":
        tokens = found.details[SENTENCE]["tokens"]
        (trace,) = translator.trace([source], [tokens], ["*"])
    else:
        (one,) = translator.score([source], [found.test_set.references[SENTENCE]], trace=["*"])
        tokens, trace = one.tokens, one.trace
    return trace, found.details[SENTENCE]["source_tokens"], tokens


def drawn(name, runs, **options):
    return draw(name, Request(tuple(runs), sentence=SENTENCE, options=options))


def maps(figure) -> list[np.ndarray]:
    return [mark.cells()[0] for panel in figure.panels for mark in panel.marks if isinstance(mark, Heat)]


PARTS = {"cross": "decoder.cross_attention", "encoder": "encoder.self_attention", "decoder": "decoder.self_attention"}


def test_attention_of_the_best_hypothesis_is_the_same_step_by_step(runs, monkeypatch):
    """As the search computes it, a word at a time with what it keeps of the words before: no trace is asked for."""
    run, shares, attend = runs[0], [], attention_layers.attend

    def watched(query, key, value, mask=None, causal=False, dropout=0.0, weights=False, may_be_empty=False):
        found, share = attend(query, key, value, mask, causal, dropout, True, may_be_empty)
        shares.append(share[0, :, 0].numpy())  # [H, M] of the one hypothesis
        return found, share if weights else None

    looked = trace_sentence(run, "test", SENTENCE)
    translator = core_models.load(run.folder)
    system, numbers = translator.systems[0], {}
    for number, piece in enumerate(translator.target_vocabulary.pieces(range(len(translator.target_vocabulary)))):
        numbers[piece] = number
    source = run.translations("test").test_set.sources[SENTENCE]
    with torch.inference_mode():
        state = system.start(system.encode(collate(translator.source_vocabulary.encode([source]))))
        monkeypatch.setattr(attention_layers, "attend", watched)
        for word in [BOS, *(numbers[piece] for piece in looked.target[:-1])]:
            _, state = system.step(torch.tensor([[word]]), state)
    layers = run.config.model.decoder_layers
    for part, place in (("self", 0), ("cross", 1)):
        traced = looked.array(f"decoder.{part}_attention")  # [layer, head, target, key]
        for step in range(len(looked.target)):
            for layer in range(layers):
                stepped = shares[(step * layers + layer) * 2 + place]
                np.testing.assert_allclose(stepped, traced[layer, :, step, : stepped.shape[-1]], atol=1e-5)
    assert len(shares) == 2 * layers * len(looked.target)


@pytest.mark.parametrize("part", list(PARTS))
def test_every_layer_and_head_is_that_of_the_trace(part, runs):
    trace, source, target = traced(runs[0])
    weights = trace[PARTS[part]].values
    figure = drawn("attention", runs[:1], part=part, layer="each", head="each")
    np.testing.assert_allclose(maps(figure), weights.reshape(-1, *weights.shape[2:]), atol=1e-6)
    assert figure.panels[0].title == "layer 1, head 1"
    assert figure.columns == weights.shape[1]
    queries = source if part == "encoder" else target
    keys = ["<s>", *target[:-1]] if part == "decoder" else source
    assert (figure.panels[0].y.texts, figure.panels[0].x.texts) == (token_texts(queries), token_texts(keys))
    (one,) = maps(drawn("attention", runs[:1], part=part, layer=1, head="2"))
    np.testing.assert_allclose(one, weights[0, 1], atol=1e-6)
    (mean,) = maps(drawn("attention", runs[:1], part=part))
    np.testing.assert_allclose(mean, weights.mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(mean.sum(1), 1, atol=1e-5)


@pytest.fixture(scope="module")
def mixed_run(demo_runs, tmp_path_factory) -> Run:
    """A recurrent decoder of two layers on a Transformer's encoder of two, hardly trained, its test set translated."""
    system = "rnnsearch:encoder=transformer,preset=tiny,encoder_layers=2,decoder_layers=2,deep_layers=1"
    folder, data = tmp_path_factory.mktemp("mixed") / "mixed", demo_runs / "demo" / "data"
    run = new_run(folder, system, data, {"max_steps": 1, "batch_tokens": 256}, {"max_length": 8, "beam": 1})
    train(run, device="cpu")
    translate.translate_test(run, *translate.test_set(run, "test"))
    return open_run(folder)


def test_a_recurrent_system_has_the_maps_of_its_own_two_sides(runs, mixed_run):
    """One of the recurrent decoder, however deep it is; of a Transformer's encoder under it every layer and head."""
    assert [layers_and_heads([mixed_run], PARTS[part]) for part in PARTS] == [(1, 1), (2, 2), (0, 0)]
    assert layers_and_heads([runs[0], mixed_run], PARTS["cross"]) == (1, 1)
    assert layers_and_heads([runs[0], mixed_run], PARTS["decoder"]) == (2, 4), "of those that have it"
    trace, *_ = traced(mixed_run, "reference")
    for part in ("cross", "encoder"):
        weights = trace[PARTS[part]].values
        assert weights.shape[:2] == layers_and_heads([mixed_run], PARTS[part])
        figure = drawn("attention", [mixed_run], part=part, layer="each", head="each", target="reference")
        np.testing.assert_allclose(maps(figure), weights.reshape(-1, *weights.shape[2:]), atol=1e-6)


@pytest.mark.parametrize("name", ["attention", "token-probabilities", "layer-lens"])
def test_labels_of_pieces_read_as_the_sentence(name, runs):
    figure = drawn(name, runs[:1], target="reference")
    *_, target = traced(runs[0], "reference")
    (axis,) = {axis.texts for panel in figure.panels for axis in (panel.x, panel.y) if len(axis.texts) == len(target)}
    read = " ".join(axis).replace(" ·", "").replace("␣", "")  # a piece of the space before a word alone
    assert read == " ".join(attention.joined(target))
    assert any(piece.startswith("▁") for piece in target)
    assert not any("▁" in text for text in (*figure.texts(), figure.summary))


def test_rollout_and_words_side_by_side(runs):
    figure = drawn("attention", runs, layer="rollout", words=True, target="reference")
    assert [panel.title for panel in figure.panels] == ["transformer", "future-cost-2"]
    for run, found in zip(runs, maps(figure), strict=True):
        trace, source, target = traced(run, "reference")
        names = ("decoder.self_attention", "decoder.cross_attention", "encoder.self_attention")
        wanted = attention.decoder_rollout(*(trace[name].values for name in names)).source[-1]
        np.testing.assert_allclose(found.T, attention.to_words(wanted, target, source), atol=1e-6)
    assert "Abnar and Zuidema 2020" in figure.caption
    assert "Of source and target together a column sums to one" in figure.caption


def test_the_alignment_is_the_argmax_between_words_beside_gold_links(runs, tmp_path):
    text = runs[0].translations("test").test_set
    lengths = [(len(a.split()), len(b.split())) for a, b in zip(text.sources, text.references, strict=True)]
    path = tmp_path / "gold.pharaoh"
    path.write_text("".join(f"1-1 {i}?{j}\n" for i, j in lengths), encoding="utf-8")
    figure = drawn("alignment", runs[:1], links=str(path))
    trace, source, target = traced(runs[0], "reference")
    joined = attention.to_words(trace["decoder.cross_attention"].values.mean((0, 1)), target, source)
    wanted = from_attention(joined[:-1, :-1])
    table = figure.table
    links = {
        series: set(zip(rows["key"].astype(int), rows["query"].astype(int), strict=True))
        for series, rows in table[table["mark"] == "points"].groupby("series")
    }
    words = tuple(count - 1 for count in lengths[SENTENCE])
    assert links == {"most attended": wanted, "gold, sure": {(0, 0)}, "gold, possible": {words}}
    error = 1 - (((0, 0) in wanted) + len(wanted & {(0, 0), words})) / (len(wanted) + 1)
    assert "Gold links are words counted from 1" in figure.caption
    matched = len(wanted & {(0, 0), words})
    assert f"gold link: transformer {matched} of {len(wanted)} (error rate {100 * error:.1f} %)" in figure.summary


@pytest.mark.parametrize("target", ["own", "reference"])
def test_words_have_the_numbers_of_the_trace(target, runs):
    figure = drawn("token-probabilities", runs, target=target)
    for run in runs:
        trace, _, tokens = traced(run, target)
        name = run.name.removeprefix("demo/")
        wanted = {"probability": np.exp(trace["log_prob"].values), "rank": trace["rank"].values}
        wanted["entropy"] = trace["entropy"].values
        for measure, values in wanted.items():
            (mark,) = [m for panel in figure.panels for m in panel.marks if m.series == name and m.y == measure]
            np.testing.assert_allclose(mark.values(measure), values, atol=1e-5)
            assert mark.table["token"].tolist() == tokens


def test_a_typed_text_is_forced(runs):
    typed = runs[0].translations("test").test_set.references[0]
    found = trace_sentence(runs[0], "test", SENTENCE, "typed", f" {typed} ")
    source = runs[0].translations("test").test_set.sources[SENTENCE]
    wanted = core_models.load(runs[0].folder).score([source], [typed])[0]
    assert list(found.target) == wanted.tokens
    np.testing.assert_allclose(found.array("log_prob"), wanted.token_log_probs, atol=1e-5)


def test_the_lens_ends_with_what_the_model_says(runs, tmp_path):
    figure = drawn("layer-lens", runs)
    plain, changed = figure.panels
    assert (plain.x.texts[-1], changed.x.texts[-1]) == ("layer 2", "output")
    for run, found in zip(runs, maps(figure), strict=True):
        trace, _, tokens = traced(run)
        np.testing.assert_allclose(found[:, -1], np.exp(trace["log_prob"].values), atol=1e-5)
        assert found.shape == (len(tokens), len(trace["lens.rank"].values))
    assert save(figure, tmp_path / "lens.svg").stat().st_size > 0


def test_the_lens_leaves_out_a_recurrent_decoder_and_says_so(runs, mixed_run):
    beside = drawn("layer-lens", [runs[0], mixed_run], target="reference")
    alone = drawn("layer-lens", runs[:1], target="reference")
    np.testing.assert_array_equal(maps(beside)[0], maps(alone)[0])
    assert len(beside.panels) == 1
    assert beside.caption.endswith("Without layers to read: mixed.")
    with pytest.raises(RunError, match="reads the layers of a Transformer decoder; without them: mixed"):
        drawn("layer-lens", [mixed_run], target="reference")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("attention", {"part": "crossed"}, "part 'crossed': choose cross, encoder, decoder"),
        ("attention", {"layer": "9"}, "There is no layer 9: this attention has layers 1 to 2"),
        ("attention", {"head": "first"}, "head 'first': write mean, each, or a number from 1"),
        ("attention", {"limit": 0}, "limit 0: write auto, or a number above 0, up to 1"),
        ("attention", {"target": "refrence"}, "target 'refrence': choose own, reference, typed"),
        ("attention", {"difference": True}, "a difference needs two runs"),
        ("token-probabilities", {"target": "typed", "text": " "}, "no text was typed"),
        ("token-probabilities", {"target": "typed", "text": "der " * 900}, "the translation has .* pieces, and a look"),
        ("alignment", {"layer": "each"}, "layer 'each': write mean, rollout, or a number from 1"),
        ("alignment", {"links": "nowhere.txt"}, "nowhere.txt: there is no such file of links"),
        ("alignment", {"links": "x", "target": "own"}, "gold links join the source with the reference"),
    ],
)
def test_what_cannot_be_drawn_is_answered_with_a_sentence(name, options, message, runs):
    with pytest.raises(RunError, match=message):
        drawn(name, runs[:1], **options)


def test_a_sentence_that_is_not_there_is_named(runs):
    with pytest.raises(RunError, match="test has sentences 0 to 29, not 30"):
        draw("attention", Request(runs[:1], sentence=30))
