"""What is done together, and how often: sentence j of all documents in one round, a context once for all beams."""

from contextlib import contextmanager

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding import beam_search
from core_models.decoding.inference import Inference
from core_models.decoding.inputs import EncodedInputs
from core_models.text.documents import ContextUse
from tests.core_models.decoding.test_documents import EVERY, translator_of
from tests.core_models.laws import batch_of, random_system
from tests.core_models.mechanisms.test_document_context import READERS, SOURCES

pytestmark = pytest.mark.long

BEAM = 5


@contextmanager
def rows_into(system, *beginnings):
    """{name: the rows of every tensor that came in} of the parts with weights of their own whose names begin so."""
    seen, handles = {}, []
    for name, part in system.named_modules():
        if name.startswith(beginnings) and list(part.parameters(recurse=False)):

            def count(_, given, name=name):
                seen.setdefault(name, []).append(len(given[0]))

            handles.append(part.register_forward_pre_hook(count))
    yield seen
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("lengths", [[1], [3, 1, 4, 1, 5], [2, 2, 2, 6]])
@pytest.mark.parametrize("budget", [1, 60, 150, 10_000])
def test_round_j_holds_sentence_j_of_every_document_of_its_group(prepared, lengths, budget):
    """Groups are whole documents, as many as fit the budget, or a single one; together they are all."""
    text, width = prepared.test("test").sources, 2
    documents = [number for number, length in enumerate(lengths) for _ in range(length)]
    places = [place for length in lengths for place in range(length)]
    sources = [text[row % len(text)] for row in range(len(documents))]
    vocabularies = prepared.source_vocabulary, prepared.target_vocabulary
    read = EncodedInputs(ContextUse(2, outputs=True), vocabularies, sources, list(map(str, documents)))
    groups, costs = read.groups(budget, width), read.costs(width)
    assert sorted(row for rounds in groups for rows in rounds for row in rows) == list(range(len(documents)))
    for rounds in groups:
        assert [{places[row] for row in rows} for rows in rounds] == [{place} for place in range(len(rounds))]
        together = {documents[row] for rows in rounds for row in rows}
        assert sum(map(len, rounds)) == sum(lengths[number] for number in together)
        longest = max(costs[row] for rows in rounds for row in rows)
        assert len(together) == 1 or len(together) * width * longest <= budget
    assert len(groups) == 1 or budget < 10_000
    apart = EncodedInputs(ContextUse(2), vocabularies, sources, list(map(str, documents)))
    assert apart.groups(budget, width) == [[list(range(len(documents)))]]


@pytest.mark.parametrize("name", EVERY)
def test_sentence_j_of_all_documents_is_translated_together(prepared, name):
    """The norm that ends the encoder gets the sentences before, if their states are read, then those of the round."""
    translator, text = translator_of(prepared, name), prepared.test("test")
    rows = [*range(5), *range(5, 9), *range(10, 13)]  # documents of five, four and three sentences
    (system,), use = translator.systems, translator.context
    with rows_into(system, "backbone.encoder_norm") as seen:
        translator.translate([text.sources[row] for row in rows], [text.documents[row] for row in rows])
    rounds = [3, 3, 3, 2, 1] if use.outputs else [12]
    wanted = [count for together in rounds for count in [use.entries * together] * use.states + [together]]
    assert seen == {"backbone.encoder_norm": wanted}


@pytest.mark.parametrize("name", READERS)
def test_a_context_is_read_once_for_all_beams(name):
    """What works on a batch when it is encoded, of the encoder and the readers, works once, the encoder twice if the
    states of the sentences before are read; and it works on as many rows, and no oftener, in a whole search."""
    system = random_system(name)
    batch, states = batch_of(system, SOURCES), system.context.states
    readers = [f"mechanisms.{kind}." for kind, one in system.mechanisms.items() if one.context.sentences]
    with rows_into(system, "backbone.encoder", *readers) as encoding, torch.no_grad():
        system.encode(batch)
    with rows_into(system, "backbone.encoder", *readers) as searching:
        Inference([system]).search(batch, None, SearchConfig(beam=BEAM), False)
    assert encoding
    for part, rows in encoding.items():
        assert len(rows) == (2 if states and part.startswith("backbone.") else 1), part
        assert searching[part] == rows, part


class Watched:
    """A system that is searched, and how many sentences it was asked for, and held tensors of, at every step."""

    def __init__(self, system) -> None:
        self.system, self.asked, self.held = system, [], []

    def start(self, encoded):
        return self.system.start(encoded)

    def step(self, words, state):
        self.asked.append(tuple(words.shape))
        self.held.append({len(one) for named in state.sentence.values() for one in named.values()} | {len(state.mask)})
        return self.system.step(words, state)


@pytest.mark.parametrize("name", READERS)
def test_what_a_search_holds_of_a_sentence_it_holds_once(name):
    system = random_system(name)
    watched, limits = Watched(system), torch.tensor([9, 3, 12, 6])
    with torch.no_grad():
        beam_search(watched, system.encode(batch_of(system, SOURCES)), limits, SearchConfig(beam=BEAM, n_best=BEAM))
    assert watched.asked[:2] == [(4, 1), (4, BEAM)]
    assert watched.held == [{sentences} for sentences, _ in watched.asked]
