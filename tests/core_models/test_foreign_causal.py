"""A wrapped decoder-only model is that model: distributions, attentions, states, and what `generate` finds."""

import copy
import itertools
import random

import pytest
import torch

from core_models.backbones.foreign_causal import ForeignDecoder, Prompt
from core_models.backbones.foreign_tables import renumbered
from core_models.config import ModelConfig, SearchConfig
from core_models.decoding import beam_search
from core_models.decoding.length_limits import output_limits
from core_models.settings import ConfigError
from core_models.system import System
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, PAD, UNK
from core_models.traces import TraceWriter
from tests.causal_models import AFTER, CAUSAL_FAMILIES, random_causal_model
from tests.foreign_models import assert_generated
from tests.kinds import sampled

pytestmark = pytest.mark.long

pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")

LENGTHS = (3, 7, 1, 0, 5)
MODEL = ModelConfig(
    backbone="foreign_decoder", preset=None, d_model=32, embedding=32, encoder_layers=3, decoder_layers=3, heads=4,
    ffn_dim=48,
)  # fmt: skip


class Pair:
    """A model of a family, and a copy of it behind our interface."""

    def __init__(self, name: str) -> None:
        self.family = family = CAUSAL_FAMILIES[name]
        self.theirs = random_causal_model(family)
        wrapped = copy.deepcopy(self.theirs)
        special = {PAD: family.pad, UNK: family.unknown, BOS: family.begin}
        self.numbers = renumbered(wrapped, *special.values(), family.end)[0]
        self.ours = {theirs: ours for ours, theirs in enumerate(self.numbers)}
        before, after = (tuple(self.ours[word] for word in part) for part in (family.before, AFTER))
        self.missing = [ours for ours, theirs in special.items() if theirs is None]
        self.backbone = ForeignDecoder(wrapped, Prompt(before, after), self.missing)
        self.system = System(MODEL, self.backbone, {}).eval()

    def words(self, lengths, seed: int) -> list[list[int]]:
        """Random texts in their numbers."""
        drawn = random.Random(seed)
        return [[drawn.choice(self.family.ordinary) for _ in range(length)] for length in lengths]

    def batch(self, sources, targets=None):
        sources, targets = (
            texts and [[self.ours[word] for word in words] for words in texts] for texts in (sources, targets)
        )
        return collate(sources, targets)

    def their_prompt(self, source) -> list[int]:
        return [*self.family.before, *source, *AFTER]


@pytest.fixture(scope="module")
def pairs():
    built: dict[str, Pair] = {}

    def pair(name: str) -> Pair:
        if name not in built:
            built[name] = Pair(name)
        return built[name]

    return pair


def _close(ours, theirs) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CAUSAL_FAMILIES)
@torch.no_grad()
def test_distributions_attentions_and_states_are_theirs(pairs, name):
    """Sentence by sentence there, padded together here; shares are sums of their weights over parts of the text."""
    pair = pairs(name)
    family = pair.family
    sources, targets = pair.words(LENGTHS, 1), pair.words((4, 2, 6, 3, 1), 2)
    batch, writer = pair.batch(sources, targets), TraceWriter(["*"])
    forced = pair.system(pair.system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    log_probs = pair.system.scores(forced).log_probs()
    token_log_probs = pair.system.token_log_probs(forced, batch.target)["main"]
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        prompt = pair.their_prompt(source)
        start, length, first = len(prompt) - 1, len(target) + 1, len(family.before)
        found = pair.theirs(torch.tensor([[*prompt, *target]]), output_attentions=True, output_hidden_states=True)
        columns = [pair.ours[word] for word in range(found.logits.shape[-1])]
        theirs = torch.log_softmax(found.logits[0, start:], -1)
        _close(log_probs[row, :length, columns], theirs)
        _close(token_log_probs[row, :length], theirs.gather(1, torch.tensor([*target, family.end])[:, None])[:, 0])
        if pair.missing:
            assert log_probs[row, :, pair.missing].max() < -1e29, "words that the model lacks are never put out"

        def own(array, row=row, length=length):
            return writer.arrays[array][1][row][:, :, :length]

        weights = torch.stack(found.attentions, 1)[0][:, :, start:]  # [layers, H, T, N]
        across, rest = weights[..., first : first + len(source)], weights[..., start + 1 :]
        share = across.sum(-1)
        _close(own("source_share"), share)
        _close(own("prefix_share"), rest.sum(-1))
        _close(own("template_share"), 1 - share - rest.sum(-1))
        attended = own("decoder.cross_attention")
        _close(attended.sum(-1), torch.ones_like(share))
        _close(attended[..., : len(source)] * share[..., None], across)
        assert torch.equal(attended[..., len(source)], (share == 0).float())
        decoder = torch.cat([weights[..., : start + 1].sum(-1, keepdim=True), rest], -1)
        _close(own("decoder.self_attention")[..., :length], decoder)
        states = [state[0, start:] for state in found.hidden_states]
        ours = forced.view.layers
        assert len(ours) == len(states)
        _close(ours[-1][row, :length], states[-1])
        for layer, state in zip(ours[:-1], states[:-1], strict=True):
            _close(layer[row, :length], pair.theirs.model.norm(state))


@pytest.mark.parametrize("name", CAUSAL_FAMILIES)
@torch.no_grad()
def test_steps_of_several_beams_are_a_forced_pass(pairs, name):
    """Two hypotheses a sentence, reordered before every step; half of the sentences is left on the way."""
    pair = pairs(name)
    sources = pair.words(LENGTHS[:4], 3)
    passes = []
    for seed in (4, 5):
        batch = pair.batch(sources, pair.words((5, 5, 5, 5), seed))
        forced = pair.system(pair.system.encode(batch), batch.target_in, batch.target_mask)
        passes.append((batch.target_in, pair.system.scores(forced).log_probs()))
    words, expected = (torch.stack(parts, 1) for parts in zip(*passes, strict=True))  # [S, 2, T], [S, 2, T, V]
    state = pair.system.start(pair.system.encode(pair.batch(sources)))
    scores, state = pair.system.step(words[:, :1, 0], state)
    _close(scores.log_probs()[:, 0], expected[:, 0, 0])
    parents, rows = torch.zeros(4, 2, dtype=torch.long), None
    for position in range(1, 5):
        state = state.select(rows, parents)
        if position > 1:
            kept = torch.arange(len(words)) if rows is None else rows
            words, expected = words[kept[:, None], parents], expected[kept[:, None], parents]
        scores, state = pair.system.step(words[:, :, position], state)
        _close(scores.log_probs(), expected[:, :, position])
        parents = torch.tensor([[1, 0], [0, 1], [1, 0], [1, 1]])[: len(words)]
        rows = torch.tensor([2, 0]) if position == 2 else None
        parents = parents if rows is None else parents[rows]


@torch.no_grad()
def test_a_model_in_float64_computes_in_it(pairs):
    pair = pairs("gemma")
    batch = pair.batch(pair.words(LENGTHS, 1), pair.words((4, 2, 6, 3, 1), 2))
    single, double = (
        system.token_log_probs(system(system.encode(batch), batch.target_in, batch.target_mask), batch.target)["main"]
        for system in (pair.system, copy.deepcopy(pair.system).double())
    )
    assert double.dtype == torch.float64
    _close(single.double(), double)


@torch.no_grad()
def test_a_prompt_that_the_model_has_no_room_for_is_refused(pairs):
    """Half of the positions that every layer sees: 64 of 128, and 32 of a window of 64."""
    for name, room in (("llama", 64), ("gemma2", 32)):
        pair = pairs(name)
        most = room - len(pair.their_prompt([]))
        pair.system.encode(pair.batch(pair.words((most,), 7)))
        with pytest.raises(ConfigError, match=f"a prompt of {room + 1} pieces does not fit"):
            pair.system.encode(pair.batch(pair.words((most + 1,), 7)))
        assert pair.backbone.target_room == room


SETTINGS = list(itertools.product((2, 3, 4, 6, 8), (0.0, 0.6, 1.0, 1.4), (10, 16)))


@pytest.mark.parametrize("name", CAUSAL_FAMILIES)
@pytest.mark.parametrize(("beam", "alpha", "longest"), sampled(SETTINGS, every=20))
@torch.no_grad()
def test_beam_search_finds_what_generate_finds(pairs, name, beam, alpha, longest):
    """Hypotheses and scores of 24 sentences."""
    pair = pairs(name)
    family = pair.family
    sources = pair.words([1 + number % 6 for number in range(24)], 6)
    config = SearchConfig(beam=beam, length_penalty=alpha, penalty="power", max_length=longest, length_factor=100)
    batch = pair.batch(sources)
    limits = output_limits(batch.source_mask, config, pair.backbone.target_room)
    found = beam_search(pair.system, pair.system.encode(batch), limits, config, record=True)

    prompts = [torch.tensor(pair.their_prompt(source)) for source in sources]
    padded = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True, padding_value=-1, padding_side="left")
    theirs = pair.theirs.generate(
        padded.clamp(min=0),
        attention_mask=(padded >= 0).long(),
        num_beams=beam,
        length_penalty=alpha,
        early_stopping="never",
        max_new_tokens=longest,
        max_length=None,
        suppress_tokens=[word for word in (family.pad, family.begin) if word is not None] or None,
        eos_token_id=family.end,
        pad_token_id=family.end,
        return_dict_in_generate=True,
        output_scores=True,
    )
    sequences = theirs.sequences[:, padded.shape[1] :]
    assert_generated(found, sequences, theirs.sequences_scores, pair.numbers, family.end)
