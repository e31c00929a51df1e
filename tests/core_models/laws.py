"""The laws that hold for every system, as functions of a system: what the parametrised tests and the pairs share.

They hold on the device that NMT_TEST_DEVICE names, the CPU unless it says otherwise; what is drawn is the same on all.
"""

import os
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from core_models.system import System
from core_models.system_builder import build
from core_models.system_catalogue import catalogue
from core_models.text.batches import Batch, collate
from core_models.text.documents import prepend_context
from core_models.text.vocabulary import BOS, EOS
from tests.kinds import sampled

DEVICE = os.environ.get("NMT_TEST_DEVICE", "cpu")
WORDS = 19
COMBINATIONS = [
    "qcn-reg:correlation=eq7,transforms=per_distance,grouping=per_sentence,query_pool=unit,norm=post,iterations=2",
    "qcn:squash_inputs=true,query_pool=mean,query_end=true,detach=true,transforms=per_distance,iterations=1",
    "transformer-reg:reg_norm=sentence,reg_pairs=flat,tie_embeddings=none",
    "qcn-reg:reg_inputs=stream,context_sentences=2",
    "document-transformer:norm=post,context_layers=2",
    "han:norm=post,context_sentences=1",
    "han-encoder:backbone=rnnsearch",
    "san:norm=post,over_words=sparsemax,over_sentences=softmax,context_sentences=2",
    "san-encoder:memory=offline,context_sentences=2",
    "transformer:norm=post,position_embedding=learned,activation_function=gelu",
    "transformer:tie_embeddings=none",
    "rnnsearch:embedding=32,tie_embeddings=target",
    "future-cost-2:backbone=rnnsearch",
    "future-cost-1:future_from=1,tied_head=false,main_tanh_head=true",
    "future-cost-2:norm=post,main_tanh_head=true,first_symbol=bos",
    "future-cost-2:backbone=rnnsearch,embedding=32,tied_head=false",
    "d2gpo:form=density,deviation=2,objective=released,temperature=1.5,tie_embeddings=none",
    "d2gpo:backbone=rnnsearch,embedding=32,tie_embeddings=target",
    "pfrnn-loss+d2gpo:gaussian_prior.objective=released",
    "linear-combination:form=matrix_dense,encoder_layers=3,decoder_layers=2",
    "dynamic-combination:form=per_layer,norm=post,encoder_layers=2,decoder_layers=2",
    "dynamic-routing:votes=concatenated,include_embedding=true,normalize_mass=true,encoder_layers=2,decoder_layers=3",
    "em-routing:capsules=16,inputs=own,schedule=rising,normalize_mass=true,norm=post,encoder_layers=3,decoder_layers=2",
    "head-aggregation:routing=simple,attentions=[decoder_self,encoder_self],layers=[],inputs=own",
    "head-aggregation:attentions=[decoder_self],layers=[2],capsules=8,width_reduction=mean,norm=post",
    "head-aggregation+han:context_sentences=2,attentions=[encoder_self,decoder_cross]",
    "biarn:short_cut=false,unit=lstm,steps=3,norm=post",
    "biarn:recurrence=words,bidirectional=false,encoder_layers=2",
    "biarn:recurrence=words,unit=lstm,short_cut=false",
    "biarn+head-aggregation:attentions=[decoder_cross],steps=2",
    "em-routing:votes=concatenated,side=decoder,residual=true,encoder_layers=2,decoder_layers=2",
    "rnnsearch:rnn_cell=lstm,deep_layers=1,summary=end_states",
    "rnnsearch-2dec:encoder=transformer,attention_width=24,decoder_init=zero,norm=post",
    "coverage:form=neural,units=3,rnn_cell=lstm",
    "coverage:form=subtractive,fertility=false",
    "coverage:form=bounded",
    "coverage:form=max",
    "coverage:form=mean,fertility=false",
    "pfrnn-loss:rnn_cell=lstm,delta=plain,attention=additive,tie_embeddings=none",
    "pfrnn-loss:decoder_feed=current,extra_map=false,future_unit=gru-o,objective=mean,test_loss=none,future_start=zero",
    "gdr-rnn:encoder=transformer,deep_layers=1",
    "gdr-bow-bca:variant=released,norm=post",
    "gdr-bow-bca:backbone=rnnsearch,combination=gate,bag=analysis,bag_loss=sum,iterations=1",
    "attn-bow-bca:attention_squash=false,bca_direction=from_contents,bca_target=normed,bag_smoothing=0.1",
    "pfrnn-loss+future-cost-2:past_future_layers.weight=0.5",
    "rnnsearch-2dec+coverage+prnn-loss+gdr-bow:combination=linear,rnn_cell=lstm",
    "em-routing+future-cost-1:capsules=16,encoder_layers=2,decoder_layers=2",
    "han-encoder+san:hierarchical_attention.context_sentences=2,selective_attention.context_sentences=2",
]
SYSTEMS = [*catalogue(), *sampled(COMBINATIONS)]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def exact(name: str) -> str:
    """The same system, tiny and without dropout, so that a training pass can be compared too."""
    return f"{name}{',' if ':' in name else ':'}preset=tiny,dropout=0,attention_dropout=0"


def random_system(model, dtype: torch.dtype = torch.float64, words: int = WORDS, seed: int = 1) -> System:
    """A system with every parameter moved off its first value: biases of 0 and norms of 1 would hide mistakes."""
    torch.manual_seed(seed)
    system = build(exact(model) if isinstance(model, str) else model, words).to(dtype).eval()
    with torch.no_grad():
        for parameter in system.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return system.to(DEVICE)


def random_sentences(lengths: list[int], seed: int, words: int = WORDS) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(EOS + 1, words, (length,), generator=generator).tolist() for length in lengths]


def batch_of(system: System, sources: list[list[int]], targets: list[list[int]] | None = None) -> Batch:
    """Sentences as the system reads them, each with sentences before it that are drawn from its own words: of some the
    nearest is missing, of some a farther one, and some have none at all."""
    use = system.context
    if not use.sentences:
        return collate(sources, targets).to(DEVICE)
    contexts, outputs = [], []
    for source in sources:
        generator = torch.Generator().manual_seed(sum(source) * 31 + len(source))
        lengths = torch.randint(0, 7, (2, use.entries), generator=generator).tolist()
        present = [bool(sum(source) % 4) and sum(source) % 3 != place for place in range(use.entries)]
        seed = int(torch.randint(1 << 20, (1,), generator=generator))
        for into, each in ((contexts, lengths[0]), (outputs, lengths[1])):
            words = random_sentences(each, seed)
            into.append([ids if there else None for ids, there in zip(words, present, strict=True)])
    if use.joined:
        return collate([prepend_context(*both) for both in zip(sources, contexts, strict=True)], targets).to(DEVICE)
    return collate(sources, targets, contexts, outputs=outputs if use.outputs else None).to(DEVICE)


def log_probs(system: System, batch: Batch) -> Tensor:
    """log P of every word at every position of a forced pass, [S, T, V]."""
    forced = system(system.encode(batch), batch.target_in, batch.target_mask)
    return torch.log_softmax(system.scores(forced).values, dim=-1)


@torch.no_grad()
def assert_stepping_is_forcing(system: System, steps: int = 36, seed: int = 3) -> None:
    """Law 1. Beams are duplicated and permuted at every step, sentences are dropped and swapped on the way; what each
    surviving hypothesis was told at every step must be what one forced pass over its words says. 36 steps outgrow the
    first cache."""
    dtype = next(system.parameters()).dtype
    generator = torch.Generator().manual_seed(seed)
    sources, beams = random_sentences([7, 1, 4, 5], seed), 3
    state = system.start(system.encode(batch_of(system, sources)))
    words = torch.full((len(sources), 1), BOS, device=DEVICE)
    rows = torch.arange(len(sources), device=DEVICE)
    told, history = (
        torch.empty(len(sources), 1, 0, WORDS, dtype=dtype, device=DEVICE),
        torch.empty(len(sources), 1, 0, dtype=torch.long, device=DEVICE),
    )
    for step in range(steps):
        scores, state = system.step(words, state)
        told = torch.cat([told, torch.log_softmax(scores.values, dim=-1)[:, :, None]], dim=2)
        history = torch.cat([history, words[..., None]], dim=2)
        dropping = {4: [2, 0, 3], 9: [1, 0]}.get(step)
        kept = None if dropping is None else torch.tensor(dropping, device=DEVICE)
        parents = torch.randint(words.shape[1], (len(rows if kept is None else kept), beams), generator=generator)
        parents = parents.to(DEVICE)
        state = state.select(kept, parents)
        order = torch.arange(len(rows), device=DEVICE) if kept is None else kept
        rows, told, history = rows[order], told[order[:, None], parents], history[order[:, None], parents]
        words = torch.randint(EOS + 1, WORDS, parents.shape, generator=generator).to(DEVICE)
    targets = history[..., 1:].flatten(0, 1).tolist()
    repeated = [sources[row] for row in rows for _ in range(beams)]
    expected = log_probs(system, batch_of(system, repeated, targets))
    torch.testing.assert_close(told.flatten(0, 1), expected, atol=TOLERANCE[dtype], rtol=0)


@torch.no_grad()
def assert_company_changes_nothing(system: System, seed: int = 5) -> None:
    """Law 2. A sentence gets the same scores and loss terms alone and among longer ones, padded on both sides."""
    dtype = next(system.parameters()).dtype
    sources, targets = random_sentences([3, 1, 9, 5], seed), random_sentences([4, 6, 11, 0], seed + 1)
    batch = batch_of(system, sources, targets)
    together = log_probs(system, batch)
    terms = training_terms(system, batch)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = batch_of(system, [source], [target])
        close = {"atol": TOLERANCE[dtype], "rtol": 0}
        torch.testing.assert_close(together[row, : len(target) + 1], log_probs(system, alone)[0], **close)
        for name, value in training_terms(system, alone).items():
            torch.testing.assert_close(
                terms[name][row], value[0], atol=TOLERANCE[dtype] * 10, rtol=0, msg=lambda m, n=name: f"{n}: {m}"
            )


def training_terms(system: System, batch: Batch, label_smoothing: float = 0.1) -> dict[str, Tensor]:
    system.train()
    terms = system.losses(system(system.encode(batch), batch.target_in, batch.target_mask), batch, label_smoothing)
    system.eval()
    return terms


def awkward_batch(system: System | None = None) -> Batch:
    """One-word sentences, an empty target, and one row that is padding on both sides."""
    make = collate if system is None else partial(batch_of, system)
    batch = make(random_sentences([1, 0, 4, 2], 7), random_sentences([1, 0, 3, 5], 8))
    source_mask, target_mask = batch.source_mask.clone(), batch.target_mask.clone()
    source_mask[3], target_mask[3] = False, False
    real = {"source_mask": source_mask, "target_mask": target_mask, "target_tokens": int(target_mask.sum())}
    return replace(batch, **real).to(DEVICE)


def backward(system: System, batch: Batch) -> None:
    """The gradients of one training step."""
    system.zero_grad()
    terms = training_terms(system, batch)
    torch.stack([term.sum() for term in terms.values()]).sum().backward()


def assert_finite_gradients(system: System, batch: Batch) -> None:
    """Law 4: every parameter that takes part gets a finite gradient; at least one does."""
    backward(system, batch)
    gradients = {name: parameter.grad for name, parameter in system.named_parameters() if parameter.grad is not None}
    assert gradients
    assert [name for name, gradient in gradients.items() if not torch.isfinite(gradient).all()] == []


def assert_gradients_are_derivatives(system: System, batch: Batch) -> None:
    """Law 4: along a random direction each loss term changes as its gradient says, so nothing is cut off from it.

    Of a system that reads stored states of other sentences, which are constants, only the mechanisms that read them are
    moved.
    """
    readers = [mechanism for mechanism in system.mechanisms.values() if mechanism.context.states]
    parts = readers or [system]
    moved = [parameter for part in parts for parameter in part.parameters() if parameter.requires_grad]
    generator = torch.Generator().manual_seed(3)
    direction = [torch.randn(one.shape, generator=generator, dtype=one.dtype).to(one.device) for one in moved]
    terms = {name: term.sum() for name, term in training_terms(system, batch).items()}
    said = {}
    for name, term in terms.items():
        gradients = torch.autograd.grad(term, moved, retain_graph=True, allow_unused=True)
        pairs = zip(gradients, direction, strict=True)
        said[name] = sum(float((gradient * step).sum()) for gradient, step in pairs if gradient is not None)
    step_size, ends = 1e-7, []  # so small that hardly a ReLU turns
    with torch.no_grad():
        for factor in (1, -2):
            torch._foreach_add_(moved, direction, alpha=factor * step_size)
            ends.append({name: float(term.sum()) for name, term in training_terms(system, batch).items()})
        torch._foreach_add_(moved, direction, alpha=step_size)
    found = {name: (ends[0][name] - ends[1][name]) / (2 * step_size) for name in said}
    for name, term in terms.items():
        assert abs(found[name] - said[name]) <= 1e-4 * abs(said[name]) + 1e-6 * abs(float(term.detach())), (
            name, found[name], said[name]
        )  # fmt: skip


def assert_all_that_trains_learns(system: System, batch: Batch) -> None:
    """Law 4: no parameter waits for a gradient in vain: it would be counted, and processes would wait for it too.

    A matrix learns something; a bias may be one that a softmax does not notice.
    """
    backward(system, batch)
    trained = {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}
    assert [name for name, parameter in trained.items() if parameter.grad is None] == []
    assert [name for name, parameter in trained.items() if parameter.dim() > 1 and not parameter.grad.any()] == []
