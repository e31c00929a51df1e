"""The sections of the page Context: a sentence with its iteration slider, what its context changes, a test set,
pronouns. Each arranges controls and figures; what they show is computed by the drawings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from analyses.documents import how_far
from workbench.app.components import (
    document_context_input,
    empty_states,
    figure_view,
    forced_decoding_controls,
    page_sections,
    sentence_texts,
)
from workbench.app.frame import Frame, errors_as_messages, escape_markdown
from workbench.evaluation.document_context import CAPSULES, ContextSentences, attending, context_mechanisms
from workbench.evaluation.live_trace import SentenceTrace
from workbench.figures.options import choices, default
from workbench.figures.request import Request
from workbench.store.runs import Run, short_names
from workbench.views.contrastive import measure as contrastive
from workbench.views.document_context.attention_figures import ContextAttentionOptions, sides
from workbench.views.document_context.figures import CORRELATIONS, SHOWN, ContextRoutingOptions, array

FIGURES = {
    "own": "As chosen below",
    "6": "Figure 6: c of all iterations",
    "7": "Figure 7: p of all iterations",
}
PRESETS: dict[str, dict[str, object]] = {"6": {"show": "c"}, "7": {"show": "p"}}
OVER = {"words": "Words", "sentences": "Sentences"}


def sentence(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """The context's texts, then maps of capsules by iteration, then attention to the context."""
    sentence_texts.show(frame)
    with errors_as_messages():
        translation = forced_decoding_controls.target()
        looked = forced_decoding_controls.looked_into(frame, compatible_runs, translation)
        show_context(frame, looked)
        if not any(one.before is not None and one.before.there for one in looked):
            return
        routed = [one for one in looked if CAPSULES in context_mechanisms(one.run)]
        if routed:
            _capsules(frame, routed, translation)
        attended = [one.run for one in looked if attending(one.run)]
        if attended:
            _attention(frame, attended, translation)
        joined = [one.run for one in looked if "concatenation" in context_mechanisms(one.run)]
        if joined:
            said = ", ".join(short_names(frame.tested)[run.name] for run in joined)
            st.text(f"{said}: the sentences before are part of the source; the page Attention shows who looks at them.")


def show_context(frame: Frame, looked: Sequence[SentenceTrace]) -> None:
    """The sentences around this one, as far as any run reads, and what runs read as their translations."""
    names = short_names(frame.tested)
    read = {names[one.run.name]: one.before for one in looked if one.before is not None}
    lines = document_context_input.around(read.values())
    if not lines:
        st.text("This sentence begins its document, or no document is known: there is no context.")
        return
    with st.container(border=True):
        for distance, text in lines.items():
            _line(how_far(distance), text)
            for translation, whose in _translations(read, distance).items():
                _line(f"translation read by {', '.join(whose)}", translation)
    reach = ", ".join(f"{name} reads {_reach(read.get(name))}" for name in (names[one.run.name] for one in looked))
    st.caption(escape_markdown(f"Sentences before: {reach}."))


def _translations(read: Mapping[str, ContextSentences], distance: int) -> dict[str, list[str]]:
    """What is read as the translation of a sentence so far before, each with the names of the runs that read it."""
    found: dict[str, list[str]] = {}
    for name, before in read.items():
        for entry, text in enumerate(before.outputs or ()):
            if text is not None and before.distance(entry) == distance:
                found.setdefault(text, []).append(name)
    return found


def _reach(before: ContextSentences | None) -> str:
    """How many sentences a run reads before one and, where it reads these, after it."""
    if before is None:
        return "0"
    after = f" and {before.after} after" if before.after else ""
    return f"{len(before.sources) - before.after}{after}"


def _line(label: str, text: str) -> None:
    side, wide = st.columns([1, 6], gap="small")
    side.caption(escape_markdown(label))
    wide.text(text or "(empty)")


def _capsules(frame: Frame, looked: Sequence[SentenceTrace], translation: dict[str, object]) -> None:
    st.subheader("Capsules")
    columns = st.columns([3, 3, 3, 2], vertical_alignment="bottom")
    preset = columns[0].selectbox(
        "Yang 2019", list(FIGURES), format_func=FIGURES.__getitem__, key="figure", bind="query-params"
    )
    show = columns[1].segmented_control(
        "Maps", choices(ContextRoutingOptions, "show"), format_func=SHOWN.__getitem__,
        default=default(ContextRoutingOptions, "show"), required=True, key="maps", bind="query-params",
        disabled=preset != "own",
    )  # fmt: skip
    correlation = columns[2].segmented_control(
        "Correlation", choices(ContextRoutingOptions, "correlation"), format_func=CORRELATIONS.__getitem__,
        default=default(ContextRoutingOptions, "correlation"), required=True, key="correlation", bind="query-params",
        help="Equation 7 as published divides by lengths before the means are taken off: it is no correlation",
    )  # fmt: skip
    raw = columns[3].toggle("Without tanh", False, key="raw", bind="query-params")
    options = {"show": show, "correlation": correlation, "raw": raw, **PRESETS.get(preset, {})}
    runs = [one.run for one in looked]
    count = min(len(array(one, "couplings")) for one in looked)
    _scrub(frame.request(runs, **translation), options, count, preset == "own")
    figure_view.show("context-curves", frame.request(runs, **translation))
    figure_view.show("context-capsules-read", frame.request(runs, **translation))


def change(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """What leaving words and sentences of the context out does to the translation, forced live."""
    sentence_texts.show(frame)
    with errors_as_messages():
        translation = forced_decoding_controls.target()
        looked = forced_decoding_controls.looked_into(frame, compatible_runs, translation)
        show_context(frame, looked)
        there = [one.run for one in looked if one.before is not None and one.before.there]
        if there:
            figure_view.show("context-changes", frame.request(there, **translation))


def corpus(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """How the context is routed over the test set."""
    routed = list(filter(_routes_context, compatible_runs))
    if not routed:
        page_sections.none_able(frame, "routes its context to capsules", _routes_context, "qcn-reg")
        return
    options = forced_decoding_controls.sentence_count(st, "context-sentences")
    figure_view.show("context-corpus", frame.request(routed, **options))
    figure_view.show("context-distances", frame.request(routed, **options))


def _routes_context(run: Run) -> bool:
    return CAPSULES in context_mechanisms(run)


def pronouns(frame: Frame, compatible_runs: Sequence[Run]) -> None:
    """Pronouns by how far back they were decided: as they were written, and as they are scored; the majority beside."""
    test = frame.view.test
    if any(run.translations(test).truth is None for run in frame.tested):
        empty_states.empty_state(
            f"The test set {test!r} does not say which pronoun is right; the controlled corpus does. Write one, "
            "prepare it and train on it:",
            "workbench data controlled --out DIR",
        )
        return
    st.subheader("As they were written")
    figure_view.show("true-choices", frame.request())
    st.subheader("Contrastive evaluation")
    name = f"controlled-{test}"
    models = [run for run in frame.tested if not run.outside]
    scored = [run for run in models if name in contrastive.names(run)]
    if scored:
        figure_view.show("contrastive", frame.request(scored, name=name, tag="distance"))
    waiting = [run for run in models if run not in scored]
    if waiting:
        said = f"Not scored yet: {', '.join(run.name for run in waiting)}. Score the pronouns of its test set:"
        command = f"workbench contrastive-eval --controlled {shlex.quote(test)} --run {{}}"
        empty_states.empty_state_of_runs(said, waiting, command)


@st.fragment
def _scrub(request: Request, options: dict[str, object], count: int, free: bool) -> None:
    """The iteration is a slider: the three rows of one iteration, or those of all."""
    steps = [*map(str, range(count)), "all"]
    chosen = forced_decoding_controls.slider(st, "Iteration", "iteration", steps, str(count - 1)) if free else "all"
    figure_view.show(
        "context-routing",
        replace(request, options={**request.options, **options, "iteration": chosen}),
    )


def _attention(frame: Frame, runs: Sequence[Run], translation: dict[str, object]) -> None:
    st.subheader("Attention to the context")
    columns = st.columns(3, vertical_alignment="bottom")
    known = sides(list(runs))
    side = columns[0].segmented_control(
        "From", known, format_func=str.capitalize, default=known[0], required=True, key="context-side",
        bind="query-params",
    )  # fmt: skip
    over = columns[1].segmented_control(
        "To", choices(ContextAttentionOptions, "over"), format_func=OVER.__getitem__,
        default=default(ContextAttentionOptions, "over"), required=True, key="context-over", bind="query-params",
    )  # fmt: skip
    limit = columns[2].select_slider(
        "Color scale maximum",
        [1.0, 0.5, 0.25, 0.1],
        1.0,
        key="limit",
        bind="query-params",
        help="The share that gets the darkest color",
    )
    figure_view.show("context-attention", frame.request(runs, **translation, side=side, over=over, limit=limit))
