"""Attention and layers against PyTorch's own modules with the same weights."""

import math

import pytest
import torch
from torch import nn

from core_models.backbones.rnnsearch import RNNSearch
from core_models.config import ModelConfig
from core_models.layers.attention import attend
from core_models.layers.positional_embedding import PositionalEmbedding
from core_models.layers.recurrent import AdditiveAttention, GRUCell
from core_models.layers.tanh import tanh
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from tests.core_models.laws import WORDS, random_sentences, random_system

NORMS = pytest.mark.parametrize("norm", ["pre", "post"])
LENGTHS = [5, 2, 3]


def real(lengths: list[int], longest: int) -> torch.Tensor:
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("case", ["plain", "mask", "causal", "nowhere to look"])
def test_attention_in_the_open_is_the_fused_kernel(case):
    query, key, value = (torch.randn(3, 2, 5, 4, dtype=torch.float64) for _ in range(3))
    mask = {"mask": real(LENGTHS, 5), "nowhere to look": real([5, 0, 3], 5)}.get(case)
    mask = None if mask is None else mask[:, None, None]
    fused, _ = attend(query, key, value, mask, case == "causal")
    opened, weights = attend(query, key, value, mask, case == "causal", need_weights=True)
    torch.testing.assert_close(opened, fused, atol=1e-12, rtol=0)
    sums = torch.ones(3) if case != "nowhere to look" else torch.tensor([1.0, 0.0, 1.0])
    torch.testing.assert_close(weights.sum(-1), sums.double()[:, None, None].expand(3, 2, 5))


def test_attention_by_hand():
    """Logits 0 and ln 3 after the scale give weights 1/4 and 3/4."""
    query, key = torch.tensor([[[[2.0]]]]), torch.tensor([[[[0.0], [math.log(3) / 2]]]])
    mixed, weights = attend(query, key, torch.tensor([[[[4.0], [8.0]]]]), need_weights=True)
    torch.testing.assert_close(weights.flatten(), torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(mixed.flatten(), torch.tensor([7.0]))


def copy(module: nn.Module, **values: nn.Module) -> None:
    """Fill PyTorch's module: each name is one of its children, each value ours."""
    with torch.no_grad():
        for name, ours in values.items():
            theirs = module.get_submodule(name)
            theirs.weight.copy_(ours.weight)
            theirs.bias.copy_(ours.bias)


def copy_attention(theirs: nn.MultiheadAttention, projections: list[nn.Linear], output: nn.Linear) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([projection.weight for projection in projections]))
        theirs.in_proj_bias.copy_(torch.cat([projection.bias for projection in projections]))
    copy(theirs, out_proj=output)


@NORMS
def test_the_encoder_is_pytorchs(norm):
    system = random_system(f"transformer:norm={norm},encoder_layers=2")
    backbone, batch = system.backbone, collate(random_sentences(LENGTHS, 1))
    x = backbone._embed(backbone.source_table, batch.source, backbone.source_positions(0, batch.source.shape[1]))
    for block in backbone.encoder:
        layer = nn.TransformerEncoderLayer(
            64, 2, 256, 0.0, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
        ).eval()
        copy_attention(layer.self_attn, [block.attention.project], block.attention.output)
        copy(
            layer,
            linear1=block.expand,
            linear2=block.contract,
            norm1=block.attention_norm,
            norm2=block.feed_forward_norm,
        )
        with torch.enable_grad():  # keeps PyTorch off its own inference shortcut
            x = layer(x, src_key_padding_mask=~batch.source_mask)
    x = (
        nn.functional.layer_norm(x, [64], backbone.encoder_norm.weight, backbone.encoder_norm.bias)
        if norm == "pre"
        else x
    )
    memory = system.encode(batch).sentence["backbone"]["memory"]
    torch.testing.assert_close(memory[batch.source_mask], x[batch.source_mask], atol=1e-9, rtol=0)


@NORMS
def test_the_decoder_is_pytorchs(norm):
    system = random_system(f"transformer:norm={norm}")
    backbone, batch = system.backbone, collate(random_sentences(LENGTHS, 1), random_sentences([2, 6, 4], 2))
    encoded = system.encode(batch)
    length = batch.target.shape[1]
    x = backbone._embed(backbone.target_table, batch.target_in, backbone.target_positions(0, length))
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    for block in backbone.decoder:
        layer = nn.TransformerDecoderLayer(
            64, 2, 256, 0.0, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
        ).eval()
        copy_attention(layer.self_attn, [block.attention.project], block.attention.output)
        copy_attention(layer.multihead_attn, [block.cross.query, block.cross.memory], block.cross.output)
        copy(
            layer,
            linear1=block.expand,
            linear2=block.contract,
            norm1=block.attention_norm,
            norm2=block.cross_norm,
            norm3=block.feed_forward_norm,
        )
        x = layer(x, encoded.sentence["backbone"]["memory"], tgt_mask=later, memory_key_padding_mask=~batch.source_mask)
    x = (
        nn.functional.layer_norm(x, [64], backbone.decoder_norm.weight, backbone.decoder_norm.bias)
        if norm == "pre"
        else x
    )
    ours = system(encoded, batch.target_in, batch.target_mask).main.vectors
    torch.testing.assert_close(ours[batch.target_mask], x[batch.target_mask], atol=1e-9, rtol=0)


def test_sinusoids_are_vaswanis_and_grow_on_demand():
    positions = PositionalEmbedding(8, learned=False, longest=4)
    rows = positions(0, 150)
    for position, column in [(0, 0), (1, 3), (70, 4), (149, 7)]:
        angle = position / 10000 ** (2 * (column // 2) / 8)
        assert rows[position, column].item() == pytest.approx(
            math.cos(angle) if column % 2 else math.sin(angle), abs=1e-6
        )
    torch.testing.assert_close(positions(70, 71), rows[70:71])


def test_learned_positions_end_where_their_table_ends():
    with pytest.raises(ValueError, match="5 positions does not fit the 4 learned ones"):
        PositionalEmbedding(8, learned=True, longest=4)(0, 5)


def pytorch_cell(unit: GRUCell, inputs: int, width: int) -> nn.GRUCell:
    """Both order their rows reset, update, candidate, and both let the update gate keep the old state."""
    cell = nn.GRUCell(inputs, width, dtype=torch.float64)
    with torch.no_grad():
        cell.weight_ih.copy_(unit.from_input.weight)
        cell.bias_ih.copy_(unit.from_input.bias)
        cell.weight_hh.copy_(unit.from_state.weight)
        cell.bias_hh.zero_()
    return cell


def test_the_gated_unit_is_pytorchs():
    unit = GRUCell(3, 5).double()
    inputs, state = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    torch.testing.assert_close(
        unit(unit.from_input(inputs), state), pytorch_cell(unit, 3, 5)(inputs, state), atol=1e-12, rtol=0
    )


def test_the_recurrent_encoder_is_pytorchs_bidirectional_gru():
    system = random_system("rnnsearch")
    backbone: RNNSearch = system.backbone
    batch = collate(random_sentences(LENGTHS, 1))
    gru = nn.GRU(64, 64, batch_first=True, bidirectional=True, dtype=torch.float64)
    with torch.no_grad():
        for suffix, unit in (("", backbone.forward_unit), ("_reverse", backbone.backward_unit)):
            for name, value in pytorch_cell(unit, 64, 64).named_parameters():
                getattr(gru, f"{name}_l0{suffix}").copy_(value)
    packed = nn.utils.rnn.pack_padded_sequence(
        backbone.source_table(batch.source), batch.source_mask.sum(1), batch_first=True, enforce_sorted=False
    )
    expected = nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)[0]
    memory = system.encode(batch).sentence["backbone"]["memory"]
    torch.testing.assert_close(memory[batch.source_mask], expected[batch.source_mask], atol=1e-9, rtol=0)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 0), (torch.float32, 2e-7), (torch.bfloat16, 0)])
def test_tanh_by_the_sigmoid_is_pytorchs_with_its_gradient(dtype, error):
    x = torch.cat([torch.linspace(-20, 20, 4001), torch.tensor([torch.inf, -torch.inf])]).to(dtype).requires_grad_()
    found, wanted = tanh(x), torch.tanh(x)
    torch.testing.assert_close(found, wanted, atol=error, rtol=0)
    pair = (torch.autograd.grad(one.sum(), x)[0] for one in (found, wanted))
    torch.testing.assert_close(*pair, atol=2 * error, rtol=0)
    assert torch.isnan(tanh(torch.tensor(torch.nan)))


def test_additive_attention_is_bahdanaus_formula():
    attention = AdditiveAttention(3, 4, 6).double()
    state, memory, mask = torch.randn(2, 3).double(), torch.randn(2, 5, 4).double(), real([5, 2], 5)
    weights = attention.weights(attention.query(state)[:, None, None] + attention.keys(memory)[:, None], mask)[:, 0]
    for row, length in enumerate([5, 2]):
        energy = torch.stack(
            [
                attention.energy(torch.tanh(attention.query(state[row]) + attention.keys(memory[row, i])))[0]
                for i in range(length)
            ]
        )
        torch.testing.assert_close(weights[row, :length], torch.softmax(energy, 0), atol=1e-12, rtol=0)
    assert weights[1, 2:].abs().sum() == 0


def test_the_recurrent_decoder_is_two_gru_cells_with_attention_between_them():
    """Conditional GRU, written out over one sentence with PyTorch's cells; s_0 is of the mean annotation."""
    system = random_system("rnnsearch")
    backbone: RNNSearch = system.backbone
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    encoded, attention = system.encode(batch), backbone.attention
    memory = encoded.sentence["backbone"]["memory"][0]
    before, after = pytorch_cell(backbone.word_unit, 64, 64), pytorch_cell(backbone.context_unit, 128, 64)
    state, rows = torch.tanh(backbone.first_state(memory.mean(0))), []
    for word in backbone.target_table.weight[batch.target_in[0]]:
        query = before(word[None], state[None])[0]
        energy = torch.cat([attention.energy(torch.tanh(attention.query(query) + attention.keys(h))) for h in memory])
        context = torch.softmax(energy, 0) @ memory
        state = after(context[None], query[None])[0]
        summed = backbone.read_state(state) + backbone.read_word(word) + backbone.read_context(context)
        rows.append(torch.tanh(summed))
    ours = system(encoded, batch.target_in, batch.target_mask).main.vectors[0]
    torch.testing.assert_close(ours, torch.stack(rows), atol=1e-9, rtol=0)


@pytest.mark.parametrize("backbone", ["transformer", "rnnsearch"])
def test_tying_shares_what_it_names(backbone):
    tables = {
        tied: [id(table.weight) for table in (system.source_table, system.target_table, system.vocabulary)]
        for tied in ("all", "target", "none")
        for system in [build(ModelConfig(backbone=backbone, preset="tiny", tie_embeddings=tied), WORDS).backbone]
    }
    assert {tied: len(set(ids)) for tied, ids in tables.items()} == {"all": 1, "target": 2, "none": 3}
    assert tables["target"][1] == tables["target"][2]
    with pytest.raises(
        ConfigError, match="tie_embeddings: all needs one joint vocabulary, here are 19 source and 20 target pieces"
    ):
        build(ModelConfig(backbone=backbone, preset="tiny"), 19, 20)
