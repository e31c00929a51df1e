"""Laws of systems that read the sentences before: nothing adds nothing, to the last bit; what cannot be seen; and
their traces."""

from dataclasses import replace

import pytest
import torch

from core_models.mechanisms.capsule_regularization import CapsuleRegularization
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.system_catalogue import catalogue
from core_models.text.batches import Context, collate, context_lengths
from core_models.traces import TraceWriter
from tests.core_models.laws import (
    COMBINATIONS,
    WORDS,
    batch_of,
    exact,
    log_probs,
    random_sentences,
    random_system,
    training_terms,
)

pytestmark = pytest.mark.long

READERS = [name for name in [*catalogue(), *COMBINATIONS] if build(exact(name), WORDS).context.sentences]
APART = [name for name in READERS if not name.startswith("concatenation")]
SOURCES, TARGETS = random_sentences([5, 2, 3, 4], 1), random_sentences([2, 6, 0, 3], 2)


def given(system, contexts, outputs=None, sources=SOURCES, targets=TARGETS):
    """A batch with the contexts, of each sentence a list; outputs are these again where they are read."""
    reach = system.context.entries
    filled = [[*context[:reach], *[None] * (reach - len(context))] for context in contexts]
    translations = filled if outputs is None else [[*one, *[None] * (reach - len(one))] for one in outputs]
    return collate(sources, targets, filled, outputs=translations if system.context.outputs else None)


def test_the_catalogue_has_every_reader():
    assert {name for name in catalogue() if name in READERS} == {
        "qcn", "qcn-reg", "document-transformer", "han-encoder", "han-decoder", "han", "san-encoder", "san",
        "concatenation",
    }  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_nothing_before_a_sentence_adds_exactly_nothing(name):
    """A sentence at a document's start has the scores of the same weights without the readers, bit by bit."""
    system = random_system(name)
    kept = [one for one in system.config.mechanisms if not system.mechanisms[next(iter(one))].context.sentences]
    bare = build(system.config.model_copy(update={"mechanisms": tuple(kept)}), WORDS).double().eval()
    bare.load_state_dict({weight: system.state_dict()[weight] for weight in bare.state_dict()})
    wanted = log_probs(bare, collate(SOURCES, TARGETS))
    assert torch.equal(log_probs(system, collate(SOURCES, TARGETS)), wanted)
    assert torch.equal(log_probs(system, given(system, [[]] * 4)), wanted) or system.context.joined


@pytest.mark.parametrize("name", APART)
def test_what_stands_before_changes_the_sentence_and_no_other(name):
    """The first sentence has a context, the others have none: they are as if it had none either."""
    system = random_system(name)
    words = random_sentences([4, 3, 2], 5)
    with_one, without = (
        log_probs(system, given(system, [words, [], [], []])),
        log_probs(system, given(system, [[]] * 4)),
    )
    assert (with_one[0, :3] - without[0, :3]).abs().max() > 1e-6
    torch.testing.assert_close(with_one[1:], without[1:], atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", APART)
def test_one_sentence_documents_train_like_their_backbone(name):
    """No gradient reaches the mechanism's attention, and its loss terms are finite."""
    system = random_system(name)
    terms = training_terms(system, given(system, [[]] * 4))
    assert all(torch.isfinite(term).all() for term in terms.values())
    terms["main"].sum().backward()
    for mechanism in system.mechanisms.values():
        for part, parameter in mechanism.named_parameters() if mechanism.context.sentences else ():
            assert parameter.grad is None or not parameter.grad.any(), part


@pytest.mark.parametrize("name", APART)
def test_sentences_beyond_the_reach_are_not_read(name):
    system = random_system(name)
    reach = system.context.entries
    near = [random_sentences([3] * reach, row) for row in range(4)]
    batch = given(system, near)
    further = collate(
        SOURCES, TARGETS, [[*words, [7, 8, 9]] for words in near], outputs=[[*words, [9, 9]] for words in near]
    )
    torch.testing.assert_close(log_probs(system, batch), log_probs(system, further), atol=1e-12, rtol=0)


@pytest.mark.parametrize("change", ["", "transforms=per_distance,", "grouping=per_sentence,", "squash_inputs=true,"])
def test_query_capsules_cannot_see_the_order_of_words(change):
    """Words of a context sentence in another order change nothing; at another distance they change the scores."""
    system = random_system(f"qcn:{change}capsules=3")
    near, far = [4, 5, 6, 7, 8], [9, 10]
    one = log_probs(system, given(system, [[near, far]] * 4))
    permuted = log_probs(system, given(system, [[near[::-1], far[::-1]]] * 4))
    torch.testing.assert_close(one, permuted, atol=1e-10, rtol=0)
    exchanged = log_probs(system, given(system, [[far, near]] * 4))
    moved = log_probs(system, given(system, [[[6, 5, 9, 4, 10], [8, 7]]] * 4))
    assert min((one - other).abs().max() for other in (exchanged, moved)) > 1e-6


@pytest.mark.parametrize("name", ["document-transformer", "han-encoder", "san-encoder"])
def test_the_others_see_the_order(name):
    system = random_system(name)
    one = log_probs(system, given(system, [[[4, 5, 6, 7, 8]]] * 4))
    assert (one - log_probs(system, given(system, [[[8, 7, 6, 5, 4]]] * 4))).abs().max() > 1e-6


@pytest.mark.parametrize("name", ["han-decoder", "han", "san"])
def test_translations_before_are_read(name):
    system = random_system(name)
    contexts = [[[4, 5, 6]]] * 4
    one = log_probs(system, given(system, contexts, [[[7, 8]]] * 4))
    assert (one - log_probs(system, given(system, contexts, [[[9, 10, 11]]] * 4))).abs().max() > 1e-6
    with pytest.raises(ValueError, match="reads the translations"):
        log_probs(system, collate(SOURCES, TARGETS, [[[4, 5, 6], None, None]] * 4))


def traced(system, batch):
    writer = TraceWriter(["*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    lengths = {"source": batch.source_mask.sum(1).tolist(), "target": batch.target_mask.sum(1).tolist()}
    return writer.sentences({**lengths, **context_lengths(batch)})


@pytest.mark.parametrize("grouping", ["joint", "per_sentence"])
def test_traces_of_query_capsules(grouping):
    """Words of the farthest sentence first, each with its distance, coupling and correlation at every iteration."""
    system = random_system(f"qcn:grouping={grouping},iterations=3,capsules=2")
    first, second = traced(system, given(system, [[[4, 5], [6]], []], sources=SOURCES[:2], targets=TARGETS[:2]))
    assert first["context.words"].values.tolist() == [6, 3, 4, 5, 3]
    assert first["context.distance"].values.tolist() == [2, 2, 1, 1, 1]
    names = {name: first[f"query_capsules.{name}"].values for name in ("couplings", "correlations", "weights")}
    assert {values.shape for values in names.values()} == {(3, 5, 2)}
    torch.testing.assert_close(torch.tensor(names["couplings"]).sum(2), torch.ones(3, 5))
    torch.testing.assert_close(torch.tensor(names["couplings"][0]), torch.full((5, 2), 0.5))
    assert (names["correlations"][0][:, 0] == names["correlations"][0][:, 1]).all()  # the query is the same for all
    assert (abs(names["correlations"][1][:, 0] - names["correlations"][1][:, 1]) > 1e-6).any()
    torch.testing.assert_close(torch.tensor(names["couplings"] + names["correlations"]), torch.tensor(names["weights"]))
    true, literal = (first[f"query_capsules.{kind}"].values for kind in ("pearson", "eq7"))
    torch.testing.assert_close(torch.tensor(true), torch.tensor(names["correlations"]))
    assert (abs(literal) < abs(true)).all()  # Eq. 7 as printed is nearer to zero (E2)
    keys = 2 if grouping == "joint" else 6
    attention = first["query_capsules.attention"]
    assert (attention.axes, attention.values.shape) == (("layer", "head", "source", "capsule"), (1, 2, 6, keys))
    torch.testing.assert_close(torch.tensor(attention.values.sum(-1)), torch.ones(1, 2, 6))
    assert first["query_capsules.query_cosine"].values.shape == (3, keys)
    assert first["query_capsules.lengths"].values.shape == (keys,)
    assert (first["query_capsules.lengths"].values < 1).all()
    assert second["context.words"].values.size == second["query_capsules.weights"].values.size == 0
    assert not second["query_capsules.attention"].values.any()


@pytest.mark.parametrize("name", ["document-transformer", "han", "san"])
def test_attention_over_the_context_sums_to_one_or_is_none(name):
    system = random_system(name)
    first, second = traced(system, given(system, [[[4, 5], [6]], []], sources=SOURCES[:2], targets=TARGETS[:2]))
    kind = next(iter(system.mechanisms))
    for side, position in (("encoder", 6), ("decoder", 3)):
        attention = first[f"{kind}.{side}.attention"]
        assert attention.axes[-2:] == (
            "source" if side == "encoder" else "target",
            "context_output" if side == "decoder" and name != "document-transformer" else "context",
        )
        assert attention.values.shape[-2:] == (position, 5)
        torch.testing.assert_close(torch.tensor(attention.values.sum(-1)), torch.ones(attention.values.shape[:-1]))
        assert second[f"{kind}.{side}.attention"].values.size == 0
        if name != "document-transformer":
            sentences = first[f"{kind}.{side}.sentence_attention"].values
            near = attention.values[..., 2:].sum(-1)
            torch.testing.assert_close(torch.tensor(near), torch.tensor(sentences[..., 0]), atol=1e-5, rtol=0)
            assert not sentences[..., 2:].any()


def test_context_of_single_sentences_is_left_out():
    """A batch may bring a context that a system does not read."""
    system = random_system("transformer")
    batch = collate(SOURCES, TARGETS, [[[4, 5]]] * 4)
    assert torch.equal(log_probs(system, batch), log_probs(system, replace(batch, context=None)))


def test_no_states_are_learned_through():
    """Gradients reach the mechanism, and the encoder only through the sentence itself."""
    system = random_system("han-encoder")
    context = given(system, [[[4, 5, 6]]] * 4)
    used = Context(context.context.words, context.context.mask, context.context.present)
    log_probs(system, replace(context, context=used)).sum().backward()
    gradient = system.backbone.source_table.weight.grad
    assert system.mechanisms["hierarchical_attention"].look["encoder"].words.memory.weight.grad.abs().sum() > 0
    assert gradient.abs().sum() > 0


def test_parts_that_cannot_stand_together_are_refused():
    both = {"preset": "tiny", "mechanisms": [{"concatenation": {}}, {"query_capsules": {}}]}
    with pytest.raises(ConfigError, match=r"prepends the sentences before .* reads them separately"):
        build(both, WORDS)
    for name, place in (("qcn", "ENCODER_SUBLAYER"), ("han", "DECODER_STACK_OUTPUT")):
        with pytest.raises(ConfigError, match=f"{place}, which rnnsearch does not have"):
            build(f"{name}:backbone=rnnsearch,preset=tiny,tie_embeddings=target", WORDS)
    with pytest.raises(ConfigError, match="layers like the backbone's, which has none"):
        build("document-transformer:backbone=rnnsearch,preset=tiny,tie_embeddings=target", WORDS)


def test_two_readers_reach_as_far():
    mechanisms = [{"query_capsules": {"context_sentences": 2}}, {"hierarchical_attention": {"side": "encoder"}}]
    with pytest.raises(ConfigError, match=r"sentences before \(query_capsules 2, hierarchical_attention 3\)"):
        build({"preset": "tiny", "mechanisms": mechanisms}, WORDS)
    mechanisms[0]["query_capsules"]["context_sentences"] = 3
    assert build({"preset": "tiny", "mechanisms": mechanisms}, WORDS).context.sentences == 3


@pytest.mark.parametrize(
    "name", ["transformer-reg", "transformer-reg:correlation=eq7", "transformer-reg:reg_pairs=flat"]
)
def test_the_regularisation_falls_as_the_two_sides_correlate(name):
    """Its term is minus the correlation, once a target word; a step along its gradient raises the correlation."""
    system = random_system(f"{name}{',' if ':' in name else ':'}tie_embeddings=target", torch.float64)
    mechanism, batch = system.mechanisms["capsule_regularisation"], collate(SOURCES, TARGETS)
    assert isinstance(mechanism, CapsuleRegularization)
    vectors = [mechanism.embed["source"](batch.source).detach(), mechanism.embed["target"](batch.target).detach()]
    before = mechanism.correlation(*vectors, batch)
    assert before.abs().max() <= 1
    term = training_terms(system, batch)["regularisation"]
    torch.testing.assert_close(term, -before * batch.target_mask.sum(1))
    term.sum().backward()
    with torch.no_grad():
        for parameter in mechanism.parameters():
            parameter -= 0.05 * parameter.grad
    assert mechanism.correlation(*vectors, batch).sum() > before.sum()


def test_the_regularisation_is_of_training_alone():
    system, plain = random_system("transformer-reg"), build("transformer:preset=tiny", WORDS).double().eval()
    plain.load_state_dict({name: value for name, value in system.state_dict().items() if name.startswith("backbone.")})
    batch = batch_of(system, SOURCES, TARGETS)
    assert torch.equal(log_probs(system, batch), log_probs(plain, batch))


def test_memory_of_ten_sentences_is_bounded():
    """Routing ten context sentences makes no tensor with a vote for every word and capsule."""
    from tests.core_models.routing.test_query_guided import largest_tensor

    system = random_system("qcn:capsules=8", torch.float32)
    for reach in (1, 10):
        system = random_system(f"qcn:capsules=8,context_sentences={reach}", torch.float32)
        batch = given(system, [random_sentences([30] * reach, row) for row in range(4)])
        votes = 4 * reach * 31 * 8 * system.config.d_model
        with torch.no_grad():
            assert largest_tensor(lambda s=system, b=batch: s.encode(b)) < max(votes / 2, 70_000)
