"""Entropy, rank and best word; the logit lens; attention of the search's own path against that of the forced pass."""

import math

import numpy as np
import pytest
import torch

from core_models import load
from core_models.inspection.logit_lens import LENS_MEASURES, MEASURES, measures, record
from core_models.layers import attention
from core_models.system import System
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS
from core_models.traces import TraceStore, TraceWriter, write_traces
from tests.core_models.laws import log_probs, random_sentences, random_system

LENGTHS = [4, 1, 7]
SYSTEMS = ["transformer", "transformer:norm=post", "future-cost-1", "future-cost-2", "rnnsearch"]


def test_a_uniform_distribution_has_entropy_log_v_and_everything_ranks_first():
    found = measures(torch.zeros(3, 4), torch.randn(50, 4), torch.tensor([0, 7, 49]))
    torch.testing.assert_close(found["entropy"], torch.full((3,), math.log(50)))
    torch.testing.assert_close(found["log_prob"], torch.full((3,), -math.log(50)))
    assert found["rank"].tolist() == [1, 1, 1]


def test_a_certain_distribution_has_no_entropy_and_ranks_count_from_one():
    bias = torch.tensor([0.0, 3.0, 2.0, 1.0])
    found = measures(torch.ones(4, 2), torch.zeros(4, 2), torch.arange(4), bias)
    assert found["rank"].tolist() == [4, 1, 2, 3]
    assert found["best"].tolist() == [1] * 4
    probabilities = bias.exp() / bias.exp().sum()
    torch.testing.assert_close(found["log_prob"], probabilities.log())
    torch.testing.assert_close(found["entropy"][0], -(probabilities * probabilities.log()).sum())
    sharp = measures(torch.ones(1, 2), torch.zeros(4, 2), torch.tensor([1]), bias * 1000)
    assert sharp["entropy"].item() == 0
    assert sharp["best_log_prob"].item() == 0


def traced(system: System, sources: list[list[int]], targets: list[list[int]], *names: str):
    """The traces of a batch, and log P of every word at every position, [S, T, V]."""
    batch, writer = collate(sources, targets), TraceWriter(names)
    forced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    record(system, forced, batch.target, writer)
    lengths = {"source": batch.source_mask.sum(1).tolist(), "target": batch.target_mask.sum(1).tolist()}
    return writer.sentences(lengths), log_probs(system, batch)


@torch.no_grad()
@pytest.mark.parametrize("name", SYSTEMS)
def test_measures_and_the_last_layer_of_the_lens_are_those_of_the_output(name):
    system = random_system(name)
    sources, targets = random_sentences(LENGTHS, 1), random_sentences([3, 6, 0], 2)
    traces, expected = traced(system, sources, targets, "*")
    for row, (target, trace) in enumerate(zip(targets, traces, strict=True)):
        said = expected[row, : len(target) + 1]
        words = torch.tensor([*target, EOS])
        wanted = {
            "log_prob": said[range(len(words)), words],
            "entropy": torch.distributions.Categorical(logits=said).entropy(),
            "rank": (-said).argsort(-1).argsort(-1)[range(len(words)), words] + 1,
            "best": said.argmax(-1),
            "best_log_prob": said.amax(-1),
        }
        for measure in MEASURES:
            assert trace[measure].axes == ("target",)
            np.testing.assert_allclose(trace[measure].values, wanted[measure], atol=1e-5)
        if name == "rnnsearch":
            assert not any(key.startswith("lens.") for key in trace)
            continue
        for measure in LENS_MEASURES:
            array = trace[f"lens.{measure}"]
            assert array.axes == ("layer", "target")
            np.testing.assert_allclose(array.values[-1], wanted[measure], atol=1e-5)
        layers = 1 + system.config.decoder_layers
        assert len(trace["lens.rank"].values) == layers + ("future" in name)


@torch.no_grad()
def test_a_layer_of_the_lens_is_the_model_that_ends_there():
    system = random_system("transformer:decoder_layers=2")
    sources, targets = random_sentences(LENGTHS, 1), random_sentences([3, 6, 2], 2)
    traces, _ = traced(system, sources, targets, "lens.log_prob")
    system.backbone.decoder = system.backbone.decoder[:1]
    shorter, _ = traced(system, sources, targets, "lens.log_prob")
    for long, short in zip(traces, shorter, strict=True):
        assert (len(long["lens.log_prob"].values), len(short["lens.log_prob"].values)) == (3, 2)
        np.testing.assert_allclose(long["lens.log_prob"].values[:2], short["lens.log_prob"].values, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("name", SYSTEMS)
def test_attention_sums_to_one_over_real_positions_and_company_changes_nothing(name):
    system = random_system(name)
    sources, targets = random_sentences(LENGTHS, 1), random_sentences([3, 6, 0], 2)
    names = ("*attention",)
    together, _ = traced(system, sources, targets, *names)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        (alone,), _ = traced(system, [source], [target], *names)
        sizes = {"source": len(source) + 1, "target": len(target) + 1}
        for key, array in together[row].items():
            array.check(key, tolerance=1e-6)
            assert array.sums_to_one == array.axes[-1]
            for axis, size in zip(array.axes, array.values.shape, strict=True):
                assert size == sizes.get(axis.removesuffix("_key"), size)
            np.testing.assert_allclose(array.values, alone[key].values, atol=1e-6)


def test_ranks_and_words_stay_whole_on_the_disk(tmp_path):
    words = torch.tensor([[2049, 31_999, 70_001]])
    writer = TraceWriter(["best"])
    writer.record("best", ("target",), words)
    write_traces(tmp_path, dict(enumerate(writer.sentences({"target": [3]}))))
    assert TraceStore(tmp_path)[0]["best"].values.tolist() == words[0].tolist()


class Spy:
    """Looks over the shoulder of a search: the attention of every hypothesis at every step, with its words so far."""

    def __init__(self, monkeypatch) -> None:
        self.steps: list[tuple[torch.Tensor, list[torch.Tensor]]] = []  # seen [K, slots], shares of the attentions
        self.words: list[int] = []  # of the slots, in the order in which they were filled
        attend, step = attention.attend, System.step

        def watched_attend(
            query, key, value, mask=None, causal=False, dropout=0.0, need_weights=False, may_be_empty=False
        ):
            mixed, share = attend(query, key, value, mask, causal, dropout, True)
            if self.steps:
                self.steps[-1][1].append(share[0])
            return mixed, share if need_weights else None

        def watched_step(system, words, state):
            self.words += words[0].tolist()
            own = torch.eye(words.shape[1], dtype=torch.bool)
            self.steps.append((torch.cat([state.hypothesis["backbone"]["seen"][0], own], dim=1), []))
            return step(system, words, state)

        monkeypatch.setattr(attention, "attend", watched_attend)
        monkeypatch.setattr(System, "step", watched_step)

    def path(self, words: list[int]):
        """At each step of the path: self-attention [layer, head, key] over its own words, cross-attention likewise."""
        for length, (seen, shares) in enumerate(self.steps[: len(words)], start=1):
            slots = torch.tensor(self.words[: seen.shape[1]])
            beam = next(k for k, mine in enumerate(seen) if slots[mine].tolist() == words[:length])
            own = torch.stack([share[:, beam, seen[beam]] for share in shares[0::2]])
            yield own.numpy(), torch.stack([share[:, beam] for share in shares[1::2]]).numpy()


def test_attention_along_the_beams_path_is_that_of_the_forced_path(trained_run, prepared, monkeypatch):
    translator = load(trained_run)
    names = ["decoder.self_attention", "decoder.cross_attention"]
    for source in prepared.test("test").sources[:5]:
        with monkeypatch.context() as patch:
            spy = Spy(patch)
            found = translator.translate([source], beam=4)[0]
        (trace,) = translator.trace([source], [found.tokens], names)
        own, cross = (trace[name].values for name in names)
        assert len({len(step[0]) for step in spy.steps}) > 1
        steps = list(spy.path([BOS, *found.ids][: len(found.tokens)]))
        assert len(steps) == len(found.tokens)
        for position, (searched_own, searched_cross) in enumerate(steps):
            np.testing.assert_allclose(searched_own, own[:, :, position, : position + 1], atol=1e-5)
            np.testing.assert_allclose(searched_cross, cross[:, :, position], atol=1e-5)


@torch.no_grad()
def test_attention_of_a_recurrent_decoder_is_the_same_stepped_and_forced(monkeypatch):
    system = random_system("rnnsearch")
    (source,), (target,) = random_sentences([6], 1), random_sentences([5], 2)
    (trace,), _ = traced(system, [source], [target], "decoder.cross_attention")
    shares, weights = [], system.backbone.attention.weights

    def watched(*given):
        shares.append(weights(*given))
        return shares[-1]

    monkeypatch.setattr(system.backbone.attention, "weights", watched)
    state = system.start(system.encode(collate([source])))
    for word in [BOS, *target]:
        _, state = system.step(torch.tensor([[word]]), state)
    np.testing.assert_allclose(torch.cat(shares, 1)[0], trace["decoder.cross_attention"].values[0, 0], atol=1e-9)
