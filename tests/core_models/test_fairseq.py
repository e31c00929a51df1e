"""A checkpoint of fairseq, converted, is that model: distributions of an independent Transformer, word by word."""

import argparse

import numpy as np
import pytest
import torch

from core_models.fairseq import converted, read_checkpoint
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS, PAD, UNK
from tests.fairseq_models import END, TARGET_WORDS, Reference, random_tensors, settings, write_checkpoint

pytestmark = pytest.mark.long

PRE = {"encoder_normalize_before": True, "decoder_normalize_before": True}
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
KINDS = {
    "post-norm": {},
    "pre-norm": PRE,
    "learned positions": LEARNED,
    "learned positions of one side": PRE | {"decoder_learned_pos": True},
    "no positions": {"no_token_positional_embeddings": True},
    "gelu": {"activation_fn": "gelu"},
    "one table for all": {"share_all_embeddings": True},
    "one table of the target": PRE | {"share_decoder_input_output_embed": True},
    "embeddings as they are": {"no_scale_embedding": True, "share_decoder_input_output_embed": True},
}
SOURCES = [[4, 9, 7], [5], [18, 3, 6, 8, 12, 11, 4], [10, 10]]
TARGETS = [[22, 5], [4, 3, 9, 21, 13], [7], [6, 6, 20]]


def ours(words):
    return [[{3: UNK}.get(word, word) for word in sentence] for sentence in words]


def system_of(path):
    arguments, tensors = read_checkpoint(path)
    config, parameters = converted(arguments, tensors, str(path))
    rows = [len(parameters[f"backbone.{name}_table.weight"]) for name in ("source", "target")]
    system = build(config, *rows).eval()
    system.load_state_dict(parameters, strict=True)
    return system


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_distributions_are_those_of_an_independent_transformer(tmp_path, kind):
    """Sentence by sentence there, padded together here; <s> and </s> change places."""
    given = settings(**KINDS[kind])
    tensors = random_tensors(given)
    system = system_of(write_checkpoint(tmp_path / "model.pt", given, tensors))
    batch = collate(ours(SOURCES), ours(TARGETS))
    forced = system(system.encode(batch), batch.target_in, batch.target_mask)
    found = system.scores(forced).log_probs()
    theirs = Reference(given, tensors)
    columns = torch.tensor([BOS, PAD, EOS, UNK, *range(4, TARGET_WORDS)])  # ours of theirs
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        expected = theirs.log_probs(source, target)
        torch.testing.assert_close(found[row, : len(target) + 1][:, columns], expected, atol=1e-5, rtol=1e-5)
    assert expected[:, END].max() > -10


def test_a_checkpoint_may_be_of_any_version(tmp_path):
    """`cfg` in place of `args`, one matrix for queries, keys and values, norms by number, no output of its own."""
    given = settings(share_decoder_input_output_embed=True)
    tensors = random_tensors(given)
    first = system_of(write_checkpoint(tmp_path / "args.pt", given, tensors)).state_dict()
    nested = {name: value for name, value in given.items() if not name.startswith(("encoder_", "decoder_"))}
    nested |= {side: {name.removeprefix(f"{side}_"): value for name, value in given.items() if name.startswith(side)}
               for side in ("encoder", "decoder")}  # fmt: skip
    nested["_name"] = nested.pop("arch")
    former = dict(tensors)
    del former["decoder.output_projection.weight"]
    for kind in ("weight", "bias"):
        name = "decoder.layers.1.self_attn"
        former[f"{name}.in_proj_{kind}"] = torch.cat(
            [former.pop(f"{name}.{part}_proj.{kind}") for part in ("q", "k", "v")]
        )
        layer = "decoder.layers.0"
        for number, norm in enumerate(("self_attn", "encoder_attn", "final")):
            former[f"{layer}.layer_norms.{number}.{kind}"] = former.pop(f"{layer}.{norm}_layer_norm.{kind}")
    others = {
        "cfg": write_checkpoint(tmp_path / "cfg.pt", given, tensors, args=None, cfg={"model": nested}),
        "namespace": write_checkpoint(
            tmp_path / "namespace.pt", given, tensors, args=None, cfg={"model": argparse.Namespace(**given)}
        ),
        "former names": write_checkpoint(tmp_path / "former.pt", given, former),
        "half": write_checkpoint(
            tmp_path / "half.pt", given, {name: tensor.double() for name, tensor in tensors.items()}
        ),
        "numbers of NumPy": write_checkpoint(
            tmp_path / "numpy.pt", given, tensors, extra_state={"best": np.float64(3.5), "loss": np.float32(1)}
        ),
    }
    legacy = tmp_path / "legacy.pt"
    torch.save({"args": argparse.Namespace(**given), "model": tensors}, legacy, _use_new_zipfile_serialization=False)
    for name, path in (others | {"legacy": legacy}).items():
        found = system_of(path).state_dict()
        assert found.keys() == first.keys()
        assert all(torch.equal(found[key], first[key]) for key in first), name


REFUSED = {
    "norm of embeddings": ({"layernorm_embedding": True}, "a model with layernorm_embedding"),
    "another architecture": ({"arch": "fconv"}, "arch: input should be 'transformer'"),
    "heads that are not named": ({"encoder_attention_heads": None}, "encoder_attention_heads is missing"),
    "heads of two numbers": ({"decoder_attention_heads": 2}, "other numbers of heads"),
    "heads that do not divide": ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "does not divide"),
    "norms of two kinds": ({"encoder_normalize_before": True}, "one side is pre-norm"),
    "another activation": ({"activation_fn": "tanh"}, "activation_fn"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_computed_is_refused(tmp_path, case):
    changes, message = REFUSED[case]
    path = write_checkpoint(tmp_path / "model.pt", settings(**changes), random_tensors(settings()))
    with pytest.raises(ConfigError, match=message):
        converted(*read_checkpoint(path), str(path))


def _without(name):
    return lambda tensors: tensors.pop(name)


SPOILED = {
    "a tensor more": (
        lambda tensors: tensors.update({"decoder.layernorm_embedding.weight": torch.ones(16)}),
        "decoder.layernorm_embedding.weight has no place",
    ),
    "a tensor less": (_without("decoder.layers.0.fc1.bias"), "there is no decoder.layers.0.fc1.bias"),
    "no decoder": (
        lambda tensors: [tensors.pop(name) for name in list(tensors) if name.startswith("decoder.")],
        "no encoder-decoder",
    ),
    "a norm of another width": (
        lambda tensors: tensors.update({"encoder.layers.0.final_layer_norm.weight": torch.ones(3)}),
        r"would be \[3\], and has to be \[16\]",
    ),
    "matrices that cannot be joined": (
        lambda tensors: tensors.update({"encoder.layers.0.self_attn.k_proj.weight": torch.ones(16, 3)}),
        "do not fit each other",
    ),
    "not finite": (
        lambda tensors: tensors["decoder.embed_tokens.weight"].fill_(float("nan")),
        "no whole tensor of finite numbers",
    ),
    "whole numbers": (
        lambda tensors: tensors.update({"encoder.layers.0.fc1.bias": torch.ones(24, dtype=torch.long)}),
        "encoder.layers.0.fc1.bias is no whole tensor",
    ),
    "one number that stands for a million": (
        lambda tensors: tensors.update({"encoder.embed_tokens.weight": torch.ones(1, 1).expand(1 << 20, 1 << 20)}),
        "encoder.embed_tokens.weight is no whole tensor",
    ),
    "not a tensor": (lambda tensors: tensors.update({"encoder.layers.0.fc1.bias": "x"}), "is no whole tensor"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_tensors_that_do_not_fit_are_named(tmp_path, case):
    spoil, message = SPOILED[case]
    tensors = random_tensors(settings())
    spoil(tensors)
    path = write_checkpoint(tmp_path / "model.pt", settings(), tensors)
    with pytest.raises(ConfigError, match=message):
        converted(*read_checkpoint(path), str(path))
