"""Options of figures are read at one door: text, JSON and typed values make one model, and a command names what
differs."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from analyses.word_coverage import MEASURES
from tests.kinds import sampled
from workbench import cli
from workbench.cli.shared import pairs
from workbench.evaluation.adequacy import TOWARDS
from workbench.evaluation.live_trace import TARGETS
from workbench.evaluation.scoring import TESTS
from workbench.evaluation.word_frequencies import COUNTED
from workbench.figures.options import FigureOptions, ForcedOptions, changed_options, choices, read
from workbench.figures.registry import FIGURES, FigureSpec, load
from workbench.figures.request import Request
from workbench.figures.spec import figure_command, recipe_of
from workbench.store.runs import RunError
from workbench.views import analyses
from workbench.views.adequacy.figures import AdequacyOptions
from workbench.views.adequacy.gold_figures import TrueAdequacyOptions
from workbench.views.attention import controls as attention
from workbench.views.attribution.measure import BASELINES, METHODS
from workbench.views.document_context import figures as context
from workbench.views.document_context import sections as context_sections
from workbench.views.layer_routing import sections as routing
from workbench.views.past_future.corpus_figures import RANKED, UnderTranslationOptions
from workbench.views.past_future.gold_figures import TruthOptions
from workbench.views.past_future.sections import PRESENT

pytestmark = pytest.mark.long

OWN = {name: spec for name, spec in load().items() if spec.options is not None}
FIELDS = [(name, option) for name, spec in OWN.items() for option in spec.options.model_fields]
# Texts that YAML would read as something else among them.
TEXTS = st.sampled_from(["yes", "1.50", "null", "a: b", "7", "[x", "2020-01-01", "ein Haus", "a=b,c"]) | st.text(
    st.characters(exclude_categories=["C", "Zl", "Zp"])
)


def _values(kind):
    """Values of one kind of JSON Schema."""
    if "enum" in kind or "const" in kind:
        return st.sampled_from(kind.get("enum") or [kind["const"]])
    match kind["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(kind.get("minimum", kind.get("exclusiveMinimum", -1) + 1), 10**6)
        case "number":
            above, below = "exclusiveMinimum" in kind, "exclusiveMaximum" in kind
            low = kind.get("exclusiveMinimum", kind.get("minimum"))
            high = kind.get("exclusiveMaximum", kind.get("maximum"))
            return st.floats(low, high, exclude_min=above, exclude_max=below, allow_nan=False, allow_infinity=False)
        case "array" if "prefixItems" in kind:
            return st.tuples(*map(_values, kind["prefixItems"]))
        case "array" if kind["items"]["type"] == "string":
            return st.lists(st.text("abc-1", min_size=1)).map(tuple)
        case "array":
            return st.lists(_values(kind["items"])).map(tuple)
    return TEXTS


@st.composite
def given_options(draw):
    """A figure, one of its options, and a value that it takes."""
    name, option = draw(st.sampled_from(FIELDS))
    schema = OWN[name].options.model_json_schema()["properties"][option]
    value = draw(st.one_of(*map(_values, schema.get("anyOf", [schema]))))
    try:
        return name, option, value, read(OWN[name].options, {option: value}, name)
    except RunError:  # a text that must be readable itself: weights
        assume(False)


@settings(deadline=None, max_examples=300)
@given(given_options())
def test_the_printed_command_says_the_same_options_and_only_what_differs(case):
    name, option, value, wanted = case
    words = shlex.split(figure_command(name, Request((), options={option: value})))
    told = pairs([words[place + 1] for place, word in enumerate(words) if word == "--option"], "--option")
    assert read(OWN[name].options, told, name) == wanted
    assert set(told) == ({option} if getattr(wanted, option) != getattr(OWN[name].options(), option) else set())


@settings(deadline=None, max_examples=300)
@given(given_options())
@example(("scores-by-test", "tests", ("-",), OWN["scores-by-test"].read({"tests": ["-"]})))
def test_text_json_and_typed_values_are_one(case):
    name, option, value, wanted = case
    stored = recipe_of(name, Request((), options={option: value})).options
    assert read(OWN[name].options, json.loads(json.dumps(stored)), name) == wanted
    if isinstance(value, bool | int | float | tuple):  # as `--option` has it without quotes
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        assert read(OWN[name].options, {option: text}, name) == wanted
        assert read(OWN[name].options, pairs([f"{option}={text}"], "--option"), name) == wanted


@pytest.mark.parametrize("name", list(OWN))
def test_every_figure_and_option_says_what_it_is_and_defaults_can_be_said(name):
    spec = OWN[name]
    assert spec.summary.endswith(".")
    assert [option for option, field in spec.options.model_fields.items() if not field.description] == []
    usual = spec.options()
    assert spec.read(usual.model_dump()) == spec.read(usual.model_dump(mode="json")) == usual
    assert changed_options(usual) == {}
    assert recipe_of(name, Request((), options=usual.model_dump())) == recipe_of(name, Request(()))


@pytest.mark.parametrize("name", sampled(OWN))
def test_show_lists_the_options_of_a_figure(name):
    shown = CliRunner().invoke(cli.app, ["figure", "show", name], catch_exceptions=False).stdout.splitlines()
    assert shown[0] == f"{name}: {OWN[name].summary}"
    options = list(OWN[name].options.model_fields)
    assert [line.split()[0] for line in shown[2:]] == options
    assert options or shown[1:] == ["it has no options"]


def test_no_figure_has_the_name_of_a_subcommand():
    assert not {"list", "show"} & set(FIGURES)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("attention", {"part": "self"}, "part 'self': choose cross, encoder, decoder"),
        ("attention", {"layer": "first"}, "layer 'first': write mean, rollout, each, or a number from 1"),
        ("attention", {"layer": 0}, "layer 0: write mean, rollout, each, or a number from 1"),
        ("attention", {"layer": True}, "layer True: write mean, rollout, each, or a number from 1"),
        ("attention", {"limit": 1.5}, "limit 1.5: write auto, or a number above 0, up to 1"),
        ("attention", {"limit": float("nan")}, "limit nan: write auto, or a number above 0, up to 1"),
        ("attention", {"words": "perhaps"}, "words 'perhaps': write true or false"),
        ("past-future-strip", {"steps": "1,-2"}, "steps '1,-2': write numbers from 0, with commas between"),
        ("beam-tree", {"steps": [1]}, r"steps \[1\]: write all, or two numbers from 1, with commas between"),
        ("training-curves", {"smoothing": 1}, "smoothing 1: write a number from 0, below 1"),
        ("past-future-truth", {"probe": "some"}, "probe 'some': write a number from 1, or true or false"),
        ("rescoring", {"weights": "past"}, "weights 'past': write PART=NUMBER with commas between"),
        ("scores", {"metric": "ter"}, "there is no option 'metric' of scores; there is preset, reference, metrics"),
        ("true-choices", {"metric": "ter"}, "there is no option 'metric' of true-choices; there is none"),
    ],
)
def test_a_value_that_will_not_do_is_answered_in_a_sentence(name, options, said):
    with pytest.raises(RunError, match=f"^{said}"):
        OWN[name].read(options)


def test_below_the_door_there_is_the_model_alone():
    class Shaded(FigureOptions):
        limit: float = 1.0

    asked = []
    spec = FigureSpec("shaded", lambda request, options: asked.append((request.options, options)), options=Shaded)
    spec.draw(Request((), options={"limit": "0.5"}))
    assert asked == [({}, Shaded(limit=0.5))]


@pytest.mark.parametrize(
    ("model", "option", "names"),
    [
        (ForcedOptions, "target", TARGETS),
        (AdequacyOptions, "towards", TOWARDS),
        (TrueAdequacyOptions, "measure", MEASURES),
        (analyses.ComparisonOptions, "method", TESTS),
        (OWN["word-f-measure"].options, "counts", COUNTED),
        (OWN["length-scores"].options, "counts", COUNTED),
        (OWN["attribution"].options, "method", METHODS),
        (OWN["attribution"].options, "baseline", BASELINES),
        (attention.AttentionOptions, "part", attention.PART_NAMES),
        (attention.AttentionOptions, "part", attention.PARTS),
        (attention.AttentionOptions, "layer", attention.NAMES),
        (context.ContextRoutingOptions, "show", context.SHOWN),
        (context.ContextRoutingOptions, "correlation", context.CORRELATIONS),
        (context_sections.ContextAttentionOptions, "over", context_sections.OVER),
        (routing.RoutingMapsOptions, "order", routing.ORDERS),
        (routing.RoutingCorpusOptions, "formula", routing.FORMULAS),
        (UnderTranslationOptions, "by", RANKED),
        (TruthOptions, "present", PRESENT),
    ],
)
def test_what_an_option_may_be_has_a_name_on_pages_and_a_meaning_below(model, option, names):
    assert set(choices(model, option)) == set(names)
