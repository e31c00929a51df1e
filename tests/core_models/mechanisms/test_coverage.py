"""Coverage: the hand-computed case, the equations written out in NumPy, refusals, what the trace holds."""

import numpy as np
import pytest
import torch

from core_models.mechanisms.coverage import accumulated
from core_models.settings import ConfigError
from core_models.system_builder import build
from core_models.text.batches import collate
from core_models.text.vocabulary import BOS, EOS
from core_models.traces import TraceWriter
from tests.core_models.laws import WORDS, log_probs, random_sentences, random_system
from tests.core_models.recurrent_numpy import Recurrent

ATTENTION = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("form", "fertility", "expected"),
    [
        ("additive", [1, 2, 0.5], [0.6, 0.55, 0.6]),
        ("additive", None, [0.6, 1.1, 0.3]),
        ("bounded", None, [0.6, 1, 0.3]),
        ("subtractive", [1, 2, 0.5], [0.4, 0.45, 0.4]),
        ("max", None, [0.5, 0.8, 0.2]),
        ("max", [1, 2, 0.5], [0.5, 0.4, 0.4]),
        ("mean", None, [0.3, 0.55, 0.15]),
        ("mean", [1, 2, 0.5], [0.3, 0.275, 0.3]),
    ],
)
def test_t12_coverage_by_hand(form, fertility, expected):
    phi = None if fertility is None else torch.tensor([fertility], dtype=torch.float64)
    coverage = torch.full((1, 1, 3), 1.0 if form == "subtractive" else 0.0, dtype=torch.float64)
    for step, weights in enumerate(ATTENTION, start=1):
        coverage = accumulated(coverage, weights[None, None], phi, form, torch.full((1, 1, 1), float(step)))
    torch.testing.assert_close(coverage[0, 0], torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    "name",
    [
        "coverage",
        "coverage:fertility=false",
        "coverage:form=subtractive,most_words=3",
        "coverage:form=bounded,fertility=false,attention_width=24",
        "coverage:form=max,fertility=false",
        "coverage:form=mean,most_words=3",
        "coverage:form=neural,units=3",
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_forced_pass_is_the_equations(name, seed):
    system = random_system(name, seed=seed)
    sources, targets = random_sentences([4, 1, 6], seed), random_sentences([5, 3, 2], seed + 7)
    batch = collate(sources, targets)
    writer = TraceWriter(["*"])
    with torch.no_grad():
        ours = log_probs(system, batch)
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    traces = writer.sentences({"source": [5, 2, 7], "target": [6, 4, 3]})
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        expected = Recurrent(system).force([*source, EOS], [BOS, *target])
        np.testing.assert_allclose(ours[row, : len(target) + 1], expected["decoder"], atol=1e-10)
        covered = expected["coverage"] if "neural" in name else expected["coverage"][..., 0]
        np.testing.assert_allclose(traces[row]["coverage.coverage"].values, covered, atol=1e-5)


def test_the_trace_names_fertility_and_coverage():
    system = random_system("coverage:most_words=3")
    batch = collate(random_sentences([4], 1), random_sentences([5], 2))
    writer = TraceWriter(["*"])
    with torch.no_grad():
        system(system.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    trace = writer.sentences({"source": [5], "target": [6]})[0]
    fertility, coverage = trace["coverage.fertility"], trace["coverage.coverage"]
    assert (fertility.axes, coverage.axes) == (("source",), ("target", "source"))
    assert ((fertility.values > 0) & (fertility.values < 3)).all()
    attention = trace["decoder.cross_attention"].values[0, 0]
    np.testing.assert_allclose(coverage.values, np.cumsum(attention, axis=0) / fertility.values, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("coverage:units=4", "units: does nothing while form is additive; leave it out, or set form to neural"),
        ("coverage:form=neural,fertility=false", "fertility: does nothing while form is neural"),
        ("coverage:form=neural,most_words=3", "most_words: does nothing while form is neural"),
        ("coverage:fertility=false,most_words=3", "most_words: does nothing while fertility is False"),
        (
            "coverage:backbone=transformer",
            "coverage needs the hook point ENERGY, AFTER_ATTENTION, which transformer does not have",
        ),
    ],
)
def test_what_means_nothing_is_refused(name, reason):
    with pytest.raises(ConfigError, match=reason):
        build(name, WORDS)


@pytest.mark.parametrize(
    "change",
    ["fertility=false", "form=subtractive", "form=bounded", "form=max", "form=mean", "form=neural", "most_words=1"],
)
def test_every_switch_changes_the_scores(change):
    one, other = random_system("coverage"), random_system(f"coverage:{change}")
    shapes = {name: value.shape for name, value in other.state_dict().items()}
    shared = {name: value for name, value in one.state_dict().items() if shapes.get(name) == value.shape}
    other.load_state_dict({**other.state_dict(), **shared})
    batch = collate(random_sentences([4], 1), random_sentences([9], 2))
    with torch.no_grad():
        assert (log_probs(one, batch) - log_probs(other, batch)).abs().max() > 1e-6
