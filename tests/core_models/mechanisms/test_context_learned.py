"""Every reader of context learns what only the sentences before decide, and a system of single sentences cannot.

A noun of one of two genders stands in one of three sentences before "it", among words without gender; the pronoun that
translates "it" has the noun's gender. Words are numbers: this is about learning, not about text.
"""

import random

import pytest
import torch

from core_models.system_builder import build
from core_models.text.batches import Batch, collate
from core_models.text.documents import prepend_context
from core_models.text.vocabulary import EOS
from tests.kinds import sampled

pytestmark = pytest.mark.long

FIRST = EOS + 1
NOUNS = list(range(FIRST, FIRST + 6))  # even ones are feminine, odd ones masculine
FILLERS = list(range(FIRST + 6, FIRST + 10))
IT, SHE, HE = FIRST + 10, FIRST + 11, FIRST + 12
VERBS = list(range(FIRST + 13, FIRST + 16))
WORDS = FIRST + 16


def drawn_batch(system, draw: random.Random, sentences: int = 48) -> tuple[Batch, torch.Tensor]:
    """Verbs behind "it", after three sentences of which one holds the noun, and the right pronouns [S]."""
    sources, targets, contexts, pronouns = [], [], [], []
    for _ in range(sentences):
        noun, verb, where = draw.choice(NOUNS), draw.choice(VERBS), draw.randrange(3)
        before = [draw.sample(FILLERS, 2) for _ in range(3)]
        before[where].insert(draw.randrange(3), noun)
        pronouns.append(SHE if noun % 2 == 0 else HE)
        sources.append([IT, verb])
        targets.append([pronouns[-1], verb])
        contexts.append(before)
    use = system.context
    if use.joined:
        sources = [prepend_context(*both) for both in zip(sources, contexts, strict=True)]
    apart = contexts if use.sentences and not use.joined else None
    return collate(sources, targets, apart, outputs=apart if use.outputs else None), torch.tensor(pronouns)


def accuracy_after(name: str, steps: int) -> float:
    """How often the right pronoun is the more probable one, after so many updates, on sentences drawn afresh."""
    torch.manual_seed(1)
    draw = random.Random(1)
    system = build(f"{name}{',' if ':' in name else ':'}preset=tiny,dropout=0,attention_dropout=0", WORDS)
    optimizer = torch.optim.Adam(system.parameters(), lr=3e-3)
    for _ in range(steps):
        batch, _ = drawn_batch(system, draw)
        terms = system.losses(system(system.encode(batch), batch.target_in, batch.target_mask), batch)
        (torch.stack([term.sum() for term in terms.values()]).sum() / batch.target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(system.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    system.eval()
    batch, pronouns = drawn_batch(system, draw, 200)
    with torch.no_grad():
        scores = system.scores(system(system.encode(batch), batch.target_in, batch.target_mask)).values[:, 0]
    chosen = torch.where(scores[:, SHE] > scores[:, HE], SHE, HE)
    return float((chosen == pronouns).double().mean())


READERS = [
    "qcn", "qcn:grouping=per_sentence,transforms=per_distance", "qcn:correlation=eq7", "qcn-reg",
    "document-transformer", "han-encoder", "han-decoder", "han", "san", "san-encoder", "concatenation",
]  # fmt: skip


@pytest.mark.parametrize("name", sampled(READERS, every=12))
@pytest.mark.slow
def test_a_reader_learns_it(name):
    assert accuracy_after(name, 150) >= 0.95


@pytest.mark.slow
def test_single_sentences_cannot_know():
    assert accuracy_after("transformer", 60) < 0.65
