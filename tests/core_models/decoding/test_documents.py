"""Documents in use: what a translator reads before a sentence, in which order it translates, what it refuses."""

import random

import pytest
import torch

from core_models.config import SearchConfig
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.documents import ContextUse
from core_models.text.parallel import TextError
from core_models.translator import Translator, TranslatorError
from tests.kinds import sampled

pytestmark = pytest.mark.long

SEARCH = SearchConfig(beam=3, length_offset=3, length_factor=1.0)


def translator_of(prepared, *names: str) -> Translator:
    """Random systems on the tiny text: what they say is nonsense, and sensitive to all they read."""
    systems = []
    for seed, name in enumerate(names):
        torch.manual_seed(seed)
        system = build(f"{name}{',' if ':' in name else ':'}preset=tiny", len(prepared.source_vocabulary)).double()
        with torch.no_grad():
            for parameter in system.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
        systems.append(system.eval())
    return Translator(systems, prepared.source_vocabulary, prepared.target_vocabulary, SEARCH)


@pytest.fixture(scope="module")
def document(prepared):
    """Fifteen sentences in documents of five, and their ids."""
    text = prepared.test("test")
    return text.sources, text.documents


READERS = ["qcn", "document-transformer", "han-encoder", "han-decoder", "han", "san", "concatenation"]
OFFLINE = "san-encoder:memory=offline"
EVERY = [*READERS, OFFLINE]


def said(translations):
    return [(one.tokens, round(one.log_prob, 6)) for one in translations]


@pytest.mark.parametrize("name", sampled(READERS, every=2))
def test_sentences_of_a_document_read_those_before(prepared, document, name):
    """The first sentences of documents are as they are alone, others are not; each is what its own context gives."""
    translator, (sources, documents) = translator_of(prepared, name), document
    together, alone = translator.translate(sources, documents), translator.translate(sources)
    first = [row for row in range(len(sources)) if row == 0 or documents[row] != documents[row - 1]]
    for row in first:
        assert said([together[row]]) == said([alone[row]])
    assert sum(said([together[row]]) != said([alone[row]]) for row in range(len(sources))) > len(first)


@pytest.mark.parametrize("name", sampled(READERS))
def test_one_after_the_other_is_as_together(prepared, document, name):
    """Each sentence by itself, with those before it and their translations, has the scores it has in its document."""
    translator, (sources, documents) = translator_of(prepared, name), document
    targets = prepared.test("test").targets
    together = translator.score(sources, targets, documents)
    contexts, outputs = translator.contexts(sources, documents, targets)
    assert contexts is not None
    assert (outputs is not None) == translator.context.outputs
    for row, source in enumerate(sources):
        given = {"contexts": [contexts[row]], "context_outputs": None if outputs is None else [outputs[row]]}
        alone = translator.score([source], targets[row : row + 1], **given)[0]
        assert alone.token_log_probs == pytest.approx(together[row].token_log_probs, abs=1e-9)
        if outputs is None:
            searched = translator.translate([source], contexts=[contexts[row]])
            assert said(searched) == said(translator.translate(sources[: row + 1], documents[: row + 1])[-1:])


@pytest.mark.parametrize("name", sampled(EVERY, every=2))
def test_documents_in_another_order_change_no_sentence(prepared, document, name):
    translator, (sources, documents) = translator_of(prepared, name), document
    wanted = dict(
        zip(zip(documents, sources, strict=True), said(translator.translate(sources, documents)), strict=True)
    )
    names = list(dict.fromkeys(documents))
    random.Random(2).shuffle(names)
    rows = [row for identifier in names for row in range(len(sources)) if documents[row] == identifier]
    found = translator.translate([sources[row] for row in rows], [documents[row] for row in rows], batch_tokens=150)
    for row, one in zip(rows, said(found), strict=True):
        assert one == wanted[documents[row], sources[row]]


@pytest.mark.parametrize("name", sampled(READERS))
@pytest.mark.slow
def test_batches_handed_over_one_by_one_give_the_same_bits(prepared, document, name):
    translator, (sources, documents) = translator_of(prepared, name), document
    whole = translator.translate(sources, documents, batch_tokens=200)
    contexts, _ = translator.contexts(sources, documents)
    batches = translator.batches(sources, documents, batch_tokens=200)
    assert sorted(row for rows in batches for row in rows) == list(range(len(sources)))
    assert len(batches) > 1
    for rows in batches:
        found = translator.translate(
            [sources[row] for row in rows],
            [documents[row] for row in rows] if contexts is None else None,
            contexts=None if contexts is None else [contexts[row] for row in rows],
            batch_tokens=200,
        )
        for row, one in zip(rows, found, strict=True):
            assert (one.ids, one.token_log_probs) == (whole[row].ids, whole[row].token_log_probs)


@pytest.mark.parametrize("name", sampled(READERS, every=2))
def test_forcing_reads_what_the_search_read(prepared, document, name):
    """Its own translations, forced for a trace, have the scores that the search said, round after round."""
    translator, (sources, documents) = translator_of(prepared, name), document
    for one in translator.translate(sources, documents, trace=["log_prob"]):
        assert one.trace["log_prob"].values.tolist() == pytest.approx(one.token_log_probs, abs=1e-5)


def test_a_trace_tells_the_words_before(prepared, document):
    translator, (sources, documents) = translator_of(prepared, "han"), document
    found = translator.translate(sources, documents, trace=["context*", "*.attention"])
    for row, one in enumerate(found):
        near = [other for other in range(max(0, row - 3), row) if documents[other] == documents[row]]
        words = translator.source_vocabulary.pieces(one.trace["context.words"].values.tolist())
        assert words == [piece for other in near for piece in found[other].source_tokens]
        outputs = translator.target_vocabulary.pieces(one.trace["context_output.words"].values.tolist())
        assert outputs == [
            piece for other in near for piece in [*found[other].tokens, "</s>"][: len(found[other].ids) + 1]
        ]
        distances = [row - other for other in near for _ in found[other].source_tokens]
        assert one.trace["context.distance"].values.tolist() == distances
        shares = one.trace["hierarchical_attention.encoder.attention"].values
        assert shares.shape[1:] == (len(one.source_tokens), len(words))


def test_offline_all_other_sentences_of_the_document_are_read(prepared, document):
    """Never the sentence itself and none of another document, in their order; where none follows it is as online."""
    translator, (sources, documents) = translator_of(prepared, OFFLINE), document
    targets = prepared.test("test").targets
    found = translator.score(sources, targets, documents, trace=["context.*", "*.attention", "*.sentence_attention"])
    for row, one in enumerate(found):
        others = [place for place in range(len(sources)) if documents[place] == documents[row] and place != row]
        words = translator.source_vocabulary.pieces(one.trace["context.words"].values.tolist())
        assert words == [piece for other in others for piece in found[other].source_tokens]
        distances = [row - other for other in others for _ in found[other].source_tokens]
        assert one.trace["context.distance"].values.tolist() == distances
        shares = one.trace["selective_attention.encoder.attention"].values  # [head, source, context]
        assert abs(shares.sum(-1) - 1).max() < 1e-5
        by_sentence = one.trace["selective_attention.encoder.sentence_attention"].values
        after = sum(other > row for other in others)
        near = shares[..., [distance == -1 for distance in distances]].sum(-1)
        assert abs(near - by_sentence[..., 10]).max() < 1e-5
        assert not by_sentence[..., 10 + after :].any()
    (offline,), online = translator.systems, translator_of(prepared, "san-encoder").systems[0]
    online.load_state_dict(offline.state_dict())
    translator = Translator(online, prepared.source_vocabulary, prepared.target_vocabulary, SEARCH)
    before = translator.score(sources, targets, documents)
    last = [row for row in range(len(sources)) if documents[row : row + 2] != [documents[row]] * 2]
    for row, (one, other) in enumerate(zip(found, before, strict=True)):
        same = one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-9)
        assert same == (row in last)
    alone, single = (translator.score(sources, targets, ids) for ids in (None, list(map(str, range(len(sources))))))
    assert [one.token_log_probs for one in alone] == [one.token_log_probs for one in single]


def test_what_follows_is_refused_where_it_cannot_be_read(prepared, document):
    with pytest.raises(ConfigError, match=r"their translations are not there yet .* give side=encoder"):
        build("san:memory=offline,preset=tiny", 30)
    mechanisms = [{"query_capsules": {}}, {"selective_attention": {"side": "encoder", "memory": "offline",
                                                                   "context_sentences": 3}}]  # fmt: skip
    with pytest.raises(ConfigError, match="the parts read different numbers of sentences after"):
        build({"preset": "tiny", "mechanisms": mechanisms}, 30)
    with pytest.raises(TranslatorError, match="cannot be an ensemble: the parts read different numbers"):
        translator_of(prepared, "san-encoder", OFFLINE)
    with pytest.raises(TranslatorError, match="the 10 before a sentence and the 10 after it"):
        translator_of(prepared, OFFLINE).translate(document[0][:1], contexts=[["x"] * 21])


def test_concatenation_shows_what_it_read(prepared, document):
    translator, (sources, documents) = translator_of(prepared, "concatenation:context_sentences=1"), document
    found = translator.translate(sources, documents, trace=["decoder.cross_attention"])
    own = [translator.source_vocabulary.pieces(ids) for ids in translator.source_vocabulary.encode(list(sources))]
    for row, one in enumerate(found):
        before = [*own[row - 1], "</s>"] if row and documents[row - 1] == documents[row] else []
        assert one.source_tokens == [*before, *own[row], "</s>"]
        assert one.trace["decoder.cross_attention"].values.shape[-1] == len(one.source_tokens)


@pytest.mark.parametrize("name", sampled(EVERY, every=2))
def test_samples_read_what_the_search_reads(prepared, document, name):
    """Of the most probable word alone a draw is the greedy search's translation, document by document."""
    translator, (sources, documents) = translator_of(prepared, name), document
    translator.search = SearchConfig(beam=1, length_penalty=0.0, max_length=8)
    wanted, alone = translator.translate(sources, documents), translator.translate(sources)
    drawn = [one for (one,) in translator.sample(sources, top=1, documents=documents)]
    assert said(drawn) == said(wanted)
    assert said(drawn) != said(alone) == said([one for (one,) in translator.sample(sources, top=1)])
    contexts, _ = translator.contexts(sources, documents)
    if contexts is not None:
        assert said([one for (one,) in translator.sample(sources, top=1, contexts=contexts)]) == said(wanted)


@pytest.mark.parametrize("name", sampled(EVERY, every=2))
def test_the_exact_search_reads_the_document(prepared, document, name):
    """What it finds has the score it has in its document; without the document it has another."""
    translator, (sources, documents) = translator_of(prepared, name), document
    targets, row, changes = prepared.test("test").targets, 2, {"max_length": 3, "length_penalty": 0.0}
    contexts, outputs = translator.contexts(sources, documents, targets)
    beside = {"context": contexts[row], "context_output": None if outputs is None else outputs[row]}
    found = translator.exact(sources[row], **beside, **changes)
    assert found.decided
    tokens = [translator.target_vocabulary.pieces(ids) for ids in translator.target_vocabulary.encode(list(targets))]
    tokens[row] = [*translator.target_vocabulary.pieces(found.words), "</s>"]
    (forced,) = translator.trace(sources, tokens, ["log_prob"], documents)[row : row + 1]
    assert found.log_prob == pytest.approx(forced["log_prob"].values.sum(), abs=1e-5)
    assert abs(translator.exact(sources[row], **changes).log_prob - found.log_prob) > 1e-6


@pytest.mark.slow
def test_an_ensemble_reads_what_each_of_them_reads(prepared, document):
    """A system of single sentences beside one of two sentences before and one of three."""
    names = ("transformer", "qcn:context_sentences=2", "han-decoder")
    sources, documents = document
    texts = [one.text for one in translator_of(prepared, "transformer").translate(sources)]
    together = translator_of(prepared, *names).score(sources, texts, documents)
    for row, one in enumerate(together):
        parts = []
        for seed, name in enumerate(names):
            alone = translator_of(prepared, *["transformer"] * seed, name)
            alone = Translator(alone.systems[-1], alone.source_vocabulary, alone.target_vocabulary, SEARCH)
            parts.append(torch.tensor(alone.score(sources, texts, documents)[row].token_log_probs).exp())
        torch.testing.assert_close(torch.tensor(one.token_log_probs).exp(), sum(parts) / 3, atol=1e-6, rtol=0)
        if row == 6:
            break


def test_joined_and_single_sentences_are_no_ensemble(prepared):
    """A system of single sentences would be fed those before its own."""
    with pytest.raises(TranslatorError, match="one joins the sentences before to the sentence, another reads"):
        translator_of(prepared, "concatenation", "transformer")


def test_sentences_after_would_be_dropped_or_moved_where_fewer_are_read_before():
    two, three = ContextUse(2, after=2), ContextUse(3, after=2)
    with pytest.raises(ValueError, match="different numbers of sentences before it"):
        ContextUse.of_ensemble([two, three])
    assert ContextUse.of_ensemble([two, ContextUse(), two]) == two


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("concatenation:context_sentences=1", "concatenation"), "they join different numbers of sentences before"),
        (("qcn:context_length=4,long_context=cut", "han-encoder:long_context=cut"), "context_length or long_context"),
        (("qcn", "han-encoder:long_context=cut"), "context_length or long_context differ"),
    ],
)
def test_systems_that_would_read_another_context_than_alone_are_no_ensemble(prepared, names, why):
    with pytest.raises(TranslatorError, match=f"these systems cannot be an ensemble: .*{why}"):
        translator_of(prepared, *names)


def test_what_does_not_fit_is_refused(prepared, document):
    sources, documents = document
    plain, reader, outputs = (translator_of(prepared, name) for name in ("transformer", "qcn", "han"))
    with pytest.raises(TranslatorError, match="this run was trained on single sentences"):
        plain.translate(sources[:1], contexts=[[sources[1]]])
    with pytest.raises(TranslatorError, match="this run was trained on single sentences"):
        plain.sample(sources[:1], contexts=[[sources[1]]])
    with pytest.raises(TranslatorError, match="this run was trained on single sentences"):
        plain.exact(sources[0], context=[sources[1]])
    with pytest.raises(TranslatorError, match="2 sources and 1 documents"):
        reader.sample(sources[:2], documents=["a"])
    assert len(plain.translate(sources, documents)) == len(sources)
    with pytest.raises(TranslatorError, match=r"sentence 2 is given 4 context sentences; this run reads the 3 before"):
        reader.score(sources[:2], ["x", "y"], contexts=[[], sources[:4]])
    with pytest.raises(TranslatorError, match="give only one of them"):
        reader.translate(sources[:1], documents[:1], contexts=[[]])
    with pytest.raises(TranslatorError, match="reads no translations of the sentences before"):
        reader.translate(sources[:1], contexts=[[None]], context_outputs=[[None]])
    with pytest.raises(TranslatorError, match="give contexts and context_outputs together"):
        outputs.translate(sources[:1], contexts=[[None]])
    with pytest.raises(TextError, match="context sentences and their translations do not match one to one"):
        outputs.translate(sources[:1], contexts=[["the dog"]], context_outputs=[[None]])
    with pytest.raises(TranslatorError, match="2 sources and 1 contexts"):
        reader.translate(sources[:2], contexts=[[]])
    with pytest.raises(TextError, match="document 'a' begins again"):
        reader.translate(sources[:3], ["a", "b", "a"])
    short = translator_of(prepared, "qcn:context_length=3")
    with pytest.raises(TextError, match=r"sentence 2: a sentence of its context has \d+ pieces, .* at most 3"):
        short.translate(sources[:2], ["a", "a"])
    cut = translator_of(prepared, "qcn:context_length=3,long_context=cut")
    traced = cut.translate(sources[:2], ["a", "a"], trace=["context.words"])[1].trace
    assert len(traced["context.words"].values) == 4
    with pytest.raises(TranslatorError, match="cannot be an ensemble: one part prepends"):
        translator_of(prepared, "qcn", "concatenation")
