"""The page of a mechanism: its options, trace arrays, figures and systems are those of the code."""

from __future__ import annotations

import re

import pytest
import torch

from core_models.system_catalogue import MECHANISMS, SYSTEMS
from core_models.traces import TraceWriter
from tests.core_models.laws import batch_of, random_sentences, random_system
from tests.docs.pages import TEXTS, section
from workbench.figures.registry import load

FOLDER = "docs/mechanisms/"
TRACED = {  # the system that records every array of a mechanism, where it is not the first one that has it
    "dynamic_routing": "dynamic-routing:encoder_layers=2",
    "em_routing": "em-routing:encoder_layers=2",
    "guided_capsules": "gdr-bow-bca",
    "future_cost": "future-cost-2",
    "past_future_layers": "pfrnn-loss",
    "hierarchical_attention": "han",
    "selective_attention": "san",
}


def page(mechanism: str) -> str:
    return TEXTS[f"{FOLDER}{mechanism.replace('_', '-')}.md"]


@torch.no_grad()
def recorded(system: str) -> dict[str, set[str]]:
    """Arrays of a forced pass and their axes."""
    made = random_system(system)
    batch = batch_of(made, random_sentences([7, 5], 1), random_sentences([4, 6], 2))
    writer = TraceWriter(["*"])
    made(made.encode(batch, writer), batch.target_in, batch.target_mask, writer)
    return {name: set(axes) for name, (axes, _, _) in writer.arrays.items()}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_mechanism_has_a_page_with_all_parts(mechanism):
    text = page(mechanism)
    for heading in ("Idea", "Equations", "Departures from the paper", "Options", "Trace", "Figures"):
        assert section(text, f"## {heading}").strip(), f"nothing stands under {heading}"
    assert f"<!-- options: {mechanism} -->" in text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_trace_arrays_are_those_that_are_recorded(mechanism):
    rows = re.findall(r"^\| `([\w.]+)` \| ([\w, ]+) \|", section(page(mechanism), "## Trace"), flags=re.MULTILINE)
    said = {name: set(axes.split(", ")) for name, axes in rows}
    system = TRACED.get(mechanism) or next(name for name in SYSTEMS if _has(name, mechanism))
    assert said == {name: axes for name, axes in recorded(system).items() if name.startswith(f"{mechanism}.")}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_figures_and_systems_that_are_named_exist(mechanism):
    figures = re.findall(r"`([a-z]+(?:-[a-z]+)*)`", section(page(mechanism), "## Figures"))
    assert [name for name in figures if name not in {*load(), *SYSTEMS}] == []
    named = re.findall(r"`([\w-]+)`", re.search(r"Systems?:(.*?)Mechanism:", page(mechanism), flags=re.DOTALL)[1])
    assert named
    assert [name for name in named if not _has(name, mechanism)] == []


def _has(system: str, mechanism: str) -> bool:
    """Is it a system with this mechanism?"""
    return system in SYSTEMS and any(mechanism in entry for entry in SYSTEMS[system].model.get("mechanisms", ()))


def test_the_list_of_mechanisms_names_every_system_that_has_one():
    table = section(TEXTS[f"{FOLDER}README.md"], "# Mechanisms")
    assert [name for name, entry in SYSTEMS.items() if entry.model.get("mechanisms") and f"`{name}`" not in table] == []
