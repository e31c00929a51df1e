"""What options make of the recurrent backbone: LSTM cells, first states, deeper decoders, a Transformer's encoder."""

import pytest
import torch
from torch import nn

from core_models.backbones.rnnsearch import RNNSearch
from core_models.config import ModelConfig
from core_models.layers.recurrent import LSTMCell
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.system_spec import describe
from core_models.text.batches import collate
from tests.core_models.laws import WORDS, exact, random_sentences, random_system


def pytorch_cell(unit: LSTMCell, inputs: int, width: int) -> nn.LSTMCell:
    """Both order their rows input, forget, candidate, output."""
    cell = nn.LSTMCell(inputs, width, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(unit.from_input.weight)
        cell.bias_ih.copy_(unit.from_input.bias)
        cell.weight_hh.copy_(unit.from_state.weight)
        cell.bias_hh.zero_()
    return cell


def test_the_lstm_is_pytorchs():
    unit = LSTMCell(3, 5).double()
    inputs, state = torch.randn(4, 3).double(), torch.randn(4, 10).double()
    expected = torch.cat(pytorch_cell(unit, 3, 5)(inputs, state.split(5, dim=1)), dim=1)
    torch.testing.assert_close(unit(unit.from_input(inputs), state), expected, atol=1e-12, rtol=0)
    assert torch.equal(unit.hidden(state), state[:, :5])
    assert torch.equal(unit.first(inputs[:, :2]), torch.cat([inputs[:, :2], torch.zeros(4, 2).double()], 1))


def test_an_lstm_forgets_nothing_at_first():
    unit = build(exact("rnnsearch:rnn_cell=lstm"), WORDS).backbone.context_unit
    assert torch.equal(unit.from_input.bias.data.split(64)[1], torch.ones(64))


def test_the_lstm_decoder_is_two_cells_with_attention_between_them():
    """The second cell takes over the first one's hidden numbers and memory; its own memory begins empty."""
    system = random_system("rnnsearch:rnn_cell=lstm")
    backbone: RNNSearch = system.backbone
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    encoded, attention = system.encode(batch), backbone.attention
    memory = encoded.sentence["backbone"]["memory"][0]
    before, after = pytorch_cell(backbone.word_unit, 64, 64), pytorch_cell(backbone.context_unit, 128, 64)
    state, rows = torch.tanh(backbone.first_state(memory.mean(0)))[None], []
    cell = torch.zeros_like(state)
    for word in backbone.target_table.weight[batch.target_in[0]]:
        state, cell = before(word[None], (state, cell))
        energy = torch.cat(
            [attention.energy(torch.tanh(attention.query(state[0]) + attention.keys(h))) for h in memory]
        )
        context = torch.softmax(energy, 0) @ memory
        state, cell = after(context[None], (state, cell))
        summed = backbone.read_state(state[0]) + backbone.read_word(word) + backbone.read_context(context)
        rows.append(torch.tanh(summed))
    ours = system(encoded, batch.target_in, batch.target_mask).main.vectors[0]
    torch.testing.assert_close(ours, torch.stack(rows), atol=1e-9, rtol=0)


def test_the_lstm_encoder_is_pytorchs():
    system = random_system("rnnsearch:rnn_cell=lstm")
    lengths = [5, 2, 3]
    batch = collate(random_sentences(lengths, 1))
    lstm = nn.LSTM(64, 64, batch_first=True, bidirectional=True, dtype=torch.float64)
    with torch.no_grad():
        for suffix, unit in (("", system.backbone.forward_unit), ("_reverse", system.backbone.backward_unit)):
            for name, value in pytorch_cell(unit, 64, 64).named_parameters():
                getattr(lstm, f"{name}_l0{suffix}").copy_(value)
    packed = nn.utils.rnn.pack_padded_sequence(
        system.backbone.source_table(batch.source), batch.source_mask.sum(1), batch_first=True, enforce_sorted=False
    )
    expected = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]
    memory = system.encode(batch).sentence["backbone"]["memory"]
    torch.testing.assert_close(memory[batch.source_mask], expected[batch.source_mask], atol=1e-9, rtol=0)


def test_a_transformers_encoder_is_the_transformers():
    """With the same weights the recurrent decoder reads the very memory that a Transformer's would."""
    mixed, transformer = (
        random_system("rnnsearch:encoder=transformer,norm=post"),
        random_system("transformer:norm=post"),
    )
    theirs, ours = transformer.backbone, mixed.backbone
    with torch.no_grad():
        ours.source_table.load_state_dict(theirs.source_table.state_dict())
        ours.source_layers.blocks.load_state_dict(theirs.encoder.state_dict())
    batch = collate(random_sentences([5, 2, 3], 1))
    memories = [system.encode(batch).sentence["backbone"]["memory"] for system in (mixed, transformer)]
    torch.testing.assert_close(*memories, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"deep_layers": 1}, "deep_layers: only backbone rnnsearch reads it"),
        ({"rnn_cell": "lstm"}, "rnn_cell: only backbone rnnsearch reads it"),
        ({"attention_width": 8}, "attention_width: only backbone rnnsearch reads it"),
        ({"decoder_init": "zero"}, "decoder_init: only backbone rnnsearch reads it"),
        (
            {"backbone": "rnnsearch", "encoder": "transformer", "embedding": 32},
            "encoder: a transformer needs embeddings",
        ),
        ({"backbone": "rnnsearch", "encoder": "transformer", "summary": "end_states"}, "has no end states; take mean"),
    ],
)
def test_what_no_backbone_reads_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        ModelConfig(preset="tiny", **options)


def test_refusals_reach_the_reader_as_sentences():
    with pytest.raises(ConfigError, match="deep_layers: only backbone rnnsearch reads it; leave it out"):
        build("transformer:deep_layers=2", WORDS)


def test_a_preset_of_a_backbone_does_not_change_another():
    with pytest.raises(ConfigError, match="preset paper-pfrnn is of backbone rnnsearch; give backbone=rnnsearch too"):
        describe("transformer:preset=paper-pfrnn")
    assert describe("gdr:preset=paper-pfrnn,backbone=rnnsearch").attention_width == 2048
