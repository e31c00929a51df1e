"""Help: the glossary, its search, formulas, keys and files; all of it true of this app."""

import pytest

from tests.workbench.views.app_pages import codes, open_page, texts
from workbench.app import glossary, sidebar
from workbench.app.pages import PAGES
from workbench.plotting import theme
from workbench.views.help import tables as help_tables

ASKED_FOR = (
    "run", "system", "test set", "beam", "pruned", "length penalty", "coverage difference ratio", "bootstrap", "AER",
    "approximate randomization", "Holm", "completeness", "entropy", "rank", "future cost",
)  # fmt: skip


def test_terms_are_told_once_and_lead_to_pages_that_are_there():
    names = [name.casefold() for term in glossary.terms() for name in (term.name, *term.also)]
    assert len(names) == len(set(names))
    assert {term.page for term in glossary.terms()} - {""} <= set(PAGES)
    assert [name for name in ASKED_FOR if name.casefold() not in names] == []


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("CDR", "Coverage difference ratio"),
        ("pruned", "Pruned"),
        ("logit", "Logit lens"),
        ("randomis", "Approximate randomization"),
        (" holm ", "Holm's correction"),
    ],
)
def test_a_term_is_found_by_any_of_its_names(wanted, first):
    assert glossary.find(glossary.terms(), wanted)[0].name == first


def test_baselines_are_drawn_in_the_colors_that_the_glossary_names():
    (baseline,) = [term.definition for term in glossary.terms() if term.name == "Baseline"]
    colors = {"transformer": ("black", "#000000"), "rnnsearch": ("orange", "#D55E00")}
    for system, (name, color) in colors.items():
        assert f"called {system} {'are drawn ' if system == 'transformer' else ''}{name}" in baseline
        assert {theme.style_on_line(f"demo/{system}", line).colour for line in range(len(theme.LINES))} == {color}


def test_terms_that_only_speak_of_a_text_come_after_those_it_names():
    found = [term.name for term in glossary.find(glossary.terms(), "beam")]
    named = [term.name for term in glossary.terms() if "beam" in " ".join((term.name, *term.also)).casefold()]
    assert found[: len(named)] == named
    assert len(found) > len(named)
    assert glossary.find(glossary.terms(), "") == list(glossary.terms())
    assert glossary.find(glossary.terms(), "no such thing") == []


def test_the_page_searches_its_glossary_and_draws_every_formula(with_demo):
    at = open_page("help", term="completeness")
    (term,) = [term for term in glossary.terms() if term.name == "Completeness"]
    assert term.definition in texts(at)
    assert sum(known.definition in texts(at) for known in glossary.terms()) < 5
    assert [element.value.strip("$\n ") for element in at.latex] == [one.latex for one in glossary.formulas()]
    assert f"WORKBENCH_DEBUG=1 workbench app --runs {with_demo}" in codes(at)


def test_the_keys_are_those_of_the_buttons():
    assert {sidebar.PREVIOUS_KEY, sidebar.NEXT_KEY} <= set(help_tables.KEYS)


def test_all_that_lies_in_a_run_is_told(demo_runs):
    told = {name.split("/")[0] for name in help_tables.IN_A_RUN}
    for run in (demo_runs / "demo").glob("*/config.yaml"):
        assert {path.name for path in run.parent.iterdir()} - told == set()
