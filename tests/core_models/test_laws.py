"""Laws 1, 2, 4 and 6 of the design, for every system of the catalogue and some that options make of them."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from core_models.config import SearchConfig
from core_models.decoding import beam_search
from core_models.text.batches import collate, context_lengths
from core_models.traces import TraceWriter
from tests.core_models.laws import (
    SYSTEMS,
    assert_all_that_trains_learns,
    assert_company_changes_nothing,
    assert_finite_gradients,
    assert_gradients_are_derivatives,
    assert_stepping_is_forcing,
    awkward_batch,
    batch_of,
    log_probs,
    random_sentences,
    random_system,
    training_terms,
)

DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float64, pytest.param(torch.float32, marks=pytest.mark.exhaustive)], ids=["float64", "float32"]
)


@pytest.mark.parametrize("name", SYSTEMS)
@DTYPES
def test_stepping_word_by_word_gives_the_forced_scores(name, dtype):
    assert_stepping_is_forcing(random_system(name, dtype))


@pytest.mark.parametrize("name", SYSTEMS)
@DTYPES
def test_padding_and_company_change_nothing(name, dtype):
    assert_company_changes_nothing(random_system(name, dtype))


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_gradients_are_finite(name):
    system = random_system(name, torch.float32)
    assert_finite_gradients(system, awkward_batch(system))


class FusedMasks(TorchFunctionMode):
    """Whether each mask that PyTorch's fused attention is given shows every query a key."""

    def __init__(self) -> None:
        super().__init__()
        self.every_query_sees: list[bool] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is scaled_dot_product_attention and len(args) > 3 and args[3] is not None:
            self.every_query_sees.append(bool(args[3].any(-1).all()))
        return func(*args, **(kwargs or {}))


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_fused_attention_is_given_no_row_without_a_key(name):
    """Not all kernels of GPUs have an answer to it; sentences without context are where such rows come from."""
    system = random_system(name, torch.float32)
    sources, targets = random_sentences([1, 0, 4], 7), random_sentences([2, 0, 3], 8)
    use, contexts = system.context, None
    if use.sentences and not use.joined:
        absent = [None] * use.entries
        contexts = [absent, [[5, 6], *absent[1:]], [[7]] * use.entries]
    batch = collate(sources, targets, contexts, outputs=contexts if use.outputs else None)
    with FusedMasks() as masks, torch.inference_mode():
        values = log_probs(system, batch)
        beam_search(system, system.encode(batch), torch.tensor([3, 4, 3]), SearchConfig(beam=2))
    assert masks.every_query_sees or system.config.backbone == "rnnsearch"
    assert all(masks.every_query_sees)
    assert torch.isfinite(values[batch.target_mask]).all()


# Options that leave a part of a system unread, or let no gradient through to it.
UNREAD = [
    *(f"{name}:decoder_init=zero" for name in ("rnnsearch", "prnn-loss", "gdr-rnn", "frnn-gru-i", "pfrnn-loss")),
    "rnnsearch:decoder_init=zero,rnn_cell=lstm,summary=end_states",
    "pfrnn:decoder_init=zero,future_start=zero",
    *(f"{name}:iterations=1" for name in ("gdr", "gdr-rnn", "gdr-bow-bca-no-redundant")),
    "gdr-bow-bca:detach=true",
    "qcn-reg:detach=true",
    "pfrnn-loss:test_loss=none",
    "coverage:form=neural",
]


@pytest.mark.long
@pytest.mark.parametrize("name", [*SYSTEMS, *UNREAD])
def test_all_that_trains_learns(name):
    system = random_system(name)
    texts = random_sentences([7, 1, 4, 5, 6, 2, 3, 4], 3), random_sentences([4, 6, 5, 0, 3, 2, 7, 5], 4)
    assert_all_that_trains_learns(system, batch_of(system, *texts))


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_gradients_are_derivatives(name):
    system = random_system(name)
    assert_gradients_are_derivatives(system, batch_of(system, random_sentences([4, 3], 1), random_sentences([5, 2], 2)))


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_row_of_padding_costs_nothing(name):
    system = random_system(name)
    terms = training_terms(system, awkward_batch(system))
    assert {term: value[3].item() for term, value in terms.items()} == dict.fromkeys(terms, 0.0)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_future_is_not_seen(name):
    """Words from position t on do not change the scores up to t: the pass is causal."""
    system, sources = random_system(name), random_sentences([4], 1)
    target = random_sentences([6], 2)[0]
    other = [*target[:3], *random_sentences([3], 9)[0]]
    one, two = (log_probs(system, batch_of(system, sources, [words])) for words in (target, other))
    torch.testing.assert_close(one[:, :4], two[:, :4], atol=1e-12, rtol=0)
    assert (one[:, 4:] - two[:, 4:]).abs().max() > 1e-6


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_traces_declare_their_axes_and_do_not_change_the_scores(name):
    system = random_system(name)
    batch = batch_of(system, random_sentences([5, 2, 3], 1), random_sentences([2, 6, 0], 2))
    writer = TraceWriter(["*"])
    with torch.no_grad():
        traced = system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
        torch.testing.assert_close(
            torch.log_softmax(system.scores(traced).values, -1), log_probs(system, batch), atol=1e-9, rtol=0
        )
    lengths = {"source": batch.source_mask.sum(1).tolist(), "target": [3, 7, 1], **context_lengths(batch)}
    attention = system.backbone.attention_maps(system.config)
    for row, trace in enumerate(writer.sentences(lengths)):
        own = {name for name in trace if name.endswith(("decoder.cross_attention", ".self_attention"))}
        assert {name: trace[name].values.shape[:2] for name in own} == attention
        for array_name, array in trace.items():
            array.check(array_name)
            sizes = dict(zip(array.axes, array.values.shape, strict=True))
            for axis, side in (
                ("source", "source"),
                ("source_key", "source"),
                ("target", "target"),
                ("target_key", "target"),
                ("context", "context"),
                ("context_output", "context_output"),
            ):
                assert sizes.get(axis, lengths[side][row]) == lengths[side][row]
        assert all(trace[array_name].sums_to_one for array_name in attention)
