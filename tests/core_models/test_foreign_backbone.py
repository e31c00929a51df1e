"""A wrapped model of `transformers` is that model: distributions, attentions, states, and what `generate` finds."""

import copy
import itertools
import random
from dataclasses import replace

import pytest
import torch

from core_models.backbones.foreign import ForeignEncoderDecoder
from core_models.backbones.foreign_frame import Frame
from core_models.backbones.foreign_tables import renumbered
from core_models.backbones.foreign_transformer import transformer_of
from core_models.config import ModelConfig, SearchConfig
from core_models.decoding import beam_search
from core_models.decoding.length_limits import output_limits
from core_models.interface.mechanism_stack import ActiveMechanisms
from core_models.interface.search_state import FixedShapes
from core_models.settings import ConfigError
from core_models.system import System
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, PAD
from core_models.traces import TraceWriter
from tests.foreign_models import FAMILIES, assert_generated, random_model
from tests.kinds import sampled

pytestmark = pytest.mark.long

pytest.importorskip("transformers", reason="the extra `huggingface` is not installed")

# A family, whether its embeddings are scaled, and whether our own layers compute it.
OURS = [(name, scaled, True) for name in FAMILIES if name != "t5" for scaled in (True, False)]
CASES = [*((name, scaled, False) for name in FAMILIES for scaled in (True, False)), *OURS]
AS_OPENED = [case for case in CASES if case[2] or case[0] == "t5"]
LENGTHS = (3, 7, 1, 5)
MODEL = ModelConfig(preset=None, d_model=32, embedding=32, encoder_layers=2, decoder_layers=3, heads=4, ffn_dim=48)


class Pair:
    """A model of a family, and a copy of it behind our interface."""

    def __init__(self, name: str, scaled: bool, ours: bool, dtype: torch.dtype = torch.float32) -> None:
        self.family = family = FAMILIES[name]
        self.theirs = random_model(family, scaled).to(dtype)
        wrapped = copy.deepcopy(self.theirs)
        source, self.numbers = renumbered(wrapped, family.pad, family.unknown, family.begin, family.end)
        self.source = {theirs: ours for ours, theirs in enumerate(source)}
        self.target = {theirs: ours for ours, theirs in enumerate(self.numbers)}
        frame = Frame(
            tuple(self.source[word] for word in family.source_before),
            tuple(self.source[word] for word in family.source_after),
            tuple(self.target[word] for word in family.target),
        )
        has_begin = family.begin is not None
        if ours:
            self.backbone = transformer_of(wrapped, frame, has_begin)
            assert self.backbone is not None
        else:
            self.backbone = ForeignEncoderDecoder(wrapped, frame, has_begin)
        self.system = System(MODEL, self.backbone, {}).eval()

    def words(self, lengths, seed: int) -> list[list[int]]:
        """Random texts in their numbers."""
        drawn = random.Random(seed)
        return [[drawn.choice(self.family.ordinary) for _ in range(length)] for length in lengths]

    def batch(self, sources, targets=None):
        in_ours = [[self.source[word] for word in words] for words in sources]
        return collate(in_ours, targets and [[self.target[word] for word in words] for words in targets])

    def their_source(self, words) -> torch.Tensor:
        family = self.family
        return torch.tensor([[*family.source_before, *words, family.end, *family.source_after]])


@pytest.fixture(scope="module")
def pairs():
    built: dict[tuple[str, bool, bool], Pair] = {}

    def pair(name: str, scaled: bool, ours: bool) -> Pair:
        if (name, scaled, ours) not in built:
            built[name, scaled, ours] = Pair(name, scaled, ours)
        return built[name, scaled, ours]

    return pair


def _close(ours, theirs) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("name", "scaled", "ours"), CASES)
@torch.no_grad()
def test_distributions_attentions_and_states_are_theirs(pairs, name, scaled, ours):
    """Sentence by sentence there, padded together here; the frame's attention is added to the word beside it."""
    pair = pairs(name, scaled, ours)
    family, prompt = pair.family, len(pair.family.target) - 1
    sources, targets = pair.words(LENGTHS, 1), pair.words((4, 2, 6, 1), 2)
    batch, writer = pair.batch(sources, targets), TraceWriter(["*"])
    forced = pair.system(pair.system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    log_probs = pair.system.scores(forced).log_probs()
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        found = pair.theirs(
            pair.their_source(source), decoder_input_ids=torch.tensor([[*family.target, *target]]),
            output_attentions=True, output_hidden_states=True,
        )  # fmt: skip
        length, words, before = len(target) + 1, len(source) + 1, len(family.source_before)
        columns = [pair.target[word] for word in range(found.logits.shape[-1])]
        _close(log_probs[row, :length, columns], torch.log_softmax(found.logits[0, prompt:], -1))
        if family.begin is None:
            assert log_probs[row, :, BOS].max() < -1e29, "<s> that the model does not have is never put out"

        def without_frame(shares, words=words, before=before):
            kept = shares[..., before : before + words].clone()
            kept[..., 0] += shares[..., :before].sum(-1)
            kept[..., -1] += shares[..., before + words :].sum(-1)
            return kept

        def own(array, row=row):
            return writer.arrays[array][1][row]

        across = without_frame(torch.stack(found.cross_attentions, 1)[0][:, :, prompt:])
        _close(own("decoder.cross_attention")[:, :, :length, :words], across)
        encoder = without_frame(torch.stack(found.encoder_attentions, 1)[0][:, :, before : before + words])
        _close(own("encoder.self_attention")[:, :, :words, :words], encoder)
        decoder = torch.stack(found.decoder_attentions, 1)[0][:, :, prompt:]
        decoder = torch.cat([decoder[..., : prompt + 1].sum(-1, keepdim=True), decoder[..., prompt + 1 :]], -1)
        _close(own("decoder.self_attention")[:, :, :length, :length], decoder)
        states = [state[0, prompt:] for state in found.decoder_hidden_states]
        ours = forced.view.layers
        assert len(ours) == len(states)
        _close(ours[-1][row, :length], states[-1] * getattr(pair.backbone, "head_scale", 1))


def test_its_steps_grow_and_are_not_compiled(pairs):
    for case in CASES[:2]:
        pair = pairs(*case)
        with pytest.raises(ConfigError, match="leave compile out"):
            pair.system.start(pair.system.encode(pair.batch(pair.words(LENGTHS, 3))), FixedShapes(2, 5))


@pytest.mark.parametrize(("name", "scaled", "ours"), CASES)
@torch.no_grad()
def test_steps_of_several_beams_are_a_forced_pass(pairs, name, scaled, ours):
    """Two hypotheses a sentence, reordered before every step; half of the sentences is left on the way."""
    pair = pairs(name, scaled, ours)
    sources = pair.words(LENGTHS, 3)
    first, second = (pair.words((5, 5, 5, 5), seed) for seed in (4, 5))
    forced = []
    for targets in (first, second):
        batch = pair.batch(sources, targets)
        result = pair.system(pair.system.encode(batch), batch.target_in, batch.target_mask)
        forced.append((batch.target_in, pair.system.scores(result).log_probs()))
    words = torch.stack([target_in for target_in, _ in forced], 1)  # [S, 2, T]
    expected = torch.stack([log_probs for _, log_probs in forced], 1)
    state = pair.system.start(pair.system.encode(pair.batch(sources)))
    scores, state = pair.system.step(words[:, :1, 0], state)
    _close(scores.log_probs()[:, 0], expected[:, 0, 0])
    parents, rows = torch.zeros(4, 2, dtype=torch.long), None
    for position in range(1, 5):
        state = state.select(rows, parents)
        if rows is not None:
            words, expected = words[rows], expected[rows]
        words, expected = (
            tensor.gather(1, parents.view(*parents.shape, *[1] * (tensor.dim() - 2)).expand(-1, -1, *tensor.shape[2:]))
            if position > 1
            else tensor
            for tensor in (words, expected)
        )
        scores, state = pair.system.step(words[:, :, position], state)
        _close(scores.log_probs(), expected[:, :, position])
        parents = torch.tensor([[1, 0], [0, 1], [1, 0], [1, 1]])[: len(words)]
        rows = torch.tensor([2, 0]) if position == 2 else None
        parents = parents if rows is None else parents[rows]


SETTINGS = list(itertools.product((2, 3, 4, 6, 8), (0.0, 0.6, 1.0, 1.4), (10, 16)))


@pytest.mark.parametrize(("name", "scaled", "ours"), AS_OPENED)
@pytest.mark.parametrize(("beam", "alpha", "longest"), sampled(SETTINGS, every=20))
@torch.no_grad()
def test_beam_search_finds_what_generate_finds(pairs, name, scaled, ours, beam, alpha, longest):
    """Hypotheses and scores of 24 sentences; a language tag is forced, and so counts in the length."""
    pair = pairs(name, scaled, ours)
    family = pair.family
    tag = family.target[1] if len(family.target) == 2 and family.target[1] != family.begin else None
    prompt, counted = (family.target, 0) if tag is None else (family.target[:1], 1)
    sources = pair.words([1 + number % 6 for number in range(24)], 6)
    config = SearchConfig(beam=beam, length_penalty=alpha, penalty="power", penalty_offset=counted,
                          max_length=longest, length_factor=100)  # fmt: skip
    batch = pair.batch(sources)
    limits = output_limits(batch.source_mask, config, pair.backbone.target_room)
    found = beam_search(pair.system, pair.system.encode(batch), limits, config, record=True)

    framed = [pair.their_source(source)[0] for source in sources]
    padded = torch.nn.utils.rnn.pad_sequence(framed, batch_first=True, padding_value=family.pad)
    real = torch.arange(padded.shape[1]) < torch.tensor([len(source) for source in framed])[:, None]
    theirs = pair.theirs.generate(
        padded,
        attention_mask=real.long(),
        decoder_input_ids=torch.tensor([prompt] * len(sources)),
        decoder_start_token_id=family.target[0],
        forced_bos_token_id=tag,
        num_beams=beam,
        length_penalty=alpha,
        early_stopping="never",
        max_new_tokens=longest + counted,
        max_length=None,
        suppress_tokens=[family.pad, *([] if family.begin is None else [family.begin])],
        eos_token_id=family.end,
        return_dict_in_generate=True,
        output_scores=True,
    )
    sequences = theirs.sequences[:, len(family.target) :]
    assert_generated(found, sequences, theirs.sequences_scores, pair.numbers, family.end)


def _opened(settings: dict) -> tuple:
    family = FAMILIES["marian"]
    theirs = random_model(replace(family, settings={**family.settings, **settings}), True)
    copied = copy.deepcopy(theirs)
    renumbered(copied, family.pad, family.unknown, family.begin, family.end)
    return theirs, transformer_of(copied, Frame(target=(PAD,)), has_begin=False)


@pytest.mark.parametrize("name", ["relu", "gelu", "swish", "silu"])
@torch.no_grad()
def test_our_layers_have_the_activation_of_the_model(name):
    theirs, ours = _opened({"activation_function": name})
    memory = ours.encode(
        torch.tensor([[20, 21, 3]]), torch.ones(1, 3, dtype=torch.bool), ActiveMechanisms({}, {}, {}, forced=True)
    )
    _close(memory, theirs.get_encoder()(input_ids=torch.tensor([[20, 21, 0]])).last_hidden_state)


@pytest.mark.parametrize(
    "settings", [{"activation_function": "tanh"}, {"encoder_ffn_dim": 40}, {"encoder_attention_heads": 2}]
)
def test_our_layers_compute_no_model_that_has_others(settings):
    """Sides of two shapes and other activations stay with `transformers`."""
    assert _opened(settings)[1] is None


@pytest.mark.parametrize("name", ["marian", "m2m_100", "t5"])
@torch.no_grad()
def test_weights_in_bfloat16_stay_so_and_score_as_theirs(name):
    """Log P in nats; sums of numbers of eight bits in another order differ by a hundredth."""
    pair = Pair(name, True, name != "t5", torch.bfloat16)
    assert {parameter.dtype for parameter in pair.backbone.parameters()} == {torch.bfloat16}
    sources, targets = pair.words(LENGTHS, 1), pair.words((4, 2, 6, 1), 2)
    batch = pair.batch(sources, targets)
    forced = pair.system(pair.system.encode(batch), batch.target_in, batch.target_mask)
    scores = pair.system.token_log_probs(forced, batch.target)["main"]
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        words = torch.tensor([[*pair.family.target, *target]])
        logits = pair.theirs(pair.their_source(source), decoder_input_ids=words).logits[0].float()
        ends = torch.tensor([*target, pair.family.end])[:, None]
        theirs = logits[len(pair.family.target) - 1 :].log_softmax(-1).gather(1, ends)[:, 0]
        torch.testing.assert_close(scores[row, : len(theirs)], theirs, atol=0.03, rtol=0)
    config = SearchConfig(beam=3, penalty="power", max_length=10, length_factor=100)
    limits = output_limits(batch.source_mask, config, pair.backbone.target_room)
    found = beam_search(pair.system, pair.system.encode(batch), limits, config)
    assert all(torch.isfinite(torch.tensor(each.hypotheses[0].normalized)) for each in found)
